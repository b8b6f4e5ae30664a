"""Each kind of server is asked in its own dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.api import ChatRequest
from edge_agentic.engine.openai_request import RequestWriter
from edge_agentic.engine.server_kinds import Cause, Dialect, ServerKind, dialect_of, remedy

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


@pytest.mark.parametrize("override", ["x=1", "tool_choice", "tool_choice=", "token_limit=none"])
def test_a_setting_that_is_none_is_refused(override: str) -> None:
    with pytest.raises(BadInputError, match="--server-setting"):
        dialect_of(ServerKind.VLLM, [override])


@pytest.mark.parametrize("kind", ServerKind)
@pytest.mark.parametrize("cause", Cause)
def test_there_is_a_remedy_on_every_kind_of_server(kind: ServerKind, cause: Cause) -> None:
    assert remedy(kind, cause)


@pytest.mark.parametrize(
    ("kind", "response_format"),
    [(ServerKind.VLLM, "json_schema"), (ServerKind.LLAMA_CPP_PYTHON, "json_object")],
)
def test_constrained_tools_are_part_of_the_messages(kind: ServerKind, response_format: str) -> None:
    sent = body(dialect_of(kind), constrained=True)
    assert "tools" not in sent
    assert sent["messages"][0]["role"] == "system"
    assert '"name":"f"' in sent["messages"][0]["content"]
    assert sent["response_format"]["type"] == response_format


def test_a_message_that_comes_again_is_written_the_same_way() -> None:
    writer = RequestWriter("m", dialect_of(ServerKind.VLLM), constrained=False)
    for length in (1, 3, 2):
        request = ChatRequest("r", "c", MESSAGES[:length], (), 64)
        fresh = RequestWriter("m", dialect_of(ServerKind.VLLM), constrained=False)
        assert writer.body(request) == fresh.body(request)
