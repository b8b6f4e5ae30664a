"""Times of turns and conversations, and their distributions in a summary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from edge_agentic.core.clock import NS_PER_S
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.measure.definitions import (
    is_cold,
    tpot_loadgen_s,
    tpot_s,
    ttft_s,
    turn_latency_s,
)
from edge_agentic.measure.reasons import Reasons
from edge_agentic.measure.records import Journal, Turn
from edge_agentic.measure.statistics import PERCENTILES, describe, smallest_sample


def distributions(
    journal: Journal, turns: Sequence[Turn], completed: Sequence[Turn], reasons: Reasons
) -> JsonObject:
    """Every distribution over turns or conversations, by its name in the summary."""
    cold = [turn for turn in completed if is_cold(turn.number, turn.tokens)]
    warm = [turn for turn in completed if not is_cold(turn.number, turn.tokens)]
    no_output = "no completed turn produced output"
    no_decode = "no completed turn has a token count and output in several bursts"
    samples: tuple[tuple[str, Iterable[float | None], str], ...] = (
        ("ttft_s", (ttft_s(t.times) for t in completed), no_output),
        ("ttft_cold_s", (ttft_s(t.times) for t in cold), "no completed turn had a cold prefix"),
        ("ttft_warm_s", (ttft_s(t.times) for t in warm), "no completed turn had a cached prefix"),
        ("tpot_s", (tpot_s(t.times, t.tokens) for t in completed), no_decode),
        ("tpot_loadgen_s", (tpot_loadgen_s(t.times, t.tokens) for t in completed), no_decode),
        ("turn_latency_s", (turn_latency_s(t.times) for t in completed), no_output),
        ("tool_time_s", (tool_time_s(t) for t in completed), "no tool ran"),
        ("step_s", (step_s(t) for t in completed), no_output),
        (
            "conversation_s",
            conversation_times_s(journal, turns),
            "no conversation finished unsplit",
        ),
    )
    return {
        name: _distribution(values, f"replay.{name}", why_empty, reasons)
        for name, values, why_empty in samples
    }


def duration_s(turns: Iterable[Turn]) -> float | None:
    """From the first request to the last output, tool time included.

    A resumed run adds up its sessions: their clocks have no common origin, and the pause
    between them is no work. None where nothing was produced.
    """
    first_ns: dict[int, int] = {}
    last_ns: dict[int, int] = {}
    for turn in turns:
        issued_ns = turn.times.issued_ns
        first_ns[turn.session] = min(first_ns.get(turn.session, issued_ns), issued_ns)
        if turn.times.arrivals_ns:
            end_ns = issued_ns + turn.times.arrivals_ns[-1]
            last_ns[turn.session] = max(last_ns.get(turn.session, end_ns), end_ns)
    if not last_ns:
        return None
    return sum(last_ns[session] - first_ns[session] for session in last_ns) / NS_PER_S


def conversation_times_s(journal: Journal, turns: Iterable[Turn]) -> list[float]:
    """First request to the end of the last step, of each finished conversation.

    A conversation that a resumed run split has no such time.
    """
    by_conversation: dict[str, list[Turn]] = defaultdict(list)
    for turn in turns:
        by_conversation[turn.conversation_id].append(turn)
    finished = {end.conversation_id for end in journal.conversation_ends}
    return [
        (max(t.step_end_ns for t in own) - min(t.times.issued_ns for t in own)) / NS_PER_S
        for conversation_id, own in by_conversation.items()
        if conversation_id in finished and len({t.session for t in own}) == 1
    ]


def tool_time_s(turn: Turn) -> float | None:
    """Time of the turn's tools: sandbox execution or the injected delay. None without tools."""
    if turn.tool_delay_ns is not None:
        return turn.tool_delay_ns / NS_PER_S
    return sum(tool.duration_ns for tool in turn.tools) / NS_PER_S if turn.tools else None


def step_s(turn: Turn) -> float | None:
    """What a user waits for one step: turn latency plus tool time."""
    latency_s = turn_latency_s(turn.times)
    return None if latency_s is None else latency_s + (tool_time_s(turn) or 0.0)


def _distribution(
    values: Iterable[float | None], path: str, why_empty: str, reasons: Reasons
) -> JsonObject:
    """One distribution over the known values, and why parts of it are null."""
    figures = describe([value for value in values if value is not None])
    if not figures.n:
        reasons[path] = why_empty
    else:
        if figures.mean_interval95 is None:
            reasons[f"{path}.mean_interval95"] = "one value has no spread"
        short = [p for p in PERCENTILES if figures.early_stopping[p] is None]
        if short:
            needs = ", ".join(f"p{p} {smallest_sample(p)}" for p in short)
            reasons[f"{path}.early_stopping"] = f"too few values (n = {figures.n}); needs {needs}"
    return {
        "mean": figures.mean,
        "mean_interval95": figures.mean_interval95,
        **{f"p{p}": figures.percentiles[p] for p in PERCENTILES},
        "n": figures.n,
        "early_stopping": {f"p{p}": figures.early_stopping[p] for p in PERCENTILES},
    }
