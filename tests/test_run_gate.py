"""The gate alone: its verdict, a part without one, an early one, and a gate that was killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bfcl_gate.cases import gate_mini
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import sha256_file
from edge_agentic.engine.choices import EngineKind
from edge_agentic.report.gate_failures import render_failures
from edge_agentic.run.directory import RunDirectory
from edge_agentic.run.progress import Silent
from edge_agentic.run.runner import prepare
from edge_agentic.run.settings import EngineSettings, GateSettings, RunSettings
from edge_agentic.run.verify import verify_run
from tests.gate_runs import Event, ask, cut, events, write_events

MINI = tuple(case.id for case in gate_mini().cases)


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gate") / "run"
    summary = ask(out)
    assert summary["gate"]["passed"] is True
    return out


def test_a_passed_gate_is_a_valid_run_without_a_replay(passed: Path) -> None:
    summary = json.loads((passed / "summary.json").read_text())
    assert summary["valid"] and summary["complete"] and not summary["resumed"]
    assert summary["replay"] is None
    assert summary["null_reasons"]["replay"] == "only the gate was asked"
    manifest = json.loads((passed / "manifest.json").read_text())
    assert manifest["datasets"]["replay"] is None
    assert manifest["datasets"]["gate"]["selection"] == "all"


def test_a_failed_gate_says_which_score_fell_short_and_by_how_much(tmp_path: Path) -> None:
    summary = ask(tmp_path / "run", answers="wrong")
    assert summary["gate"]["passed"] is False
    assert summary["invalid_reasons"] == [
        "The function-calling gate failed: overall_accuracy: 0.0 % is 50.0 points below the "
        "threshold of 50.0 %."
    ]


@pytest.mark.parametrize("gate", [{"limit": 9}, {"subsets": ("irrelevance", "parallel")}])
def test_a_part_has_scores_and_no_verdict(tmp_path: Path, gate: dict[str, Any]) -> None:
    summary = ask(tmp_path / "run", **gate)
    assert summary["gate"]["passed"] is None and not summary["valid"]
    assert summary["gate"]["selection"] == "part"
    assert summary["gate"]["overall_accuracy"] == 100.0
    assert summary["gate"]["thresholds"] == {} and summary["gate"]["reference"] is None
    assert "there is no verdict" in summary["invalid_reasons"][0]


@pytest.mark.parametrize(("answers", "verdict"), [("recorded", True), ("wrong", False)])
def test_an_early_verdict_is_marked_and_has_estimates_in_place_of_scores(
    tmp_path: Path, answers: str, verdict: bool
) -> None:
    gate = ask(tmp_path / "run", answers, early_stop_error_rate=0.05)["gate"]
    early = gate["early_stop"]
    assert gate["passed"] is verdict
    assert gate["overall_accuracy"] is None and gate["subset_scores"] == {}
    assert early["asked_samples"] == gate["total_samples"] < early["selected_samples"] == len(MINI)
    assert early["estimates"]["overall_accuracy"] == (100.0 if verdict else 0.0)
    assert early["error_rate"] == 0.05
    started = next(event for event in events(tmp_path / "run") if event["event"] == "gate_started")
    assert tuple(started["sample_ids"]) != MINI and sorted(started["sample_ids"]) == sorted(MINI)


def test_an_early_stop_that_decides_nothing_early_asks_all(tmp_path: Path) -> None:
    """At such a rate only certainty decides: here it comes with the threshold's last case."""
    gate = ask(tmp_path / "run", early_stop_error_rate=1e-300)["gate"]
    assert gate["passed"] and gate["early_stop"]["certain"]
    assert gate["early_stop"]["asked_samples"] == len(MINI) / 2


@pytest.mark.parametrize(
    ("kept", "torn"),
    [(0, ""), (1, ""), (2, '{"event":"gate_c'), (40, '{"event":"gate_case"'), (-2, ""), (-3, "")],
)
def test_a_killed_gate_continues_where_it_was(
    passed: Path, tmp_path: Path, kept: int, torn: str
) -> None:
    out = cut(passed, tmp_path / "run", kept, torn)
    before = json.loads((passed / "summary.json").read_text())["gate"]
    summary = ask(out)
    assert summary["gate"] == before and summary["valid"]
    assert summary["resumed"] is (kept != 0)
    asked = [event["sample_id"] for event in events(out) if event["event"] == "gate_case"]
    assert tuple(asked) == MINI


def test_a_killed_early_stop_comes_to_the_same_verdict(tmp_path: Path) -> None:
    whole = ask(tmp_path / "whole", early_stop_error_rate=0.05)["gate"]
    out = cut(tmp_path / "whole", tmp_path / "run", 5)
    assert ask(out, early_stop_error_rate=0.05)["gate"] == whole


def test_a_run_killed_before_its_journal_starts_anew(passed: Path, tmp_path: Path) -> None:
    out = cut(passed, tmp_path / "run", 0)
    (out / "journal.jsonl").unlink()
    assert ask(out)["valid"]


@pytest.mark.parametrize(
    ("answers", "gate", "named"),
    [
        ("wrong", {}, "engine.answers"),
        ("recorded", {"limit": 20}, "datasets.gate.samples"),
        ("recorded", {"early_stop_error_rate": 0.1}, "settings.gate_early_stop_error_rate"),
    ],
)
def test_another_set_up_does_not_continue_a_gate(
    passed: Path, tmp_path: Path, answers: str, gate: dict[str, Any], named: str
) -> None:
    out = cut(passed, tmp_path / "run", 40)
    before = (out / "journal.jsonl").read_bytes()
    with pytest.raises(BadInputError, match="unfinished gate of another set-up") as caught:
        ask(out, answers, **gate)
    assert named in str(caught.value)
    assert (out / "journal.jsonl").read_bytes() == before


def test_a_finished_gate_is_not_run_into_again(passed: Path) -> None:
    with pytest.raises(BadInputError, match="is not empty"):
        ask(passed)


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda rows: rows[1].update(selection="official"), "gate_started.selection"),
        (lambda rows: rows[1]["sample_ids"].pop(), "gate_started.sample_ids"),
        (lambda rows: rows[1]["reference"].update(overall=1.0), "gate_started.reference"),
        (lambda rows: rows[1].update(dataset_sha256="0" * 64), "gate_started.dataset_sha256"),
        (lambda rows: rows[2].update(sample_id="simple_python_x"), "the cases that the journal"),
        (lambda rows: rows.append(rows[2]), "the cases that the journal records"),
        (lambda rows: rows[0].update(manifest_sha256="0" * 64), "the manifest that the journal"),
    ],
)
def test_an_edited_journal_is_not_continued(
    passed: Path, tmp_path: Path, edit: Callable[[list[Event]], object], named: str
) -> None:
    out = cut(passed, tmp_path / "run", 20)
    rows = events(out)
    edit(rows)
    write_events(out, rows)
    with pytest.raises(BadInputError, match="unfinished gate of another set-up") as caught:
        ask(out)
    assert named in str(caught.value)
    assert events(out) == rows


def test_an_update_of_the_system_does_not_end_a_gate(passed: Path, tmp_path: Path) -> None:
    out = cut(passed, tmp_path / "run", 20)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["device"].update(kernel="9.9", memory_mb=1, operating_system="another")
    manifest["python"] = "3.9.9"
    (out / "manifest.json").write_text(json.dumps(manifest))
    rows = events(out)
    rows[0]["manifest_sha256"] = sha256_file(out / "manifest.json")
    write_events(out, rows)
    assert ask(out)["valid"]


def test_a_run_that_comes_while_another_gets_ready_does_not_spoil_it(
    passed: Path, tmp_path: Path
) -> None:
    out = cut(passed, tmp_path / "run", 20)
    job = prepare(RunSettings(EngineSettings(EngineKind.SCRIPTED), pack=None, out=out), Silent())
    shutil.copy(passed / "journal.jsonl", out / "journal.jsonl")
    with pytest.raises(BadInputError, match="another run went on in it meanwhile"):
        job.execute(Silent())
    assert events(out) == events(passed)


def test_two_runs_do_not_share_a_new_directory(tmp_path: Path) -> None:
    out = tmp_path / "run"
    settings = RunSettings(
        EngineSettings(EngineKind.SCRIPTED), pack=None, gate=GateSettings(limit=3), out=out
    )
    first, second = prepare(settings, Silent()), prepare(settings, Silent())
    with (
        RunDirectory(out).locked(),
        pytest.raises(BadInputError, match="another run is at work in it"),
    ):
        second.execute(Silent())
    first.execute(Silent())
    with pytest.raises(BadInputError, match="is not empty"):
        second.execute(Silent())
    assert verify_run(out).findings == ()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"limit": 0}, "--limit must be at least 1"),
        ({"early_stop_error_rate": 0.5}, "--error-rate must be above 0 and below 0.5"),
        ({"early_stop_error_rate": 0.1, "limit": 5}, "leave out --subset and --limit"),
    ],
)
def test_settings_that_decide_nothing_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        replace(GateSettings(), **changed)


def failures(out: Path) -> Sequence[str]:
    return list(render_failures(gate_mini(), events(out)))


def test_each_failure_has_question_expected_and_got(tmp_path: Path) -> None:
    ask(tmp_path / "run", answers="wrong", limit=12)
    lines = failures(tmp_path / "run")
    assert sum(line.startswith("  question  ") for line in lines) == 12
    assert any(line.startswith("  expected  no call") for line in lines)
    assert any(line.startswith("  got       not_") for line in lines)


def test_a_passed_gate_has_no_failures_to_list(passed: Path) -> None:
    assert failures(passed) == []
