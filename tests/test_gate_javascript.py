import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfcl_gate import javascript
from bfcl_gate.answers import Answer
from bfcl_gate.cases import Case
from bfcl_gate.checker import Verdict, check

MESSAGES = ({"role": "user", "content": "hi"},)


def judge(declared: str, argument: Any, accepted: list[Any], items: str | None = None) -> Verdict:
    """Judge the call f(x=argument)."""
    schema = {"type": declared, **({"items": {"type": items}} if items else {})}
    parameters = {"type": "dict", "properties": {"x": schema}, "required": ["x"]}
    offered = ({"name": "f", "parameters": parameters},)
    truth = ({"f": {"x": accepted}},)
    case = Case("simple_javascript_0", "simple_javascript", MESSAGES, offered, truth)
    return check(case, Answer([{"function": {"name": "f", "arguments": {"x": argument}}}]))


@pytest.mark.parametrize(
    ("declared", "argument", "accepted", "error"),
    [
        ("integer", "5", [5], None),
        ("integer", "5\n", [5], None),
        ("integer", "5.0", [5], "type_error:simple"),
        ("integer", "5n", [5], "type_error:simple"),
        ("float", "2.5", [2.5], None),
        ("float", "2", [2.0], None),
        ("float", "25e-1", [2.5], "type_error:simple"),
        ("Bigint", "5n", [5], None),
        ("Bigint", "5", [5], "type_error:simple"),
        ("Bigint", "5n\n", [5], "answer:unreadable_value"),
        ("Boolean", "true", [True], None),
        ("Boolean", "false", [True], "value_error:others"),
        ("Boolean", "1", [True], "type_error:simple"),
        ("String", "A-b", ["ab"], None),
        ("String", "'ab'", ["ab"], None),
        ("String", '"ab"', ["ab"], None),
        ("String", "\"ab'", ["ab"], "value_error:string"),
        ("String", '"', [""], None),
        ("any", "'ab'", ["ab"], "value_error:string"),
        ("any", "5", [5], "value_error:others"),
        # A name stands for a value where the accepted value is a name.
        ("float", "scale", ["scale"], None),
        ("dict", "options", ["options"], None),
        ("dict", "Options", ["options"], "value_error:others"),
        # Arguments that are no text.
        ("integer", 5, [5], "type_error:js"),
        ("Boolean", True, [True], "type_error:js"),
        ("any", None, ["x"], "type_error:js"),
        ("array", [1], [[1]], "type_error:js"),
    ],
)
def test_an_argument_is_a_literal_of_the_declared_type(
    declared: str, argument: Any, accepted: list[Any], error: str | None
) -> None:
    items = "integer" if declared == "array" else None
    assert judge(declared, argument, accepted, items).error_type == error


@pytest.mark.parametrize(
    ("items", "text", "value"),
    [
        ("integer", "[1, 2]", [1, 2]),
        ("integer", " [1, x] + rest", [1, "x"]),
        ("integer", "[]", []),
        ("integer", "[1,]", [1, ""]),
        ("integer", "[1,\n2]", "[1,\n2]"),
        ("integer", "new Array(1, 2)", [1, 2]),
        ("integer", "new Array()", []),
        ("integer", "Array(1)", "Array(1)"),
        ("integer", "x = [1]", "x = [1]"),
        ("float", "[1, 2.5]", [1.0, 2.5]),
        ("Bigint", "[1n, 2]", [1, "2"]),
        ("Bigint", f"[1n, {'9' * 5_000}n]", f"[1n, {'9' * 5_000}n]"),
        ("Boolean", "[true, 'x']", [True, "'x'"]),
        ("String", "[\"a\", 'b', c]", ["a", "b", "c"]),
        ("String", '["a, b"]', ['"a', 'b"']),
        ("any", '["a", 2]', ['"a"', "2"]),
        ("dict", '[{"a": 1}, {b: 2}]', [{"a": 1}, {"b": 2}]),
        ("dict", "[{a: 1, b: 2}]", ["{a: 1", "b: 2}"]),
        ("array", "new Array([1], x)", [[1], "x"]),
        # Rows are read without regard to the declared type of the items.
        ("array", "[[1, 'a'], [true, x]]", [[1, "a"], [True, "x"]]),
        ("String", "[[1], [2]]", [[1], [2]]),
        ("array", "new Array([1], [2])", [[1], [2]]),
        ("array", "[ [ 1 ],\n [] ]", [[1], [""]]),
        ("array", "[\n[1]]", [[1]]),
        ("array", "[[[1]]]", [["[1"]]),
        ("array", "[[1], x]", ["[1"]),
        ("array", "[[1] x [2]]", [[1], [2]]),
        ("array", "[[1], [2], ", ["[1"]),
        ("array", "[[1,\n2]]", "[[1,\n2]]"),
        (None, "[1, 'a', 2.5, true, null]", [1, "a", 2.5, True, "null"]),
    ],
)
def test_an_array_is_read_up_to_its_first_closing_bracket(
    items: str | None, text: str, value: object
) -> None:
    found = javascript.read(text, "array", items)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        (" { } ", {}),
        ("{\"a\": 1, b: 'x', c: y}", {"a": 1, "b": "x", "c": "y"}),
        ("{a: true, 'b': 2.5} + rest", {"a": True, "b": 2.5}),
        ("{a: [1, 'x'], b: 2}", {"a": [1, "x"], "b": 2}),
        ("{a: x, y, b: 1}", {"a": "x, y", "b": 1}),
        ("{a: 'x, y: z'}", {"a": "x", "y": "z"}),
        ("{a: b: 1}", {"a": "b: 1"}),
        ("{a: {b: 1}}", {"a": "{b: 1"}),
        ("{a: 1, a: 2}", {"a": 2}),
        ("{a: 1, : 2}", {"a": 1, "": 2}),
        ("{a: 1, :b: 2}", {"a": 1, "b": 2}),
        ("{:a: 1,}", {"a": "1,"}),
        ("{a}", {}),
        ("{a:}", {"a": ""}),
        ("{a: 1,\nb: 2}", "{a: 1,\nb: 2}"),
        ("x = {a: 1}", "x = {a: 1}"),
    ],
)
def test_an_object_is_read_up_to_its_first_closing_brace(text: str, value: object) -> None:
    found = javascript.read(text, "dict")
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("argument", "accepted", "items", "error"),
    [
        ("[1, 2]", [[1, 2]], "float", None),
        ("[2, 1]", [[1, 2]], "float", "value_error:list/tuple"),
        ("[1, x]", [[1, 2]], "float", "type_error:nested"),
        ("1, 2", [[1, 2]], "float", "type_error:simple"),
        ("names", ["names"], "String", None),
        ("['A']", [["a"]], "String", None),
        ("[{a: 1}]", [[{"a": [1]}]], "dict", None),
        ("[x]", [["x"]], "dict", "answer:unreadable_value"),
    ],
)
def test_what_is_read_is_compared_as_values_of_python_functions_are(
    argument: str, accepted: list[Any], items: str, error: str | None
) -> None:
    assert judge("array", argument, accepted, items).error_type == error


def test_an_integer_with_too_many_digits_is_wrong() -> None:
    digits = "9" * 5_000
    assert judge("integer", digits, [9]).error_type == "answer:unreadable_value"
    assert judge("array", f"[{digits}]", [[9]], "integer").error_type == "type_error:simple"


@pytest.mark.parametrize(
    ("declared", "items", "value"),
    [
        ("integer", None, -5),
        ("float", None, 2.5),
        ("Bigint", None, 5),
        ("Boolean", None, False),
        ("String", None, "a"),
        ("any", None, "a.b()"),
        ("array", "String", ["a", "b"]),
        ("array", "any", ["a", "2"]),
        ("array", "Bigint", [1, 2]),
        ("array", "array", [[1, "a"], [True]]),
        ("array", "dict", [{"a": 1}]),
        ("array", "float", []),
        ("dict", None, {"a": 1, "b": "x", "c": True, "d": ["x", 1]}),
        ("dict", None, {}),
    ],
)
def test_a_written_literal_is_read_as_its_value(
    declared: str, items: str | None, value: object
) -> None:
    literal = javascript.write(value, declared, items)
    assert javascript.read(literal, declared, items) == value


PIECES = st.sampled_from(
    [
        "[", "]", "[[", "]]", "], [", "{", "}", "new Array(", "(", ")", ",", ", ", ":", "a: ", '"',
        "'", "a", "-1", "2n", "3.5", "true", "1e999", "\n", " ",
    ]
)  # fmt: skip
NEAR_LITERALS = st.lists(PIECES, max_size=25).map("".join)
DECLARED = st.sampled_from(sorted(javascript.TYPES))
ACCEPTED = st.sampled_from(
    [[1], ["a", ""], [True], [[1]], [["a"], ""], [{"a": [1]}], [[{"a": [1]}]], []]
)


@given(DECLARED, DECLARED, st.text() | NEAR_LITERALS, ACCEPTED)
@settings(max_examples=300, deadline=None)
def test_no_text_raises(declared: str, items: str, text: str, accepted: list[Any]) -> None:
    verdict = judge(declared, text, accepted, items)
    assert "\n" not in verdict.detail


@pytest.mark.parametrize(
    "text",
    [
        "[" + "[1], " * 1_900,
        "[[1" + "], [1" * 1_900 + "] x",
        "[" * 9_000 + "\n]",
        "[[" + "] " * 4_900,
        "new Array(" + "[],\n" * 2_400,
        "[[]," + " " * 9_000,
        "{" + "a" * 9_000 + "}",
        "{a: " + ", :" * 3_000 + "}",
        "{a:" + "b:[1]," * 1_600 + "}",
        "{a:," + " " * 9_000 + "}",
        "9" * 9_999,
        "[" + "9" * 9_000 + "]",
    ],
    ids=range(12),
)
def test_hostile_texts_are_read_in_linear_time(text: str) -> None:
    start = time.process_time()
    for declared in javascript.TYPES:
        judge(declared, text, [1], "any")
    assert time.process_time() - start < 1
