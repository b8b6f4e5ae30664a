"""Whatever a server does, a turn ends in one outcome, and the next turn is asked all the same."""

from __future__ import annotations

import json
import socket

import pytest

from edge_agentic.core.errors import RequirementError
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest, Completion
from edge_agentic.engine.openai import OpenAIEngine, ServedModel
from edge_agentic.engine.openai_endpoint import ApiKey, Endpoint, read_api_key
from edge_agentic.engine.openai_faults import Fault
from tests.socket_server import (
    DONE,
    STREAM_HEAD,
    Act,
    SocketServer,
    Step,
    chunked,
    delta,
    event,
    response,
    stream,
)

GOOD = stream(
    [
        delta({"role": "assistant", "content": ""}),
        delta({"content": "hello"}),
        delta({}, "stop"),
        event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}),
    ]
)
HELLO = delta({"content": "hel"})


def request(deadline_s: float = 5.0, *, force_length: bool = False, tokens: int = 8) -> ChatRequest:
    return ChatRequest(
        "r", "c", [{"role": "user", "content": "hi"}], (), tokens, deadline_s, force_length
    )


def ask(
    *scripts: list[Step], deadline_s: float = 5.0, force_length: bool = False
) -> list[Completion]:
    """Ask once for each script, and once more of a server that answers well."""
    with SocketServer(*scripts, [GOOD]) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m"))
        first = [engine.generate(request(deadline_s, force_length=force_length)) for _ in scripts]
        after = engine.generate(request())
        engine.close()
    assert (after.outcome, after.content) == (Outcome.OK, "hello"), after.error
    return first


def error_body(message: str, **more: object) -> bytes:
    return json.dumps({"error": {"message": message, **more}}).encode()


FAULTS: dict[str, tuple[list[Step], Fault]] = {
    "closes without an answer": ([Act.CLOSE], Fault.RESET),
    "resets": ([Act.RESET], Fault.RESET),
    "resets in the middle": ([STREAM_HEAD, chunked(HELLO), 0.05, Act.RESET], Fault.RESET),
    "closes in the middle": ([STREAM_HEAD, chunked(HELLO), Act.CLOSE], Fault.CUT_SHORT),
    "closes within a chunk": ([STREAM_HEAD, chunked(HELLO)[:-9], Act.CLOSE], Fault.CUT_SHORT),
    "closes within its head": ([STREAM_HEAD[:30], Act.CLOSE], Fault.RESET),
    "ends the stream too early": ([stream([HELLO], end=b"")], Fault.CUT_SHORT),
    "sends only [DONE]": ([stream([])], Fault.EMPTY),
    "sends only [DONE], unchunked": (
        [response(b"data: [DONE]\n\n", content_type="text/event-stream")],
        Fault.EMPTY,
    ),
    "sends nothing at all": ([response(b"", content_type="text/event-stream")], Fault.EMPTY),
    "sends a web page": (
        [response(b"<html>login</html>", content_type="text/html")],
        Fault.NOT_EVENTS,
    ),
    "sends other JSON": ([response(b'["a"]')], Fault.NOT_EVENTS),
    "is no HTTP server": ([b"SSH-2.0-OpenSSH_9.6\r\n\r\n\r\n", Act.CLOSE], Fault.NOT_HTTP),
    "sends a broken chunk size": ([STREAM_HEAD, b"xyz\r\n", Act.CLOSE], Fault.NOT_HTTP),
    "sends a negative chunk size": ([STREAM_HEAD, b"-5\r\n", Act.CLOSE], Fault.NOT_HTTP),
    "sends a negative length": (
        [b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", Act.CLOSE],
        Fault.NOT_HTTP,
    ),
    "sends two lengths": (
        [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 9\r\n\r\nhello", Act.CLOSE],
        Fault.NOT_HTTP,
    ),
    "sends another transfer coding": (
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
        Fault.NOT_HTTP,
    ),
    "switches protocols": (
        [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"],
        Fault.NOT_HTTP,
    ),
    "never ends its interim responses": (
        [b"HTTP/1.1 102 Processing\r\n\r\n" * 4000],
        Fault.NOT_HTTP,
    ),
    "never ends its headers": ([b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 12_000], Fault.NOT_HTTP),
    "never ends its trailers": (
        [STREAM_HEAD, chunked(HELLO), b"0\r\n", b"X: y\r\n" * 12_000],
        Fault.NOT_HTTP,
    ),
    "never ends the size of a chunk": ([STREAM_HEAD, b"5;" + b"x" * 2000], Fault.NOT_HTTP),
    "ends the size of a chunk too soon": ([STREAM_HEAD, b"5\nhello\r\n"], Fault.NOT_HTTP),
    "compresses": (
        [response(b"\x1f\x8b", more="Content-Encoding: gzip\r\n")],
        Fault.NOT_HTTP,
    ),
    "sends an error event": (
        [stream([HELLO, b'event: error\ndata: {"message": "out of memory"}\n\n'])],
        Fault.SERVER_ERROR,
    ),
    "sends an error in a plain event": (
        [stream([HELLO, event({"error": {"message": "out of memory", "code": 500}})])],
        Fault.SERVER_ERROR,
    ),
    "sends a damaged event": (
        [stream([HELLO, b'data: {"choices": [\n\n', delta({}, "stop")])],
        Fault.BAD_EVENT,
    ),
    "sends an event of bad UTF-8": (
        [stream([HELLO, b'data: {"x": "\xff"}\n\n', delta({}, "stop")])],
        Fault.BAD_EVENT,
    ),
    "sends a number for an event": ([stream([b"data: 7\n\n"])], Fault.BAD_EVENT),
    "nests without end": ([stream([b"data: " + b"[" * 100_000 + b"\n\n"])], Fault.BAD_EVENT),
    "mixes two answers": (
        [
            stream(
                [
                    delta({"content": "a"}, id="1"),
                    delta({"content": "b"}, id="2"),
                    delta({}, "stop", id="1"),
                ]
            )
        ],
        Fault.MIXED,
    ),
    "gives a second choice": (
        [stream([event({"choices": [{"index": 1, "delta": {"content": "b"}}]})])],
        Fault.MIXED,
    ),
    "wants a key": (
        [response(error_body("no key"), status="401 Unauthorized")],
        Fault.UNAUTHORIZED,
    ),
    "forbids": ([response(b"", status="403 Forbidden")], Fault.UNAUTHORIZED),
    "knows no such path": ([response(b"gone", status="404 Not Found")], Fault.NOT_FOUND),
    "puts off": (
        [response(b"", status="429 Too Many Requests", more="Retry-After: 7\r\n")],
        Fault.RATE_LIMITED,
    ),
    "is loading": (
        [response(b"", status="503 Service Unavailable", more="Retry-After: 7\r\n")],
        Fault.UNAVAILABLE,
    ),
    "fails": ([response(b"oops", status="500 Internal Server Error")], Fault.SERVER_ERROR),
    "refuses a field": (
        [response(b'{"detail": [{"msg": "extra field"}]}', status="422 Unprocessable Entity")],
        Fault.REJECTED,
    ),
    "points elsewhere": (
        [response(b"", status="302 Found", more="Location: http://other.example/v1\r\n")],
        Fault.REDIRECTED,
    ),
}


@pytest.mark.parametrize(("script", "fault"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_one_outcome_and_the_next_turn_is_asked(
    script: list[Step], fault: Fault
) -> None:
    (completion,) = ask(script)
    assert completion.outcome is fault.outcome
    assert completion.error is not None
    assert completion.error.split(":")[0] == fault.value
    assert "\n" not in completion.error


@pytest.mark.parametrize(
    ("script", "fault", "text"),
    [
        ([Act.HANG], Fault.NO_ANSWER, ""),
        ([STREAM_HEAD, Act.HANG], Fault.STALLED, ""),
        ([STREAM_HEAD, chunked(HELLO), Act.HANG], Fault.STALLED, "hel"),
        ([STREAM_HEAD, *[chunked(HELLO), 0.02] * 40, Act.HANG], Fault.STALLED, None),
    ],
    ids=["before the first byte", "after its head", "in the middle", "while it still sends"],
)
def test_a_turn_ends_at_its_deadline_with_what_had_come(
    script: list[Step], fault: Fault, text: str | None
) -> None:
    with SocketServer(script) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m"))
        completion = engine.generate(request(deadline_s=0.3))
        engine.close()
    assert completion.outcome is Outcome.TIMEOUT
    assert completion.error is not None
    assert completion.error.startswith(fault.value)
    assert text is None or completion.text == text
    assert all(arrival < 0.3e9 for arrival in completion.times.arrivals_ns)


def test_a_refused_connection_says_so_and_not_where() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    engine = OpenAIEngine(ServedModel(Endpoint("http", "127.0.0.1", port, "/v1"), "m"))
    completion = engine.generate(request())
    assert completion.outcome is Outcome.ENGINE_FAILED
    assert completion.error == "connection_refused: Connection refused; is the server running?"


def test_an_endless_stream_ends_at_the_size_limit() -> None:
    line = chunked(delta({"content": "x" * 4_000_000}))
    with SocketServer([STREAM_HEAD, *[line] * 30]) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m"))
        completion = engine.generate(request(60.0))
        engine.close()
    assert completion.error == "too_large: more than 32 MiB came"


def test_a_line_of_4_mb_is_read() -> None:
    text = "y" * 4_000_000
    with SocketServer([stream([delta({"content": text}), delta({}, "stop")])]) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m"))
        completion = engine.generate(request())
        engine.close()
    assert completion.outcome is Outcome.OK
    assert completion.content == text


def test_a_stream_that_is_done_but_never_ends_is_whole() -> None:
    events = b"".join(map(chunked, [HELLO, delta({}, "stop"), DONE]))
    with SocketServer([STREAM_HEAD, events, Act.HANG], [GOOD]) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m"))
        completion = engine.generate(request(30.0))
        engine.close()
    assert (completion.outcome, completion.content) == (Outcome.OK, "hel")


def test_done_within_a_text_does_not_end_the_stream() -> None:
    words = [delta({"content": "\ndata: [DONE]"}), delta({"content": "!"}), delta({}, "stop")]
    rest = stream(words[1:]).removeprefix(STREAM_HEAD)
    with SocketServer([STREAM_HEAD, chunked(words[0]), 0.1, rest]) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m"))
        completion = engine.generate(request())
        engine.close()
    assert completion.content == "\ndata: [DONE]!"


def test_bytes_after_an_answer_are_not_taken_for_the_next_one() -> None:
    other = stream([delta({"content": "of another"}), delta({}, "stop")])
    with SocketServer([GOOD + other], [GOOD]) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m"))
        answers = [engine.generate(request()).content for _ in range(2)]
        engine.close()
    assert answers == ["hello", "hello"]
    assert server.connections == 2


def test_nothing_is_sent_twice() -> None:
    with SocketServer([Act.RESET]) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m"))
        engine.generate(request())
        engine.close()
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        {
            "error": {
                "code": 400,
                "type": "exceed_context_size_error",
                "message": "the request exceeds the available context size",
                "n_prompt_tokens": 14429,
                "n_ctx": 8192,
            }
        },
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens. However, you "
                "requested 14937 tokens (14429 in the messages, 508 in the completion). Please "
                "reduce the length of the messages or completion.",
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
            }
        },
        {
            "object": "error",
            "message": "This model's maximum context length is 8192 tokens. However, your request "
            "has 14429 input tokens. Please reduce the length of the input messages.",
            "code": 400,
        },
        {"error": {"message": "Requested tokens (14429) exceed context window of 8192"}},
        {
            "message": "The input (14429 tokens) is longer than the model's context length "
            "(8192 tokens)."
        },
        {
            "error": {
                "message": "The decoder prompt (length 14429) is longer than the maximum model "
                "length of 8192."
            }
        },
        {
            "message": "Requested token count exceeds the model's maximum context length of 8192 "
            "tokens. You requested a total of 14937 tokens: 14429 tokens from the input messages "
            "and 508 tokens for the completion."
        },
    ],
    ids=[
        *("llama-server", "openai", "vllm", "llama-cpp-python", "sglang"),
        *("vllm-decoder", "sglang-total"),
    ],
)
@pytest.mark.parametrize("status", ["400 Bad Request", "500 Internal Server Error"])
def test_a_context_overflow_is_one_outcome_in_any_shape(
    body: dict[str, object], status: str
) -> None:
    (completion,) = ask([response(json.dumps(body).encode(), status=status)])
    assert completion.outcome is Outcome.CONTEXT_OVERFLOW
    assert completion.tokens.prompt == 14429
    assert completion.error == "context_overflow: 14429 prompt tokens exceed the context of 8192"


def test_an_answer_that_does_not_fit_behind_its_prompt_is_told_apart() -> None:
    said = (
        "'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum context "
        "length is 8192 tokens and your request has 7500 input tokens (1024 > 8192 - 7500)."
    )
    (completion,) = ask([response(error_body(said), status="400 Bad Request")])
    assert completion.outcome is Outcome.CONTEXT_OVERFLOW
    assert completion.tokens.prompt == 7500
    assert str(completion.error).endswith(
        "7500 prompt tokens and the answer exceed the context of 8192"
    )


def test_a_context_overflow_may_come_in_the_stream() -> None:
    error = {"error": {"message": "Requested tokens (14429) exceed context window of 8192"}}
    (completion,) = ask([stream([event(error)])])
    assert completion.outcome is Outcome.CONTEXT_OVERFLOW


@pytest.mark.parametrize(
    ("tokens", "finish", "said"),
    [
        (8, "length", None),
        (7, "length", "not_exact: 7 of 8 tokens"),
        (8, "stop", "not_exact: 8 of 8 tokens, finish_reason 'stop'"),
        (None, "length", "not_exact: an unknown number of 8 tokens"),
    ],
)
def test_an_exact_length_is_proved_in_every_turn(
    tokens: int | None, finish: str, said: str | None
) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": tokens}
    answer = stream([delta({"content": "x"}, finish), event({"choices": [], "usage": usage})])
    (completion,) = ask([answer], force_length=True)
    assert (completion.error or "").startswith(said or "")
    assert (completion.outcome is Outcome.OK) == (said is None)


@pytest.mark.parametrize("as_text", [False, True], ids=["in JSON", "in text"])
@pytest.mark.parametrize("before", [280, 286])
def test_no_part_of_a_key_is_left_where_a_long_error_is_cut(before: int, as_text: bool) -> None:
    said = "x" * before + "sk-very-long-secret"
    body = said.encode() if as_text else error_body(said)
    with SocketServer([response(body, status="401 Unauthorized")]) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m", key=ApiKey("sk-very-long-secret")))
        completion = engine.generate(request())
        engine.close()
    assert "sk-" not in str(completion.error)


def test_a_stream_of_countless_tiny_pieces_is_too_large() -> None:
    lines = stream([b"data:{}\n" * (1 << 20), b"\n\n"])
    (completion,) = ask([lines])
    assert completion.error == "too_large: more than 1048576 lines came"
    chunks = STREAM_HEAD + b"1\r\nx\r\n" * ((1 << 18) + 1)
    (completion,) = ask([chunks, Act.CLOSE])
    assert completion.error == "too_large: more than 262144 chunks came"


def test_a_key_that_a_model_repeats_is_not_written_down() -> None:
    key = ApiKey("sk-secret1234")
    said = f"the key is {key.value}"
    call = {
        "index": 0,
        "id": key.value,
        "function": {"name": "f", "arguments": json.dumps({"a": [said]})},
    }
    answer = [
        delta({"reasoning_content": said}),
        delta({"content": said[:15]}),
        delta({"content": said[15:]}),
        delta({"tool_calls": [call]}, "tool_calls"),
    ]
    with SocketServer([stream(answer)]) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, key.value, key=key))
        completion = engine.generate(request())
        engine.close()
    assert completion.content == "the key is [API key]"
    assert completion.tool_calls[0].arguments == {"a": ["the key is [API key]"]}
    assert key.value not in f"{completion} {engine.describe()}"


def test_a_placeholder_for_a_key_is_not_hidden() -> None:
    assert ApiKey("EMPTY").hide("EMPTY") == "EMPTY"


def test_a_key_is_sent_and_never_shown() -> None:
    key = ApiKey("sk-secret")
    echo = response(error_body("Incorrect API key: sk-secret"), status="401 Unauthorized")
    with SocketServer([echo]) as server:
        served = ServedModel(server.endpoint, "m", key=key)
        engine = OpenAIEngine(served)
        completion = engine.generate(request())
        engine.close()
    assert "Authorization: Bearer sk-secret" in server.requests[0][0]
    shown = f"{completion} {engine.describe()} {served}"
    assert "sk-secret" not in shown
    assert "[API key]" in shown


@pytest.mark.parametrize("padding", [0, 10, 30, 60, 70, 280, 290])
@pytest.mark.parametrize("kind", ["page", "event", "no http", "size"])
def test_no_part_of_a_key_is_left_where_an_answer_is_quoted(kind: str, padding: int) -> None:
    key = ApiKey("sk-secret1234567890")
    said = b"y" * padding + key.value.encode() + b" and so on"
    script: list[Step] = {
        "page": [response(said, content_type="text/html")],
        "event": [stream([b"data: " + said + b"\n\n"])],
        "no http": [said + b"\r\n\r\n", Act.CLOSE],
        "size": [STREAM_HEAD + said + b"\r\n", Act.CLOSE],
    }[kind]
    with SocketServer(script) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m", key=key))
        done = engine.generate(request())
        engine.close()
    assert done.error is not None and "sk-s" not in done.error


def test_a_key_in_the_place_of_its_variable_is_not_repeated() -> None:
    with pytest.raises(RequirementError, match="takes the name") as raised:
        read_api_key("sk-secret1234567890")
    assert "secret" not in str(raised.value)
