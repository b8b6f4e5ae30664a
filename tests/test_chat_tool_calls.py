"""Tool calls in model text: what counts as a call, and what as a failed attempt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agentic.chat.tool_calls import call_starts, parse
from edge_agentic.chat.tool_format import ToolFormat
from tests.call_texts import LOOK, SAMPLES, TOOLS, TWO_CALLS, found, json_call, xml_call

GENERIC, HERMES, XML = ToolFormat.GENERIC, ToolFormat.HERMES, ToolFormat.QWEN3_XML
LLAMA, MISTRAL = ToolFormat.LLAMA3_JSON, ToolFormat.MISTRAL

EACH = [
    pytest.param(tool_format, text, id=f"{tool_format.value}-{number}")
    for tool_format, texts in SAMPLES.items()
    for number, text in enumerate(texts)
]


@pytest.mark.parametrize(("tool_format", "text"), EACH)
def test_calls_are_found_in_order(tool_format: ToolFormat, text: str) -> None:
    parsed = parse(text, tool_format, id_prefix="call_9", tools=TOOLS)
    assert [(call.name, dict(call.arguments)) for call in parsed.calls] == TWO_CALLS
    assert [call.id for call in parsed.calls] == ["call_9_0", "call_9_1"]
    assert not any(call.truncated for call in parsed.calls)
    assert (parsed.content, parsed.reasoning, parsed.malformed) == ("", None, False)


def test_every_format_has_a_sample() -> None:
    assert set(SAMPLES) == set(ToolFormat)


@pytest.mark.parametrize(("tool_format", "text"), EACH)
def test_a_call_begins_with_one_of_the_starts(tool_format: ToolFormat, text: str) -> None:
    if tool_format is ToolFormat.FUNCTIONARY_3_2:
        text = ">>>" + text  # the prompt has written that already
    assert any(start in text for start in call_starts(tool_format))


@pytest.mark.parametrize(("tool_format", "text"), EACH)
def test_a_text_that_is_cut_loses_nothing_that_was_whole(
    tool_format: ToolFormat, text: str
) -> None:
    for length in range(len(text)):
        calls = parse(text[:length], tool_format, id_prefix="call", tools=TOOLS).calls
        for call, (name, arguments) in zip(calls, TWO_CALLS, strict=False):
            assert call.name == name
            assert call.arguments.items() <= arguments.items()
            assert call.truncated or call.arguments == arguments
        assert not any(call.truncated for call in calls[:-1])


@pytest.mark.parametrize("between", ["", "\n\n", "Now the second."])
@pytest.mark.parametrize(
    ("tool_format", "first", "second"),
    [
        (XML, xml_call("look", path="a b", lines="3"), xml_call("status")),
        (
            HERMES,
            f"<tool_call>{json_call('look', LOOK)}</tool_call>",
            f"<tool_call>{json_call('status', {})}</tool_call>",
        ),
    ],
)
def test_text_around_calls_is_content(
    tool_format: ToolFormat, first: str, second: str, between: str
) -> None:
    text = f"First. {first}{between}{second} Done."
    parsed = parse(text, tool_format, id_prefix="call", tools=TOOLS)
    assert parsed.content == f"First. {between} Done."
    assert [call.name for call in parsed.calls] == ["look", "status"]


@pytest.mark.parametrize(
    ("tool_format", "text", "expected"),
    [
        # No closing mark, no opening one, or neither.
        (HERMES, f"<tool_call>\n{json_call('look', LOOK)}", [("look", LOOK)]),
        (HERMES, f"{json_call('look', LOOK)}\n</tool_call>", [("look", LOOK)]),
        (HERMES, f"Sure. {json_call('other', LOOK)}\n</tool_call>", [("other", LOOK)]),
        (HERMES, json_call("look", LOOK), [("look", LOOK)]),
        (HERMES, f"<tool_call>{json_call('look', LOOK)}<tool_call>{json_call('status', {})}",
         TWO_CALLS),
        # A brace too few or too many.
        (HERMES, f"<tool_call>{json_call('look', LOOK)[:-1]}</tool_call>", [("look", LOOK)]),
        (HERMES, f"<tool_call>{json_call('look', LOOK)}}}</tool_call>", [("look", LOOK)]),
        (GENERIC, f"[{json_call('look', LOOK)[:-1]}, {json_call('status', {})}]", TWO_CALLS),
        # No arguments.
        (HERMES, '<tool_call>{"name": "status"}</tool_call>', [("status", {})]),
        (HERMES, '<tool_call>{"name": "status", "arguments": null}</tool_call>', [("status", {})]),
        (HERMES, '<tool_call>{"name": "status", "arguments": ""}</tool_call>', [("status", {})]),
        (MISTRAL, "[TOOL_CALLS][]", []),
        # Arguments as a JSON string.
        (GENERIC, '{"name": "look", "arguments": "{\\"lines\\": 1}"}', [("look", {"lines": 1})]),
        (MISTRAL, '[TOOL_CALLS]look[ARGS]"{\\"lines\\": 1}"', [("look", {"lines": 1})]),
        # Other orders and shapes.
        (GENERIC, '{"arguments": {"lines": 1}, "name": "look"}', [("look", {"lines": 1})]),
        (
            GENERIC,
            '{"type": "function", "function": {"name": "look", "arguments": "{}"}}',
            [("look", {})],
        ),
        # A line feed in a JSON string is a mistake that says what it means.
        (HERMES, '<tool_call>{"name": "look", "arguments": {"path": "a\nb"}}</tool_call>',
         [("look", {"path": "a\nb"})]),
        # A call in the other form of the same tags.
        (XML, f"<tool_call>\n{json_call('look', LOOK)}\n</tool_call>", [("look", LOOK)]),
        # Declining is no call.
        (GENERIC, '{"name": "no_suitable_function", "arguments": {}}', []),
    ],
)  # fmt: skip
def test_what_can_be_recovered_is(tool_format: ToolFormat, text: str, expected: object) -> None:
    assert found(text, tool_format) == expected
    assert not parse(text, tool_format, id_prefix="call", tools=TOOLS).malformed


@pytest.mark.parametrize(
    ("tool_format", "text", "left"),
    [
        (GENERIC, '{"name": "look", "arguments": {"path": "ls', []),
        (GENERIC, '{"name": "look", "arguments": [1]}', []),
        (GENERIC, '{"name": "look", "path": "a"}', []),
        (GENERIC, f'[{json_call("look", LOOK)}, {{"name": "g", "arguments": 3}}]', ["look"]),
        (GENERIC, '{"name": "look", "arguments": {"lines": NaN}}', []),
        (GENERIC, '{"name": "look", "arguments": {"lines": 1e999}}', []),
        (GENERIC, f'{{"name": "look", "arguments": {{"lines": {"9" * 5000}}}}}', []),
        (HERMES, "<tool_call>look(path=1)</tool_call>", []),
        (HERMES, "<tool_call>", []),
        (HERMES, '<tool_call>{"name": "look", "argu', []),
        (HERMES, f"<tool_call>{{x}}</tool_call><tool_call>{json_call('status', {})}", ["status"]),
        (HERMES, '<tool_call><tool_call name="solve" arguments={"a":1}/></tool_call>', []),
        (XML, '<tool_call><tool_call name="solve" arguments={"a":1}/></tool_call>', []),
        # A string that is never closed takes the next call's quote for its end.
        (
            HERMES,
            '<tool_call>{"name": "look", "arguments": {"path": "a}}</tool_call>'
            f"<tool_call>{json_call('status', {})}</tool_call>",
            ["status"],
        ),
        (
            HERMES,
            f"<tool_call>{json_call('look', LOOK)} and so on</tool_call>",
            ["look"],
        ),
        # What a broken object holds is its own: no call is made of it.
        (
            MISTRAL,
            '[TOOL_CALLS][{"name": "plan", "arguments": {"first": '
            f"{json_call('look', LOOK)},}}}}, {json_call('status', {})}]",
            ["status"],
        ),
        (MISTRAL, f'[TOOL_CALLS][{json_call("look", LOOK)}, {{"name": "sta', ["look"]),
        (MISTRAL, '[TOOL_CALLS]look[ARGS]{"path":', []),
        (LLAMA, '<|python_tag|>brave_search.call(query="x")', []),
    ],
)
def test_a_bad_part_is_reported_and_spares_the_rest(
    tool_format: ToolFormat, text: str, left: list[str]
) -> None:
    parsed = parse(text, tool_format, id_prefix="call", tools=TOOLS)
    assert [call.name for call in parsed.calls] == left
    assert parsed.malformed
    if not left:
        assert parsed.content == text


@pytest.mark.parametrize("tool_format", [GENERIC, LLAMA, HERMES])
@pytest.mark.parametrize(
    "text",
    [
        "The answer is 4.",
        "{x} is a set",
        "[1, 2]",
        "[]",
        '{"a": 1}',
        '{"name": "Ada", "age": 36}',
        'The file holds {"name": "app", "arguments": {"x": 1}}.',
        'In Python: f = {"a": {"b": 1',
        "",
    ],
)
def test_text_that_is_no_attempt_is_content(tool_format: ToolFormat, text: str) -> None:
    parsed = parse(text, tool_format, id_prefix="call", tools=TOOLS)
    assert (parsed.calls, parsed.malformed, parsed.content) == ((), False, text)


def test_a_bare_call_after_prose_needs_an_offered_name() -> None:
    text = "I'll look.\n```json\n" + json_call("look", LOOK) + "\n```\nWait."
    assert found(text, LLAMA) == [("look", LOOK)]
    assert parse(text, LLAMA, id_prefix="call", tools=TOOLS).content == "I'll look.\n\nWait."
    assert found(text, LLAMA, [{"name": "other"}]) == []


MARKUP = [
    "a </tool_call> b",
    "<think>hm</think>",
    "</think>",
    "<tool_call>{}</tool_call>",
    "if a < b && c > d: \"'`$",
    "&amp; &lt;",
    "[TOOL_CALLS][ARGS]<|python_tag|>",
    '{"name": "status", "arguments": {}}',
    "</function></tool_calls></TOOLCALL>",
    "}]}",
]


@pytest.mark.parametrize("content", MARKUP)
@pytest.mark.parametrize(("tool_format", "text"), [
    (HERMES, "<tool_call>\n{call}\n</tool_call>"),
    (GENERIC, "{call}"),
    (LLAMA, "{call}"),
    (LLAMA, "<|python_tag|>{call}"),
    (MISTRAL, "[TOOL_CALLS][{call}]"),
    (MISTRAL, "[TOOL_CALLS]look[ARGS]{arguments}"),
    (ToolFormat.FUNCTIONARY_3_1, "<function=look>{arguments}</function>"),
    (ToolFormat.GPT_OSS, "<|channel|>commentary to=functions.look<|message|>{arguments}<|call|>"),
    (ToolFormat.NEMOTRON, "<TOOLCALL>[{call}]</TOOLCALL>"),
    (ToolFormat.GEMMA4, '<|tool_call>call:look{{path:<|"|>{raw}<|"|>}}<tool_call|>'),
])  # fmt: skip
def test_markup_in_a_string_is_content(tool_format: ToolFormat, text: str, content: str) -> None:
    arguments = {"path": content}
    filled = text.format(
        call=json_call("look", arguments), arguments=json.dumps(arguments), raw=content
    )
    assert found(filled, tool_format) == [("look", arguments)]
    assert parse(filled, tool_format, id_prefix="call", tools=TOOLS).content == ""


@pytest.mark.parametrize(
    ("text", "reasoning", "expected"),
    [
        # A draft, and the real call after it.
        (f"<think>\n{xml_call('look')}\n</think>\n\n{xml_call('status')}", xml_call("look"),
         ["status"]),
        # Never closed: reasoning to its end.
        (f"<think>\n{xml_call('look')}", xml_call("look"), []),
        # Opened by the prompt.
        (f"Hm. {xml_call('look')}\n</think>\n{xml_call('status')}", f"Hm. {xml_call('look')}",
         ["status"]),
        (f"<think>a</think>b {xml_call('look')}</think>{xml_call('status')}",
         f"ab {xml_call('look')}", ["status"]),
        # Between calls.
        (f"{xml_call('look')}<think>a</think>{xml_call('status')}<think>b</think>", "a\nb",
         ["look", "status"]),
        (f"<think>\n\n</think>\n\n{xml_call('status')}", None, ["status"]),
        # A failed attempt in a draft is no failed attempt.
        (f"<think><tool_call>x</tool_call></think>{xml_call('status')}",
         "<tool_call>x</tool_call>", ["status"]),
    ],
)  # fmt: skip
def test_calls_in_reasoning_are_drafts(
    text: str, reasoning: str | None, expected: list[str]
) -> None:
    parsed = parse(text, XML, id_prefix="call", tools=TOOLS)
    assert [call.name for call in parsed.calls] == expected
    assert (parsed.reasoning, parsed.content, parsed.malformed) == (reasoning, "", False)


@pytest.mark.parametrize(
    ("tool_format", "text"),
    [
        (HERMES, "<think>\nhm\n</think>\n\nFour."),
        (MISTRAL, "[THINK]hm[/THINK]Four."),
        (ToolFormat.COMMAND_R, "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Four."),
        (ToolFormat.GEMMA4, "<|channel>thought\nhm\n<channel|>Four."),
        (
            ToolFormat.GPT_OSS,
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>"
            "Four.",
        ),
    ],
)
def test_reasoning_is_kept_apart(tool_format: ToolFormat, text: str) -> None:
    parsed = parse(text, tool_format, id_prefix="call")
    assert (parsed.reasoning, parsed.content, parsed.calls) == ("hm", "Four.", ())


PIECES = [
    *sorted({start for each in ToolFormat for start in call_starts(each)}),
    "</tool_call>", "<think>", "</think>", '{"name":', '"look"', "{", "}", "[", "]", ",",
    ' "arguments":', '"', "\\", "\n", "x", "```json\n", "é", "\ud800", "<parameter=path>",
    "<parameter=", "</parameter>", "</function>", "<arg_key>", "</arg_key>", "<arg_value>",
    "</arg_value>", "look", "[ARGS]", "call:look", '<|"|>', "<tool_call|>", "<|message|>",
    "<|channel|>", "to=functions.look", "<|end|>", "9", " ",
]  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join), st.sampled_from(ToolFormat))
def test_no_text_raises(text: str, tool_format: ToolFormat) -> None:
    for tools in ([], TOOLS):
        for call in parse(text, tool_format, id_prefix="call", tools=tools).calls:
            json.dumps(call.to_openai(), allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize(("levels", "calls"), [(64, 1), (65, 0), (5_000, 0)])
@pytest.mark.parametrize(
    "write",
    [
        lambda value: json_call("look", {"path": 1}).replace("1", value),
        lambda value: f'[TOOL_CALLS]look[ARGS]{{"path": {value}}}',
    ],
)
def test_arguments_nest_at_most_64_levels(write: Any, levels: int, calls: int) -> None:
    text = write("[" * (levels - 1) + "]" * (levels - 1))
    tool_format = MISTRAL if "[ARGS]" in text else GENERIC
    parsed = parse(text, tool_format, id_prefix="call")
    assert (len(parsed.calls), parsed.malformed) == (calls, not calls)


@settings(deadline=None)
@given(st.text(), st.sampled_from(ToolFormat))
def test_any_text_without_marks_is_content(text: str, tool_format: ToolFormat) -> None:
    text = "".join(character for character in text if character not in "<>[]{}\ud800")
    assert parse(text, tool_format, id_prefix="call").content == text.strip()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text() | st.sampled_from(MARKUP),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(deadline=None)
@given(
    st.dictionaries(st.text(), json_values, max_size=4),
    st.sampled_from([HERMES, GENERIC, LLAMA, MISTRAL]),
    st.booleans(),
)
def test_any_json_arguments_come_back(
    arguments: dict[str, Any], tool_format: ToolFormat, ascii_only: bool
) -> None:
    text = json.dumps({"name": "look", "arguments": arguments}, ensure_ascii=ascii_only)
    marked = {HERMES: f"<tool_call>{text}</tool_call>", MISTRAL: f"[TOOL_CALLS][{text}]"}
    assert found(marked.get(tool_format, text), tool_format) == [("look", arguments)]


@pytest.mark.parametrize("tool_format", ToolFormat)
@pytest.mark.parametrize("more", ["", "{", '{"name":', "[" * 20, '{"a":' * 2000])
def test_a_long_row_of_openers_ends(tool_format: ToolFormat, more: str) -> None:
    for start in (*call_starts(tool_format), "<think>", "</think>"):
        text = (start + more) * (8_000 // len(start + more) + 1)
        assert parse(text, tool_format, id_prefix="call", tools=TOOLS).calls == ()
