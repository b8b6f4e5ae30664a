"""Tool calls in model text: what counts as a call, and what as a failed attempt."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agentic.chat.tool_calls import ToolFormat, detect_format, parse

GENERIC, HERMES = ToolFormat.GENERIC, ToolFormat.HERMES


def calls(text: str, tool_format: ToolFormat) -> list[tuple[str, dict[str, object]]]:
    found = parse(text, tool_format, id_prefix="call")
    return [(call.name, dict(call.arguments)) for call in found.calls]


@pytest.mark.parametrize(
    ("tool_format", "text", "expected"),
    [
        (GENERIC, '{"name": "f", "arguments": {"x": 1}}', [("f", {"x": 1})]),
        (GENERIC, '\n {"name": "f"}', [("f", {})]),
        (GENERIC, '{"name": "f", "parameters": {"x": 1}}', [("f", {"x": 1})]),
        (GENERIC, '{"name": "f", "arguments": "{\\"x\\": 1}"}', [("f", {"x": 1})]),
        (GENERIC, '```json\n{"name": "f", "arguments": {}}\n```', [("f", {})]),
        (
            GENERIC,
            '[{"name": "f", "arguments": {"x": 1}}, {"name": "f", "arguments": {"x": 2}}]',
            [("f", {"x": 1}), ("f", {"x": 2})],
        ),
        (GENERIC, '{"name": "no_suitable_function", "arguments": {}}', []),
        (
            HERMES,
            '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>',
            [("f", {"x": 1})],
        ),
        (
            HERMES,
            'First.<tool_call>{"name":"f","arguments":{}}</tool_call>\n'
            '<tool_call>{"name":"g","arguments":{}}</tool_call>',
            [("f", {}), ("g", {})],
        ),
        (
            HERMES,
            '<tool_call>{"name":"f","arguments":{}}\n{"name":"g","arguments":{}}</tool_call>',
            [("f", {}), ("g", {})],
        ),
        # The closing tag inside a string is content.
        (
            HERMES,
            '<tool_call>{"name":"w","arguments":{"t":"a </tool_call> b & <c>"}}</tool_call>',
            [("w", {"t": "a </tool_call> b & <c>"})],
        ),
        # A closing tag that never came.
        (HERMES, '<tool_call>{"name":"f","arguments":{}}', [("f", {})]),
        # A draft in the reasoning is no call, the one after it is.
        (
            HERMES,
            '<think><tool_call>{"name":"draft","arguments":{}}</tool_call></think>'
            '<tool_call>{"name":"f","arguments":{}}</tool_call>',
            [("f", {})],
        ),
        (HERMES, '<think><tool_call>{"name":"draft","arguments":{}}</tool_call>', []),
    ],
)
def test_calls_are_found(tool_format: ToolFormat, text: str, expected: object) -> None:
    assert calls(text, tool_format) == expected
    assert not parse(text, tool_format, id_prefix="call").malformed


@pytest.mark.parametrize(
    ("tool_format", "text", "left"),
    [
        (GENERIC, '{"name": "bash", "arguments": {"command": "ls', []),
        (GENERIC, '{"name": "bash", "arguments": [1]}', []),
        (GENERIC, '[{"name": "f", "arguments": {}}, {"name": "g", "arguments": 3}]', ["f"]),
        (HERMES, "<tool_call>f(x=1)</tool_call>", []),
        (HERMES, '<tool_call>{"name": "f", "argu', []),
        (
            HERMES,
            '<tool_call>{broken}</tool_call><tool_call>{"name":"g","arguments":{}}</tool_call>',
            ["g"],
        ),
    ],
)
def test_a_bad_part_is_reported_and_spares_the_rest(
    tool_format: ToolFormat, text: str, left: list[str]
) -> None:
    found = parse(text, tool_format, id_prefix="call")
    assert [call.name for call in found.calls] == left
    assert found.malformed


@pytest.mark.parametrize("text", ["The answer is 4.", "{x} is a set", "[1, 2]", '{"a": 1}', ""])
def test_text_that_is_no_attempt_is_content(text: str) -> None:
    found = parse(text, GENERIC, id_prefix="call")
    assert (found.calls, found.malformed, found.content) == ((), False, text)


def test_ids_are_unique_and_follow_the_prefix() -> None:
    text = json.dumps([{"name": "f", "arguments": {}}] * 3)
    ids = [call.id for call in parse(text, GENERIC, id_prefix="call_9").calls]
    assert ids == ["call_9_0", "call_9_1", "call_9_2"]


def test_reasoning_is_kept_apart() -> None:
    found = parse("<think>\nhm\n</think>\n\nFour.", HERMES, id_prefix="call")
    assert (found.reasoning, found.content) == ("hm", "Four.")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (None, GENERIC),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", GENERIC),
        ("{% if tools %}<tool_call>{{ x | tojson }}</tool_call>{% endif %}", HERMES),
        ("{% if tools %}<tool_call><function={{ n }}>{% endif %}", None),
        ("{% if tools %}[TOOL_CALLS]{% endif %}", None),
    ],
)
def test_the_format_is_chosen_from_the_template(template: str | None, expected: object) -> None:
    assert detect_format(template) is expected


PIECES = st.sampled_from(
    ["<tool_call>", "</tool_call>", "<think>", "</think>", '{"name":', '"f"', "{", "}", "[", "]",
     ",", ' "arguments":', '"', "\\", "\n", "x", "```json\n", "é", "\ud800"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join), st.sampled_from([GENERIC, HERMES]))
def test_no_text_raises(text: str, tool_format: ToolFormat) -> None:
    parse(text, tool_format, id_prefix="call")


@pytest.mark.parametrize(
    "text", ["<tool_call>" * 200_000, "<think>" * 200_000, "[" * 200_000, '{"name":' * 100_000]
)
@pytest.mark.parametrize("tool_format", [GENERIC, HERMES])
def test_a_megabyte_of_openers_ends(text: str, tool_format: ToolFormat) -> None:
    assert parse(text, tool_format, id_prefix="call").calls == ()
