"""How a server is reached: TLS, names, addresses, and what HTTP lets a server do."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest, Completion
from edge_agentic.engine.openai import OpenAIEngine, ServedModel
from edge_agentic.engine.openai_endpoint import Endpoint, parse_base_url
from tests.socket_server import STREAM_HEAD, Act, SocketServer, chunked, delta, response, stream

ANSWER = [delta({"content": "hello"}), delta({}, "stop")]
GOOD = stream(ANSWER)


def ask(endpoint: Endpoint, times: int = 1, deadline_s: float = 5.0) -> list[Completion]:
    engine = OpenAIEngine(ServedModel(endpoint, "m"))
    asked = ChatRequest("r", "c", [{"role": "user", "content": "hi"}], (), 8, deadline_s)
    try:
        return [engine.generate(asked) for _ in range(times)]
    finally:
        engine.close()


@pytest.fixture(scope="module", params=["IP:127.0.0.1,DNS:localhost"])
def certificate(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A self-signed certificate and its key, in one file."""
    return make_certificate(tmp_path_factory.mktemp("tls"), request.param)


def make_certificate(folder: Path, names: str) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, made, both = folder / "key.pem", folder / "made.pem", folder / "both.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=test", "-addext", f"subjectAltName={names}"]
    subprocess.run([*words, "-keyout", key, "-out", made], check=True, capture_output=True)
    both.write_bytes(key.read_bytes() + made.read_bytes())
    return both


def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_trusted_certificate_is_taken_and_the_connection_kept(
    name: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    named: list[str | None] = []
    context = tls(certificate)
    context.sni_callback = lambda connection, server_name, _: named.append(server_name)
    with SocketServer([GOOD], [GOOD], tls=context) as server:
        completions = ask(replace(server.endpoint, host=name), times=2)
    assert [completion.content for completion in completions] == ["hello", "hello"]
    assert server.connections == 1
    assert named == [name if name == "localhost" else None]


def test_an_untrusted_certificate_is_refused(certificate: Path) -> None:
    with SocketServer(tls=tls(certificate)) as server:
        (completion,) = ask(server.endpoint)
    assert server.requests == []
    assert completion.outcome is Outcome.ENGINE_FAILED
    assert "the server's certificate is not trusted (self-signed certificate)" in str(
        completion.error
    )


def test_a_certificate_for_another_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path, "DNS:other.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with SocketServer(tls=tls(certificate)) as server:
        (completion,) = ask(server.endpoint)
    assert server.requests == []
    assert "the server's certificate is not trusted (IP address mismatch)" in str(completion.error)


def test_a_server_without_tls_is_not_asked_over_https() -> None:
    with SocketServer([b"HTTP/1.1 400 Bad Request\r\n\r\n", Act.CLOSE]) as server:
        (completion,) = ask(replace(server.endpoint, scheme="https"), deadline_s=0.5)
    assert server.requests == []
    assert str(completion.error).startswith("connection_refused: ")


def test_an_ipv6_address_is_reached_and_named_in_brackets() -> None:
    try:
        server = SocketServer([GOOD], host="::1")
    except OSError as error:
        pytest.skip(f"no IPv6 here ({error})")
    with server:
        url = f"http://[::1]:{server.endpoint.port}/v1"
        (completion,) = ask(parse_base_url(url))
    assert completion.content == "hello"
    assert f"\r\nHost: [::1]:{server.endpoint.port}\r\n" in server.requests[0][0]


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        proxy = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy)
    with SocketServer([GOOD]) as server:
        (completion,) = ask(server.endpoint)
    assert completion.content == "hello"
    assert "\r\nAccept-Encoding: identity\r\n" in server.requests[0][0]


def test_chunks_may_have_extensions_and_trailers() -> None:
    size, _, rest = chunked(b"".join(ANSWER)).partition(b"\r\n")
    answer = STREAM_HEAD + size + b" ;name=value\r\n" + rest + b"0;last\r\nX-Sum: 5\r\n\r\n"
    with SocketServer([answer], [GOOD]) as server:
        completions = ask(server.endpoint, times=2)
    assert [completion.content for completion in completions] == ["hello", "hello"]
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        GOOD.replace(b"Transfer-Encoding", b"Content-Length: 5\r\nTransfer-Encoding", 1),
        GOOD.replace(b"HTTP/1.1", b"HTTP/1.0", 1),
        GOOD.replace(b"Transfer-Encoding", b"Connection: close\r\nTransfer-Encoding", 1),
    ],
    ids=["with two lengths", "of HTTP/1.0", "that says so"],
)
def test_no_further_request_is_sent_on_the_connection_of_an_answer(answer: bytes) -> None:
    with SocketServer([answer, Act.CLOSE], [GOOD]) as server:
        completions = ask(server.endpoint, times=2)
    assert [completion.content for completion in completions] == ["hello", "hello"]
    assert server.connections == 2


def test_a_server_that_closes_after_each_answer_meets_no_request() -> None:
    refused = [response(b"", status="400 Bad Request")]
    script = [GOOD, 0.02, Act.CLOSE]
    with SocketServer(refused, script, script, script) as server:
        completions = ask(server.endpoint, times=4)
    assert [completion.content for completion in completions[1:]] == ["hello"] * 3
    assert server.connections == 3


def test_a_length_may_come_twice_if_it_is_the_same() -> None:
    body = b"".join(ANSWER)
    again = f"Content-Length: {len(body)}\r\n"
    answer = response(body, content_type="text/event-stream", more=again)
    with SocketServer([answer]) as server:
        (completion,) = ask(server.endpoint)
    assert completion.content == "hello"
