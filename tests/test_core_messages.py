"""Messages and tool calls in the OpenAI shape, tidy or not."""

from __future__ import annotations

import pytest

from edge_agentic.core.messages import ToolCall, calls_from_openai, text_content


def entry(arguments: object, name: object = "bash") -> dict[str, object]:
    return {"id": "call_7", "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize("arguments", ['{"command": "ls"}', {"command": "ls"}])
def test_arguments_may_be_a_json_string_or_a_mapping(arguments: object) -> None:
    calls, left_out = calls_from_openai([entry(arguments)])
    assert calls == (ToolCall("call_7", "bash", {"command": "ls"}),)
    assert not left_out


@pytest.mark.parametrize(
    "bad",
    [entry("{"), entry(None), entry("[1]"), entry(3), entry("{}", None), entry("{}", ""), 7, {}],
)
def test_an_entry_that_is_no_call_is_left_out_and_reported(bad: object) -> None:
    calls, left_out = calls_from_openai([bad, entry("{}")])
    assert [call.name for call in calls] == ["bash"]
    assert left_out


def test_a_call_survives_the_round_trip() -> None:
    call = ToolCall("call_1", "f", {"text": "ü \"'\n", "list": [1, None]})
    assert calls_from_openai([call.to_openai()]) == ((call,), False)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hello", "hello"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "ab"),
    ],
)
def test_content_is_a_string_null_or_parts(content: object, text: str) -> None:
    assert text_content({"role": "user", "content": content}) == text
