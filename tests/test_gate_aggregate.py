import json
import math
import os
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfcl_gate.aggregate import NORMALIZED, OVERALL, aggregate
from bfcl_gate.intervals import weighted_mean, wilson

REPO = Path(__file__).parents[1]
SHARED = Path(os.environ.get("EDGE_AGENTIC_SHARED", REPO / "../shared"))
GOLDEN = SHARED / "data" / "golden_bfcl_aggregates.json"


def verdicts(**subsets: str) -> list[tuple[str, bool]]:
    """Return verdicts from a string of 1 and 0 for each subset."""
    return [
        (f"{name}_{index}", mark == "1")
        for name, marks in subsets.items()
        for index, mark in enumerate(marks)
    ]


def ids(found: list[tuple[str, bool]]) -> list[str]:
    return [case_id for case_id, _ in found]


@pytest.mark.skipif(not GOLDEN.is_file(), reason="needs EDGE_AGENTIC_SHARED")
def test_every_golden_breakdown_of_the_reference_is_matched() -> None:
    sets = json.loads(GOLDEN.read_text())["sets"]
    assert sets
    for golden in sets:
        issued = [*golden["scores"], *golden["missing_ids"]]
        scores = aggregate(issued, ((i, bool(s)) for i, s in golden["scores"].items()))
        wanted = golden["breakdown"]
        assert scores.overall_accuracy == wanted["overall_accuracy"]
        assert scores.normalized_single_turn_score == wanted["normalized_single_turn_score"]
        assert scores.category_scores == wanted["category_scores"]
        assert scores.subset_scores == wanted["subset_scores"]
        assert scores.total_samples == wanted["total_samples"]
        assert scores.issued_samples == wanted["issued_samples"]


def test_a_missing_answer_scores_nothing_and_a_second_one_counts_once() -> None:
    issued = ["multiple_0", "multiple_1", "multiple_2", "multiple_3"]
    found = [
        ("multiple_0", True),
        ("multiple_0", False),
        ("multiple_0", True),
        ("multiple_1", False),
    ]
    scores = aggregate(issued, found)
    assert scores.overall_accuracy == 25.0
    assert (scores.total_samples, scores.issued_samples) == (2, 4)


def test_an_id_issued_twice_is_one_sample() -> None:
    scores = aggregate(["multiple_0", "multiple_0"], [("multiple_0", True)])
    assert (scores.overall_accuracy, scores.issued_samples) == (100.0, 1)


def test_each_category_has_its_own_mean() -> None:
    found = verdicts(
        simple_python="1111",  # 100
        simple_java="10",  # 50
        simple_javascript="0",  # 0: the three simple subsets are 50 together
        multiple="1",
        parallel="0",
        parallel_multiple="1",  # non_live: (50 + 100 + 0 + 100) / 4
        live_simple="111",
        live_parallel="0",  # live: 3 of 4
        irrelevance="1111",
        live_irrelevance="0",  # hallucination: (100 + 0) / 2
    )
    scores = aggregate(ids(found), found)
    assert scores.category_scores == {"non_live": 62.5, "live": 75.0, "hallucination": 50.0}
    assert scores.normalized_single_turn_score == 62.5
    assert scores.overall_accuracy == round(100 * 14 / 19, 2)


def test_means_are_taken_over_the_subsets_and_categories_that_are_there() -> None:
    found = verdicts(simple_python="10", parallel="1", live_irrelevance="1110")
    scores = aggregate(ids(found), found)
    assert scores.category_scores == {"non_live": 75.0, "hallucination": 75.0}
    assert scores.normalized_single_turn_score == 75.0
    assert scores.subset_scores == {
        "live_irrelevance": 75.0,
        "parallel": 100.0,
        "simple_python": 50.0,
    }


def test_live_relevance_is_in_no_aggregate() -> None:
    found = verdicts(multiple="10")
    scores = aggregate(ids(found), found)
    more = [*found, ("live_relevance_0-0-0", True)]
    assert aggregate(ids(more), more) == scores


def test_nothing_issued_has_no_accuracy() -> None:
    scores = aggregate([], [])
    assert scores.overall_accuracy is None
    assert scores.normalized_single_turn_score is None
    assert scores.interval95 == {}


def test_a_verdict_on_a_case_that_was_not_issued_is_refused() -> None:
    with pytest.raises(ValueError, match="'multiple_1' has a verdict but was not issued"):
        aggregate(["multiple_0"], [("multiple_1", True)])
    with pytest.raises(ValueError, match="no BFCL subset"):
        aggregate(["hello_1"], [])


MARKS = st.text("01", min_size=1, max_size=12)


@given(st.dictionaries(st.sampled_from(["simple_python", "live_simple", "irrelevance"]), MARKS))
def test_each_score_has_an_interval_around_it(subsets: dict[str, str]) -> None:
    found = verdicts(**subsets)
    scores = aggregate(ids(found), found)
    named = {**scores.category_scores, **scores.subset_scores}
    if scores.overall_accuracy is not None and scores.normalized_single_turn_score is not None:
        named |= {
            OVERALL: scores.overall_accuracy,
            NORMALIZED: scores.normalized_single_turn_score,
        }
    assert named.keys() == scores.interval95.keys()
    for name, score in named.items():
        low, high = scores.interval95[name]
        assert 0 <= low <= score <= high <= 100
        assert low < high


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [
        # Textbook values: 8 of 10, none, all, and the 83.72 % of 995.
        (8, 10, 0.4902, 0.9433),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (833, 995, 0.8130, 0.8588),
    ],
)
def test_the_wilson_interval_has_its_published_values(
    right: int, total: int, low: float, high: float
) -> None:
    assert wilson(right, total) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("right", "total"), [(0, 0), (3, 2), (-1, 2)])
def test_what_is_no_proportion_has_no_interval(right: int, total: int) -> None:
    with pytest.raises(ValueError, match="not a proportion"):
        wilson(right, total)


def test_a_mean_of_one_part_has_the_wilson_interval_and_more_parts_narrow_it() -> None:
    one = weighted_mean([(Fraction(1), 8, 10)])
    assert one == pytest.approx(wilson(8, 10))
    two = weighted_mean([(Fraction(1, 2), 8, 10)] * 2)
    assert two[1] - two[0] == pytest.approx((one[1] - one[0]) / math.sqrt(2))
