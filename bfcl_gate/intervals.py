"""Give 95 % intervals of proportions and of their weighted means."""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

Z_95: Final = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""


def wilson(right: int, total: int) -> tuple[float, float]:
    """Return the Wilson score interval of the proportion `right / total`, at 95 %.

    Centre (p + z²/2n) / (1 + z²/n), half width z·sqrt(p(1-p)/n + z²/4n²) / (1 + z²/n).

    Raises:
        ValueError: `right` is not between 0 and `total`, or `total` is 0.
    """
    if not 0 <= right <= total or total == 0:
        raise ValueError(f"{right} of {total} is not a proportion")
    share = right / total
    shrink = 1 + Z_95**2 / total
    centre = (share + Z_95**2 / (2 * total)) / shrink
    half = Z_95 * math.sqrt(share * (1 - share) / total + Z_95**2 / (4 * total**2)) / shrink
    # At the ends the interval reaches the proportion; rounding must not leave it just outside.
    return min(max(0.0, centre - half), share), max(min(1.0, centre + half), share)


def weighted_mean(parts: Iterable[tuple[Fraction, int, int]]) -> tuple[float, float]:
    """Return the 95 % interval of the weighted mean of independent proportions.

    `parts` are (weight, right, total). Each proportion's Wilson limits l, u are combined around
    the mean m = Σ w·p: m - sqrt(Σ w²(p - l)²) to m + sqrt(Σ w²(u - p)²). This is the method of
    variance estimates recovery (Zou, Huang and Zhang 2009); with one part it is the Wilson
    interval, and it has a width even where every answer is right.
    """
    mean = below = above = 0.0
    for weight, right, total in parts:
        share = right / total
        low, high = wilson(right, total)
        mean += float(weight) * share
        below += (float(weight) * (share - low)) ** 2
        above += (float(weight) * (high - share)) ** 2
    return max(0.0, mean - math.sqrt(below)), min(1.0, mean + math.sqrt(above))
