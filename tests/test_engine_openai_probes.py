"""Before a run a server is found, named and tried out; one that would spoil the run is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bfcl_gate.selection import select
from edge_agentic.core.errors import BadInputError, RequirementError
from edge_agentic.device.profile import load_profile
from edge_agentic.engine.choices import EngineKind
from edge_agentic.engine.openai import ServedModel
from edge_agentic.engine.openai_endpoint import ApiKey, parse_base_url, read_api_key
from edge_agentic.engine.openai_identify import identify
from edge_agentic.engine.openai_probes import ProbeReport, run_probes
from edge_agentic.engine.server_kinds import ServerKind, dialect_of
from edge_agentic.run.engines import prepare_engine
from edge_agentic.run.gate_sets import GATE_MINI, open_gate_set
from edge_agentic.run.preflight import check_context
from edge_agentic.run.server_settings import ServerOptions
from edge_agentic.run.settings import EngineSettings
from tests.model_server import Habits, model_server
from tests.socket_server import Act, SocketServer, delta, response, stream


def probe(habits: Habits, kind: ServerKind = ServerKind.VLLM, **more: Any) -> ProbeReport:
    with model_server(habits) as endpoint:
        return run_probes(ServedModel(endpoint, "m", kind, dialect_of(kind), **more))


def test_a_good_server_passes_every_probe() -> None:
    report = probe(Habits())
    assert [probe.name for probe in report.probes if probe.found is not True] == []
    report.require(force_length=True)
    assert report.notes == []
    assert report.can_force_length


@pytest.mark.parametrize(
    ("habits", "name", "note"),
    [
        ({"usage": False}, "usage", "reports no token counts"),
        ({"cached": False}, "cached_tokens", "reuses: start vLLM with --enable-prompt-tokens"),
        ({"streams_calls": False}, "streams_calls", "holds calls back"),
        ({"ignores_eos": False}, "exact_length", None),
        ({"repeats": False}, "repeatable", "two answers at temperature 0"),
        ({"reasons": True}, "reasoning_off", "reasons before it answers: start vLLM with"),
    ],
)
def test_each_lack_is_found_and_told(habits: Any, name: str, note: str | None) -> None:
    report = probe(Habits(**habits))
    assert report.found(name) is False
    assert report.to_json()[name]["found"] is False
    assert [line for line in report.notes if note and note in line] == report.notes
    report.require()


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (ServerKind.LLAMA_SERVER, "--jinja"),
        (ServerKind.VLLM, "--tool-call-parser"),
        (ServerKind.OLLAMA, "TEMPLATE"),
        (ServerKind.OTHER, "chat template"),
    ],
)
def test_tools_that_dont_reach_the_model_stop_the_run(kind: ServerKind, remedy: str) -> None:
    report = probe(Habits(calls=False, counts_tools=False), kind)
    with pytest.raises(RequirementError, match=f"tools don't reach the model.*{remedy}"):
        report.require()


def test_tools_reach_a_model_that_calls_none_if_the_prompt_grows() -> None:
    assert probe(Habits(calls=False)).found("tools_reach_model") is True


def test_without_counts_and_calls_nobody_can_tell_whether_tools_reach_the_model() -> None:
    report = probe(Habits(calls=False, usage=False))
    assert report.found("tools_reach_model") is None
    report.require()


def test_constrained_answers_need_no_tools_on_the_server() -> None:
    probe(Habits(calls=False, counts_tools=False), constrained=True).require()


def test_an_exact_length_is_refused_where_the_server_ends_early() -> None:
    report = probe(Habits(ignores_eos=False))
    report.require()
    with pytest.raises(RequirementError, match="can't fix the length of answers"):
        report.require(force_length=True)


def test_what_a_model_writes_past_its_end_is_no_reasoning() -> None:
    plain = [stream([delta({"content": "yes"}), delta({}, "stop")])]
    forced = [stream([delta({"content": "yes</think>"}), delta({}, "length")])]
    with SocketServer(plain, forced, forced, plain, plain) as server:
        report = run_probes(ServedModel(server.endpoint, "m"))
    assert report.found("reasoning_off") is True


def test_ollama_is_never_asked_for_an_exact_length() -> None:
    habits = Habits()
    report = probe(habits, ServerKind.OLLAMA)
    assert not any("ignore_eos" in body for body in habits.asked)
    with pytest.raises(RequirementError, match="Ollama ignores ignore_eos"):
        report.require(force_length=True)


def test_a_server_that_fails_a_plain_question_is_refused_with_its_words() -> None:
    answer = response(b'{"error": {"message": "no sk-12345 here"}}', status="401 Unauthorized")
    with SocketServer([answer]) as server, pytest.raises(RequirementError) as refused:
        run_probes(ServedModel(server.endpoint, "m", key=ApiKey("sk-12345")))
    assert "--api-key-env" in str(refused.value)
    assert "sk-12345" not in str(refused.value)


@pytest.mark.parametrize(
    ("entry", "pages", "expected"),
    [
        (
            {"owned_by": "llamacpp", "meta": {"n_ctx": 8192}},
            {
                "/props": {
                    "default_generation_settings": {"n_ctx": 4096},
                    "build_info": "b1",
                    "total_slots": 2,
                }
            },
            (ServerKind.LLAMA_SERVER, 4096, "b1", 2),
        ),
        (
            {"owned_by": "vllm", "max_model_len": 8192},
            {"/version": {"version": "0.11"}},
            (ServerKind.VLLM, 8192, "0.11", None),
        ),
        ({"owned_by": "sglang", "max_model_len": 8192}, {}, (ServerKind.SGLANG, 8192, None, None)),
        (
            {"owned_by": "library"},
            {
                "/api/version": {"version": "0.9"},
                "/api/ps": {"models": [{"name": "m", "context_length": 4096}]},
            },
            (ServerKind.OLLAMA, 4096, "0.9", None),
        ),
        ({"owned_by": "me"}, {}, (ServerKind.LLAMA_CPP_PYTHON, None, None, None)),
        ({"owned_by": "somebody"}, {}, (ServerKind.OTHER, None, None, None)),
        (
            {"owned_by": "somebody"},
            {"/api/version": {"version": "0.9"}},
            (ServerKind.OLLAMA, None, "0.9", None),
        ),
        (
            {"owned_by": ["x"], "meta": 5, "max_model_len": "x"},
            {},
            (ServerKind.OTHER,) + (None,) * 3,
        ),
    ],
)
def test_a_server_is_known_by_what_it_says(
    entry: dict[str, Any], pages: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    with model_server(Habits(models=[{"id": "m", **entry}], pages=pages)) as endpoint:
        found = identify(endpoint, None, model=None, kind=None)
    assert (found.kind, found.context_tokens, found.version, found.slots) == expected


TWO = [{"id": "a", "owned_by": "vllm"}, {"id": "b", "owned_by": "vllm"}]


@pytest.mark.parametrize(
    ("models", "wanted", "said"),
    [
        (TWO, None, "serves a, b; choose one with --served-model"),
        (TWO, "c", "serves no 'c'; it serves a, b"),
        ([], None, "no model that it names"),
        ([{"id": 5}], None, "choose one"),
    ],
)
def test_the_model_must_be_one_that_is_served(models: Any, wanted: str | None, said: str) -> None:
    with (
        model_server(Habits(models=models)) as endpoint,
        pytest.raises(BadInputError, match=said),
    ):
        identify(endpoint, None, model=wanted, kind=None)


def test_one_model_of_several_can_be_chosen() -> None:
    with model_server(Habits(models=TWO)) as endpoint:
        assert identify(endpoint, None, model="b", kind=None).model == "b"


def test_the_users_word_on_the_kind_counts() -> None:
    with model_server(Habits()) as endpoint:
        found = identify(endpoint, None, model=None, kind=ServerKind.SGLANG)
    assert found.kind is ServerKind.SGLANG


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ([response(b"", status="401 Unauthorized")], "--api-key-env"),
        ([response(b"", status="404 Not Found")], "--base-url"),
        ([response(b"<html>", content_type="text/html")], "not_events"),
        ([response(b"", status="503 Service Unavailable")], "wait until the model is loaded"),
        ([Act.RESET], "connection_reset"),
        ([b"\x15\x03\x01\x00\x02\x02P", Act.CLOSE], "connection_reset"),
    ],
)
def test_an_unusable_server_is_refused_with_a_remedy(script: Any, said: str) -> None:
    with SocketServer(script) as server, pytest.raises(RequirementError, match=said):
        identify(server.endpoint, None, model=None, kind=None)


def test_the_key_opens_the_server() -> None:
    with model_server(Habits(key="sk-1")) as endpoint:
        assert identify(endpoint, ApiKey("sk-1"), model=None, kind=None).model == "m"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1"),
        ("https://example.org/api/v3/", "https://example.org/api/v3"),
        ("http://[::1]:9/v1", "http://[::1]:9/v1"),
        ("http://localhost", "http://localhost/v1"),
    ],
)
def test_a_base_url_is_read(text: str, url: str) -> None:
    assert parse_base_url(text).url == url


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:0/v1",
        "",
        "localhost:8080",
        "ftp://host/v1",
        "http://",
        "http://host:port",
        "http://host:99999",
        "http://host/v1?key=1",
        "http://host/v1#x",
        "http://host/a b",
        "http://host/\r\nX: 1",
        "http://höst/v1",
        "http://[::1",
    ],
)
def test_a_base_url_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="--base-url"):
        parse_base_url(text)


def test_a_secret_in_a_base_url_is_not_repeated() -> None:
    with pytest.raises(BadInputError) as refused:
        parse_base_url("http://user:hunter2@host/v1")
    assert "hunter2" not in str(refused.value)


def test_a_key_comes_from_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", " sk-1\n")
    key = read_api_key("SOME_KEY")
    assert key == ApiKey("sk-1")
    assert "sk-1" not in repr(key)
    assert read_api_key(None) is None
    monkeypatch.setenv("SOME_KEY", "sk\r\nX-Evil: 1")
    with pytest.raises(RequirementError, match="no header can carry"):
        read_api_key("SOME_KEY")
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(RequirementError, match="SOME_KEY is not set"):
        read_api_key("SOME_KEY")


@pytest.mark.parametrize(
    ("models", "pages"),
    [
        ([{"id": "m", "owned_by": "vllm", "max_model_len": 600}], {"/tokenize": {"count": 500}}),
        (
            [{"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx": 600}}],
            {"/apply-template": {"prompt": "p"}, "/tokenize": {"tokens": [1] * 500}},
        ),
    ],
    ids=["vllm", "llama-server"],
)
def test_a_window_that_is_too_small_is_found_by_the_servers_own_count(
    models: Any, pages: Any
) -> None:
    gate = select(open_gate_set(GATE_MINI), None, limit=1)
    with model_server(Habits(models=models, pages=pages)) as endpoint:
        server = ServerOptions(base_url=endpoint.url)
        settings = EngineSettings(EngineKind.OPENAI, server=server)
        engine = prepare_engine(settings, load_profile(), None, gate, lambda line: None).engine
        with pytest.raises(BadInputError, match=r"500 prompt tokens .* start .*\(768 or more\)"):
            check_context(engine, gate.cases, 192, None)
        engine.close()


def test_a_model_whose_name_cant_be_written_is_not_served() -> None:
    served = response(json.dumps({"data": [{"id": "half \ud800 of a pair"}]}).encode())
    with SocketServer([served]) as server, pytest.raises(BadInputError, match="no model that"):
        identify(server.endpoint, None, model=None, kind=None)
