"""Turns of a journal to the `replay` section of a summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edge_agentic.core.clock import NS_PER_S
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.engine.server_kinds import ServerKind
from edge_agentic.measure.definitions import (
    came_in_one_burst,
    decode_span_s,
    rate,
    ttft_s,
)
from edge_agentic.measure.prefill_finding import prefill_findings
from edge_agentic.measure.reasons import Reasons
from edge_agentic.measure.records import Journal, ReplayStart, Turn
from edge_agentic.measure.task_metrics import task_figures
from edge_agentic.measure.times import distributions, duration_s
from edge_agentic.measure.tool_metrics import tool_figures


@dataclass(frozen=True)
class TurnCounts:
    """How many turns there were; `expected` is the data set's own count, None for tasks."""

    issued: int
    expected: int | None
    observed: int
    scored: int

    @property
    def failed(self) -> int:
        """Issued, and never completed."""
        return self.issued - self.observed

    @property
    def missing(self) -> int | None:
        """Expected, and never completed: failed, or not even issued."""
        return None if self.expected is None else max(0, self.expected - self.observed)


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


def replay_section(
    journal: Journal, replay: ReplayStart, reasons: Reasons, server: ServerKind | None = None
) -> JsonObject:
    """All figures of the replay; the reason of each null one goes into `reasons`.

    `server` is the kind of server that answered, if one did. Times and tokens are those of
    completed turns. A failed turn is counted, never timed.
    """
    turns = distinct_turns(journal.turns)
    completed = [turn for turn in turns if turn.completed]
    counts = count_turns(replay, turns)
    section: JsonObject = {
        "dataset": replay.dataset,
        "dataset_sha256": replay.dataset_sha256,
        "policy": replay.policy,
        "concurrency": replay.concurrency,
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
        **distributions(journal, turns, completed, reasons),
        "prefill": {**_prefill(completed), "findings": prefill_findings(completed, server)},
        "drafting": _drafting(completed),
        "tools": tool_figures(journal, turns, reasons),
        "tasks": None,
    }
    if replay.tasks is None:
        reasons["replay.tasks"] = "only under the policy 'live' there are tasks"
    else:
        section["tasks"] = task_figures(journal, replay.tasks, turns, reasons)
        for name in ("expected", "missing"):
            reasons[f"replay.turns.{name}"] = "a task has as many turns as the model makes"
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


def _drafting(completed: Sequence[Turn]) -> JsonObject:
    """Drafted tokens, and of them those that the model accepted; rate = accepted / drafted."""
    drafted = _total(turn.tokens.drafted for turn in completed)
    accepted = _total(turn.tokens.accepted for turn in completed)
    acceptance = None if accepted is None or not drafted else accepted / drafted
    return {
        "drafted_tokens": drafted,
        "accepted_tokens": accepted,
        "acceptance_rate": acceptance,
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
        "prefill_tokens_per_s": "needs computed prompt tokens and a time to first token",
        "prefill.prompt_tokens": uncounted,
        "prefill.cached_tokens": uncounted,
        "prefill.computed_tokens": uncounted,
        "prefill.ideal_tokens": uncounted,
        "prefill.efficiency": "needs counts of ideal and computed prompt tokens, not all 0",
        "drafting.drafted_tokens": uncounted,
        "drafting.accepted_tokens": uncounted,
        "drafting.acceptance_rate": "no token was drafted",
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
