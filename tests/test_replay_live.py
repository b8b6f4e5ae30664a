"""Policy `live`: the model works by itself until it stops, and the check decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edge_agentic.core.ending import Ending
from edge_agentic.core.live_limits import LiveLimits
from edge_agentic.core.messages import ToolCall
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import (
    ChatRequest,
    Completion,
    FinishReason,
    TokenCounts,
    TokenTimes,
)
from edge_agentic.engine.scripted import ScriptedEngine
from edge_agentic.replay.check import check_of, passes
from edge_agentic.replay.live import SUBMIT_LINE
from edge_agentic.replay.player import ConversationEnd, ReplayLimits, ReplayPlan, TurnRecord, play
from edge_agentic.trace.pack import TracePack, load_pack
from tests.trace_samples import make_pack
from tests.workspaces import unsandboxed

SOLVE = "touch done"


def answer(*commands: str, text: str = "", **changed: Any) -> Completion:
    calls = tuple(
        ToolCall(f"call_{n}", "bash", {"command": command}) for n, command in enumerate(commands)
    )
    return replace(
        Completion(
            Outcome.OK,
            TokenTimes(0, (1, 2)),
            TokenCounts(prompt=100, output=10),
            FinishReason.TOOL_CALLS if calls else FinishReason.STOP,
            text=text,
            content=text,
            tool_calls=calls,
        ),
        **changed,
    )


DONE = answer(text="All done.")
MALFORMED = answer(text="<tool_call>{", malformed=True, content="")
CUT = answer(text="well, well", finish_reason=FinishReason.LENGTH)
SILENT = answer(text=" \n")


class Script(ScriptedEngine):
    """Gives these answers one after the other, then the last one again; keeps the requests."""

    def __init__(self, *answers: Completion) -> None:
        super().__init__(lambda _: None, source="test")
        self._answers = list(answers)
        self.requests: list[ChatRequest] = []

    def generate(self, request: ChatRequest) -> Completion:
        self.requests.append(request)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@pytest.fixture
def pack(tmp_path: Path) -> TracePack:
    return load_pack(make_pack(tmp_path / "pack"))


def live(
    pack: TracePack, engine: ScriptedEngine, limits: LiveLimits | None = None, **options: Any
) -> tuple[list[TurnRecord], ConversationEnd]:
    plan = ReplayPlan(pack, ReplayLimits(None, 60.0, 5.0), live=limits or LiveLimits())
    workspaces = unsandboxed(pack, pack.path.parent)
    *turns, end = play(plan, engine, workspaces.open, **options)
    assert isinstance(end, ConversationEnd)
    return [turn for turn in turns if isinstance(turn, TurnRecord)], end


@pytest.mark.parametrize(
    ("answers", "ending", "turns", "solved"),
    [
        ((answer(SOLVE), DONE), Ending.SUBMITTED, 2, True),
        ((answer("ls"), answer("cat a.txt", SOLVE), DONE), Ending.SUBMITTED, 3, True),
        ((answer(SOLVE, f"echo {SUBMIT_LINE}"),), Ending.SUBMITTED, 1, True),
        ((answer(f"echo {SUBMIT_LINE}; exit 1"), DONE), Ending.SUBMITTED, 2, False),
        ((answer(f"echo a; echo {SUBMIT_LINE}"), DONE), Ending.SUBMITTED, 2, False),
        ((answer("echo done"), DONE), Ending.SUBMITTED, 2, False),
        ((DONE,), Ending.SUBMITTED, 1, False),
        ((SILENT,), Ending.GAVE_UP, 1, False),
        ((answer(SOLVE), SILENT), Ending.GAVE_UP, 2, True),
        ((MALFORMED,), Ending.GAVE_UP, 3, False),
        ((CUT,), Ending.GAVE_UP, 3, False),
        ((MALFORMED, CUT, answer(SOLVE), MALFORMED, MALFORMED, DONE), Ending.SUBMITTED, 6, True),
        ((answer("ls"),), Ending.TURN_LIMIT, 50, False),
        ((answer(outcome=Outcome.CONTEXT_OVERFLOW),), Ending.CONTEXT_LIMIT, 1, False),
        ((answer(SOLVE), answer(outcome=Outcome.ENGINE_FAILED)), Ending.FAILED, 2, True),
        ((answer(outcome=Outcome.TIMEOUT),), Ending.FAILED, 1, False),
    ],
)  # fmt: skip
def test_how_a_task_ends_and_whether_it_is_solved(
    pack: TracePack, answers: Sequence[Completion], ending: Ending, turns: int, solved: bool
) -> None:
    records, end = live(pack, Script(*answers))
    assert (end.ending, len(records), end.check_passed) == (ending, turns, solved)
    assert [record.turn.index for record in records] == list(range(1, turns + 1))


def test_the_model_sees_what_came_of_its_calls(pack: TracePack) -> None:
    engine = Script(answer("cat a.txt", "exit 3"), MALFORMED, DONE)
    live(pack, engine)
    first, second, third = (request.messages for request in engine.requests)
    assert [message["role"] for message in first] == ["user"]
    assert list(second[:1]) == list(first)
    assistant, cat, status = second[1:]
    assert [call["id"] for call in assistant["tool_calls"]] == ["call_0", "call_1"]
    assert assistant["content"] is None
    assert cat == {
        "role": "tool",
        "tool_call_id": "call_0",
        "content": "<returncode>0</returncode>\n<output>\nhello\n</output>",
    }
    assert status["content"].startswith("<returncode>3</returncode>")
    assert [message["role"] for message in third[4:]] == ["assistant", "user"]
    assert "No tool call could be read" in third[-1]["content"]


def test_a_call_that_was_cut_short_is_not_carried_out(pack: TracePack) -> None:
    cut = ToolCall("x", "bash", {"command": SOLVE}, truncated=True)
    engine = Script(replace(CUT, tool_calls=(cut,), malformed=True), DONE)
    records, end = live(pack, engine)
    assert (records[0].tools, end.check_passed) == ((), False)
    assert "was cut off at 1024 tokens" in engine.requests[1].messages[-1]["content"]


def test_an_unknown_tool_is_answered_and_counts_as_a_call(pack: TracePack) -> None:
    odd = replace(answer("x"), tool_calls=(ToolCall("1", "launch_rocket", {}),))
    engine = Script(odd, DONE)
    records, _ = live(pack, engine)
    assert records[0].tools[0].exit_code is None
    told = engine.requests[1].messages[-1]
    assert told["role"] == "tool" and "there is no tool 'launch_rocket'" in told["content"]


def test_tokens_of_all_turns_together_are_limited(pack: TracePack) -> None:
    engine = Script(answer("ls"))
    records, end = live(pack, engine, LiveLimits(output_tokens=25))
    assert (end.ending, len(records)) == (Ending.TOKEN_LIMIT, 3)
    assert [request.max_output_tokens for request in engine.requests] == [25, 15, 5]


def test_tokens_are_limited_where_a_server_counts_none(pack: TracePack) -> None:
    uncounted = answer("true", tokens=TokenCounts(prompt=None, output=None))
    records, end = live(pack, Script(uncounted), LiveLimits(output_tokens=5))
    # Two pieces came in each turn.
    assert (end.ending, len(records)) == (Ending.TOKEN_LIMIT, 3)


def test_wall_time_is_limited_tools_included(pack: TracePack) -> None:
    seconds = iter(range(0, 10_000, 10))
    engine = Script(answer("ls"))
    records, end = live(
        pack, engine, LiveLimits(wall_s=100), clock=lambda: next(seconds) * 1_000_000_000
    )
    assert end.ending is Ending.TIME_LIMIT
    assert 1 <= len(records) <= 4
    deadlines = [request.deadline_s for request in engine.requests]
    assert deadlines == sorted(deadlines, reverse=True) and deadlines[0] == 60.0


def test_a_request_that_the_tasks_time_cut_off_is_no_failure(pack: TracePack) -> None:
    clock_ns = [0]

    class Late(Script):
        def generate(self, request: ChatRequest) -> Completion:
            assert request.deadline_s is not None
            clock_ns[0] += int(request.deadline_s * 1e9) + 1
            return super().generate(request)

    engine = Late(answer(outcome=Outcome.TIMEOUT))
    _, end = live(pack, engine, LiveLimits(wall_s=30), clock=lambda: clock_ns[0])
    assert end.ending is Ending.TIME_LIMIT


def test_what_the_journal_holds_has_no_score_and_no_record(pack: TracePack) -> None:
    (first, _), end = live(pack, Script(answer("pwd"), DONE))
    event = first.to_json()
    assert (event["inline_score"], event["expected_tool_calls"]) == (None, [])
    (tool,) = event["tools"]
    assert tool["result"] == "<returncode>0</returncode>\n<output>\n/workspace\n</output>"
    assert (tool["expected"], tool["match"]) == (None, None)
    assert end.to_json()["ending"] == "submitted"


@pytest.mark.parametrize("limits", [{"turns": 0}, {"output_tokens": 0}, {"wall_s": 0.0}])
def test_limits_under_which_nothing_can_be_done_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least a turn"):
        LiveLimits(**limits)


@pytest.mark.parametrize(
    ("task", "cheat"),
    [
        ("fix-duration", "echo 'import os; os._exit(0)' > duration.py"),
        ("fix-duration", "echo 'raise SystemExit(0)' > re.py; echo 'import re' > duration.py"),
        ("fix-duration", "echo 'print(1)' > tests.py"),
        (
            "greenhouse-report",
            "echo 'raise SystemExit(0)' > csv.py; cp csv.py re.py; cp re.py sys.py",
        ),
        ("greenhouse-report", "echo 'print(1)' > verify.py; head -1 readings.csv > report.csv"),
    ],
)
def test_a_task_of_edge_mini_is_not_solved_by_breaking_its_check(
    task: str, cheat: str, tmp_path: Path
) -> None:
    pack = load_pack("edge-mini")
    check = check_of(pack, task)
    assert check is not None
    with unsandboxed(pack, tmp_path).open(task) as sandbox:
        assert sandbox is not None
        sandbox.run(cheat, timeout_s=20)
        assert not passes(check, sandbox, timeout_s=20)
