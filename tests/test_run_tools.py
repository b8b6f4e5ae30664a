"""Executed tools and live tasks over a whole run: what is recorded, summed up and verified."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.live_limits import LiveLimits
from edge_agentic.core.replay_policy import ReplayPolicy
from edge_agentic.core.tool_mode import ToolMode
from edge_agentic.engine.choices import EngineKind
from edge_agentic.report.terminal import open_console, render_summary
from edge_agentic.run.runner import run
from edge_agentic.run.settings import EngineSettings, GateSettings, RunSettings
from edge_agentic.run.verify import verify_run
from tests.one_case import CASE_ID, one_case_gate
from tests.trace_samples import call, make_pack, repack, says, user, write
from tools_sandbox.result import Tier

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_AGENTIC_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return one_case_gate(tmp_path / "gate")


def settings(tmp_path: Path, gate: Path, **changed: Any) -> RunSettings:
    answers = changed.pop("answers", None)
    return RunSettings(
        **{
            "engine": EngineSettings(EngineKind.SCRIPTED, answers=answers),
            "gate": GateSettings(str(gate)),
            "out": tmp_path / "run",
            "tier": Tier.NONE,
            **changed,
        }
    )


def answers(path: Path, *turns: dict[str, Any]) -> str:
    """A file of answers: the gate's, and these to the turns of conversation `c`."""
    rows = [{"request_id": f"gate/{CASE_ID}", "text": "Hello!"}]
    rows += [
        {"request_id": f"replay/c/{number}", **turn} for number, turn in enumerate(turns, start=1)
    ]
    return str(write(path, *rows))


def events(directory: Path, kind: str) -> list[dict[str, Any]]:
    lines = (directory / "journal.jsonl").read_text().splitlines()
    return [event for line in lines if (event := json.loads(line))["event"] == kind]


def test_edge_mini_replays_at_fidelity_1_and_its_own_calls_have_its_effects(
    tmp_path: Path, gate: Path
) -> None:
    result = run(settings(tmp_path, gate, pack="edge-mini"))
    tools = result.summary["replay"]["tools"]
    assert result.summary["valid"]
    assert (tools["fidelity"], tools["exact"], tools["compared"]) == (1.0, 14, 14)
    assert (tools["executable_rate"], tools["effect_match"]) == (1.0, 1.0)
    assert (tools["tried_calls"], tools["tried_turns"], tools["checks_passed"]) == (14, 14, 2)
    assert verify_run(result.directory).findings == ()


def test_the_manifest_says_how_tools_ran(tmp_path: Path, gate: Path) -> None:
    result = run(settings(tmp_path, gate, pack="edge-mini"))
    manifest = json.loads((result.directory / "manifest.json").read_text())
    sandbox = manifest["sandbox"]
    assert (sandbox["tier"], sandbox["view"]) == ("none", "copy")
    assert {limit["enforcement"] for limit in sandbox["limits"].values()} >= {"enforced", "soft"}
    assert len(sandbox["workspaces_sha256"]) == 2
    assert manifest["settings"]["tools"] == "execute"


def pack_with(tmp_path: Path, recorded: str, delay_s: float = 0.0) -> str:
    """A pack whose one call is recorded with this result."""
    directory = make_pack(tmp_path / "pack")
    command = "echo 3 passed in 0.01s; cat a.txt; touch done"
    rows = [
        user(1),
        {**says(2), "content": None, "tool_calls": [call("a", command)]},
        {
            "conversation_id": "c",
            "turn": 3,
            "role": "tool",
            "tool_results": [{"tool_call_id": "a", "content": recorded}],
            "delay_seconds": delay_s,
        },
        says(4),
    ]
    rows[1].pop("content")
    write(directory / "t.jsonl", *rows)
    return str(repack(directory))


RIGHT = "<returncode>0</returncode>\n<output>\n3 passed in 9.99s\nhello\n</output>"
WRONG = RIGHT.replace("hello", "hallo")


def test_a_difference_from_the_recording_is_counted_shown_and_verified(
    tmp_path: Path, gate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(settings(tmp_path, gate, pack=pack_with(tmp_path, WRONG)))
    tools = result.summary["replay"]["tools"]
    assert (tools["fidelity"], tools["differing_turns"]) == (0.0, 1)
    assert tools["differences"] == [
        {
            "conversation_id": "c",
            "turn": 1,
            "fidelity": 0.0,
            "line": 4,
            "recorded": "hallo",
            "now": "hello",
        }
    ]
    render_summary(result.summary, open_console())
    shown = " ".join(capsys.readouterr().out.split())
    assert 'turn 1 of \'c\', line 4: recorded "hallo", now "hello"' in shown
    assert verify_run(result.directory).findings == ()


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (
            "turn",
            lambda e: e["tools"][0].update(match="different"),
            "tool 1: recorded match 'different', its results give 'normalised'",
        ),
        (
            "turn",
            lambda e: e["tools"][0].update(result=WRONG),
            "tool 1: recorded match 'normalised', its results give 'different'",
        ),
        (
            "trial",
            lambda e: e.update(same_effect=False),
            "recorded same_effect False, its effects give True",
        ),
        (
            "trial",
            lambda e: e["model"].update(changes_sha256="0" * 64),
            "recorded same_effect True, its effects give False",
        ),
        (
            "trial",
            lambda e: e.update(model=None),
            "recorded same_effect True, its effects give False",
        ),
    ],
)
def test_a_verdict_on_tools_that_does_not_follow_is_found(
    tmp_path: Path, gate: Path, kind: str, change: Edit, said: str
) -> None:
    directory = run(settings(tmp_path, gate, pack=pack_with(tmp_path, RIGHT))).directory
    assert verify_run(directory).findings == ()
    path = directory / "journal.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()]
    change(next(event for event in found if event["event"] == kind))
    path.write_text("".join(json.dumps(event) + "\n" for event in found))
    assert any(said in finding for finding in verify_run(directory).findings)


def test_what_is_tried_is_outside_all_times(tmp_path: Path, gate: Path) -> None:
    slow = {"tool_calls": [call("x", "sleep 2; cat a.txt; touch done")]}
    result = run(
        settings(
            tmp_path,
            gate,
            pack=pack_with(tmp_path, RIGHT),
            answers=answers(tmp_path / "answers.jsonl", slow, {"text": "Done."}),
        )
    )
    replay = result.summary["replay"]
    assert (replay["tools"]["executable_rate"], replay["tools"]["effect_match"]) == (1.0, 1.0)
    (started,) = events(result.directory, "replay_started")
    (finished,) = events(result.directory, "replay_finished")
    assert finished["t_ns"] - started["t_ns"] < 2_000_000_000
    assert replay["duration_s"] < 2 and replay["conversation_s"]["p99"] < 2
    kinds = [
        json.loads(line)["event"]
        for line in (result.directory / "journal.jsonl").read_text().splitlines()
    ]
    assert kinds.index("trial") > kinds.index("replay_finished")


def test_a_turn_that_failed_has_no_effect(tmp_path: Path, gate: Path) -> None:
    result = run(
        settings(
            tmp_path,
            gate,
            pack=pack_with(tmp_path, RIGHT),
            answers=answers(tmp_path / "answers.jsonl"),
        )
    )
    tools = result.summary["replay"]["tools"]
    assert (tools["tried_calls"], tools["executable_rate"]) == (0, None)
    assert (tools["tried_turns"], tools["effect_match"]) == (1, 0.0)


@pytest.mark.parametrize("mode", [ToolMode.OFF, ToolMode.RECORDED])
def test_tools_may_be_waited_for_or_left_out(tmp_path: Path, gate: Path, mode: ToolMode) -> None:
    result = run(settings(tmp_path, gate, pack=pack_with(tmp_path, RIGHT, 0.2), tools=mode))
    replay = result.summary["replay"]
    manifest = json.loads((result.directory / "manifest.json").read_text())
    assert result.summary["valid"]
    assert (manifest["sandbox"], manifest["settings"]["tools"]) == (None, mode.value)
    assert (replay["tools"]["executed"], replay["tools"]["checks_total"]) == (0, 0)
    assert events(result.directory, "trial") == []
    if mode is ToolMode.OFF:
        assert replay["tool_time_s"]["n"] == 0
    else:
        assert replay["tool_time_s"]["n"] == 1
        assert replay["tool_time_s"]["p99"] >= 0.2
    assert verify_run(result.directory).findings == ()


# Policy `live`


def test_recorded_answers_solve_both_tasks_of_edge_mini(tmp_path: Path, gate: Path) -> None:
    result = run(settings(tmp_path, gate, pack="edge-mini", policy=ReplayPolicy.LIVE))
    replay = result.summary["replay"]
    tasks = replay["tasks"]
    assert result.summary["valid"]
    assert (tasks["total"], tasks["ended"], tasks["solved"]) == (2, 2, 2)
    assert tasks["solve_rate"] == 1.0
    assert tasks["endings"] == {"submitted": 2}
    assert [task["turns"] for task in tasks["each"]] == [8, 8]
    assert tasks["per_task"]["turns"] == tasks["per_solved_task"]["turns"] == 8.0
    assert all(task["wall_s"] >= task["tool_time_s"] > 0 for task in tasks["each"])
    assert (replay["turns"]["expected"], replay["turns"]["issued"]) == (None, 16)
    assert replay["inline_score"] is None
    assert verify_run(result.directory).findings == ()


def test_other_answers_do_not_solve_and_the_run_is_valid_all_the_same(
    tmp_path: Path, gate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(
        settings(
            tmp_path,
            gate,
            pack=pack_with(tmp_path, RIGHT),
            policy=ReplayPolicy.LIVE,
            answers=answers(
                tmp_path / "answers.jsonl",
                {"tool_calls": [call("x", "ls")]},
                {"text": "It was done already."},
            ),
        )
    )
    tasks = result.summary["replay"]["tasks"]
    assert result.summary["valid"]
    assert (tasks["solved"], tasks["per_solved_task"]) == (0, None)
    assert result.summary["null_reasons"]["replay.tasks.per_solved_task"] == "no task was solved"
    render_summary(result.summary, open_console())
    shown = " ".join(capsys.readouterr().out.split())
    assert "c no submitted 2" in shown
    assert "solved 0 of 1 tasks" in shown


def test_a_task_that_the_engine_broke_off_makes_the_run_invalid(tmp_path: Path, gate: Path) -> None:
    result = run(
        settings(
            tmp_path,
            gate,
            pack=pack_with(tmp_path, RIGHT),
            policy=ReplayPolicy.LIVE,
            answers=answers(tmp_path / "answers.jsonl", {"tool_calls": [call("x", "ls")]}),
        )
    )
    assert result.summary["invalid_reasons"] == [
        "1 of 1 tasks were broken off by the engine (first: 'c')."
    ]


def test_a_pack_without_a_check_cannot_be_played_live(tmp_path: Path, gate: Path) -> None:
    entry = {"c": {"workspace": "work", "check": None}}
    pack = make_pack(tmp_path / "pack", conversations=entry)
    with pytest.raises(BadInputError, match="conversation 'c': the policy 'live' needs a work"):
        run(settings(tmp_path, gate, pack=str(pack), policy=ReplayPolicy.LIVE))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": ReplayPolicy.LIVE, "tools": ToolMode.OFF}, "--tools off can't go with"),
        ({"live": LiveLimits(turns=3)}, "belong to --policy live"),
    ],
)
def test_options_that_contradict_each_other(
    tmp_path: Path, gate: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInputError, match=said):
        settings(tmp_path, gate, **options)
