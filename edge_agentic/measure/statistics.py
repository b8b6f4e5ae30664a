"""Describes a sample: LoadGen's percentiles, its early-stopping estimates, intervals of means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

PERCENTILES: Final = (50, 90, 95, 99)
"""The percentiles that every distribution reports."""

CONFIDENCE: Final = 0.99
"""Of the early-stopping estimate: LoadGen's constant, at tolerance 0."""

_MAX_FRACTION_STEPS: Final = 100_000
_FRACTION_PRECISION: Final = 1e-15
_TINY: Final = 1e-300


@dataclass(frozen=True)
class Distribution:
    """What is reported of one sample; None where the sample is too small for a figure."""

    n: int
    mean: float | None
    mean_interval95: tuple[float, float] | None
    percentiles: dict[int, float | None]
    early_stopping: dict[int, float | None]


def describe(values: Sequence[float]) -> Distribution:
    """Mean with its interval, percentiles and early-stopping estimates of `values`."""
    ordered = sorted(values)
    return Distribution(
        n=len(ordered),
        mean=mean(ordered),
        mean_interval95=mean_interval95(ordered),
        percentiles={p: percentile(ordered, p) for p in PERCENTILES},
        early_stopping={p: early_stopping_estimate(ordered, p) for p in PERCENTILES},
    )


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """The element of an ascending sample at index int(percent / 100 * (n - 1)).

    LoadGen's empirical percentile; never interpolated, so it is a value that was measured.
    None for an empty sample.
    """
    if not ordered:
        return None
    return ordered[int(percent / 100 * (len(ordered) - 1))]


def mean(values: Sequence[float]) -> float | None:
    """The arithmetic mean; None for an empty sample. Its sum does not depend on the order."""
    return math.fsum(values) / len(values) if values else None


def mean_interval95(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % confidence interval of the mean: mean -/+ t(0.975, n - 1) * s / sqrt(n).

    Student's interval, with s the sample's standard deviation. It treats values as independent;
    turns of one conversation are not quite, so the true interval is a little wider. None for
    fewer than two values.
    """
    n = len(values)
    centre = mean(values)
    if centre is None or n < 2:
        return None
    variance = math.fsum((value - centre) ** 2 for value in values) / (n - 1)
    half_width = _student_t_975(n - 1) * math.sqrt(variance / n)
    return centre - half_width, centre + half_width


def early_stopping_estimate(ordered: Sequence[float], percent: float) -> float | None:
    """LoadGen's early-stopping estimate of a percentile (at least 50) of an ascending sample.

    The t-th highest value, with t = `early_stopping_count`: a bound that the true percentile
    stays under with 99 % confidence. None where the sample is too small.
    """
    over_count = early_stopping_count(len(ordered), percent)
    return ordered[len(ordered) - over_count] if over_count else None


@lru_cache(maxsize=256)
def early_stopping_count(n: int, percent: float) -> int:
    """The largest t such that at most t of n trials are over-latency with probability <= 1 %.

    With h = n - t and p = percent / 100 that is I_p(h, t + 1) <= 0.01, the binomial bound at
    over-latency rate 1 - p (MLPerf Inference, early stopping, tolerance 0). The probability
    grows with t, so halving finds it. 0 where even t = 1 is too many.
    """
    p = percent / 100
    allowed, refused = 0, n
    while refused - allowed > 1:
        middle = (allowed + refused) // 2
        if regularised_incomplete_beta(p, n - middle, middle + 1) <= 1 - CONFIDENCE:
            allowed = middle
        else:
            refused = middle
    return allowed


@lru_cache(maxsize=256)
def smallest_sample(percent: float) -> int:
    """The least n that has an early-stopping estimate of this percentile."""
    too_small, enough = 1, 2
    while not early_stopping_count(enough, percent):
        too_small, enough = enough, enough * 2
    while enough - too_small > 1:
        middle = (too_small + enough) // 2
        if early_stopping_count(middle, percent):
            enough = middle
        else:
            too_small = middle
    return enough


def regularised_incomplete_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b) for 0 <= x <= 1, a > 0, b > 0.

    The continued fraction of Abramowitz and Stegun 26.5.8, which converges fast below the
    mean of the beta distribution; above it the symmetry I_x(a, b) = 1 - I_1-x(b, a) serves.
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - regularised_incomplete_beta(1 - x, b, a)
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return math.exp(log_front) / a * _beta_fraction(x, a, b)


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of I_x(a, b), by the modified Lentz method."""
    numerator_ratio = 1.0
    denominator_ratio = 1 / _nonzero(1 - (a + b) * x / (a + 1))
    result = denominator_ratio
    for m in range(1, _MAX_FRACTION_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for coefficient in (even, odd):
            denominator_ratio = 1 / _nonzero(1 + coefficient * denominator_ratio)
            numerator_ratio = _nonzero(1 + coefficient / numerator_ratio)
            step = denominator_ratio * numerator_ratio
            result *= step
        if abs(step - 1) < _FRACTION_PRECISION:
            return result
    raise ArithmeticError(f"I_{x}({a}, {b}) did not converge")


def _nonzero(value: float) -> float:
    """A stand-in for zero, which the Lentz method divides by."""
    return value if abs(value) > _TINY else _TINY


@lru_cache(maxsize=256)
def _student_t_975(degrees: int) -> float:
    """The value that |T| passes with probability 5 %, T of Student's t distribution.

    P(|T| > t) = I_x(degrees / 2, 1 / 2) at x = degrees / (degrees + t * t); halving finds x.
    """
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        if regularised_incomplete_beta(middle, degrees / 2, 0.5) > 0.05:
            high = middle
        else:
            low = middle
    return math.sqrt(degrees * (1 - middle) / middle)
