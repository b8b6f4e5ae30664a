"""Every figure follows from the raw log, and a change anywhere is found and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.choices import EngineKind
from edge_agentic.run.runner import run
from edge_agentic.run.settings import EngineSettings, RunSettings
from edge_agentic.run.verify import recompute, verify_run
from tests.trace_samples import says, user, write

Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """A finished run over a small trace without workspaces."""
    trace = write(tmp_path / "trace.jsonl", user(1), says(2))
    settings = RunSettings(
        EngineSettings(EngineKind.SCRIPTED), pack=str(trace), out=tmp_path / "run"
    )
    return run(settings).directory


def edit_summary(run_dir: Path, change: Edit) -> None:
    path = run_dir / "summary.json"
    summary = json.loads(path.read_text())
    change(summary)
    path.write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n")


def edit_events(run_dir: Path, kind: str, change: Edit) -> None:
    path = run_dir / "journal.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    change(next(event for event in events if event["event"] == kind))
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


def test_an_untouched_run_verifies(finished: Path) -> None:
    report = verify_run(finished)
    assert (report.findings, report.unchecked) == ((), ())


def test_the_recomputed_summary_is_the_recorded_one(finished: Path) -> None:
    assert recompute(finished) == json.loads((finished / "summary.json").read_text())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: s["replay"].update(duration_s=0.001), "'replay.duration_s' is 0.001"),
        (lambda s: s["gate"].update(overall_accuracy=99.0), "'gate.overall_accuracy' is 99.0"),
        (lambda s: s.update(valid=False), "'valid' is False, the journal gives True"),
        (lambda s: s.pop("energy"), "'energy' is missing"),
        (lambda s: s.update(award="gold"), "'award' does not belong there"),
        (lambda s: s["replay"]["turns"].update(issued=True), "'replay.turns.issued' is True"),
    ],
)
def test_an_edited_summary_is_found(finished: Path, change: Edit, said: str) -> None:
    edit_summary(finished, change)
    (finding,) = verify_run(finished).findings
    assert finding.startswith("summary.json: ") and said in finding


def test_the_same_values_in_another_form_are_found(finished: Path) -> None:
    path = finished / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert "another form" in verify_run(finished).findings[0]


def test_a_verdict_that_its_answer_does_not_give_is_found(finished: Path) -> None:
    edit_events(finished, "gate_case", lambda event: event.update(tool_calls=None, text="no"))
    findings = verify_run(finished).findings
    assert any("gate case 'simple_python_mini-1'" in finding for finding in findings)


def test_a_score_that_its_calls_do_not_give_is_found(finished: Path) -> None:
    edit_events(finished, "turn", lambda event: event.update(inline_score=0.5))
    assert any("recorded inline_score 0.5" in finding for finding in verify_run(finished).findings)


def test_a_manifest_that_is_not_the_journals_own_is_found(finished: Path) -> None:
    path = finished / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["settings"]["turn_timeout_s"] = 1.0
    path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    (finding,) = verify_run(finished).findings
    assert finding == "manifest.json: is not the one that the journal starts with"


@pytest.mark.parametrize("phase", ["gate", "replay"])
def test_a_data_set_that_the_manifest_does_not_name_is_found(finished: Path, phase: str) -> None:
    edit_events(finished, f"{phase}_started", lambda event: event.update(dataset_sha256="0" * 64))
    findings = verify_run(finished).findings
    assert f"journal.jsonl: the {phase} used another data set than manifest.json names" in findings


def test_a_softer_reference_is_found(finished: Path) -> None:
    edit_events(finished, "gate_started", lambda event: event["reference"].update(overall=1.0))
    findings = verify_run(finished).findings
    assert any("held to another reference" in finding for finding in findings)


def test_a_replay_before_the_gate_is_found(finished: Path) -> None:
    path = finished / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    kinds = [json.loads(line)["event"] for line in lines]
    replay = slice(kinds.index("replay_started"), kinds.index("replay_finished") + 1)
    moved = [*lines[:1], *lines[replay], *(lines[1 : replay.start] + lines[replay.stop :])]
    path.write_text("".join(moved))
    assert "journal.jsonl: the replay starts before the gate has finished" in (
        verify_run(finished).findings
    )


@pytest.mark.parametrize("sample_id", [[1], {"a": 1}, None, 3])
def test_an_event_of_a_wrong_shape_is_bad_input(finished: Path, sample_id: object) -> None:
    edit_events(finished, "gate_case", lambda event: event.update(sample_id=sample_id))
    with pytest.raises(BadInputError, match="sample_id"):
        verify_run(finished)


def test_an_unfinished_run_cannot_be_verified_but_can_be_recomputed(finished: Path) -> None:
    (finished / "summary.json").unlink()
    with pytest.raises(BadInputError, match="is unfinished"):
        verify_run(finished)
    assert recompute(finished)["complete"]


@pytest.mark.parametrize("name", ["manifest.json", "journal.jsonl"])
def test_a_damaged_file_is_named(finished: Path, name: str) -> None:
    (finished / name).write_text('{"broken": \n{"x": 1}\n')
    with pytest.raises(BadInputError, match=name):
        verify_run(finished)


def test_no_run_directory(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no such run directory"):
        recompute(tmp_path / "absent")
    with pytest.raises(BadInputError, match="is no run directory"):
        recompute(tmp_path)
