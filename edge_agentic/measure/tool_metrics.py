"""Executed tool calls to the `tools` figures of a replay: fidelity, trials, checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.replay_policy import ReplayPolicy
from edge_agentic.measure.reasons import Reasons
from edge_agentic.measure.records import Journal, ToolRun, Trial, Turn
from edge_agentic.trace.comparison import Match, first_difference

MOST_SHOWN: Final = 20
"""So many of the turns that differ from the recording are described."""


def tool_figures(journal: Journal, turns: Sequence[Turn], reasons: Reasons) -> JsonObject:
    """What became of tool calls; the reason of each null figure goes into `reasons`.

    fidelity: share of executed recorded calls that gave the recorded result again, past what
    can't repeat. executable_rate: share of the model's own calls that could be executed.
    effect_match: share of turns with recorded calls in which the model's did the same.
    """
    runs = [run for turn in turns for run in turn.tools]
    compared = [run for run in runs if run.match is not None]
    differing = [turn for turn in turns if any(run.match is Match.DIFFERENT for run in turn.tools)]
    trials = _distinct_trials(journal)
    tried = [ran for trial in trials for ran in trial.model_ran]
    effects = [trial.same_effect for trial in trials if trial.same_effect is not None]
    checks = _checks(journal)
    figures: JsonObject = {
        "executed": len(runs),
        "compared": len(compared),
        "exact": sum(run.match is Match.EXACT for run in compared),
        "fidelity": fidelity(compared),
        "differing_turns": len(differing),
        "differences": [_difference(turn) for turn in differing[:MOST_SHOWN]],
        "tried_calls": len(tried),
        "executable_rate": sum(tried) / len(tried) if tried else None,
        "tried_turns": len(effects),
        "effect_match": sum(effects) / len(effects) if effects else None,
        "checks_passed": sum(checks),
        "checks_total": len(checks),
    }
    policy = journal.replay.policy if journal.replay else None
    why = {
        "fidelity": "no executed call has a recorded result to compare with",
        "executable_rate": _NOT_TRIED.get(policy, "no call of the model was tried"),
        "effect_match": _NOT_TRIED.get(policy, "no turn with recorded calls was tried"),
    }
    for name, reason in why.items():
        if figures[name] is None:
            reasons[f"replay.tools.{name}"] = reason
    return figures


def fidelity(runs: Sequence[ToolRun]) -> float | None:
    """Share of compared calls with the recorded result; None where none can be compared."""
    verdicts = [run.match is not Match.DIFFERENT for run in runs if run.match is not None]
    return sum(verdicts) / len(verdicts) if verdicts else None


_NOT_TRIED: Final[dict[Any, str]] = {
    ReplayPolicy.EXACT.value: "answers of a forced length are not tried",
    ReplayPolicy.LIVE.value: "under the policy 'live' the model's calls are the work itself",
}


def _difference(turn: Turn) -> JsonObject:
    """The first difference of a turn from the recording."""
    run = next(run for run in turn.tools if run.match is Match.DIFFERENT)
    found = first_difference(run.expected or "", run.result)
    return {
        "conversation_id": turn.conversation_id,
        "turn": turn.number,
        "fidelity": fidelity(turn.tools),
        "line": found.line if found else None,
        "recorded": found.recorded if found else None,
        "now": found.now if found else None,
    }


def _distinct_trials(journal: Journal) -> Sequence[Trial]:
    first: dict[tuple[str, int], Trial] = {}
    for trial in journal.trials:
        first.setdefault((trial.conversation_id, trial.number), trial)
    return list(first.values())


def _checks(journal: Journal) -> list[bool]:
    """The verdict of each check that was run, by conversation; the first record counts."""
    checks: dict[str, bool | None] = {}
    for end in journal.conversation_ends:
        checks.setdefault(end.conversation_id, end.check_passed)
    return [passed for passed in checks.values() if passed is not None]
