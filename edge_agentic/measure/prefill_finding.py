"""Tells when a server processes a conversation's prompt again in every turn, and what to change.

Two ways to know. Where the server counts cached tokens, what it computed beyond the new tokens is
waste. Where it does not, times tell: with reuse, the time to first token follows the new tokens;
without, it follows the whole prompt, at the rate of the cold first turns.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

from edge_agentic.engine.server_kinds import Cause, ServerKind, remedy
from edge_agentic.measure.definitions import is_cold, ttft_s
from edge_agentic.measure.records import Turn

SLACK_TOKENS: Final = 256
"""Servers keep prompts in blocks, and re-evaluate the last of them: no waste to speak of."""
WASTE_FACTOR: Final = 2
"""A turn that computes more than this many times the new tokens is worth a word."""
LEAST_TURNS: Final = 8
"""Fewer points give no line to trust."""
LEAST_CORRELATION: Final = 0.8
LEAST_SHARE_OF_COLD_RATE: Final = 0.5
"""Attention alone makes a longer prompt a little slower: far less than processing it again."""


def prefill_findings(completed: Sequence[Turn], server: ServerKind | None) -> list[str]:
    """What was found, one line each; empty if nothing speaks against the server's reuse.

    Args:
        completed: the completed turns.
        server: the kind of server that answered; None for an engine in this process.
    """
    later = [turn for turn in completed if turn.number > 1]
    found = _by_counts(later) or _by_times(completed, later)
    if found is None:
        return []
    if server is None:
        return [f"{found}."]
    return [f"{found}. Likely remedy: {remedy(server, Cause.REUSE)}."]


def _by_counts(later: Sequence[Turn]) -> str | None:
    wasted = [(_wasted(turn), turn) for turn in later]
    wasteful = [(count, turn) for count, turn in wasted if count]
    if not wasteful:
        return None
    count, worst = max(wasteful, key=lambda pair: pair[0])
    return (
        f"{len(wasteful)} of {len(later)} later turns processed again what was there before; "
        f"turn {worst.number} of '{worst.conversation_id}' re-processed {count} of "
        f"{worst.tokens.prompt} tokens"
    )


def _wasted(turn: Turn) -> int:
    """Tokens computed again in a turn that wasted many; 0 in any other."""
    computed, ideal = turn.tokens.computed, turn.tokens.ideal
    if computed is None or ideal is None or computed <= WASTE_FACTOR * ideal + SLACK_TOKENS:
        return 0
    return computed - ideal


def _by_times(completed: Sequence[Turn], later: Sequence[Turn]) -> str | None:
    cold = [_point(turn) for turn in completed if is_cold(turn.number, turn.tokens)]
    uncounted = [turn for turn in later if turn.tokens.cached is None]
    points = [_point(turn) for turn in uncounted]
    rates = [seconds / tokens for tokens, seconds in filter(None, cold)]
    known = [point for point in points if point is not None]
    if len(known) < LEAST_TURNS or not rates:
        return None
    prompts, times = [tokens for tokens, _ in known], [seconds for _, seconds in known]
    if len(set(prompts)) < 2 or len(set(times)) < 2:
        return None
    if statistics.correlation(prompts, times) < LEAST_CORRELATION:
        return None
    slope = statistics.linear_regression(prompts, times).slope
    if slope < LEAST_SHARE_OF_COLD_RATE * statistics.median(rates):
        return None
    worst = max(uncounted, key=_shared)
    return (
        f"in {len(known)} later turns the time to first token grows with the whole prompt "
        f"({slope * 1e6:.1f} ms per 1000 tokens, about what a first turn takes); turn "
        f"{worst.number} of '{worst.conversation_id}' re-processed about {_shared(worst)} of "
        f"{worst.tokens.prompt} tokens"
    )


def _shared(turn: Turn) -> int:
    """Tokens of the prompt that were there before; 0 where nobody knows."""
    prompt, ideal = turn.tokens.prompt, turn.tokens.ideal
    return 0 if prompt is None or ideal is None else prompt - ideal


def _point(turn: Turn) -> tuple[int, float] | None:
    """Prompt tokens and time to first token; None where either is unknown."""
    seconds = ttft_s(turn.times)
    if not turn.tokens.prompt or seconds is None:
        return None
    return turn.tokens.prompt, seconds
