"""Tasks that a model worked on by itself (policy `live`) to the `tasks` figures of a replay."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from edge_agentic.core.clock import NS_PER_S
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.measure.definitions import turn_latency_s
from edge_agentic.measure.reasons import Reasons
from edge_agentic.measure.records import ConversationEnd, Journal, Turn
from edge_agentic.measure.times import tool_time_s

_COSTS: Final = ("turns", "output_tokens", "wall_s", "energy_j")


def task_figures(
    journal: Journal, tasks: Sequence[str], turns: Sequence[Turn], reasons: Reasons
) -> JsonObject:
    """Each task's end and cost, and the cost per task and per solved task.

    per_task: the mean over tasks that ended. per_solved_task: the cost of all of them, failures
    included, divided by the number solved: what one success costs.
    """
    ends: dict[str, ConversationEnd] = {}
    for end in journal.conversation_ends:
        ends.setdefault(end.conversation_id, end)
    each = [_task(name, ends[name], turns) for name in tasks if name in ends]
    solved = sum(task["solved"] for task in each)
    path = "replay.tasks"
    reasons[f"{path}.energy_j"] = "not sampled"
    if not each:
        reasons[f"{path}.per_task"] = "no task ended"
    if not solved:
        reasons[f"{path}.per_solved_task"] = "no task was solved"
    unknown = [name for name in _COSTS[:3] if each and _sum(each, name) is None]
    reasons.update({f"{path}.{name}": "not known of every task" for name in unknown})
    return {
        "total": len(tasks),
        "ended": len(each),
        "solved": solved,
        "solve_rate": solved / len(tasks) if tasks else None,
        "endings": dict(Counter(task["ending"] for task in each)),
        "each": each,
        "per_task": _shares(each, len(each)),
        "per_solved_task": _shares(each, solved),
    }


def _task(name: str, end: ConversationEnd, turns: Sequence[Turn]) -> JsonObject:
    own = [turn for turn in turns if turn.conversation_id == name]
    wall_ns = None
    if own and len({turn.session for turn in own}) == 1:
        wall_ns = max(t.step_end_ns for t in own) - min(t.times.issued_ns for t in own)
    return {
        "conversation_id": name,
        "solved": end.check_passed is True,
        "ending": end.ending.value if end.ending else None,
        "turns": len(own),
        "prompt_tokens": _total(own, lambda turn: turn.tokens.prompt),
        "output_tokens": _total(own, lambda turn: turn.tokens.output),
        "model_time_s": math.fsum(turn_latency_s(turn.times) or 0.0 for turn in own),
        "tool_time_s": math.fsum(tool_time_s(turn) or 0.0 for turn in own),
        "wall_s": None if wall_ns is None else wall_ns / NS_PER_S,
        "energy_j": None,
    }


def _total(turns: Sequence[Turn], count: Callable[[Turn], int | None]) -> int | None:
    """The sum; None where a completed turn is unknown. A failed turn counts as far as known."""
    counts = [count(turn) for turn in turns if turn.completed or count(turn) is not None]
    known = [value for value in counts if value is not None]
    return sum(known) if len(known) == len(counts) else None


def _shares(each: Sequence[JsonObject], count: int) -> Mapping[str, float | None] | None:
    """The sum of each cost divided by a number of tasks; None where there is none."""
    if not count:
        return None
    sums = {name: _sum(each, name) for name in _COSTS}
    return {name: None if value is None else value / count for name, value in sums.items()}


def _sum(each: Sequence[JsonObject], name: str) -> float | None:
    values = [task[name] for task in each]
    return None if None in values else math.fsum(values)
