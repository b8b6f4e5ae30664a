"""Replay under the policy `recorded`: the recorded history, the recorded calls, real execution."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edge_agentic.core.outcome import Outcome
from edge_agentic.core.tool_mode import ToolMode
from edge_agentic.engine.api import ChatRequest, Completion
from edge_agentic.engine.scripted import ScriptedAnswer, ScriptedEngine
from edge_agentic.replay.player import ConversationEnd, ReplayLimits, ReplayPlan, TurnRecord, play
from edge_agentic.trace.comparison import Match
from edge_agentic.trace.pack import TracePack, load_pack
from edge_agentic.trace.tool_output import render
from tests.trace_samples import call, calls, make_pack, repack, results, says, user, write
from tests.workspaces import unsandboxed
from tools_sandbox.result import Result, Tier

LIMITS = ReplayLimits(None, None, 20.0)


class Recorder(ScriptedEngine):
    """A scripted engine that keeps the requests it was given."""

    def __init__(self, **answers: ScriptedAnswer) -> None:
        super().__init__(
            lambda name: answers.get(name.rpartition("/")[2], ScriptedAnswer(text="wrong")),
            source="test",
        )
        self.requests: list[ChatRequest] = []

    def generate(self, request: ChatRequest) -> Completion:
        self.requests.append(request)
        return super().generate(request)


def turns(pack: TracePack, engine: ScriptedEngine, **options: Any) -> list[TurnRecord]:
    records = play(ReplayPlan(pack, options.pop("limits", LIMITS)), engine, **options)
    return [record for record in records if isinstance(record, TurnRecord)]


def executed(pack: TracePack, **changes: Any) -> list[TurnRecord | ConversationEnd]:
    plan = replace(ReplayPlan(pack, LIMITS), **changes)
    return list(play(plan, Recorder(), unsandboxed(pack, pack.path.parent).open))


@pytest.fixture
def trace(tmp_path: Path) -> TracePack:
    rows = (user(1), calls(2, "a", command="ls | wc -l"), results(3, "a"), says(4))
    return load_pack(write(tmp_path / "t.jsonl", *rows))


def test_each_request_carries_the_recorded_history_whatever_the_model_said(
    trace: TracePack,
) -> None:
    engine = Recorder()
    turns(trace, engine)
    assert [message["role"] for message in engine.requests[0].messages] == ["user"]
    assert [message["role"] for message in engine.requests[1].messages] == [
        "user", "assistant", "tool",
    ]  # fmt: skip
    recorded = engine.requests[1].messages[1]
    assert recorded["content"] is None
    assert recorded["tool_calls"] == [call("a", "ls | wc -l")]


def test_the_inline_score_compares_with_the_recorded_calls(trace: TracePack) -> None:
    right = turns(trace, Recorder(**{"1": ScriptedAnswer([call("x", "ls | wc -l")])}))
    half = turns(trace, Recorder(**{"1": ScriptedAnswer([call("x", "ls")])}))
    none = turns(trace, Recorder())
    assert [record[0].inline_score for record in (right, half, none)] == [1.0, 0.5, 0.0]
    assert right[1].inline_score is None


def test_a_failed_turn_scores_0_and_the_next_one_is_played(trace: TracePack) -> None:
    engine = ScriptedEngine({}.get, source="test")
    first, second = turns(trace, engine)
    assert (first.completion.outcome, first.inline_score) == (Outcome.ENGINE_FAILED, 0.0)
    assert second.turn.index == 2


@pytest.mark.parametrize(
    ("asked", "of_row", "of_pack", "expected"),
    [(None, None, None, 1024), (None, None, 64, 64), (None, 32, 64, 32), (16, 32, 64, 16)],
)
def test_the_output_limit_is_asked_for_or_the_rows_or_the_packs_or_1024(
    tmp_path: Path, asked: int | None, of_row: int | None, of_pack: int | None, expected: int
) -> None:
    more = {} if of_row is None else {"max_new_tokens": of_row}
    pack = load_pack(write(tmp_path / "t.jsonl", user(1, **more), says(2)))
    object.__setattr__(pack, "max_output_tokens", of_pack)
    engine = Recorder()
    turns(pack, engine, limits=ReplayLimits(asked, None, 1.0))
    assert engine.requests[0].max_output_tokens == expected


def recorded_pack(tmp_path: Path, command: str, content: str) -> TracePack:
    directory = make_pack(tmp_path / "pack")
    rows = (
        user(1),
        calls(2, "a", command=command),
        {**results(3, "a"), "tool_results": [{"tool_call_id": "a", "content": content}]},
        says(4),
    )
    write(directory / "t.jsonl", *rows)
    return load_pack(repack(directory))


def rendered(exit_code: int, output: str) -> str:
    return render(Result(exit_code, output, False, False, 1, Tier.NONE, len(output)), 5.0)


@pytest.mark.parametrize(
    ("command", "content", "matches"),
    [
        ("cat a.txt; touch done", rendered(0, "hello\n"), Match.EXACT),
        ("cat a.txt; touch done", rendered(0, "hello"), Match.DIFFERENT),
        ("cat a.txt; exit 3", rendered(0, "hello\n"), Match.DIFFERENT),
        ("printf 'a\\000b'", rendered(0, "a\0b"), Match.EXACT),
        ("echo 3 passed in 0.02s", rendered(0, "3 passed in 1.75s\n"), Match.NORMALISED),
        ("pwd", rendered(0, "/workspace\n"), Match.EXACT),
    ],
)
def test_each_result_is_compared_with_the_recorded_one(
    tmp_path: Path, command: str, content: str, matches: Match
) -> None:
    records = executed(recorded_pack(tmp_path, command, content))
    assert isinstance(records[0], TurnRecord)
    assert [run.match for run in records[0].tools] == [matches]


@pytest.mark.parametrize(("command", "passed"), [("touch done", True), ("true", False)])
def test_the_check_runs_after_the_last_turn(tmp_path: Path, command: str, passed: bool) -> None:
    end = executed(recorded_pack(tmp_path, command, "x"))[-1]
    assert isinstance(end, ConversationEnd)
    assert end.check_passed is passed


def test_a_command_that_no_kernel_takes_is_a_failed_call_not_an_end(tmp_path: Path) -> None:
    records: Sequence[Any] = executed(recorded_pack(tmp_path, "echo a\0b", "x"))
    (run,) = records[0].tools
    assert (run.exit_code, run.timed_out, run.match) == (None, False, Match.DIFFERENT)
    assert isinstance(records[-1], ConversationEnd)


def test_tool_time_is_outside_turn_latency(tmp_path: Path) -> None:
    first = executed(recorded_pack(tmp_path, "sleep 0.2", rendered(0, "")))[0]
    assert isinstance(first, TurnRecord)
    times = first.completion.times
    answered_ns = times.issued_ns + times.arrivals_ns[-1]
    assert first.tools[0].duration_ns >= 200_000_000
    assert first.step_end_ns - answered_ns >= first.tools[0].duration_ns


def test_recorded_tools_are_waited_for_and_their_time_is_tool_time(tmp_path: Path) -> None:
    rows = (user(1), calls(2, "a"), results(3, "a", delay_seconds=12.5), says(4))
    plan = ReplayPlan(
        load_pack(write(tmp_path / "t.jsonl", *rows)), LIMITS, tools=ToolMode.RECORDED
    )
    clock_ns, waits = [0], []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        clock_ns[0] += int(seconds * 1e9)

    first, second, _ = play(plan, Recorder(), clock=lambda: clock_ns[0], wait=wait)
    assert isinstance(first, TurnRecord) and isinstance(second, TurnRecord)
    assert waits == [12.5]
    assert (first.tool_delay_ns, first.step_end_ns) == (12_500_000_000, 12_500_000_000)
    assert (second.tool_delay_ns, first.tools) == (None, ())


def test_the_check_runs_on_a_copy_with_its_own_files_put_back(tmp_path: Path) -> None:
    directory = make_pack(tmp_path / "pack")
    (directory / "work" / "check.sh").write_text("grep -q done a.txt\n")
    cheats = "echo true > check.sh; echo done > b.txt"
    for name, command, passed in (
        ("cheated", cheats, False),
        ("in the way", "rm check.sh; mkdir check.sh; echo done > a.txt", False),
        ("removed", "rm check.sh; echo done > a.txt", True),
        ("honest", "echo done > a.txt", True),
    ):
        entry = {"workspace": "work", "check": "sh check.sh", "check_files": ["check.sh"]}
        manifest = json.loads((directory / "pack.json").read_text())
        manifest["conversations"] = {"c": entry}
        (directory / "pack.json").write_text(json.dumps(manifest))
        write(
            directory / "t.jsonl",
            user(1), calls(2, "a", command=command), results(3, "a"), says(4),
        )  # fmt: skip
        end = executed(load_pack(repack(directory)))[-1]
        assert isinstance(end, ConversationEnd)
        assert end.check_passed is passed, name
