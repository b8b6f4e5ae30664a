"""Turns of a journal to the `replay` section of a summary."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edge_agentic.core.clock import NS_PER_S
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.measure.definitions import (
    came_in_one_burst,
    decode_span_s,
    is_cold,
    rate,
    tpot_loadgen_s,
    tpot_s,
    ttft_s,
    turn_latency_s,
)
from edge_agentic.measure.events import Journal, ReplayStart, Turn
from edge_agentic.measure.statistics import PERCENTILES, describe, smallest_sample

Reasons = dict[str, str]
"""Why a figure is null, by its dotted path in the summary."""


@dataclass(frozen=True)
class TurnCounts:
    """How many turns there were; `expected` is the data set's own count."""

    issued: int
    expected: int
    observed: int
    scored: int

    @property
    def failed(self) -> int:
        """Issued, and never completed."""
        return self.issued - self.observed

    @property
    def missing(self) -> int:
        """Expected, and never completed: failed, or not even issued."""
        return max(0, self.expected - self.observed)


def distinct_turns(turns: Iterable[Turn]) -> list[Turn]:
    """The first record of each turn of each conversation."""
    first: dict[tuple[str, int], Turn] = {}
    for turn in turns:
        first.setdefault((turn.conversation_id, turn.number), turn)
    return list(first.values())


def count_turns(replay: ReplayStart, turns: Sequence[Turn]) -> TurnCounts:
    """The counts of distinct turns against what the data set holds."""
    return TurnCounts(
        issued=len(turns),
        expected=replay.expected_turns,
        observed=sum(turn.completed for turn in turns),
        scored=sum(turn.inline_score is not None for turn in turns),
    )


def replay_section(journal: Journal, replay: ReplayStart, reasons: Reasons) -> JsonObject:
    """All figures of the replay; the reason of each null one goes into `reasons`.

    Times and tokens are those of completed turns. A failed turn is counted, never timed.
    """
    turns = distinct_turns(journal.turns)
    completed = [turn for turn in turns if turn.completed]
    counts = count_turns(replay, turns)
    section: JsonObject = {
        "dataset": replay.dataset,
        "dataset_sha256": replay.dataset_sha256,
        "policy": replay.policy,
        "turns": {
            "issued": counts.issued,
            "expected": counts.expected,
            "observed": counts.observed,
            "missing": counts.missing,
            "failed": counts.failed,
            "scored": counts.scored,
        },
        "inline_score": inline_score(turns),
        **_throughput(turns, completed),
        **_distributions(journal, turns, completed, reasons),
        "prefill": _prefill(completed),
        "tools": _tools(journal, turns),
    }
    reasons.update(_null_figures(section, completed))
    return section


def inline_score(turns: Sequence[Turn]) -> float | None:
    """Mean score over scorable issued turns, 4 decimals; a failed one counts 0.

    MLPerf Inference v6.1 edge-agentic rules. None where no turn is scorable.
    """
    scores = [
        turn.inline_score if turn.completed else 0.0
        for turn in turns
        if turn.inline_score is not None
    ]
    return round(math.fsum(scores) / len(scores), 4) if scores else None


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
    return sum(tool.duration_ns for tool in turn.tools) / NS_PER_S if turn.tools else None


def step_s(turn: Turn) -> float | None:
    """What a user waits for one step: turn latency plus tool time."""
    latency_s = turn_latency_s(turn.times)
    return None if latency_s is None else latency_s + (tool_time_s(turn) or 0.0)


def _throughput(turns: Sequence[Turn], completed: Sequence[Turn]) -> JsonObject:
    """Totals and rates of the phase."""
    phase_s = duration_s(turns)
    output_tokens = _total(turn.tokens.output for turn in completed)
    latencies_ns = [turn.times.arrivals_ns[-1] for turn in completed if turn.times.arrivals_ns]
    decoded = [
        (turn.tokens.output - 1, span_s)
        for turn in completed
        if turn.tokens.output is not None
        and (span_s := decode_span_s(turn.times, turn.tokens.output)) is not None
    ]
    prefilled = [
        (turn.tokens.computed, first_s)
        for turn in completed
        if turn.tokens.computed is not None and (first_s := ttft_s(turn.times)) is not None
    ]
    return {
        "duration_s": phase_s,
        "output_tokens": output_tokens,
        "output_tokens_per_s": rate(output_tokens, phase_s),
        "output_tokens_per_s_model_only": rate(output_tokens, sum(latencies_ns) / NS_PER_S),
        "turns_per_s": rate(len(completed), phase_s),
        "decode_tokens_per_s": _ratio_of_sums(decoded),
        "decode_skipped_turns": sum(
            came_in_one_burst(turn.times, turn.tokens.output) for turn in completed
        ),
        "prefill_tokens_per_s": _ratio_of_sums(prefilled),
    }


def _distributions(
    journal: Journal, turns: Sequence[Turn], completed: Sequence[Turn], reasons: Reasons
) -> JsonObject:
    """Every distribution, by its name in the summary."""
    cold = [turn for turn in completed if is_cold(turn.number, turn.tokens)]
    warm = [turn for turn in completed if not is_cold(turn.number, turn.tokens)]
    no_output = "no completed turn produced output"
    no_decode = "no completed turn has a token count and output that came in more than one burst"
    samples: tuple[tuple[str, Iterable[float | None], str], ...] = (
        ("ttft_s", (ttft_s(t.times) for t in completed), no_output),
        ("ttft_cold_s", (ttft_s(t.times) for t in cold), "no turn started without a cached prefix"),
        ("ttft_warm_s", (ttft_s(t.times) for t in warm), "no turn started with a cached prefix"),
        ("tpot_s", (tpot_s(t.times, t.tokens) for t in completed), no_decode),
        ("tpot_loadgen_s", (tpot_loadgen_s(t.times, t.tokens) for t in completed), no_decode),
        ("turn_latency_s", (turn_latency_s(t.times) for t in completed), no_output),
        ("tool_time_s", (tool_time_s(t) for t in completed), "no tool ran"),
        ("step_s", (step_s(t) for t in completed), no_output),
        ("conversation_s", conversation_times_s(journal, turns), "no conversation finished"),
    )
    return {
        name: _distribution(values, f"replay.{name}", why_empty, reasons)
        for name, values, why_empty in samples
    }


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


def _prefill(completed: Sequence[Turn]) -> JsonObject:
    """Prompt tokens by how they were met. Efficiency is ideal / computed; 1.0 is perfect reuse.

    Efficiency is over the turns for which both are known (`accounted_turns`).
    """
    accounted = [
        (turn.tokens.ideal, turn.tokens.computed)
        for turn in completed
        if turn.tokens.ideal is not None and turn.tokens.computed is not None
    ]
    return {
        "prompt_tokens": _total(turn.tokens.prompt for turn in completed),
        "cached_tokens": _total(turn.tokens.cached for turn in completed),
        "computed_tokens": _total(turn.tokens.computed for turn in completed),
        "ideal_tokens": _total(turn.tokens.ideal for turn in completed),
        "efficiency": _ratio_of_sums(accounted),
        "accounted_turns": len(accounted),
    }


def _tools(journal: Journal, turns: Sequence[Turn]) -> JsonObject:
    """Executed tool calls, how many gave the recorded result, and the checks of success."""
    runs = [run for turn in turns for run in turn.tools]
    compared = [run.matches_record for run in runs if run.matches_record is not None]
    checks: dict[str, bool | None] = {}
    for end in journal.conversation_ends:
        checks.setdefault(end.conversation_id, end.check_passed)
    decided = [passed for passed in checks.values() if passed is not None]
    return {
        "executed": len(runs),
        "compared": len(compared),
        "fidelity": sum(compared) / len(compared) if compared else None,
        "executable_rate": None,
        "effect_match": None,
        "checks_passed": sum(decided),
        "checks_total": len(decided),
    }


def _null_figures(section: JsonObject, completed: Sequence[Turn]) -> Reasons:
    """Why single figures of the section are null; distributions gave their own reasons."""
    uncounted = (
        "the engine did not count it in every turn" if completed else "no turn was completed"
    )
    why = {
        "inline_score": "no issued turn is scorable",
        "duration_s": "no turn produced output",
        "output_tokens": uncounted,
        "output_tokens_per_s": "needs output tokens and a duration",
        "output_tokens_per_s_model_only": "needs output tokens and turn latencies",
        "turns_per_s": "no time passed between the first request and the last output",
        "decode_tokens_per_s": "no completed turn has a token count and output in several bursts",
        "prefill_tokens_per_s": "no completed turn has a count of computed prompt tokens",
        "prefill.prompt_tokens": uncounted,
        "prefill.cached_tokens": uncounted,
        "prefill.computed_tokens": uncounted,
        "prefill.ideal_tokens": uncounted,
        "prefill.efficiency": "needs computed and ideal prompt tokens of one turn",
        "tools.fidelity": "no executed call has a recorded result to compare with",
        "tools.executable_rate": "the model's own calls are not executed yet",
        "tools.effect_match": "the model's own calls are not executed yet",
    }
    reasons = {}
    for path, reason in why.items():
        group, _, name = path.rpartition(".")
        figures = section[group] if group else section
        if figures[name] is None:
            reasons[f"replay.{path}"] = reason
    return reasons


def _total(values: Iterable[int | None]) -> int | None:
    """The sum; None where a part is unknown or there is none: a partial sum would mislead."""
    parts = list(values)
    known = [value for value in parts if value is not None]
    return sum(known) if parts and len(known) == len(parts) else None


def _ratio_of_sums(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Sum of the first over sum of the second; None where the second is 0."""
    return rate(
        math.fsum(amount for amount, _ in pairs) if pairs else None,
        math.fsum(per for _, per in pairs),
    )
