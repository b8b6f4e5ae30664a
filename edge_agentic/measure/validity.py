"""Whether a run's figures may be trusted, and if not, why, in sentences for a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from edge_agentic.core.ending import Ending
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.replay_policy import ReplayPolicy
from edge_agentic.measure.gate_metrics import unrecorded_samples
from edge_agentic.measure.records import Journal, ReplayStart, Turn
from edge_agentic.measure.replay_metrics import count_turns, distinct_turns


def is_complete(journal: Journal) -> bool:
    """Whether the run reached its own end; a gate that fails is an end, an interrupt is not."""
    return journal.finished and journal.interrupted_by is None


def invalid_reasons(journal: Journal, gate: JsonObject | None, *, gate_only: bool) -> list[str]:
    """Every reason against the run, the gravest first; empty for a valid run.

    `gate_only`: the run set out to ask the gate and nothing else.
    """
    reasons = []
    if journal.interrupted_by is not None:
        reasons.append(f"The run was interrupted by {journal.interrupted_by}.")
    elif not journal.finished:
        reasons.append("The journal ends before the run did: it was cut short.")
    reasons += _gate_reasons(journal, gate)
    if gate is not None and gate["passed"] and not gate_only:
        reasons += _replay_reasons(journal)
    return reasons


def _gate_reasons(journal: Journal, gate: JsonObject | None) -> list[str]:
    """What speaks against the gate."""
    if journal.gate is None or gate is None:
        return ["The function-calling gate did not run."]
    issued, unrecorded = len(journal.gate.sample_ids), unrecorded_samples(journal)
    if not journal.gate_finished:
        return [f"The function-calling gate stopped after {issued - unrecorded} of {issued} cases."]
    reasons = []
    if not gate["issued_samples"]:
        reasons.append("The function-calling gate has no case that counts.")
    if unrecorded:
        reasons.append(
            f"The function-calling gate is incomplete: no record of {unrecorded} of {issued} cases."
        )
    if gate["passed"] is None:
        reasons.append("Only a part of the gate's set was asked: there is no verdict.")
    reasons += [f"The function-calling gate failed: {line}." for line in gate["shortfalls"]]
    return reasons


def _replay_reasons(journal: Journal) -> list[str]:
    """What speaks against the replay."""
    if journal.replay is None:
        return ["The replay did not run."]
    turns = distinct_turns(journal.turns)
    reasons = _turn_reasons(journal.replay, journal, len(turns))
    counts = count_turns(journal.replay, turns)
    reasons += _task_reasons(journal, journal.replay)
    if counts.missing and counts.expected is not None:
        never_issued = max(0, counts.expected - counts.issued)
        reasons.append(
            f"{counts.missing} of {counts.expected} turns have no completed answer "
            f"({counts.failed} failed, {never_issued} never issued)."
        )
    if counts.issued == counts.expected and counts.scored != journal.replay.scorable_turns:
        reasons.append(
            f"Scored turns: {counts.scored}; the data set has "
            f"{journal.replay.scorable_turns} that can be scored."
        )
    reasons += _length_reasons(journal.replay, turns)
    if not journal.replay_finished:
        reasons.append("The replay did not reach its end.")
    return reasons


def _task_reasons(journal: Journal, replay: ReplayStart) -> list[str]:
    """Tasks of the policy `live` that did not end, or that the engine ended."""
    ends = {end.conversation_id: end.ending for end in journal.conversation_ends}
    reasons = []
    tasks = replay.tasks or ()
    if open_tasks := [name for name in tasks if name not in ends]:
        reasons.append(
            f"{len(open_tasks)} of {len(tasks)} tasks did not end (first: '{open_tasks[0]}')."
        )
    broken = [name for name in tasks if ends.get(name) is Ending.FAILED]
    if broken:
        reasons.append(
            f"{len(broken)} of {len(tasks)} tasks were broken off by the engine "
            f"(first: '{broken[0]}')."
        )
    return reasons


def _length_reasons(replay: ReplayStart, turns: Sequence[Turn]) -> list[str]:
    """Answers that do not have the length that was forced; under `exact`, one is due each turn."""
    is_exact = replay.policy == ReplayPolicy.EXACT.value
    other = [
        turn
        for turn in turns
        if turn.completed
        and (is_exact or turn.forced_tokens is not None)
        and (turn.forced_tokens is None or turn.tokens.output != turn.forced_tokens)
    ]
    if not other:
        return []
    first = other[0]
    wanted = "a length that is not recorded" if first.forced_tokens is None else first.forced_tokens
    return [
        f"{len(other)} answers are not as long as the policy 'exact' asks (first: turn "
        f"{first.number} of '{first.conversation_id}', {first.tokens.output} tokens for {wanted})."
    ]


def _turn_reasons(replay: ReplayStart, journal: Journal, distinct: int) -> list[str]:
    """Turns that the data set can't account for."""
    reasons = []
    if not replay.expected_turns and not replay.tasks:
        reasons.append("The data set holds no turn: nothing was measured.")
    if repeats := _repeats(journal.turns):
        reasons.append(
            f"Turns recorded more than once: {len(repeats)} (first: turn {repeats[0].number} of "
            f"'{repeats[0].conversation_id}'); only the first record of each counts."
        )
    if replay.expected_turns is not None and distinct > replay.expected_turns:
        reasons.append(f"Issued turns: {distinct}; the data set holds {replay.expected_turns}.")
    return reasons


def _repeats(turns: Iterable[Turn]) -> list[Turn]:
    """The records of turns that have an earlier record."""
    seen: set[tuple[str, int]] = set()
    repeats = []
    for turn in turns:
        key = (turn.conversation_id, turn.number)
        if key in seen:
            repeats.append(turn)
        seen.add(key)
    return repeats
