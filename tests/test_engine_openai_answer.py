"""Deltas of tool calls, reasoning and text become one answer, however a server cuts them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agentic.core.jsonio import dump_line
from edge_agentic.engine.openai_answer import ParsedAnswer, merge_events, parse_answer
from edge_agentic.engine.openai_events import Event


def parsed(deltas: list[Any], finish: str | None = "tool_calls") -> ParsedAnswer:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    events = [Event(b"", json.dumps(chunk).encode(), 7) for chunk in chunks]
    return parse_answer(merge_events(events), id_prefix="own")


def fragment(
    index: object = None,
    call_id: object = None,
    name: object = None,
    arguments: object = None,
    **more: object,
) -> dict[str, Any]:
    return {
        "tool_calls": [
            {
                "index": index,
                "id": call_id,
                "function": {"name": name, "arguments": arguments},
                **more,
            }
        ]
    }


def calls(deltas: list[Any], finish: str | None = "tool_calls") -> list[tuple[str, str, Any]]:
    return [(c.id, c.name, c.arguments) for c in parsed(deltas, finish).calls]


CASES: dict[str, tuple[list[Any], list[tuple[str, str, Any]]]] = {
    "fragments of one call": (
        [
            fragment(0, "a", "f", ""),
            fragment(0, None, None, '{"x"'),
            fragment(0, None, None, ":1}"),
        ],
        [("a", "f", {"x": 1})],
    ),
    "two calls in turn": (
        [fragment(0, "a", "f", "{}"), fragment(1, "b", "g", '{"y":'), fragment(1, arguments="2}")],
        [("a", "f", {}), ("b", "g", {"y": 2})],
    ),
    "two calls interleaved": (
        [
            fragment(0, "a", "f", '{"x"'),
            fragment(1, "b", "g", '{"y"'),
            fragment(0, arguments=":1}"),
            fragment(1, arguments=":2}"),
        ],
        [("a", "f", {"x": 1}), ("b", "g", {"y": 2})],
    ),
    "a new id under a used index starts a new call": (
        [fragment(0, "a", "f", "{}"), fragment(0, "b", "f", "{}")],
        [("a", "f", {}), ("b", "f", {})],
    ),
    "the same id again goes on": (
        [fragment(0, "a", "f", '{"x"'), fragment(0, "a", "f", ":1}")],
        [("a", "f", {"x": 1})],
    ),
    "no index at all starts a new call": (
        [fragment(None, None, "f", {"x": 1}), fragment(None, None, "f", {"x": 2})],
        [("own_0", "f", {"x": 1}), ("own_1", "f", {"x": 2})],
    ),
    "a null index goes on where it has no name": (
        [fragment(None, "a", "f", ""), fragment(None, None, None, '{"x":1}')],
        [("a", "f", {"x": 1})],
    ),
    "the same id and name again, without an index, go on": (
        [fragment(None, "a", "f", '{"x"'), fragment(None, "a", "f", ":1}")],
        [("a", "f", {"x": 1})],
    ),
    "a new id without an index starts a new call": (
        [fragment(None, "a", "f", "{}"), fragment(None, "b", "f", "{}")],
        [("a", "f", {}), ("b", "f", {})],
    ),
    "an index of another type": (
        [
            fragment("0", "a", "f", "{}"),
            fragment(True, "b", "g", "{}"),
            fragment(1.5, "c", "h", "{}"),
        ],
        [("a", "f", {}), ("b", "g", {}), ("c", "h", {})],
    ),
    "another name under a used index": (
        [fragment(0, None, "f", "{}"), fragment(0, None, "g", "{}")],
        [("own_0", "f", {}), ("own_1", "g", {})],
    ),
    "arguments as a whole object": ([fragment(0, "a", "f", {"x": [1]})], [("a", "f", {"x": [1]})]),
    "null arguments": ([fragment(0, "a", "f", None)], [("a", "f", {})]),
    "empty arguments": ([fragment(0, "a", "f", "")], [("a", "f", {})]),
    "ids given twice": (
        [fragment(0, "a", "f", "{}"), fragment(1, "a", "g", "{}")],
        [("a", "f", {}), ("own_1", "g", {})],
    ),
    "half a surrogate pair in each fragment": (
        [fragment(0, "a", "f", '{"x":"\ud83d'), fragment(0, arguments='\ude00"}')],
        [("a", "f", {"x": "\U0001f600"})],
    ),
}


@pytest.mark.parametrize(("deltas", "expected"), CASES.values(), ids=CASES.keys())
def test_calls_are_put_together(deltas: list[Any], expected: list[tuple[str, str, Any]]) -> None:
    assert calls(deltas) == expected
    assert not parsed(deltas).malformed


@pytest.mark.parametrize(
    "deltas",
    [
        [fragment(0, "a", "f", '{"x":')],
        [fragment(0, "a", "f", "[1]")],
        [fragment(0, "a", "f", '{"x": NaN}')],
        [fragment(0, "a", None, "{}")],
        [fragment(0, "a", 5, "{}")],
        [{"content": '<tool_call>\n{"name": "f", "arg'}],
        [{"content": "<function=f><parameter=x>1"}],
        [{"content": '[TOOL_CALLS][{"name"'}],
        [{"content": '<TOOLCALL>[{"name"'}],
        [{"content": "<|tool_calls_section_begin|>"}],
    ],
)
def test_an_attempt_that_is_no_call_is_malformed(deltas: list[Any]) -> None:
    answer = parsed(deltas)
    assert answer.malformed
    assert answer.calls == ()


def test_one_bad_call_spares_the_others() -> None:
    answer = parsed([fragment(0, "a", "f", "{oops"), fragment(1, "b", "g", "{}")])
    assert [call.name for call in answer.calls] == ["g"]
    assert answer.malformed


def test_a_call_that_stands_in_the_text_beside_a_good_one_is_malformed() -> None:
    answer = parsed([{"content": '<tool_call>{"name": "f"'}, fragment(0, "b", "g", "{}")])
    assert [call.name for call in answer.calls] == ["g"]
    assert answer.malformed


def test_a_call_cut_at_the_token_limit_is_truncated() -> None:
    deltas = [fragment(0, "a", "f", "{}"), fragment(1, "b", "g", '{"command": "ls')]
    answer = parsed(deltas, "length")
    assert [(c.name, c.truncated) for c in answer.calls] == [("f", False), ("g", True)]
    assert not answer.malformed


@pytest.mark.parametrize(
    ("deltas", "reasoning", "content"),
    [
        ([{"content": "a"}, {"content": "b"}], None, "ab"),
        ([{"reasoning_content": "why"}, {"content": "b"}], "why", "b"),
        ([{"reasoning": "why"}, {"content": "b"}], "why", "b"),
        ([{"reasoning": "why", "reasoning_content": "why"}, {"content": "b"}], "why", "b"),
        ([{"content": "<think>\nwhy\n</think>\n\nb"}], "why", "b"),
        ([{"content": "<think>"}, {"content": "why"}], "why", ""),
        ([{"content": "why</think>b"}], "why", "b"),
        ([{"content": 5}, {"content": ["b"]}, {"content": "b"}], None, "b"),
        ([None, "x", [], {"tool_calls": None}, {"tool_calls": {}}, {"content": "b"}], None, "b"),
        ([{"tool_calls": [None, 5, {"function": None}]}, {"content": "b"}], None, "b"),
        ([{"content": "\ud83d"}, {"content": "\ude00"}], None, "\U0001f600"),
        ([{"content": "\ud83d"}], None, "�"),
    ],
)
def test_reasoning_and_text_are_told_apart(
    deltas: list[Any], reasoning: str | None, content: str
) -> None:
    answer = parsed(deltas, "stop")
    assert (answer.reasoning, answer.content) == (reasoning, content)


def test_the_whole_answer_is_kept_verbatim() -> None:
    answer = parsed([{"reasoning": "why"}, {"content": "b"}, fragment(0, "a", "f", "{oops")])
    assert answer.text == 'whyb[{"name":"f","arguments":"{oops"}]'


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
FRAGMENTS = st.fixed_dictionaries(
    {},
    optional={
        "index": ANYTHING,
        "id": ANYTHING,
        "function": st.fixed_dictionaries({}, optional={"name": ANYTHING, "arguments": ANYTHING}),
    },
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": ANYTHING,
        "reasoning_content": ANYTHING,
        "tool_calls": ANYTHING | st.lists(FRAGMENTS | ANYTHING, max_size=3),
    },
)
CHUNKS = st.fixed_dictionaries(
    {},
    optional={
        "id": ANYTHING,
        "choices": ANYTHING
        | st.lists(
            st.fixed_dictionaries(
                {}, optional={"index": ANYTHING, "delta": DELTAS, "finish_reason": ANYTHING}
            ),
            max_size=2,
        ),
        "usage": ANYTHING,
        "timings": ANYTHING,
        "error": ANYTHING,
    },
)


@settings(deadline=None)
@given(st.lists(CHUNKS | ANYTHING, max_size=5))
def test_no_stream_raises_and_every_answer_can_be_written_down(chunks: list[Any]) -> None:
    events = [Event(b"", json.dumps(chunk).encode(), 1) for chunk in chunks]
    answer = parse_answer(merge_events(events), id_prefix="own")
    dump_line(
        [answer.text, answer.content, answer.reasoning, [c.to_openai() for c in answer.calls]]
    ).encode()
