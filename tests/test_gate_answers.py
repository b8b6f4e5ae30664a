import json
import time
from types import MappingProxyType
from typing import Any

import pytest

from bfcl_gate.answers import Answer, Call, all_calls, looks_like_call, native_calls
from bfcl_gate.call_text import find_calls


def tool_call(arguments: Any, name: str = "f") -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"x": 1}', {"x": 1}),
        ({"x": 1}, {"x": 1}),
        (MappingProxyType({"x": MappingProxyType({"y": 1})}), {"x": {"y": 1}}),
        ('{"x": 1', {}),
        ("", {}),
        ('"x"', {}),
        ('"{\\"x\\": 1}"', {"x": 1}),
        ("null", None),
        ("5", 5),
        ("[1]", [1]),
        (None, None),
        ({"x": {1, 2}}, None),
        ("[" * 100_000, {}),
    ],
)
def test_arguments_are_read_from_a_string_or_a_mapping(arguments: Any, read: Any) -> None:
    assert native_calls(Answer([tool_call(arguments)])) == [Call("f", read)]


@pytest.mark.parametrize(
    ("tool_calls", "names"),
    [
        ([], []),
        ([{"function": "foo"}], []),
        ([{"function": {}}], [""]),
        ([{"function": {"name": 5}}], [""]),
        ([tool_call("{}", "a"), None, {"function": None}, tool_call("{}", "b")], ["a", "b"]),
        ({"function": {"name": "f"}}, []),
        ("f(x=1)", []),
        (7, []),
    ],
)
def test_an_entry_without_a_function_object_is_no_call(tool_calls: Any, names: list[str]) -> None:
    assert [call.name for call in native_calls(Answer(tool_calls))] == names


def test_an_empty_answer_is_not_a_missing_one() -> None:
    assert Answer().missing
    assert not Answer(text="").missing
    assert not Answer(tool_calls=[]).missing


OPENAI = json.dumps([tool_call('{"x": 1}')])
NAMED = '[{"name": "f", "arguments": {"x": 1}}]'
PYTHON = "Sure, I call `f(x=1)` now."


@pytest.mark.parametrize(
    ("text", "is_native", "looks"),
    [(OPENAI, True, False), (NAMED, False, True), (PYTHON, False, True)],
)
def test_text_answers_are_read_in_three_forms(text: str, is_native: bool, looks: bool) -> None:
    answer = Answer(text=text)
    assert all_calls(answer) == [Call("f", {"x": 1})]
    assert native_calls(answer) == ([Call("f", {"x": 1})] if is_native else [])
    assert looks_like_call(answer) is looks


def test_native_calls_come_before_text() -> None:
    answer = Answer([tool_call("{}", "native")], text=NAMED)
    assert [call.name for call in all_calls(answer)] == ["native"]
    assert [call.name for call in all_calls(Answer([], text=NAMED))] == ["f"]


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ('<tool_call><tool_call name="solve" arguments={"a":1}/></tool_call>', True),
        ("<function=f>", True),
        ("None of the provided functions can help.", False),
        ("[]", False),
        ("", False),
    ],
)
def test_an_attempt_at_a_call_is_told_from_prose(text: str, looks: bool) -> None:
    assert looks_like_call(Answer(text=text)) is looks


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1", 1),
        ("-2", -2),
        ("1_000", 1000),
        ("2.5", 2.5),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("'a'", "a"),
        ('"it\'s"', "it's"),
        (r"'it\'s'", "it's"),
        (r"'a\n\x41\u00e9\q'", "a\nA\u00e9\\q"),
        (r"r'\d'", r"\d"),
        ("'''a\n'b' '''", "a\n'b' "),
        ("'a' \"b\"", "ab"),
        ("''", ""),
        ("'a, b) c'", "a, b) c"),
        ("True", True),
        ("true", True),
        ("None", None),
        ("null", None),
        ("[1, [2, 'x'],]", [1, [2, "x"]]),
        ("(1, 2)", (1, 2)),
        ("(1,)", (1,)),
        ("(1)", 1),
        ("()", ()),
        ("{'a': {'b': [1]}}", {"a": {"b": [1]}}),
        ("{}", {}),
        # What is no literal stays text, and is never evaluated.
        ("metres", "metres"),
        ("2 * 3", "2 * 3"),
        ("5L", "5L"),
        ("2024-01-31", "2024-01-31"),
        ("g(1, [2], ')')", "g(1, [2], ')')"),
        ("__import__('os').system('true')", "__import__('os').system('true')"),
        ("{1, 2}", "{1, 2}"),
        ("f'{x}'", "f'{x}'"),
        ("[1][0]", "[1][0]"),
        ("9" * 6000, "9" * 6000),
    ],
)
def test_a_python_literal_is_read(written: str, value: object) -> None:
    ((name, arguments),) = find_calls(f"f(x={written}, y = 1)")
    assert name == "f"
    # A number of 6,000 digits is text or a number, depending on the interpreter's limit.
    found = arguments["x"]
    assert str(found) == str(value) if isinstance(value, str) else found == value
    assert type(found) is type(value)
    assert arguments["y"] == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("f(x=1) and then g.h(y=2), done", ["f", "g.h"]),
        ("now()", ["now"]),
        ("print(f(x=1))", ["f"]),
        ("Note(x=1) The(x=1) if(x=1)", []),
        ("f(1)", []),
        ("f(1, x=2)", []),
        ("f(**{'x': 1})", []),
        ("your file(s) and f(x=1)", ["f"]),
        ("f (x=1)", []),
        ("f(x=1", []),
        ("f(x=)", []),
        ("f(x=it's)", []),
        ("f(x=[1)", []),
        ("f(x==1)", []),
    ],
)
def test_only_calls_with_keyword_arguments_are_found(text: str, names: list[str]) -> None:
    assert [name for name, _ in find_calls(text)] == names


@pytest.mark.parametrize(
    "unit",
    ["f(x=", "f(x=[", "(", "f(x='", "f(x='''", "a.", "a(b(", "f(x=" + "[" * 20 + "]a" * 20 + ")"],
)
def test_a_megabyte_of_hostile_text_takes_moments(unit: str) -> None:
    start = time.process_time()
    list(find_calls(unit * (1_000_000 // len(unit))))
    list(find_calls(f"f(x={unit * 10_000}"))
    assert time.process_time() - start < 10


@pytest.mark.parametrize("opener", ["[", "(", "{'a':", "-", "g("])
def test_deep_nesting_is_no_call_and_no_error(opener: str) -> None:
    assert list(find_calls(f"f(x={opener * 10_000}")) == []
