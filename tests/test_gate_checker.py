import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfcl_gate.answers import Answer
from bfcl_gate.cases import Case, load_dataset
from bfcl_gate.checker import Verdict, check

MESSAGES = ({"role": "user", "content": "hi"},)
COUNT = "parallel_function_checker_no_order:wrong_count"
NO_MATCH = "parallel_function_checker_no_order:cannot_find_match"


def function(name: str = "f", required: tuple[str, ...] = (), **schemas: Any) -> dict[str, Any]:
    parameters = {"type": "dict", "properties": schemas, "required": list(required)}
    return {"name": name, "description": "", "parameters": parameters}


def array(items: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": items}}


def calls(*arguments: Any, name: str = "f") -> Answer:
    return Answer([{"function": {"name": name, "arguments": given}} for given in arguments])


def judge_value(schema: dict[str, Any] | str, accepted: list[Any], value: Any) -> str | None:
    """Return the error type of the call f(x=value)."""
    declared = {"type": schema} if isinstance(schema, str) else schema
    offered = (function(required=("x",), x=declared),)
    case = Case("simple_python_0", "simple_python", MESSAGES, offered, ({"f": {"x": accepted}},))
    return check(case, calls({"x": value})).error_type


@pytest.mark.parametrize(
    ("declared", "accepted", "value", "error"),
    [
        ("integer", [3], 3, None),
        ("integer", [3], 4, "value_error:others"),
        ("integer", [3], 3.0, "type_error:simple"),
        ("integer", [1], True, "type_error:simple"),
        ("integer", [3], "3", "type_error:simple"),
        ("integer", ["", None], None, None),
        ("integer", ["", 3], None, "type_error:simple"),
        ("float", [3.0], 3, None),
        ("float", [3.5], 3.5, None),
        ("float", [3], 3.0, None),
        ("float", [1.0], True, "type_error:simple"),
        ("float", [1.0], 10**400, "answer:unreadable_value"),
        ("boolean", [True], True, None),
        ("boolean", [True], 1, "type_error:simple"),
        ("boolean", [True], False, "value_error:others"),
        ("string", ["New York, NY"], "new-york_ny.", None),
        ("string", ["don't"], 'don"t', None),
        ("string", ["a"], "\u00e1", "value_error:string"),
        ("string", ["a", ""], "", None),
        # An accepted value of another type than the declared one is compared as it is.
        ("string", [5], 5, None),
        ("string", [5], "5", "value_error:others"),
        ("integer", ["a b"], "a b", None),
        ("integer", ["a b"], "ab", "value_error:others"),
        ("any", ["x"], "X", None),
        ("any", [5], 5, None),
        ("dict", [{"a": [1]}], {"a": 1}, None),
        ("dict", [{"a": [1]}], {"a": True}, None),
        ("dict", [{"a": ["b c"]}], {"a": "BC"}, None),
        ("dict", [{"a": [1]}], {"a": 2}, "value_error:dict_value"),
        ("dict", [{"a": [1]}], {"a": 1, "b": 1}, "value_error:dict_key"),
        ("dict", [{"a": [1], "b": [1]}], {"a": 2}, "value_error:dict_key"),
        ("dict", [{"a": [1], "b": ["", 1]}], {"a": 1}, None),
        ("dict", [{"a": [1]}, {"a": [2]}], {"a": 2}, None),
        ("dict", [{"b": [1]}, {"a": [2]}], {"a": 3}, "value_error:dict_value"),
        ("dict", [""], {}, "dict_checker:unclear"),
        # A string of choices counts as its characters, and as optional.
        ("dict", [{"a": "b-c"}], {"a": "B"}, None),
        ("dict", [{"a": "b-c"}], {"a": "b-c"}, "value_error:dict_value"),
        ("dict", [{"a": "b-c"}], {}, None),
        ("dict", [{"a": [1]}], '{"a": 1}', "type_error:simple"),
        (array("integer"), [[1, 2]], [1, 2], None),
        (array("integer"), [[1, 2]], [2, 1], "value_error:list/tuple"),
        (array("integer"), [[1, 2]], ["1", 2], "type_error:nested"),
        (array("integer"), [[1, 2]], "[1, 2]", "type_error:simple"),
        (array("string"), [["a b"]], ["A-B"], None),
        # Items follow the declared type, or that of the accepted items.
        (array("float"), [[1.0]], [1], "type_error:nested"),
        (array("float"), [[1]], [1], None),
        (array("float"), [[1]], [1.0], None),
        # The "" of an optional parameter lets items of any type pass, and accepts [].
        (array("float"), [[1.0], ""], [1], None),
        (array("float"), [[1.0], ""], ["1"], "value_error:list/tuple"),
        (array("float"), [[1.0], ""], [], None),
        (array("float"), [[1.0]], [], "value_error:list/tuple"),
        (array("float"), [], [], "type_error:simple"),
        # Items are not looked into: one level is checked.
        (array("array"), [[[1]]], [["1"]], "value_error:list/tuple"),
        (array("array"), [[["A"]]], [["a"]], "value_error:list/tuple"),
        (array("dict"), [[{"a": [1]}, {"a": [2]}]], [{"a": 1}, {"a": 2}], None),
        (array("dict"), [[{"a": [1]}, {"a": [2]}]], [{"a": 2}, {"a": 1}], "value_error:dict_value"),
        (array("dict"), [[{"a": [1]}]], [{"b": 1}], "value_error:dict_key"),
        (array("dict"), [[{"a": [1]}]], [], "value_error:list_dict_count"),
        (array("dict"), [[{"a": [1]}], ""], [], None),
        (array("dict"), ["", [{"a": [1]}]], [5], "answer:unreadable_value"),
        (array("integer"), ["abc"], [1], "value_error:others"),
        (array("string"), [["x"], "abc"], ["a", "b", "c"], None),
    ],
)
def test_a_value_is_judged_by_declared_type_and_accepted_values(
    declared: dict[str, Any] | str, accepted: list[Any], value: Any, error: str | None
) -> None:
    assert judge_value(declared, accepted, value) == error


@pytest.mark.parametrize("declared", ["array", "tuple"])
@pytest.mark.parametrize("answer", [calls({"x": [1, 2]}), Answer(text="f(x=(1, 2))")])
def test_a_tuple_is_a_list(declared: str, answer: Answer) -> None:
    offered = (function(x={"type": declared, "items": {"type": "integer"}}),)
    truth = ({"f": {"x": [[1, 2]]}},)
    case = Case("simple_python_0", "simple_python", MESSAGES, offered, truth)
    assert check(case, answer).valid


SIMPLE = Case(
    "simple_python_0",
    "simple_python",
    MESSAGES,
    (function("m.f", ("x",), x={"type": "integer"}, y={"type": "integer"}, z={"type": "integer"}),),
    ({"m.f": {"x": [1], "y": [2], "z": ["", 3]}},),
)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("m_f", {"x": 1, "y": 2}, None),
        ("m_f", {"x": 1, "y": 2, "z": 3}, None),
        ("m.f", {"x": 1, "y": 2}, "simple_function_checker:wrong_func_name"),
        ("M_F", {"x": 1, "y": 2}, "simple_function_checker:wrong_func_name"),
        ("m_f", {"y": 2}, "simple_function_checker:missing_required"),
        ("m_f", {"x": 1}, "simple_function_checker:missing_optional"),
        ("m_f", {"x": 1, "y": 2, "w": 3}, "simple_function_checker:unexpected_param"),
        ("m_f", '{"x": 1, ', "simple_function_checker:missing_required"),
        ("m_f", "[1]", "simple_function_checker:missing_required"),
        ("m_f", '["x"]', "answer:arguments_not_an_object"),
        (
            "m_f",
            json.dumps(json.dumps(json.dumps("y"))),
            "simple_function_checker:missing_required",
        ),
        ("m_f", json.dumps(json.dumps(json.dumps("xy"))), "answer:arguments_not_an_object"),
        ("m_f", "null", "answer:arguments_not_an_object"),
        ("m_f", "5", "answer:arguments_not_an_object"),
    ],
)
def test_a_call_needs_the_name_and_the_parameters(
    name: str, arguments: Any, error: str | None
) -> None:
    assert check(SIMPLE, calls(arguments, name=name)).error_type == error


@pytest.mark.parametrize("answer", [calls(), calls({}, {}), Answer(text="I cannot do that.")])
def test_a_simple_case_takes_exactly_one_call(answer: Answer) -> None:
    assert check(SIMPLE, answer).error_type == "simple_function_checker:wrong_count"


def test_a_multiple_case_takes_one_call_of_the_right_function() -> None:
    offered = (function("g"), function("f", x={"type": "integer"}))
    case = Case("multiple_0", "multiple", MESSAGES, offered, ({"f": {"x": [1]}},))
    assert check(case, calls({"x": 1})).valid
    assert check(case, calls({"x": 2})).error_type == "value_error:others"
    wrong = check(case, calls({}, name="g"))
    assert wrong.error_type == "simple_function_checker:wrong_func_name"
    count = check(case, calls({"x": 1}, {"x": 1}))
    assert count.error_type == "multiple_function_checker:wrong_count"


def parallel(*accepted: list[str]) -> Case:
    truth = tuple({"f": {"x": values}} for values in accepted)
    return Case("parallel_0", "parallel", MESSAGES, (function(x={"type": "string"}),), truth)


@pytest.mark.parametrize(
    ("accepted", "given_values", "error"),
    [
        ([["a"], ["b"]], "ba", None),
        ([["a"], ["b"]], "a", COUNT),
        ([["a"], ["b"]], "aa", NO_MATCH),
        # The first expected call takes the first call that fits, and may take the other's.
        ([["a", "b"], ["a"]], "ba", None),
        ([["a", "b"], ["a"]], "ab", NO_MATCH),
    ],
)
def test_parallel_calls_are_matched_greedily(
    accepted: list[list[str]], given_values: str, error: str | None
) -> None:
    answer = calls(*({"x": value} for value in given_values))
    assert check(parallel(*accepted), answer).error_type == error


def test_what_the_reference_raises_on_is_wrong_wherever_it_stands() -> None:
    answer = calls({"x": "a"}, None)
    assert check(parallel(["a"], ["b"]), answer).error_type == "answer:arguments_not_an_object"
    # The first expected call finds no match before that is seen.
    answer = calls({"x": "c"}, {"x": "d"})
    assert check(parallel(["a"], ["b"]), answer).error_type == NO_MATCH


IRRELEVANT = Case("irrelevance_0", "irrelevance", MESSAGES, (function(),))
RELEVANT = Case("live_relevance_0-0-0", "live_relevance", MESSAGES, (function(),))
NATIVE_TEXT = '[{"function": {"name": "f", "arguments": "{}"}}]'


@pytest.mark.parametrize(
    ("answer", "called", "disputed"),
    [
        (calls({}), True, False),
        (calls('{"a":'), True, False),
        (Answer([{"function": {"arguments": "{}"}}]), True, False),
        (Answer(text=NATIVE_TEXT), True, False),
        (Answer([{"function": "foo"}]), False, True),
        (Answer(text=""), False, False),
        (Answer(text="None of them can help."), False, False),
        (Answer(text="f(x=1)"), False, True),
        (Answer(text='[{"name": "f", "arguments": {}}]'), False, True),
        (Answer(text="<tool_call><tool_call name='f'/></tool_call>"), False, True),
    ],
)
def test_only_native_calls_count_where_relevance_is_judged(
    answer: Answer, called: bool, disputed: bool
) -> None:
    made = "hallucination:made_tool_call" if called else None
    assert check(IRRELEVANT, answer).error_type == made
    assert check(IRRELEVANT, answer).disputed is disputed
    needed = None if called else "relevance:no_tool_call"
    assert check(RELEVANT, answer).error_type == needed


@pytest.mark.parametrize("case", [SIMPLE, IRRELEVANT, RELEVANT])
def test_a_missing_answer_is_wrong(case: Case) -> None:
    assert check(case, Answer()).error_type == "answer:missing"


def test_a_wrong_verdict_needs_an_error_type() -> None:
    with pytest.raises(ValueError, match="error type"):
        Verdict(False)
    with pytest.raises(ValueError, match="error type"):
        Verdict(True, "type_error:simple")


# Any JSON value, any Python value that an engine could leak, and what looks like a call.
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=8,
)
LEAKED = (
    JSON_VALUES | st.sets(st.integers()) | st.binary() | st.just(object()) | st.complex_numbers()
)
ARGUMENTS = LEAKED | JSON_VALUES.map(json.dumps)
ENTRIES = LEAKED | st.fixed_dictionaries(
    {}, optional={"function": LEAKED | st.fixed_dictionaries({"name": LEAKED | st.just("f")})}
)
NATIVE = st.lists(
    ENTRIES | ARGUMENTS.map(lambda a: {"function": {"name": "f", "arguments": a}}), max_size=3
)
TEXTS = st.text() | st.text("f(x=[{'\"\\:,1.e})]", max_size=60).map(lambda t: f"f(x={t})")
CASES = st.sampled_from(
    [
        IRRELEVANT,
        RELEVANT,
        parallel(["a"], ["b"]),
        *(
            Case("multiple_0", "multiple", MESSAGES, (function(x=s, y=s),), ({"f": {"x": v}},))
            for s, v in (
                ({"type": "float"}, [1.0, ""]),
                ({"type": "any"}, [None]),
                ({"type": "dict"}, [{"x": [1]}, ""]),
                (array("dict"), ["", [{"x": [1]}]]),
                (array("float"), [[1.0], "ab"]),
            )
        ),
    ]
)


@given(CASES, st.none() | LEAKED | NATIVE, st.none() | TEXTS | JSON_VALUES.map(json.dumps))
@settings(max_examples=500, deadline=None)
def test_no_answer_raises(case: Case, tool_calls: object, text: str | None) -> None:
    verdict = check(case, Answer(tool_calls, text))
    assert "\n" not in verdict.detail


@pytest.mark.parametrize("depth", [900, 10_000])
def test_deep_arguments_are_wrong_and_do_not_raise(depth: int) -> None:
    nested: Any = 1
    for _ in range(depth):
        nested = [nested]
    assert not check(SIMPLE, calls({"x": nested, "y": 2}, name="m_f")).valid
    text = '{"x": ' + "[" * depth + "]" * depth + "}"
    assert not check(SIMPLE, calls(text, name="m_f")).valid


def test_every_golden_verdict_of_the_reference_is_matched(
    official_bfcl: Path, shared_data: Path
) -> None:
    cases = {case.id: case for case in load_dataset(official_bfcl).cases}
    lines = (shared_data / "golden_bfcl_public.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    differing = []
    for row in rows:
        output = row["model_output"]
        answer = Answer(text=output) if isinstance(output, str) else Answer(output)
        verdict = check(cases[row["sample_id"]], answer)
        if row["valid"] is None:  # the reference raises: ours is wrong with a type of its own
            agrees = (verdict.error_type or "").startswith("answer:")
        else:
            agrees = (verdict.valid, verdict.error_type) == (row["valid"], row["error_type"])
        if not agrees:
            differing.append((row["sample_id"], row["variant"], verdict))
    assert differing == []
    assert len(rows) > 5_500
