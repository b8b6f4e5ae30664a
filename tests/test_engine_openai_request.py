"""Each kind of server is asked in its own dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edge_agentic.chat.call_grammar import answer_grammar
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest
from edge_agentic.engine.gbnf import to_gbnf
from edge_agentic.engine.openai import OpenAIEngine, ServedModel
from edge_agentic.engine.openai_endpoint import Endpoint
from edge_agentic.engine.openai_request import RequestWriter, in_dialect
from edge_agentic.engine.openai_values import as_object
from edge_agentic.engine.server_kinds import Cause, Dialect, ServerKind, dialect_of, remedy
from tests.socket_server import SocketServer, response

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGES = [
    {"role": "user", "content": "Grüße"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "why"},
    {"role": "tool", "tool_call_id": "1", "content": "done"},
]


def body(
    dialect: Dialect, *, tools: Any = (TOOL,), constrained: bool = False, **more: Any
) -> dict[str, Any]:
    writer = RequestWriter("m", dialect, constrained=constrained)
    request = ChatRequest("r", "c", MESSAGES, tools, 64, 5.0, **more)
    value: dict[str, Any] = json.loads(writer.body(request))
    return value


def test_every_request_is_streamed_greedy_and_counted() -> None:
    sent = body(Dialect())
    assert sent["model"] == "m"
    assert (sent["temperature"], sent["seed"], sent["stream"]) == (0, 42, True)
    assert sent["stream_options"] == {"include_usage": True}
    assert sent["max_tokens"] == 64
    assert sent["tools"] == [TOOL]
    assert sent["tool_choice"] == "auto"


def test_without_tools_nothing_is_said_of_them() -> None:
    sent = body(dialect_of(ServerKind.LLAMA_SERVER), tools=())
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & sent.keys()


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (ServerKind.LLAMA_SERVER, "reasoning_content"),
        (ServerKind.VLLM, "reasoning"),
        (ServerKind.OLLAMA, None),
        (ServerKind.OTHER, None),
    ],
)
def test_recorded_reasoning_goes_where_the_server_reads_it(
    kind: ServerKind, field: str | None
) -> None:
    message = body(dialect_of(kind))["messages"][1]
    expected = {**MESSAGES[1]}
    expected.pop("reasoning_content")
    if field:
        expected[field] = "why"
    assert message == expected


@pytest.mark.parametrize(
    ("kind", "content"), [(ServerKind.LLAMA_SERVER, None), (ServerKind.LLAMA_CPP_PYTHON, "")]
)
def test_a_message_of_calls_alone_has_the_content_that_the_server_takes(
    kind: ServerKind, content: str | None
) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": []}
    assert in_dialect(message, dialect_of(kind))["content"] == content
    assert in_dialect({"role": "user", "content": "x"}, dialect_of(kind))["content"] == "x"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ServerKind.LLAMA_SERVER, {"ignore_eos": True}),
        (ServerKind.VLLM, {"ignore_eos": True, "min_tokens": 64}),
        (ServerKind.OLLAMA, {}),
    ],
)
def test_an_exact_length_is_asked_for_in_the_servers_words(
    kind: ServerKind, expected: dict[str, Any]
) -> None:
    sent = body(dialect_of(kind), force_length=True)
    assert {key: sent[key] for key in ("ignore_eos", "min_tokens") if key in sent} == expected
    assert "ignore_eos" not in body(dialect_of(kind))


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("history_reasoning=none", ("history_reasoning", None)),
        ("history_reasoning=reasoning", ("history_reasoning", "reasoning")),
        ("tool_choice=none", ("tool_choice", None)),
        ("parallel_tool_calls=false", ("parallel_tool_calls", False)),
        ("token_limit=max_completion_tokens", ("token_limit", "max_completion_tokens")),
        ("thinking_off=none", ("thinking_off", None)),
    ],
)
def test_a_setting_of_the_server_can_be_given(override: str, expected: tuple[str, Any]) -> None:
    name, value = expected
    assert getattr(dialect_of(ServerKind.LLAMA_SERVER, [override]), name) == value


@pytest.mark.parametrize(
    "override", ["thinking_off=none", "thinking_off=chat_template_kwargs", "history_reasoning=none"]
)
def test_a_prompt_is_counted_as_it_is_asked(override: str) -> None:
    dialect = dialect_of(ServerKind.VLLM, [override])
    with SocketServer([response(b'{"count": 7}')]) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m", ServerKind.VLLM, dialect))
        assert engine.count_prompt_tokens(MESSAGES, [TOOL]) == 7
        engine.close()
    counted, asked = as_object(server.requests[0][1]), body(dialect)
    assert counted is not None
    counted.pop("add_generation_prompt")
    assert counted == {name: asked[name] for name in counted}
    assert counted.get("chat_template_kwargs") == asked.get("chat_template_kwargs")


@pytest.mark.parametrize("override", ["x=1", "tool_choice", "tool_choice=", "token_limit=none"])
def test_a_setting_that_is_none_is_refused(override: str) -> None:
    with pytest.raises(BadInputError, match="--server-setting"):
        dialect_of(ServerKind.VLLM, [override])


@pytest.mark.parametrize("kind", ServerKind)
@pytest.mark.parametrize("cause", Cause)
def test_there_is_a_remedy_on_every_kind_of_server(kind: ServerKind, cause: Cause) -> None:
    assert remedy(kind, cause)


@pytest.mark.parametrize("kind", ServerKind)
def test_constrained_tools_are_part_of_the_messages(kind: ServerKind) -> None:
    sent = body(dialect_of(kind), constrained=True)
    assert "tools" not in sent
    assert sent["messages"][0]["role"] == "system"
    assert '"name":"f"' in sent["messages"][0]["content"]
    assert ("grammar" in sent) != ("response_format" in sent)


@pytest.mark.parametrize("constraint", ["json_schema", "json_object"])
def test_a_schema_goes_where_the_server_reads_it(constraint: str) -> None:
    dialect = dialect_of(ServerKind.OTHER, [f"constraint={constraint}"])
    response_format = body(dialect, constrained=True)["response_format"]
    assert response_format["type"] == constraint
    assert "anyOf" in response_format.get("json_schema", response_format)["schema"]


@pytest.mark.parametrize("kind", [ServerKind.LLAMA_SERVER, ServerKind.LLAMA_CPP_PYTHON])
def test_llama_cpp_gets_the_grammar_of_the_in_process_engine(kind: ServerKind) -> None:
    grammar = to_gbnf(answer_grammar(ToolFormat.GENERIC, [TOOL]))
    assert body(dialect_of(kind), constrained=True)["grammar"] == grammar


def test_an_answer_of_a_given_length_is_not_constrained() -> None:
    sent = body(dialect_of(ServerKind.LLAMA_SERVER), constrained=True, force_length=True)
    assert "grammar" not in sent


def test_a_message_that_comes_again_is_written_the_same_way() -> None:
    writer = RequestWriter("m", dialect_of(ServerKind.VLLM), constrained=False)
    for length in (1, 3, 2):
        request = ChatRequest("r", "c", MESSAGES[:length], (), 64)
        fresh = RequestWriter("m", dialect_of(ServerKind.VLLM), constrained=False)
        assert writer.body(request) == fresh.body(request)


def test_a_tool_that_no_grammar_can_hold_ends_the_turn_and_not_the_run() -> None:
    unknown = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "?"}}}}
    kind = ServerKind.LLAMA_SERVER
    nowhere = Endpoint("http", "127.0.0.1", 9, "/v1")
    engine = OpenAIEngine(ServedModel(nowhere, "m", kind, dialect_of(kind), constrained=True))
    completion = engine.generate(ChatRequest("r", "c", MESSAGES, [{"function": unknown}], 64, 5.0))
    assert completion.outcome is Outcome.ENGINE_FAILED
    assert "unknown type '?'" in str(completion.error)
