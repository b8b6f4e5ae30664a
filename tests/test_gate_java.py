import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfcl_gate import java
from bfcl_gate.answers import Answer
from bfcl_gate.cases import Case
from bfcl_gate.checker import Verdict, check

MESSAGES = ({"role": "user", "content": "hi"},)
LIST_OF = "new ArrayList<>(Arrays.asList({}))"
LIST_WITH = "new ArrayList<Integer>() {{{{ {} }}}}"
MAP_WITH = "new HashMap<String, Object>() {{{{ {} }}}}"


def judge(declared: str, argument: Any, accepted: list[Any], items: str | None = None) -> Verdict:
    """Judge the call f(x=argument)."""
    schema = {"type": declared, **({"items": {"type": items}} if items else {})}
    parameters = {"type": "dict", "properties": {"x": schema}, "required": ["x"]}
    offered = ({"name": "f", "parameters": parameters},)
    case = Case("simple_java_0", "simple_java", MESSAGES, offered, ({"f": {"x": accepted}},))
    return check(case, Answer([{"function": {"name": "f", "arguments": {"x": argument}}}]))


@pytest.mark.parametrize(
    ("declared", "argument", "accepted", "error"),
    [
        ("integer", "5", [5], None),
        ("integer", "-5", [5], "value_error:others"),
        ("integer", "5L", [5], "type_error:simple"),
        ("integer", "5.0", [5], "type_error:simple"),
        ("integer", "5\n", [5], None),
        ("integer", "\u0665", [5], None),
        ("byte", "300", [300], None),
        ("short", "7", [7], None),
        ("long", "5L", [5], None),
        ("long", "5l", [5], None),
        ("long", "5", [5], "type_error:simple"),
        ("float", "2.5f", [2.5], None),
        ("float", "2.5", [2.5], "type_error:simple"),
        ("float", "25e-1F", [2.5], None),
        ("double", "2.5", [2.5], None),
        ("double", "1e999", [2.5], "value_error:others"),
        ("double", "2.5f", [2.5], "type_error:simple"),
        ("double", "2", [2.0], None),
        ("boolean", "true", [True], None),
        ("boolean", "false", [True], "value_error:others"),
        ("boolean", "True", [True], "type_error:simple"),
        ("char", "a", ["a"], None),
        # A char keeps its quotes.
        ("char", "'a'", ["a"], "value_error:string"),
        ("String", "A-b", ["ab"], None),
        ("String", '"ab"', ["ab"], "value_error:string"),
        ("any", "5", [5], "value_error:others"),
        ("any", "5", ["5"], None),
        # A name stands for a value where the accepted value is a name.
        ("integer", "Level.HIGH", ["Level.HIGH"], None),
        ("integer", "level.high", ["Level.HIGH"], "value_error:others"),
        ("HashMap", "settings", ["settings"], None),
        # Arguments that are no text.
        ("integer", 5, [5], "type_error:java"),
        ("boolean", True, [True], "type_error:java"),
        ("any", None, ["x"], "type_error:java"),
        ("HashMap", {"a": 1}, [{"a": [1]}], "type_error:java"),
    ],
)
def test_an_argument_is_a_literal_of_the_declared_type(
    declared: str, argument: Any, accepted: list[Any], error: str | None
) -> None:
    assert judge(declared, argument, accepted).error_type == error


@pytest.mark.parametrize(
    ("declared", "items", "text", "value"),
    [
        ("Array", "integer", "new int[]{1, 2}", [1, 2]),
        ("Array", "integer", "new  int[] { 1 ,, 2, }", [1, 2]),
        ("Array", "integer", "new int[]{}", []),
        ("Array", "integer", "values: new int[]{1}; done", [1]),
        ("Array", "integer", "new int[]{1, x}", [1, "x"]),
        ("Array", "integer", "new int[2]{1}", "new int[2]{1}"),
        ("Array", "integer", "new int[]{1,\n2}", "new int[]{1,\n2}"),
        ("Array", "integer", "new int[]{1,\n2} new int[]{3}", [3]),
        ("Array", "integer", "{1, 2}", "{1, 2}"),
        ("Array", "String", 'new String[]{"a", b}', ['"a"', "b"]),
        ("Array", "String", 'new String[]{"a, b"}', ['"a', 'b"']),
        ("Array", "HashMap", "new Map[]{new HashMap<>(), m}", [{}, "m"]),
        ("Array", "ArrayList", "new List[]{new ArrayList<>()}", [[]]),
        ("ArrayList", "integer", LIST_OF.format("1, 2"), [1, 2]),
        ("ArrayList", "integer", LIST_OF.format(""), LIST_OF.format("")),
        ("ArrayList", "integer", LIST_WITH.format("add(1); add( 2 );"), [1, 2]),
        ("ArrayList", "integer", LIST_WITH.format(""), []),
        ("ArrayList", "integer", LIST_WITH.format("add(1)\n add(\n2)"), [1]),
        ("ArrayList", "integer", LIST_WITH.format("add())"), [")"]),
        ("ArrayList", "integer", "new ArrayList<>() {{ add(1);", []),
        ("ArrayList", "integer", "new ArrayList<Integer>()", []),
        (
            "ArrayList",
            "integer",
            "new ArrayList<List<Integer>>()",
            "new ArrayList<List<Integer>>()",
        ),
        ("ArrayList", "long", LIST_OF.format("1L, 2"), [1, "2"]),
        ("ArrayList", "String", LIST_OF.format("\"a\", 'b', cde"), ["a", "b", "d"]),
        ("ArrayList", "char", LIST_WITH.format("add('a');"), ["a"]),
        ("ArrayList", "any", LIST_OF.format('"a", 2'), ['"a"', "2"]),
        ("ArrayList", "ArrayList", LIST_OF.format("new ArrayList<>()"), ["new ArrayList<>("]),
        ("HashMap", None, "new HashMap<>()", {}),
        ("HashMap", None, "new HashMap<List<A>, B> ()", {}),
        ("HashMap", None, "new HashMap<A,\nB>()", "new HashMap<A,\nB>()"),
        ("HashMap", None, "new HashMap<>() {}", {}),
        ("HashMap", None, MAP_WITH.format(""), {}),
        ("HashMap", None, "new HashMap<>() {{ put(", {}),
        ("HashMap", None, MAP_WITH.format('put("a", "x y"); put("b", 1);'), {"a": "x y", "b": 1}),
        ("HashMap", None, "new HashMap<>() { put(\"a\", 'x') }", {"a": "'x'"}),
        (
            "HashMap",
            None,
            MAP_WITH.format('put("a", true); put("b", null);'),
            {"a": 1, "b": "null"},
        ),
        ("HashMap", None, MAP_WITH.format('put("a", 1L); put("b", 5f);'), {"a": 1, "b": 5.0}),
        ("HashMap", None, MAP_WITH.format('put("a", 1_0); put("b", 1e1);'), {"a": 10, "b": 10.0}),
        ("HashMap", None, MAP_WITH.format('put("a", f(x)); put("a", 2);'), {"a": 2}),
        ("HashMap", None, MAP_WITH.format('put("a",\n"b");'), {"a": "b"}),
        ("HashMap", None, MAP_WITH.format('put("a", "b\n");'), {}),
        ("HashMap", None, MAP_WITH.format('put("a", "b",\n1);'), {'a", "b': 1}),
        ("HashMap", None, MAP_WITH.format('put("a", new int[]{1});'), {}),
        ("HashMap", None, '{"a": 1}', '{"a": 1}'),
    ],
)
def test_a_collection_is_read_from_what_looks_like_its_constructor(
    declared: str, items: str | None, text: str, value: object
) -> None:
    found = java.read(text, declared, items)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("argument", "accepted", "items", "error"),
    [
        ("new int[]{1, 2}", [[1, 2]], "integer", None),
        ("new int[]{2, 1}", [[1, 2]], "integer", "value_error:list/tuple"),
        ("new int[]{1, x}", [[1, 2]], "integer", "type_error:nested"),
        ("[1, 2]", [[1, 2]], "integer", "type_error:simple"),
        ("names", ["names"], "String", None),
        ("new String[]{a, b}", [["A", "B"]], "String", None),
        ("new Map[]{new HashMap<>()}", [[{"a": ["", 1]}]], "HashMap", None),
        ("new Map[]{m}", [["m"]], "HashMap", "answer:unreadable_value"),
    ],
)
def test_what_is_read_is_compared_as_values_of_python_functions_are(
    argument: str, accepted: list[Any], items: str, error: str | None
) -> None:
    assert judge("Array", argument, accepted, items).error_type == error


@pytest.mark.parametrize("declared", ["Set", "Queue", "Stack", "Hashtable"])
def test_a_type_that_the_reference_cannot_read_is_wrong(declared: str) -> None:
    assert judge(declared, "x", ["x"]).error_type == "answer:unreadable_value"
    assert judge(declared, 5, ["x"]).error_type == "type_error:java"


@pytest.mark.parametrize(
    ("declared", "error"),
    [("integer", "answer:unreadable_value"), ("long", "type_error:simple")],
)
def test_an_integer_with_too_many_digits_is_wrong(declared: str, error: str) -> None:
    assert judge(declared, "9" * 5_000, [9]).error_type == error


def test_a_long_text_stays_text() -> None:
    numbers = ", ".join(["1"] * 10_000)
    verdict = judge("Array", f"new int[]{{{numbers}}}", [[1]], "integer")
    assert verdict.error_type == "type_error:simple"
    assert judge("String", numbers, [numbers]).valid


@pytest.mark.parametrize(
    ("declared", "items", "value"),
    [
        ("integer", None, -5),
        ("long", None, 5),
        ("float", None, 2.5),
        ("double", None, 1e-7),
        ("boolean", None, False),
        ("String", None, "a"),
        ("any", None, "a.b()"),
        ("Array", "String", ["a", "b"]),
        ("Array", "long", [1, 2]),
        ("Array", "any", []),
        ("ArrayList", "String", ["a", "b"]),
        ("ArrayList", "double", [0.5]),
        ("ArrayList", "any", []),
        ("HashMap", None, {"a": 1, "b": "x", "c": True}),
        ("HashMap", None, {}),
    ],
)
def test_a_written_literal_is_read_as_its_value(
    declared: str, items: str | None, value: object
) -> None:
    assert java.read(java.write(value, declared, items), declared, items) == value


PIECES = st.sampled_from(
    [
        "new ", "new\n", "ArrayList<", "HashMap<", "<String>", ">", "()", "(", ")", "[]", "int",
        "Arrays.asList(", "add(", "add(1);", 'put("', 'put("a", ', '",', "{{ ", "}}", "{", "}",
        '"', ",", "'", "a", "-1", "2L", "3.5f", "true", "1e999", "\n", " ",
    ]
)  # fmt: skip
NEAR_LITERALS = st.lists(PIECES, max_size=25).map("".join)
DECLARED = st.sampled_from(sorted(java.TYPES))
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
        "new ArrayList<>() {{ " + "add(" * 2_400,
        "new ArrayList<>(Arrays.asList(" * 330 + "\n))",
        "new HashMap<>() {{ " + 'put("' * 1_900 + "}}",
        "new HashMap<>() {{ " + 'put("",' * 1_300 + "\n}}",
        "new HashMap<" * 800 + "\n>()",
        "new HashMap<" + "> ()" * 2_400,
        "new a[]{" * 1_200 + "\n}",
        "new" + " " * 9_000,
        "9" * 9_999,
    ],
    ids=range(9),
)
def test_hostile_texts_are_read_in_linear_time(text: str) -> None:
    start = time.process_time()
    for declared in java.TYPES:
        judge(declared, text, [1], "any")
    assert time.process_time() - start < 1


@pytest.mark.parametrize("declared", ["String", "Array"])
def test_megabytes_of_text_are_judged_quickly(declared: str) -> None:
    start = time.process_time()
    assert not judge(declared, "new a[]{" * 500_000, ["x"], "any").valid
    assert time.process_time() - start < 1
