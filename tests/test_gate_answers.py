import json
from types import MappingProxyType
from typing import Any

import pytest

from bfcl_gate.answers import Answer, Call, all_calls, looks_like_call, native_calls
from bfcl_gate.call_text import find_calls


def tool_call(arguments: Any, name: Any = "f") -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


def named(arguments: Any, name: Any = "f") -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


CALL = Call("f", {"x": 1})
OPENAI = json.dumps([tool_call('{"x": 1}')])
NAMED = json.dumps([named({"x": 1})])
PYTHON = "Sure, I call `f(x=1)` now."


def test_an_empty_answer_is_not_a_missing_one() -> None:
    assert Answer().missing
    assert not Answer(text="").missing
    assert not Answer(tool_calls=[]).missing


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"x": 1}', {"x": 1}),
        ({"x": 1}, {"x": 1}),
        (MappingProxyType({"x": MappingProxyType({"y": (1,)})}), {"x": {"y": [1]}}),
        # Text that is no JSON counts as no arguments.
        ('{"x": 1', {}),
        ("", {}),
        ("9" * 5000, {}),
        # Text inside text is read once more, and no further.
        ('"x"', {}),
        (json.dumps('{"x": 1}'), {"x": 1}),
        (json.dumps(json.dumps('{"x": 1}')), '{"x": 1}'),
        ("null", None),
        ("5", 5),
        ("[1]", [1]),
        (None, None),
        ({"x": float("inf")}, {"x": None}),
        ('{"x": 1e999}', {"x": float("inf")}),
        # What cannot be read at all.
        ({"x": {1, 2}}, None),
        ("[" * 100_000, None),
        ("[" * 201 + "]" * 201, None),
    ],
)
def test_native_arguments_are_a_mapping_or_json_text(arguments: Any, read: Any) -> None:
    assert native_calls(Answer([tool_call(arguments)])) == [Call("f", read)]


@pytest.mark.parametrize(
    ("tool_calls", "names"),
    [
        ([tool_call("{}", "a"), tool_call("{}", "b")], ["a", "b"]),
        ((MappingProxyType({"function": MappingProxyType({"name": "f"})}),), ["f"]),
        ([{"function": {}}], [""]),
        ([{"function": {"name": 5}}], [""]),
        ([], []),
        ([{"function": "foo"}], []),
        ([tool_call("{}", "a"), None], []),
        ([tool_call("{}", "a"), {"function": None}], []),
        ([named({}, "a"), tool_call("{}", "b")], []),
        ({"function": {"name": "f"}}, []),
        ("f(x=1)", []),
        (7, []),
    ],
)
def test_calls_are_native_only_if_each_has_a_function_object(
    tool_calls: Any, names: list[str]
) -> None:
    assert [call.name for call in native_calls(Answer(tool_calls))] == names
    text = json.dumps(tool_calls, default=dict)
    assert [call.name for call in native_calls(Answer(text=text))] == names


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        (
            [
                [{"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}],
                [{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}],
                [{"index": 0, "function": {"name": None, "arguments": '{"x": '}}, {"index": 0}],
                [],
                [{"index": 0, "function": {"arguments": "1}"}}],
            ],
            [CALL, Call("g", {})],
        ),
        ([[{"function": {"name": "f"}}], [{"function": {"arguments": '{"x": 1}'}}]], [CALL]),
        ([[{"index": 0}]], [Call("", {})]),
        ([[{"function": {"name": "f"}}], "f"], []),
        ([[{"function": {"name": "f"}}, 5]], []),
        ([[], 5], []),
    ],
)
def test_the_chunks_of_a_stream_are_joined(chunks: Any, calls: list[Call]) -> None:
    answer = Answer(chunks, text=PYTHON)
    assert native_calls(answer) == calls
    assert all_calls(answer) == calls


@pytest.mark.parametrize(
    ("text", "is_native", "looks"),
    [(OPENAI, True, False), (NAMED, False, True), (PYTHON, False, True)],
)
def test_text_answers_are_read_in_three_forms(text: str, is_native: bool, looks: bool) -> None:
    answer = Answer(text=text)
    assert all_calls(answer) == [CALL]
    assert native_calls(answer) == ([CALL] if is_native else [])
    assert looks_like_call(answer) is looks


def test_any_space_around_json_is_dropped_only_where_a_call_is_due() -> None:
    answer = Answer(text=f"\u00a0{OPENAI}")
    assert all_calls(answer) == [CALL]
    assert native_calls(answer) == []


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ({"x": 1}, {"x": 1}),
        ('{"x": 1}', {"x": 1}),
        ('{"x": ', {}),
        (json.dumps("{}"), "{}"),
        (None, None),
        ([1], [1]),
    ],
)
def test_arguments_of_a_json_array_are_read_once(arguments: Any, read: Any) -> None:
    assert all_calls(Answer(text=json.dumps([named(arguments)]))) == [Call("f", read)]


@pytest.mark.parametrize(
    ("entries", "calls"),
    [
        ([{"name": "f"}], [Call("f", {})]),
        ([{"name": None}], [Call("", {})]),
        ([named({"x": 1}), {"arguments": {}}], []),
        ([named({"x": 1}), 5], []),
        # A JSON array that is neither form is still text.
        ([named({"x": 1}), "g(y=2)"], [Call("g", {"y": 2})]),
        ({"name": "f", "arguments": {}}, []),
    ],
)
def test_an_entry_without_a_name_spoils_a_json_array(entries: Any, calls: list[Call]) -> None:
    assert all_calls(Answer(text=json.dumps(entries))) == calls


@pytest.mark.parametrize(
    ("tool_calls", "calls"),
    [
        ([tool_call("{}", "native")], [Call("native", {})]),
        ([], [CALL]),
        (None, [CALL]),
        ({"function": {"name": "f"}}, [CALL]),
        # Native calls without OpenAI's shape are read as the text that they are in JSON.
        ([named({"x": 2})], [Call("f", {"x": 2})]),
        (["g(é='ü')"], [Call("g", {"é": "ü"})]),
        ([{"function": "foo"}], []),
        ([tool_call({"y": 3}), object()], []),
    ],
)
def test_text_counts_only_where_there_are_no_native_entries(
    tool_calls: Any, calls: list[Call]
) -> None:
    assert all_calls(Answer(tool_calls, text=NAMED)) == calls


@pytest.mark.parametrize(
    ("answer", "looks"),
    [
        (Answer(text='<tool_call>{"name": "f", "argu'), True),
        (Answer(text='<tool_call><tool_call name="solve" arguments={"a":1}/></tool_call>'), True),
        (Answer(text="<function=f>"), True),
        (Answer(text='[TOOL_CALLS][{"na'), True),
        (Answer(text='[{"id": "1", "type": "function", "function": {"name": "f", "ar'), True),
        (Answer(text='{"name": "f", "parameters": {}}'), True),
        (Answer(text="f(city='Paris"), True),
        (Answer(text="f(city=New York)"), True),
        (Answer([{"function": "foo"}]), True),
        (Answer([tool_call("{}")]), False),
        (Answer(text="The function get_weather(city) needs a city; now() needs nothing."), False),
        (Answer(text="Give the file(s) (a == b), Paris (France), costs (about 5 dollars)."), False),
        (Answer(text='[{"name": "Ann"}, {"name": "Bo"}]'), False),
        (Answer(text="[]"), False),
        (Answer(text=""), False),
        (Answer([]), False),
    ],
)
def test_an_attempt_at_a_call_is_told_from_prose(answer: Answer, looks: bool) -> None:
    assert looks_like_call(answer) is looks


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1", 1),
        ("-2", -2),
        ("1_000", 1000),
        ("0x1F", 31),
        ("2.5", 2.5),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("1e999", float("inf")),
        ("'a'", "a"),
        ('"it\'s"', "it's"),
        (r"'it\'s'", "it's"),
        (r"'a\n\x41\u00e9\q'", "a\nA\u00e9\\q"),
        (r"r'\d'", r"\d"),
        ("'a' \"b\"", "ab"),
        ("'''a\nb'''", "a\nb"),
        ("''", ""),
        ("'a, b) c'", "a, b) c"),
        ("True", True),
        ("None", None),
        ("[1, [2, 'x'],]", [1, [2, "x"]]),
        ("(1, 2)", [1, 2]),
        ("(1)", 1),
        ("{'a': {'b': (1,)}}", {"a": {"b": [1]}}),
        ("{1: 'a', None: 'b', True: 'c', 1.5: 'd'}", {"1": "c", "null": "b", "1.5": "d"}),
        ("1,  # one\n z=2", 1),
        # What is no literal is the text of the expression, as Python writes it.
        ("true", "true"),
        ("null", "null"),
        ("celsius", "celsius"),
        ("New-York", "New - York"),
        ("(a.b)", "a.b"),
        ("[1, y]", "[1, y]"),
        ("lambda a, b: a**2", "lambda a, b: a ** 2"),
        ("g( 1,[2], ')' )", "g(1, [2], ')')"),
        ("__import__('os').system('true')", "__import__('os').system('true')"),
        ("+".join("ab" * 20), " + ".join("ab" * 20)),
    ],
)
def test_a_keyword_argument_is_read_and_never_evaluated(written: str, value: object) -> None:
    ((name, arguments),) = find_calls(f"f(x={written}, y=1)")
    assert name == "f"
    found = arguments["x"]
    assert found == value
    assert type(found) is type(value)
    assert arguments["y"] == 1


@pytest.mark.parametrize(
    "written",
    [
        "x=",
        "x=New York",
        "x=5L",
        "x=2024-01-31",
        "x=1, 2",
        "x=[1",
        "x={1, 2}",
        "x={(1, 2): 3}",
        "x={[1]: 2}",
        "x=1j",
        "x=b'a'",
        "x=...",
        "x=0x" + "f" * 5000,
        "x=" + "9" * 5000,
        "x='\\x4'",
        "x=1 # one",
        "about 5 dollars",
        # Python versions read what stands in a formatted string differently.
        "x=f'{y}'",
        "x=f'{'a'}'",
    ],
)
def test_parentheses_that_cannot_be_read_are_kept_as_they_are(written: str) -> None:
    assert find_calls(f"f({written})") == [("f", {"_raw": written})]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("f(x=1) and then g (y=2), done", [("f", {"x": 1}), ("g", {"y": 2})]),
        ("now() or now( )", [("now", {}), ("now", {})]),
        ("m.f(x=1)", [("f", {"x": 1})]),
        ("f(1, x=2)", [("f", {"x": 2})]),
        ("f(1)", [("f", {})]),
        ("f(*a, **{'x': 1})", [("f", {})]),
        ("f(x=1, x=2)", [("f", {"x": 2})]),
        ("f(x==1)", [("f", {})]),
        # Names alone are a mention; what stands in their parentheses is passed over with them.
        ("file(s), area(width, height: int), f(,)", []),
        ("f(g(x=1))", [("f", {})]),
        ("f(g, h(x=1))", [("f", {})]),
        # A word of prose or code is no call, but what stands in its parentheses may be.
        ("print(f(x=1))", [("f", {"x": 1})]),
        ("Note(x=1) The(x=1) if(x=1) len(x)", []),
        ("note(x=1)", [("note", {"x": 1})]),
        # Any apostrophe opens a quotation.
        ("f(x=it's) g(y=1)", [("g", {"y": 1})]),
        ("f(x=it's) g(y='a)", [("f", {"_raw": "x=it's) g(y='a"})]),
        ("f(x=1", []),
        ("f(x=[1 g(y=2)", [("g", {"y": 2})]),
        ("9f(x=1) éf(x=1)", []),
    ],
)
def test_calls_are_found_anywhere_in_text(text: str, calls: list[tuple[str, Any]]) -> None:
    assert find_calls(text) == calls
