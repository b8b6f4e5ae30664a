"""Figures of executed and tried calls, and of tasks."""

from __future__ import annotations

from typing import Any

import pytest

from edge_agentic.measure.summary import build_summary
from tests.measure_journals import (
    MANIFEST,
    SECOND,
    Event,
    conversation_finished,
    end,
    failed_turn,
    gate,
    live_run,
    live_started,
    other_tool,
    run_started,
    tool,
    trial,
    turn,
    whole_run,
)


def summarise(events: list[Event]) -> dict[str, Any]:
    return build_summary(MANIFEST, events)


def tools(turns: list[Event], *trials: Event) -> dict[str, Any]:
    *before, finished = whole_run(turns)
    figures: dict[str, Any] = summarise([*before, *trials, finished])["replay"]["tools"]
    return figures


def test_a_result_that_is_the_same_but_for_what_cannot_repeat_is_faithful() -> None:
    close = other_tool("ok in 1.00s", "ok in 2.00s", match="normalised")
    figures = tools([turn(1, tools=[tool(), close]), turn(2, tools=[close, other_tool()])])
    assert (figures["exact"], figures["compared"], figures["fidelity"]) == (1, 4, 0.75)
    (shown,) = figures["differences"]
    assert (shown["turn"], shown["fidelity"], shown["line"]) == (2, 0.5, 2)


def test_only_so_many_differences_are_described_and_all_are_counted() -> None:
    figures = tools([turn(number, tools=[other_tool()]) for number in range(1, 31)])
    assert (figures["differing_turns"], len(figures["differences"])) == (30, 20)


def test_the_executable_rate_is_of_calls_the_effect_match_of_turns() -> None:
    figures = tools(
        [turn(1), turn(2), turn(3)],
        trial(1),
        trial(2, same=False),
        trial(3, ran=False, same=None),
        trial(3, ran=True, same=True),  # a second record of a turn counts nothing
    )
    assert (figures["tried_calls"], figures["executable_rate"]) == (3, pytest.approx(2 / 3))
    assert (figures["tried_turns"], figures["effect_match"]) == (2, 0.5)


@pytest.mark.parametrize(
    ("policy", "said"),
    [("recorded", "no call of the model was tried"), ("exact", "answers of a forced length")],
)
def test_without_trials_the_reason_is_given(policy: str, said: str) -> None:
    events = whole_run([turn(1, forced_tokens=5)])
    next(e for e in events if e["event"] == "replay_started")["policy"] = policy
    assert said in summarise(events)["null_reasons"]["replay.tools.executable_rate"]


def test_a_delay_in_the_place_of_tools_is_tool_time() -> None:
    waited = turn(1, tools=[], tool_delay_ns=3 * SECOND, step_end_ns=6 * SECOND)
    replay = summarise(whole_run([waited]))["replay"]
    assert (replay["tool_time_s"]["p99"], replay["step_s"]["p99"]) == (3.0, 4.0)


def live_turn(number: int, task: str, **changed: Any) -> Event:
    own = tool(duration_ns=250_000_000, match=None)
    return turn(number, task, **{"inline_score": None, "tools": [own], **changed})


def test_tasks_have_their_own_figures_and_a_price_for_one_success() -> None:
    one = [live_turn(1, "a"), live_turn(2, "a", tools=[])]
    other = [live_turn(n, "b", issued_ns=(10 + 2 * n) * SECOND) for n in (1, 2, 3, 4)]
    summary = summarise(live_run(("a", True, "submitted", one), ("b", False, "turn_limit", other)))
    assert summary["valid"], summary["invalid_reasons"]
    tasks = summary["replay"]["tasks"]
    assert (tasks["total"], tasks["ended"], tasks["solved"], tasks["solve_rate"]) == (2, 2, 1, 0.5)
    assert tasks["endings"] == {"submitted": 1, "turn_limit": 1}
    assert tasks["each"][0] == {
        "conversation_id": "a",
        "solved": True,
        "ending": "submitted",
        "turns": 2,
        "prompt_tokens": 2000,
        "output_tokens": 10,
        "model_time_s": 2.0,
        "tool_time_s": 0.25,
        "wall_s": 3.5,
        "energy_j": None,
    }
    cost = {"turns": 3.0, "output_tokens": 15.0, "wall_s": 5.5, "energy_j": None}
    assert tasks["per_task"] == cost
    assert tasks["per_solved_task"] == {
        name: value if value is None else 2 * value for name, value in cost.items()
    }
    reasons = summary["null_reasons"]
    assert reasons["replay.tasks.energy_j"] == "not sampled"
    assert "replay.turns.expected" in reasons


def test_a_task_without_a_count_of_tokens_has_none_and_says_why() -> None:
    turns = [live_turn(1, "a", output_tokens=None)]
    summary = summarise(live_run(("a", True, "submitted", turns)))
    assert summary["replay"]["tasks"]["per_task"]["output_tokens"] is None
    assert summary["null_reasons"]["replay.tasks.output_tokens"] == "not known of every task"


def test_a_context_that_was_filled_is_an_honest_end_and_no_failure_of_the_run() -> None:
    full = failed_turn(2, "a", outcome="context_overflow", inline_score=None, output_tokens=3)
    summary = summarise(live_run(("a", False, "context_limit", [live_turn(1, "a"), full])))
    assert summary["valid"]
    assert summary["replay"]["tasks"]["each"][0]["output_tokens"] == 8
    assert summary["replay"]["turns"]["failed"] == 1


def test_a_task_that_did_not_end_or_was_broken_off_makes_the_run_invalid() -> None:
    events = [
        run_started(),
        *gate(),
        live_started("a", "b", "c"),
        live_turn(1, "a"),
        conversation_finished("a", False, "failed"),
        *end(),
    ]
    assert summarise(events)["invalid_reasons"] == [
        "2 of 3 tasks did not end (first: 'b').",
        "1 of 3 tasks were broken off by the engine (first: 'a').",
    ]


def test_a_replay_of_a_recording_has_no_tasks() -> None:
    summary = summarise(whole_run([turn(1)]))
    assert summary["replay"]["tasks"] is None
    assert "policy 'live'" in summary["null_reasons"]["replay.tasks"]
