from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agentic.measure.statistics import (
    PERCENTILES,
    describe,
    early_stopping_count,
    early_stopping_estimate,
    mean_interval95,
    percentile,
    regularised_incomplete_beta,
    smallest_sample,
)

samples = st.lists(st.floats(min_value=0, max_value=1e6), max_size=300)


@pytest.mark.parametrize(
    ("size", "percent", "index"),
    [(1, 50, 0), (2, 50, 0), (2, 99, 0), (3, 50, 1), (10, 90, 8), (11, 90, 9), (101, 99, 99)],
)
def test_a_percentile_is_the_element_at_the_floored_rank(
    size: int, percent: int, index: int
) -> None:
    assert percentile([float(i) for i in range(size)], percent) == index


def test_an_empty_sample_has_a_size_and_nothing_else() -> None:
    figures = describe([])
    assert (figures.n, figures.mean, figures.mean_interval95) == (0, None, None)
    assert set(figures.percentiles.values()) == set(figures.early_stopping.values()) == {None}


@given(samples.filter(bool))
def test_percentiles_are_measured_values_and_do_not_depend_on_the_order(
    values: list[float],
) -> None:
    figures = describe(values)
    assert figures == describe(values[::-1])
    assert all(figures.percentiles[p] in values for p in PERCENTILES)


@pytest.mark.parametrize(
    ("percent", "smallest"), [(50, 11), (90, 64), (95, 130), (99, 662), (99.9, 6636)]
)
def test_the_smallest_sample_with_an_early_stopping_estimate(percent: float, smallest: int) -> None:
    assert smallest_sample(percent) == smallest
    too_few = [float(i) for i in range(smallest - 1)]
    assert early_stopping_estimate(too_few, percent) is None
    assert early_stopping_estimate([*too_few, 1e9], percent) == 1e9


@pytest.mark.parametrize("percent", PERCENTILES)
@pytest.mark.parametrize("n", [1, 2, 10, 11, 64, 130, 500, 662, 1007])
def test_the_early_stopping_count_is_the_exact_binomial_bound(n: int, percent: int) -> None:
    over_rate = Fraction(100 - percent, 100)
    at_most, largest = Fraction(0), 0
    for over in range(n):
        at_most += math.comb(n, over) * over_rate**over * (1 - over_rate) ** (n - over)
        if at_most > Fraction(1, 100):
            break
        largest = over
    assert early_stopping_count(n, percent) == largest


def test_the_early_stopping_count_is_sound_for_a_large_sample() -> None:
    # The normal approximation, exact to one count here.
    expected = 100_000 * 0.1 - 2.326 * math.sqrt(100_000 * 0.1 * 0.9)
    assert abs(early_stopping_count(100_000, 90) - expected) <= 2


@settings(max_examples=50)
@given(st.integers(1, 3000), st.sampled_from(PERCENTILES))
def test_an_early_stopping_estimate_is_never_below_the_percentile(n: int, percent: int) -> None:
    ordered = [float(i) for i in range(n)]
    estimate, measured = early_stopping_estimate(ordered, percent), percentile(ordered, percent)
    assert measured is not None
    assert estimate is None or estimate >= measured


@pytest.mark.parametrize(
    ("x", "a", "b", "value"),
    [
        (0.0, 2, 3, 0.0),
        (1.0, 2, 3, 1.0),
        (0.3, 1, 1, 0.3),
        (0.3, 4, 1, 0.3**4),
        (0.3, 1, 4, 1 - 0.7**4),
        (0.5, 700, 700, 0.5),
    ],
)
def test_the_incomplete_beta_function_where_it_has_a_closed_form(
    x: float, a: float, b: float, value: float
) -> None:
    assert regularised_incomplete_beta(x, a, b) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "student_t"), [(2, 12.7062), (3, 4.30265), (6, 2.57058), (31, 2.04227), (121, 1.97993)]
)
def test_the_interval_of_a_mean_uses_students_quantiles(n: int, student_t: float) -> None:
    values = [float(i) for i in range(n)]
    interval = mean_interval95(values)
    assert interval is not None
    centre = sum(values) / n
    deviation = math.sqrt(sum((v - centre) ** 2 for v in values) / (n - 1))
    half_width = student_t * deviation / math.sqrt(n)
    assert interval == pytest.approx((centre - half_width, centre + half_width), rel=1e-5)


def test_one_value_has_no_interval_and_equal_values_a_narrow_one() -> None:
    assert mean_interval95([3.0]) is None
    assert mean_interval95([3.0] * 5) == (3.0, 3.0)
