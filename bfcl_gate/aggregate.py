"""Turn verdicts into the scores that the gate compares and the report shows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from bfcl_gate.intervals import weighted_mean, wilson
from bfcl_gate.subsets import SUBSETS, Category, Rule, Subset, subset_of

OVERALL: Final = "overall_accuracy"
NORMALIZED: Final = "normalized_single_turn_score"

_Counts = Mapping[str, tuple[int, int]]
"""(right, issued) of each subset that an aggregate counts."""


@dataclass(frozen=True)
class Scores:
    """The scores of one gate run, in percent with two decimals; None where nothing was issued.

    `total_samples` counts the answered samples, `issued_samples` all of them, both without those
    that no aggregate counts. `interval95` has the 95 % interval of each score under the score's
    own key: `overall_accuracy`, `normalized_single_turn_score`, categories and subsets.
    """

    overall_accuracy: float | None
    normalized_single_turn_score: float | None
    category_scores: Mapping[str, float]
    subset_scores: Mapping[str, float]
    total_samples: int
    issued_samples: int
    interval95: Mapping[str, tuple[float, float]]

    def __post_init__(self) -> None:
        if not 0 <= self.total_samples <= self.issued_samples:
            raise ValueError("there are more answered samples than issued ones")
        if (self.overall_accuracy is None) != (self.issued_samples == 0):
            raise ValueError("an accuracy needs issued samples")


def aggregate(issued: Iterable[str], verdicts: Iterable[tuple[str, bool]]) -> Scores:
    """Score the verdicts, (case id, right?), of the issued case ids.

    A case without a verdict scores 0 and stays in every denominator; of several verdicts on one
    case the first counts. `live_relevance` is in no aggregate. Source: BFCL v4 single turn as
    MLPerf Inference v6.1 runs it:

    - overall: mean over all samples;
    - live: mean over its samples; hallucination: mean of its subsets; non_live: mean of the mean of
      the simple subsets, and of the other subsets;
    - normalized: mean of the categories, before they are rounded.

    Where a data set lacks a subset or a category, each mean is taken over what is there.

    Raises:
        ValueError: An id names no subset, or a verdict is on a case that was not issued.
    """
    right: dict[str, bool] = {}
    scored = dict.fromkeys(case_id for case_id in issued if subset_of(case_id).category)
    for case_id, valid in verdicts:
        if case_id in scored:
            right.setdefault(case_id, valid)
        elif subset_of(case_id).category:
            raise ValueError(f"case {case_id!r} has a verdict but was not issued")
    counts = _counts(scored, right)
    return _scores(counts, answered=len(right), issued=len(scored))


def case_weights(issued: Iterable[str]) -> dict[str, dict[str, Fraction]]:
    """Return what one right answer adds to each gated score, as a share, by score and subset.

    A subset that no aggregate counts is absent.

    Raises:
        ValueError: An id names no subset.
    """
    scored = [case_id for case_id in dict.fromkeys(issued) if subset_of(case_id).category]
    counts = _counts(scored, {})
    normalized = _normalized_weights(_weights_by_category(counts))
    return {
        OVERALL: {name: Fraction(1, len(scored)) for name in counts},
        NORMALIZED: {name: weight / counts[name][1] for name, weight in normalized.items()},
    }


def percent(share: Fraction | float) -> float:
    """Return a share in percent with two decimals, as the reference rounds its scores."""
    return round(float(share * 100), 2)


def _counts(issued: Iterable[str], right: Mapping[str, bool]) -> _Counts:
    totals: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    for case_id in issued:
        subset = subset_of(case_id)
        totals[subset.name] += 1
        hits[subset.name] += right.get(case_id, False)
    return {name: (hits[name], totals[name]) for name in SUBSETS if name in totals}


def _scores(counts: _Counts, *, answered: int, issued: int) -> Scores:
    by_category = _weights_by_category(counts)
    normalized = _normalized_weights(by_category)
    intervals = {name: _percents(wilson(*count)) for name, count in counts.items()}
    for name, weights in by_category.items():
        intervals[name] = _interval(weights, counts)
    if counts:
        pooled = sum(hits for hits, _ in counts.values())
        intervals[OVERALL] = _percents(wilson(pooled, issued))
        intervals[NORMALIZED] = _interval(normalized, counts)
    return Scores(
        overall_accuracy=percent(Fraction(pooled, issued)) if counts else None,
        normalized_single_turn_score=_mean(normalized, counts) if counts else None,
        category_scores={name: _mean(weights, counts) for name, weights in by_category.items()},
        subset_scores={name: percent(Fraction(*counts[name])) for name in sorted(counts)},
        total_samples=answered,
        issued_samples=issued,
        interval95=intervals,
    )


def _weights_by_category(counts: _Counts) -> dict[str, dict[str, Fraction]]:
    return {
        category.value: weights
        for category in Category
        if (weights := _category_weights(category, counts))
    }


def _normalized_weights(by_category: Mapping[str, Mapping[str, Fraction]]) -> dict[str, Fraction]:
    """Return the weight of each subset in the mean of the categories."""
    return {
        name: weight / len(by_category)
        for weights in by_category.values()
        for name, weight in weights.items()
    }


def _category_weights(category: Category, counts: _Counts) -> dict[str, Fraction]:
    """Return the weight that each present subset has in its category's score."""
    present = [SUBSETS[name] for name in counts if SUBSETS[name].category is category]
    if category is Category.LIVE:
        total = sum(counts[subset.name][1] for subset in present)
        return {subset.name: Fraction(counts[subset.name][1], total) for subset in present}
    # The simple subsets, one a language, share one place among the others.
    places = Counter(_place(subset) for subset in present)
    return {subset.name: Fraction(1, len(places) * places[_place(subset)]) for subset in present}


def _place(subset: Subset) -> str:
    return "simple" if subset.rule is Rule.SIMPLE else subset.name


def _mean(weights: Mapping[str, Fraction], counts: _Counts) -> float:
    return percent(sum(weight * Fraction(*counts[name]) for name, weight in weights.items()))


def _interval(weights: Mapping[str, Fraction], counts: _Counts) -> tuple[float, float]:
    return _percents(weighted_mean((weight, *counts[name]) for name, weight in weights.items()))


def _percents(limits: tuple[float, float]) -> tuple[float, float]:
    return percent(limits[0]), percent(limits[1])
