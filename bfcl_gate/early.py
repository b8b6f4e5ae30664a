"""Stop a gate early: when its verdict is certain, or decided at a stated error rate."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Final

from bfcl_gate.aggregate import case_weights, percent
from bfcl_gate.references import reaches
from bfcl_gate.subsets import subset_of

MAX_ERROR_RATE: Final = 0.5
"""A coin errs as often."""

_SEED: Final = "edge-agentic gate"
_MOST_AT_STAKE: Final = 0.75
"""The share of its capital that a bet may lose at once."""


@dataclass(frozen=True)
class EarlyVerdict:
    """Whether the gate passes, and how sure that is after `asked` cases.

    A certain verdict is the one that all cases would give, whatever the others' answers; any other
    differs from it with at most the test's error rate.
    """

    passed: bool
    certain: bool
    asked: int


def shuffled(sample_ids: Iterable[str]) -> tuple[str, ...]:
    """Return the ids in an order that has nothing to do with their subsets, always the same one.

    The sequential test needs it: the first cases of a file are of one subset.
    """
    return tuple(
        sorted(sample_ids, key=lambda id_: hashlib.sha256(f"{_SEED}{id_}".encode()).digest())
    )


class SequentialTest:
    """Watches the verdicts of a gate as they come, in the order of `sample_ids`.

    A right answer to a case adds its weight to a score. The verdicts still to come can only leave
    a score between what it has and what it has plus all weights left: that decides for certain.

    Before that, each threshold is tested by betting: a stake of 1 is put on "the final score
    reaches it" and another on "it does not", with a fair game for whoever is wrong, since the mean
    of the cases left follows from the threshold and from those seen. By Ville's inequality such a
    capital ever reaches 1/a with a probability of at most a; where it does, the claim it was put
    against is rejected. The gate passes when "does not reach" is rejected for every score at the
    error rate, and fails when "reaches" is rejected for one of k scores at the error rate over k,
    so the verdict differs from the whole gate's with at most the error rate, however often one
    looks. Source: Waudby-Smith and Ramdas, "Confidence sequences for sampling without
    replacement", 2020.
    """

    def __init__(
        self, sample_ids: Sequence[str], thresholds: Mapping[str, Decimal], error_rate: float
    ) -> None:
        """Prepare for these cases; `thresholds` are in percent, by score.

        Raises:
            ValueError: The error rate is not between 0 and 0.5, a score is unknown, or an id
                names no subset.
        """
        if not 0 < error_rate < MAX_ERROR_RATE:
            raise ValueError(
                f"the error rate must be above 0 and below {MAX_ERROR_RATE}, got {error_rate}"
            )
        weights = case_weights(sample_ids)
        if not thresholds.keys() <= weights.keys():
            raise ValueError(f"thresholds are known for {', '.join(weights)}")
        total = sum(subset_of(case_id).category is not None for case_id in sample_ids)
        self._scores = [
            _Score(weights[name], total, threshold) for name, threshold in thresholds.items()
        ]
        self._to_pass = math.log(1 / error_rate)
        self._to_fail = math.log(len(self._scores) / error_rate)
        self._asked = 0

    def add(self, case_id: str, right: bool) -> EarlyVerdict | None:
        """Count one verdict; return the gate's, as soon as there is one."""
        self._asked += 1
        subset = subset_of(case_id)
        if subset.category is not None:
            for score in self._scores:
                score.add(subset.name, right)
        if all(score.must_pass for score in self._scores):
            return EarlyVerdict(True, True, self._asked)
        if any(score.must_fail for score in self._scores):
            return EarlyVerdict(False, True, self._asked)
        if all(score.must_pass or score.for_pass >= self._to_pass for score in self._scores):
            return EarlyVerdict(True, False, self._asked)
        if any(score.for_fail >= self._to_fail for score in self._scores):
            return EarlyVerdict(False, False, self._asked)
        return None


class _Score:
    """One score on its way: its exact bounds, and the logarithms of the best capitals so far."""

    def __init__(self, weights: Mapping[str, Fraction], total: int, threshold: Decimal) -> None:
        self._weights = weights
        self._threshold = threshold
        self._left = total
        self._least, self._most = Fraction(0), Fraction(1)
        # In units in which a right answer to the mean case gains 1.
        self._boundary_sum = float(_least_share(threshold)) * total
        self._largest = float(max(weights.values(), default=Fraction(0)) * total)
        self._scale = total
        self._sum = self._squares = 0.0
        self._seen = 0
        self._pass_capital = self._fail_capital = 0.0
        self.for_pass = self.for_fail = 0.0

    @property
    def must_pass(self) -> bool:
        return reaches(percent(self._least), self._threshold)

    @property
    def must_fail(self) -> bool:
        return not reaches(percent(self._most), self._threshold)

    def add(self, subset: str, right: bool) -> None:
        weight = self._weights[subset]
        gained = float(weight) * self._scale if right else 0.0
        self._bet(gained)
        if right:
            self._least += weight
        else:
            self._most -= weight
        self._left -= 1

    def _bet(self, gained: float) -> None:
        """Settle the bets on what one more case gained; they were fixed before it was seen."""
        # What the cases left gain on average if the final score is just at the threshold.
        fair = (self._boundary_sum - self._sum) / self._left
        # One imagined case at the threshold keeps the first bets small.
        mean = (self._boundary_sum / self._scale + self._sum) / (1 + self._seen)
        spread = (0.25 + self._squares) / (1 + self._seen) + (mean - fair) ** 2
        if 0 < fair < self._largest:
            if mean > fair:
                stake = min((mean - fair) / spread, _MOST_AT_STAKE / fair)
                self._pass_capital += math.log1p(stake * (gained - fair))
            else:
                stake = min((fair - mean) / spread, _MOST_AT_STAKE / (self._largest - fair))
                self._fail_capital += math.log1p(stake * (fair - gained))
        self.for_pass = max(self.for_pass, self._pass_capital)
        self.for_fail = max(self.for_fail, self._fail_capital)
        self._squares += (gained - mean) ** 2
        self._sum += gained
        self._seen += 1


def _least_share(threshold: Decimal) -> Decimal:
    """Return the least share whose percentage with two decimals reaches the threshold."""
    rounded = threshold.quantize(Decimal("0.01"), rounding=ROUND_CEILING)
    return (rounded - Decimal("0.005")) / 100
