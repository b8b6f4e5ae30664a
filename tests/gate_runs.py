"""Gates asked for tests: run, read back, cut short, edited."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from edge_agentic.engine.choices import EngineKind
from edge_agentic.run.runner import run
from edge_agentic.run.settings import EngineSettings, GateSettings, RunSettings
from edge_agentic.run.verify import verify_run

Event = dict[str, Any]


def ask(out: Path, answers: str = "recorded", **gate: Any) -> Event:
    """Ask the gate alone and return the summary, which must follow from the journal."""
    engine = EngineSettings(EngineKind.SCRIPTED, answers=answers)
    summary = run(RunSettings(engine, pack=None, gate=GateSettings(**gate), out=out)).summary
    report = verify_run(out)
    assert report.findings == ()
    return summary


def events(out: Path) -> list[Event]:
    return [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]


def write_events(out: Path, rows: list[Event]) -> None:
    (out / "journal.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def cut(whole: Path, out: Path, events_kept: int, torn: str = "") -> Path:
    """What a power cut leaves of a finished gate."""
    shutil.copytree(whole, out)
    (out / "summary.json").unlink()
    lines = (out / "journal.jsonl").read_text().splitlines(keepends=True)[:events_kept]
    (out / "journal.jsonl").write_text("".join(lines) + torn)
    return out
