import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from bfcl_gate.aggregate import aggregate
from bfcl_gate.answers import Answer
from bfcl_gate.cases import Case, gate_mini
from bfcl_gate.checker import check
from bfcl_gate.request import messages, tools
from bfcl_gate.scripted import right_tool_calls, wrong_tool_calls
from bfcl_gate.subsets import SUBSETS, Rule
from bfcl_gate.values import fold

DATASET = gate_mini()
CASES = pytest.mark.parametrize("case", DATASET.cases, ids=lambda case: case.id)
WITH_CALLS = pytest.mark.parametrize(
    "case", [case for case in DATASET.cases if case.ground_truth], ids=lambda case: case.id
)
NOT_PYTHON = pytest.mark.parametrize(
    "case",
    [case for case in DATASET.cases if SUBSETS[case.subset].language != "python"],
    ids=lambda case: case.id,
)

# The declared types that the set uses, and the type of an accepted value of each.
VALUE_TYPES: Final[Mapping[str, type]] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "dict": dict,
    "String": str,
    "Boolean": bool,
    "any": str,
}


def perturbed(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1000
    if isinstance(value, str):
        return f"{value} q"
    if isinstance(value, list):
        return [*value, value[0]]
    return {key: perturbed(item) for key, item in value.items()}


def as_argument(case: Case, value: object) -> object:
    """Write an accepted value as an argument: every one of Java and JavaScript is a string."""
    if SUBSETS[case.subset].language == "python" or isinstance(value, str):
        return value
    return json.dumps(value)


def expected_calls(case: Case) -> Iterator[tuple[Mapping[str, Any], Mapping[str, list[Any]]]]:
    """Yield the parameters of each expected call as described, and its accepted values."""
    described = {function["name"]: function["parameters"] for function in case.functions}
    for call in case.ground_truth or ():
        ((name, accepted),) = call.items()
        yield described[name], accepted


def answer_with(calls: list[dict[str, Any]], index: int, arguments: object) -> Answer:
    """Return the answer of `calls` in which one call has other arguments."""
    function = {**calls[index]["function"], "arguments": json.dumps(arguments)}
    return Answer([*calls[:index], {**calls[index], "function": function}, *calls[index + 1 :]])


def test_the_set_covers_every_gated_subset() -> None:
    assert DATASET.name == "gate-mini"
    assert Counter(case.subset for case in DATASET.cases) == {
        "simple_python": 16,
        "simple_java": 8,
        "simple_javascript": 8,
        "multiple": 14,
        "parallel": 10,
        "parallel_multiple": 10,
        "live_simple": 12,
        "live_multiple": 12,
        "live_parallel": 6,
        "live_parallel_multiple": 4,
        "irrelevance": 12,
        "live_irrelevance": 12,
    }
    assert {case.subset for case in DATASET.cases} == {
        name for name, subset in SUBSETS.items() if subset.category
    }
    assert len(DATASET.cases) >= 120


def test_ids_count_up_within_each_subset() -> None:
    for subset, count in Counter(case.subset for case in DATASET.cases).items():
        ids = [case.id for case in DATASET.cases if case.subset == subset]
        assert ids == [f"{subset}_mini-{number}" for number in range(1, count + 1)]


def test_no_question_is_asked_twice() -> None:
    questions = Counter(fold(case.messages[-1]["content"]) for case in DATASET.cases)
    assert [question for question, times in questions.items() if times > 1] == []


@CASES
def test_a_case_is_small_enough_for_a_small_board(case: Case) -> None:
    # 1,200 characters are at most 350 tokens of the tokenizers in use, template included.
    assert len(json.dumps(tools(case))) + len(json.dumps(messages(case))) < 1_200


def test_the_whole_set_is_small_enough_for_a_small_board() -> None:
    # A small model on two cores reads this many characters in well under four minutes.
    assert sum(len(json.dumps([tools(case), messages(case)])) for case in DATASET.cases) < 75_000


@CASES
def test_a_case_has_the_shape_of_its_subset(case: Case) -> None:
    assert [message["role"] for message in case.messages] in (["user"], ["system", "user"])
    if case.ground_truth:
        assert (len(case.functions) > 1) == ("multiple" in case.subset)
    if SUBSETS[case.subset].rule is Rule.PARALLEL:
        called = [name for call in case.ground_truth or () for name in call]
        assert len(called) > 1
        assert (len(set(called)) > 1) == ("multiple" in case.subset)


@CASES
def test_every_function_and_parameter_is_described(case: Case) -> None:
    for function in case.functions:
        properties = function["parameters"]["properties"]
        assert all(thing["description"].endswith(".") for thing in (function, *properties.values()))
        assert set(function["parameters"]["required"]) <= properties.keys()


@WITH_CALLS
def test_every_parameter_has_an_answer_and_every_required_one_a_value(case: Case) -> None:
    for parameters, accepted in expected_calls(case):
        assert accepted.keys() == parameters["properties"].keys()
        assert all(accepted.values())
        for name in parameters["required"]:
            assert "" not in accepted[name]


@WITH_CALLS
def test_every_accepted_value_has_the_declared_type(case: Case) -> None:
    for parameters, accepted in expected_calls(case):
        for name, schema in parameters["properties"].items():
            for value in accepted[name]:
                if value == "":
                    continue
                assert type(value) is VALUE_TYPES[schema["type"]]
                for item in value if isinstance(value, list) else ():
                    assert type(item) is VALUE_TYPES[schema["items"]["type"]]


@WITH_CALLS
def test_no_whole_number_stands_in_a_list_of_floats(case: Case) -> None:
    # A model may write it without a point, which is right to a reader and wrong to BFCL's rule.
    for _, accepted in expected_calls(case):
        for value in (value for values in accepted.values() for value in values):
            for item in value if isinstance(value, list) else ():
                assert not (isinstance(item, float) and item.is_integer())


@WITH_CALLS
def test_only_offered_choices_are_accepted(case: Case) -> None:
    for parameters, accepted in expected_calls(case):
        for name, schema in parameters["properties"].items():
            if "enum" in schema:
                assert set(accepted[name]) - {""} < set(schema["enum"])


@NOT_PYTHON
def test_an_argument_of_java_or_javascript_is_offered_as_the_string_it_must_be(case: Case) -> None:
    for tool in tools(case):
        for schema in tool["function"]["parameters"]["properties"].values():
            assert schema["type"] == "string"


@CASES
def test_the_scripted_right_answer_is_right_and_the_wrong_one_wrong(case: Case) -> None:
    right = check(case, Answer(right_tool_calls(case)))
    assert right.valid, right.detail
    assert not check(case, Answer(wrong_tool_calls(case))).valid


@WITH_CALLS
def test_changing_any_argument_makes_the_right_answer_wrong(case: Case) -> None:
    calls = right_tool_calls(case)
    for index, call in enumerate(calls):
        arguments = json.loads(call["function"]["arguments"])
        assert arguments
        for name in arguments:
            changed = {**arguments, name: perturbed(arguments[name])}
            assert not check(case, answer_with(calls, index, changed)).valid


@WITH_CALLS
def test_every_accepted_value_is_accepted(case: Case) -> None:
    calls = right_tool_calls(case)
    for index, (_, accepted) in enumerate(expected_calls(case)):
        arguments = json.loads(calls[index]["function"]["arguments"])
        for name, values in accepted.items():
            for value in values:
                if value == "" or isinstance(value, dict):
                    continue
                changed = {**arguments, name: as_argument(case, value)}
                assert check(case, answer_with(calls, index, changed)).valid


@WITH_CALLS
def test_what_may_be_left_out_may_be_left_out(case: Case) -> None:
    calls = right_tool_calls(case)
    for index, (_, accepted) in enumerate(expected_calls(case)):
        arguments = json.loads(calls[index]["function"]["arguments"])
        for name, values in accepted.items():
            without = {key: value for key, value in arguments.items() if key != name}
            assert check(case, answer_with(calls, index, without)).valid == ("" in values)


def test_the_order_of_parallel_calls_does_not_matter() -> None:
    for case in DATASET.cases:
        if case.ground_truth and len(case.ground_truth) > 1:
            assert check(case, Answer(right_tool_calls(case)[::-1])).valid


@pytest.mark.parametrize(
    ("script", "percent"), [(right_tool_calls, 100.0), (wrong_tool_calls, 0.0)]
)
def test_a_whole_scripted_run_scores_all_or_nothing(script: Any, percent: float) -> None:
    verdicts = [(case.id, check(case, Answer(script(case))).valid) for case in DATASET.cases]
    scores = aggregate((case.id for case in DATASET.cases), verdicts)
    assert scores.overall_accuracy == scores.normalized_single_turn_score == percent


def test_a_case_where_any_call_would_do_is_scripted_too() -> None:
    turn = ({"role": "user", "content": "hi"},)
    case = Case("live_relevance_0-0-0", "live_relevance", turn, ())
    assert check(case, Answer(right_tool_calls(case))).valid
    assert not check(case, Answer(wrong_tool_calls(case))).valid
