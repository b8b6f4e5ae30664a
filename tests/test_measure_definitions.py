from __future__ import annotations

import pytest

from edge_agentic.engine.api import TokenCounts, TokenTimes
from edge_agentic.measure.definitions import (
    came_in_one_burst,
    is_cold,
    rate,
    tpot_loadgen_s,
    tpot_s,
    ttft_s,
    turn_latency_s,
)

MS = 1_000_000
FIVE = TokenTimes(10, (200 * MS, 300 * MS, 400 * MS, 500 * MS, 600 * MS), 1)


def tokens(output: int | None) -> TokenCounts:
    return TokenCounts(output=output)


def test_times_of_a_turn_count_from_its_issue() -> None:
    assert ttft_s(FIVE) == 0.2
    assert turn_latency_s(FIVE) == 0.6
    assert tpot_loadgen_s(FIVE, tokens(5)) == pytest.approx(0.1)
    assert tpot_s(FIVE, tokens(5)) == pytest.approx(0.1)


def test_a_turn_without_output_has_no_times() -> None:
    nothing = TokenTimes(10, (), 1)
    assert ttft_s(nothing) is None
    assert turn_latency_s(nothing) is None
    assert tpot_loadgen_s(nothing, tokens(0)) is None
    assert tpot_s(nothing, tokens(5)) is None


@pytest.mark.parametrize("output", [None, 0, 1])
def test_time_per_token_needs_two_counted_tokens(output: int | None) -> None:
    assert tpot_loadgen_s(FIVE, tokens(output)) is None
    assert tpot_s(FIVE, tokens(output)) is None


def test_time_per_token_follows_token_counts_not_deltas() -> None:
    # The count jumps from 1 to 17 between two deltas.
    jump = TokenTimes(0, (100 * MS, 260 * MS), 1)
    assert tpot_loadgen_s(jump, tokens(17)) == pytest.approx(0.01)
    assert tpot_s(jump, tokens(17)) == pytest.approx(0.01)


def test_the_two_times_per_token_differ_when_the_first_delta_carries_several() -> None:
    merged = TokenTimes(0, (100 * MS, 180 * MS), 3)
    assert tpot_loadgen_s(merged, tokens(7)) == pytest.approx(0.08 / 6)
    assert tpot_s(merged, tokens(7)) == pytest.approx(0.08 / 4)


@pytest.mark.parametrize("first", [None, 7, 9])
def test_without_a_token_known_to_follow_the_first_delta_tpot_is_unknown(
    first: int | None,
) -> None:
    times = TokenTimes(0, (100 * MS, 180 * MS), first)
    assert tpot_s(times, tokens(7)) is None
    assert tpot_loadgen_s(times, tokens(7)) == pytest.approx(0.08 / 6)


@pytest.mark.parametrize(
    "arrivals",
    [(900 * MS,), (900 * MS, 900 * MS), (900 * MS, 900 * MS + 50_000)],
    ids=["one delta", "one instant", "a buffered call in two deltas"],
)
def test_output_in_one_burst_has_no_time_per_token(arrivals: tuple[int, ...]) -> None:
    burst = TokenTimes(0, arrivals, 1)
    assert came_in_one_burst(burst, 40)
    assert tpot_loadgen_s(burst, tokens(40)) is None
    assert tpot_s(burst, tokens(40)) is None
    assert turn_latency_s(burst) is not None


@pytest.mark.parametrize("output", [None, 0, 1])
def test_fewer_than_two_tokens_are_no_burst(output: int | None) -> None:
    assert not came_in_one_burst(TokenTimes(0, (900 * MS,), 1), output)


def test_an_instant_answer_divides_nothing_by_zero() -> None:
    instant = TokenTimes(0, (0, 0), 1)
    assert ttft_s(instant) == turn_latency_s(instant) == 0
    assert tpot_loadgen_s(instant, tokens(2)) is None


@pytest.mark.parametrize(
    ("number", "cached", "cold"),
    [
        (1, 0, True),
        (7, 0, True),
        (1, 900, False),
        (7, 900, False),
        (1, None, True),
        (7, None, False),
    ],
)
def test_a_turn_is_cold_by_the_engines_count_or_else_by_its_number(
    number: int, cached: int | None, cold: bool
) -> None:
    assert is_cold(number, TokenCounts(cached=cached)) is cold


@pytest.mark.parametrize(("amount", "duration"), [(None, 2.0), (5, None), (5, 0.0)])
def test_a_rate_needs_an_amount_and_some_time(amount: int | None, duration: float | None) -> None:
    assert rate(amount, duration) is None
