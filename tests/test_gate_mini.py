import json
from collections import Counter
from typing import Any

import pytest

from bfcl_gate.aggregate import aggregate
from bfcl_gate.answers import Answer
from bfcl_gate.cases import Case, gate_mini
from bfcl_gate.checker import check
from bfcl_gate.languages import LANGUAGES
from bfcl_gate.request import messages, tools
from bfcl_gate.scripted import right_tool_calls, wrong_tool_calls
from bfcl_gate.subsets import SUBSETS

DATASET = gate_mini()
CASES = pytest.mark.parametrize("case", DATASET.cases, ids=lambda case: case.id)
WITH_CALLS = pytest.mark.parametrize(
    "case", [case for case in DATASET.cases if case.ground_truth], ids=lambda case: case.id
)


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


def test_the_set_covers_every_gated_subset_that_can_be_checked() -> None:
    counts = Counter(case.subset for case in DATASET.cases)
    gated = {name for name, s in SUBSETS.items() if s.category and s.language in LANGUAGES}
    assert counts.keys() == gated
    assert min(counts.values()) >= 3
    assert len(DATASET.cases) >= 66
    assert DATASET.name == "gate-mini"


@CASES
def test_a_case_is_small_enough_for_a_small_board(case: Case) -> None:
    # About 1,300 characters are 450 tokens of the tokenizers in use, template included.
    assert len(json.dumps(tools(case))) + len(json.dumps(messages(case))) < 1_300


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
            function = {**call["function"], "arguments": json.dumps(changed)}
            answer = [*calls[:index], {**call, "function": function}, *calls[index + 1 :]]
            assert not check(case, Answer(answer)).valid


@WITH_CALLS
def test_every_accepted_value_is_accepted(case: Case) -> None:
    calls = right_tool_calls(case)
    assert case.ground_truth is not None
    for index, expected in enumerate(case.ground_truth):
        ((_, parameters),) = expected.items()
        call = calls[index]
        arguments = json.loads(call["function"]["arguments"])
        for name, accepted in parameters.items():
            for value in accepted:
                if value == "" or isinstance(value, dict):
                    continue
                changed = {**arguments, name: value}
                function = {**call["function"], "arguments": json.dumps(changed)}
                answer = [*calls[:index], {**call, "function": function}, *calls[index + 1 :]]
                assert check(case, Answer(answer)).valid


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
