"""Journals for the tests of `measure` and `report`, written event by event as a run writes them."""

from __future__ import annotations

from typing import Any

MS = 1_000_000
SECOND = 1000 * MS

Event = dict[str, Any]

MANIFEST: Event = {
    "division": "open",
    "device": {"board": "Test Board", "memory_gb": 7.5},
    "engine": {"kind": "llamacpp", "is_model": True, "context_tokens": 4096},
}

FLOOR: Event = {
    "kind": "floor",
    "dataset": "gate-mini",
    "selection": "all",
    "overall": 50.0,
    "reason": "the least that makes a speed worth knowing",
}

REFERENCE: Event = {
    "kind": "reference",
    "id": "qwen3.6-27b",
    "name": "Qwen3.6-27B",
    "gguf_sha256": [],
    "gguf_names": ["Qwen3.6-27B"],
    "quantisation": "Q4_K_M",
    "dataset": "bfcl-v4",
    "selection": "official",
    "overall": 86.23,
    "normalized": 87.96,
    "factor": 0.97,
    "tool_grammar": "server",
    "provenance": "published",
}

SAMPLES = (
    "simple_python_mini_1",
    "simple_python_mini_2",
    "irrelevance_mini_1",
    "live_simple_mini_1",
)


def run_started() -> Event:
    return {
        "event": "run_started",
        "schema": "edge-agentic/journal/1",
        "wall_time": "2026-11-30T12:00:00Z",
        "t_ns": 5,
    }


def gate_started(samples: tuple[str, ...] = SAMPLES, reference: Event = FLOOR) -> Event:
    return {
        "event": "gate_started",
        "dataset": reference["dataset"],
        "dataset_sha256": "a" * 64,
        "selection": reference["selection"],
        "sample_ids": list(samples),
        "reference": reference,
    }


def gate_case(sample_id: str, valid: bool = True, **changed: Any) -> Event:
    return {
        "event": "gate_case",
        "sample_id": sample_id,
        "outcome": "ok",
        "tool_calls": None,
        "text": "",
        "malformed": False,
        "valid": valid,
        "error_type": None,
        "prompt_tokens": 300,
        "output_tokens": 12,
        **changed,
    }


def gate(wrong: tuple[str, ...] = (), samples: tuple[str, ...] = SAMPLES) -> list[Event]:
    """A finished gate in which every case but the wrong ones is right."""
    return [
        gate_started(samples),
        *(gate_case(sample, sample not in wrong) for sample in samples),
        {"event": "gate_finished"},
    ]


def replay_started(expected: int, scorable: int | None = None) -> Event:
    return {
        "event": "replay_started",
        "policy": "recorded",
        "dataset": "edge-mini",
        "dataset_sha256": "b" * 64,
        "expected_turns": expected,
        "scorable_turns": expected if scorable is None else scorable,
        "t_ns": 7,
    }


def turn(number: int = 1, conversation: str = "fix-parser", **changed: Any) -> Event:
    """A turn that takes one second from its issue: 200 ms to the first of five tokens."""
    issued_ns = changed.pop("issued_ns", number * 2 * SECOND)
    return {
        "event": "turn",
        "conversation_id": conversation,
        "turn": number,
        "issued_ns": issued_ns,
        "outcome": "ok",
        "finish_reason": "tool_calls",
        "error": None,
        "prompt_tokens": 1000,
        "cached_tokens": 0 if number == 1 else 900,
        "computed_tokens": 1000 if number == 1 else 100,
        "ideal_tokens": 1000 if number == 1 else 96,
        "output_tokens": 5,
        "first_delta_tokens": 1,
        "arrivals_ns": [200 * MS, 400 * MS, 600 * MS, 800 * MS, 1000 * MS],
        "text": "",
        "reasoning": None,
        "tool_calls": [],
        "malformed": False,
        "expected_tool_calls": [],
        "inline_score": 0.5,
        "tools": [tool()],
        "tool_delay_ns": None,
        "step_end_ns": issued_ns + 1500 * MS,
        **changed,
    }


def failed_turn(number: int, conversation: str = "fix-parser", **changed: Any) -> Event:
    """A turn that ended at its deadline with nothing produced."""
    return turn(
        number,
        conversation,
        **{
            "outcome": "timeout",
            "finish_reason": None,
            "arrivals_ns": [],
            "output_tokens": None,
            "tools": [],
            **changed,
        },
    )


def tool(**changed: Any) -> Event:
    return {
        "exit_code": 0,
        "timed_out": False,
        "over_limit": None,
        "truncated": False,
        "duration_ns": 500 * MS,
        "result": "as recorded",
        "expected": None,
        "match": "exact",
        **changed,
    }


def conversation_finished(
    conversation: str = "fix-parser", passed: bool | None = True, ending: str | None = None
) -> Event:
    return {
        "event": "conversation_finished",
        "conversation_id": conversation,
        "check_passed": passed,
        "ending": ending,
        "t_ns": 99 * SECOND,
    }


def other_tool(recorded: str = "one\ntwo", now: str = "one\n2", **changed: Any) -> Event:
    """A call with another result than the recorded one."""
    return tool(**{"result": now, "expected": recorded, "match": "different", **changed})


def trial(
    number: int = 1, conversation: str = "fix-parser", *, ran: bool = True, same: bool | None = True
) -> Event:
    effect = {
        "calls": [{"status": 0 if ran else "refused", "ran": ran}],
        "changed_files": 0,
        "changes_sha256": "c" * 64,
        "output": "x" if same else "y",
    }
    return {
        "event": "trial",
        "conversation_id": conversation,
        "turn": number,
        "recorded": None if same is None else {**effect, "output": "x"},
        "model": effect,
        "same_effect": same,
    }


def end() -> list[Event]:
    return [
        {"event": "replay_finished", "t_ns": 100 * SECOND},
        {"event": "memory", "peak_rss_mb": 812.5},
        {"event": "run_finished"},
    ]


def whole_run(turns: list[Event], scorable: int | None = None) -> list[Event]:
    """A run whose gate passed and whose replay issued these turns of one conversation."""
    return [
        run_started(),
        *gate(),
        replay_started(len(turns), scorable),
        *turns,
        conversation_finished(),
        *end(),
    ]


def live_started(*tasks: str) -> Event:
    return {
        **replay_started(0),
        "policy": "live",
        "expected_turns": None,
        "scorable_turns": None,
        "tasks": list(tasks),
    }


def live_run(*tasks: tuple[str, bool, str, list[Event]]) -> list[Event]:
    """A run in which the model worked on tasks: name, solved, ending, turns."""
    events = [run_started(), *gate(), live_started(*(name for name, *_ in tasks))]
    for name, solved, ending, turns in tasks:
        events += [*turns, conversation_finished(name, solved, ending)]
    return [*events, *end()]
