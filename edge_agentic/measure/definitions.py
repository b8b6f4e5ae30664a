"""The formula of every figure of one turn: one function each, times in seconds.

Written t0 for the request's issue, t1 and tn for the first and last output delta that carries
anything, n for the output tokens. docs/rules.md gives the reasons.
"""

from __future__ import annotations

from typing import Final

from edge_agentic.core.clock import NS_PER_S
from edge_agentic.engine.api import TokenCounts, TokenTimes

BURST_NS_PER_TOKEN: Final = 10_000
"""Output faster than this was buffered and sent at once: 100,000 tokens/s, which no model
decodes in one stream. Some servers hold a tool call back until it is complete."""


def ttft_s(times: TokenTimes) -> float | None:
    """Time to first token: t1 - t0. None if nothing was produced."""
    return times.arrivals_ns[0] / NS_PER_S if times.arrivals_ns else None


def turn_latency_s(times: TokenTimes) -> float | None:
    """Time from the request to its last token: tn - t0. The model's time only, no tools.

    None if nothing was produced.
    """
    return times.arrivals_ns[-1] / NS_PER_S if times.arrivals_ns else None


def decode_span_s(times: TokenTimes, output_tokens: int | None) -> float | None:
    """Time in which the tokens after the first arrived: tn - t1.

    None where it says nothing about decoding: fewer than two tokens, an unknown number,
    nothing produced, or output that came in one burst.
    """
    if output_tokens is None or output_tokens < 2 or not times.arrivals_ns:
        return None
    if came_in_one_burst(times, output_tokens):
        return None
    return (times.arrivals_ns[-1] - times.arrivals_ns[0]) / NS_PER_S


def came_in_one_burst(times: TokenTimes, output_tokens: int | None) -> bool:
    """Whether two tokens or more came at once, so that their arrivals tell no decode time."""
    if output_tokens is None or output_tokens < 2 or not times.arrivals_ns:
        return False
    span_ns = times.arrivals_ns[-1] - times.arrivals_ns[0]
    return span_ns < BURST_NS_PER_TOKEN * (output_tokens - 1)


def tpot_loadgen_s(times: TokenTimes, tokens: TokenCounts) -> float | None:
    """Time per output token after the first: (tn - t1) / (n - 1).

    The MLPerf LoadGen definition. None for n < 2, an unknown n, or output in one burst.
    """
    span_s = decode_span_s(times, tokens.output)
    if span_s is None or tokens.output is None:
        return None
    return span_s / (tokens.output - 1)


def tpot_s(times: TokenTimes, tokens: TokenCounts) -> float | None:
    """Time per output token: (tn - t1) / (tokens that arrived after the first delta).

    The MLPerf endpoints definition; LoadGen's unless a delta carries several tokens. None
    where no token is known to have come after the first delta, or output came in one burst.
    """
    span_s = decode_span_s(times, tokens.output)
    if span_s is None or tokens.output is None or times.first_delta_tokens is None:
        return None
    after_first = tokens.output - times.first_delta_tokens
    return span_s / after_first if after_first > 0 else None


def is_cold(turn: int, tokens: TokenCounts) -> bool:
    """Whether a turn started without a cached prefix.

    By the engine's own count of cached tokens; where it has none, the first turn of a
    conversation counts as cold.
    """
    return turn == 1 if tokens.cached is None else tokens.cached == 0


def rate(amount: float | None, duration_s: float | None) -> float | None:
    """Amount per second; None where either is unknown or no time passed."""
    if amount is None or not duration_s:
        return None
    return amount / duration_s
