"""No answer makes the gate raise, hang, warn or run what a model wrote."""

import json
import time
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfcl_gate.answers import Answer, all_calls, looks_like_call, native_calls

UNITS = [
    "f(x=[", "(", "f(x='", "f(x='''", "a(b(", "f(x=1)", "f(\\'", "'''\\", '"', "\\", "#'\n", "\n",
    "\ud800", "not ", "lambda a,b:", "[]", '{"a":', '"name":"', "f(x={1}) ",
]  # fmt: skip


def read(answer: Answer) -> list[Any]:
    """Read the answer in every way; what is found must be writable as JSON."""
    native_calls(answer)
    looks_like_call(answer)
    calls = all_calls(answer)
    json.dumps([[call.name, call.arguments] for call in calls])
    return [call.arguments for call in calls]


@pytest.mark.parametrize("unit", UNITS)
def test_much_hostile_text_takes_moments(unit: str) -> None:
    long = unit * (45_000 // len(unit))
    megabyte = unit * (1_000_000 // len(unit))
    start = time.process_time()
    read(Answer(text=long))
    read(Answer(text=f"f(x={long})"))
    read(Answer(text=megabyte))
    read(Answer([{"function": {"name": "f", "arguments": megabyte}}]))
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("opener", "closer"),
    [
        ("[", "]"), ("(", ")"), ("{'a':", "}"), ("[a,", "]"), ("g(", ")"), ("g(a=", ")"),
        ("-", ""), ("not ", ""), ("2**", ""), ("1+", ""), ("a if b else ", ""), ("lambda a,:", ""),
        ("a.", ""), ("", ".a"), ("", "()"), ("", "[0]"), ("[x for x in ", "]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("depth", [200, 10_000])
def test_an_expression_nested_too_deeply_is_not_read(opener: str, closer: str, depth: int) -> None:
    text = f"f(x={opener * depth}1{closer * depth})"
    assert read(Answer(text=text)) in ([], [{"_raw": text[2:-1]}])


@pytest.mark.parametrize(
    "hidden",
    ["f'{%s1}'", "#'\n%s1 #'\n", "r'\\' + %s1 + '\\'", "'''''' + %s1 + ''''''", "'\n%s1 + '\n"],
)
def test_quotes_hide_no_depth_from_the_bound(hidden: str) -> None:
    text = f"f(x={hidden % ('-' * 5_000)})"
    assert all(set(arguments) == {"_raw"} for arguments in read(Answer(text=text)))


@pytest.mark.parametrize("depth", [300, 900, 10_000])
def test_json_nested_too_deeply_is_not_read(depth: int) -> None:
    nested = '{"x":' * depth + "1" + "}" * depth
    assert read(Answer([{"function": {"name": "f", "arguments": nested}}])) == [None]
    assert read(Answer(text=f'[{{"name": "f", "arguments": {nested}}}]')) == []
    value: Any = {}
    for _ in range(depth):
        value = {"x": value}
    deep = Answer([{"function": {"name": "f", "arguments": value}}])
    assert read(deep) == [None]
    assert native_calls(deep)


def test_an_argument_that_holds_itself_is_not_read() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert read(Answer([{"function": {"name": "f", "arguments": endless}}])) == [None]


def test_a_strange_escape_warns_nobody() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(Answer(text=r"f(x='\d', y=1if z else 2, z='\777')"))[0]["x"] == r"\d"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "arguments", "function", "x"]), inner)
    ),
    max_leaves=12,
)
LEAKED = (
    JSON_VALUES
    | st.sets(st.integers())
    | st.binary()
    | st.just(object())
    | st.complex_numbers()
    | st.dictionaries(st.integers() | st.binary(), st.integers(), max_size=2)
)
ENTRIES = LEAKED | st.fixed_dictionaries(
    {},
    optional={
        "index": LEAKED | st.integers(0, 2),
        "name": LEAKED,
        "function": LEAKED
        | st.fixed_dictionaries(
            {}, optional={"name": LEAKED, "arguments": LEAKED | JSON_VALUES.map(json.dumps)}
        ),
    },
)
NATIVE = LEAKED | st.lists(ENTRIES | st.lists(ENTRIES, max_size=3), max_size=3)
TOKENS = (
    "f( g( ) x= y= , : . = 1 -2.5 1e9 'a' \"b\" ' \" ''' f' r' # \\ [ ] { } ( lambda if else not "
    "for in await yield ** * := é \n \x00 \ud800 None true {1} 1j ..."
)
NEAR_CALLS = st.lists(st.sampled_from(TOKENS.split(" ")), max_size=40).map(" ".join)
TEXTS = st.text() | NEAR_CALLS | JSON_VALUES.map(json.dumps) | NEAR_CALLS.map("f(x={})".format)


@given(st.none() | NATIVE, st.none() | TEXTS)
@settings(max_examples=300, deadline=None)
def test_any_answer_is_read(tool_calls: Any, text: str | None) -> None:
    read(Answer(tool_calls, text))
