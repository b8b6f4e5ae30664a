"""Recorded answers are judged line by line, aggregated, and held to a reference."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bfcl_gate.cases import gate_mini
from bfcl_gate.official import official_ids
from bfcl_gate.scripted import right_tool_calls, wrong_tool_calls
from edge_agentic.core.errors import BadInputError
from edge_agentic.run.gate_score import (
    find_reference,
    judge_answers,
    official_samples,
    read_verdicts,
    samples_of,
    score,
)

MINI = gate_mini()
CASES = {case.id: case for case in MINI.cases}
PYTHON, NO_CALL = "simple_python_mini-1", "irrelevance_mini-1"
PATH = Path("answers.jsonl")
DEEP = "[" * 10_000 + "]" * 10_000


def lines(rows: Iterable[Any]) -> bytes:
    return "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows).encode()


def judge(*rows: Any) -> list[dict[str, Any]]:
    return [judged.to_json() for judged in judge_answers(lines(rows), PATH, MINI)]


def call(arguments: object, sample_id: str = PYTHON) -> dict[str, Any]:
    name = right_tool_calls(CASES[sample_id])[0]["function"]["name"]
    calls = [{"type": "function", "function": {"name": name, "arguments": arguments}}]
    return {"sample_id": sample_id, "tool_calls": calls}


def test_every_line_is_judged_in_order_repeats_included() -> None:
    right = {"sample_id": PYTHON, "tool_calls": right_tool_calls(CASES[PYTHON])}
    wrong = {"sample_id": PYTHON, "tool_calls": wrong_tool_calls(CASES[PYTHON])}
    assert judge(right, wrong, {"sample_id": NO_CALL, "text": "I can't."}, right) == [
        {"sample_id": PYTHON, "valid": True, "error_type": None},
        {
            "sample_id": PYTHON,
            "valid": False,
            "error_type": "simple_function_checker:wrong_func_name",
        },
        {"sample_id": NO_CALL, "valid": True, "error_type": None},
        {"sample_id": PYTHON, "valid": True, "error_type": None},
    ]


@pytest.mark.parametrize(
    "answer",
    [
        {"tool_calls": None, "text": None},
        {"text": None},
        {"text": ""},
        {"text": "x" * 3_000_000},
        {"text": DEEP},
        {"text": f"f(a={DEEP})"},
        {"tool_calls": "no list"},
        {"tool_calls": [None, 1, "x", {}, {"function": None}]},
        call("not JSON"),
        call("[1, 2]"),
        call([1, 2]),
        call(None),
        call('{"x": 1e999}'),
        call('{"x": ' + "9" * 10_000 + "}"),
        call(DEEP),
        call('{"x": ' + DEEP + "}"),
        call('{"x": NaN}'),
        call("\ud800"[:0] + '{"x": "\\ud800"}'),
    ],
)
def test_an_answer_that_cannot_be_read_is_wrong(answer: dict[str, Any]) -> None:
    (judged,) = judge({"sample_id": PYTHON, **answer})
    assert judged["valid"] is False and judged["error_type"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("not JSON", "answers.jsonl:2: not valid JSON"),
        ('{"sample_id": "' + PYTHON, "answers.jsonl:2: not valid JSON"),
        ("[]", "answers.jsonl:2: expected a JSON object"),
        ('{"sample_id": "x", "text": ' + DEEP + "}", "answers.jsonl:2: not usable JSON"),
        ({"text": "hi"}, "answers.jsonl:2: 'sample_id' must be a string"),
        ({"sample_id": PYTHON}, "answers.jsonl:2: 'tool_calls' or 'text' is needed"),
        ({"sample_id": PYTHON, "text": 1}, "answers.jsonl:2: 'text' must be a string or null"),
        (
            {"sample_id": "simple_python_9999", "text": "x"},
            "answers.jsonl:2: no sample 'simple_python_9999' in gate-mini; give its set",
        ),
    ],
)
def test_a_line_that_is_no_answer_is_named(row: object, said: str) -> None:
    with pytest.raises(BadInputError) as caught:
        judge({"sample_id": NO_CALL, "text": "no"}, row)
    assert str(caught.value).startswith(said)


def test_a_missing_answer_is_wrong_and_the_first_of_two_counts() -> None:
    right = [
        {"sample_id": case.id, "tool_calls": right_tool_calls(case), "text": ""}
        for case in MINI.cases
    ]
    repeated = {"sample_id": right[0]["sample_id"], "text": "another"}
    judged = judge_answers(lines([*right[:-1], repeated]), PATH, MINI)
    gate, _ = score(samples_of(MINI, None), judged, None)
    total = len(MINI.cases)
    assert (gate["issued_samples"], gate["total_samples"]) == (total, total - 1)
    assert gate["overall_accuracy"] == round(100 * (total - 1) / total, 2)
    assert gate["passed"] is None


def test_the_keys_are_those_of_a_summary(tmp_path: Path) -> None:
    from tests.gate_runs import ask

    gate, _ = score(samples_of(MINI, None), [], None)
    assert list(gate) == list(ask(tmp_path / "run")["gate"])


def verdicts(rows: Iterable[tuple[str, object]]) -> dict[str, Any]:
    raw = lines({"sample_id": sample_id, "valid": valid} for sample_id, valid in rows)
    samples = official_samples()
    reference = find_reference("qwen3.6-27b", samples)
    return score(samples, read_verdicts(raw, PATH, samples), reference)[0]


def test_verdicts_agree_with_the_reference_aggregates(shared_data: Path) -> None:
    golden = json.loads((shared_data / "golden_bfcl_aggregates.json").read_text())
    assert golden["sets"]
    for one in golden["sets"]:
        gate, wanted = verdicts(one["scores"].items()), one["breakdown"]
        for key in wanted.keys() - {"unscored_subsets"}:
            assert gate[key] == wanted[key], (one["seed"], key)


@pytest.mark.parametrize(("right", "passed"), [(995, True), (833, False), (832, False), (0, False)])
def test_verdicts_are_held_to_the_published_reference(right: int, passed: bool) -> None:
    gate = verdicts((sample_id, n < right) for n, sample_id in enumerate(official_ids()))
    assert gate["passed"] is passed
    assert gate["thresholds"] == {
        "overall_accuracy": 83.6431,
        "normalized_single_turn_score": 85.3212,
    }


def test_verdicts_of_a_subset_that_no_score_counts_are_left_out() -> None:
    ids = official_ids()
    gate = verdicts([("live_relevance_0-0-0", False), *((id_, True) for id_ in ids)])
    assert gate["overall_accuracy"] == 100.0 and gate["issued_samples"] == 995


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"sample_id": "simple_python_399", "valid": True}, "is not in the official selection"),
        ({"sample_id": "nobody_1", "valid": True}, "starts with the name of no BFCL subset"),
        ({"sample_id": "irrelevance_0"}, "'valid' must be true, false or null"),
        ({"sample_id": "irrelevance_0", "valid": "yes"}, "'valid' must be true, false or null"),
    ],
)
def test_a_line_that_is_no_verdict_is_named(row: object, said: str) -> None:
    with pytest.raises(BadInputError, match=said) as caught:
        list(read_verdicts(lines([row]), PATH, official_samples()))
    assert str(caught.value).startswith("answers.jsonl:1: ")


def test_an_unknown_reference_names_those_that_there_are() -> None:
    with pytest.raises(BadInputError, match=r"no reference 'x' for bfcl-v4, official; there are: "):
        find_reference("x", official_samples())
