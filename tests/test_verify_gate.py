"""A gate's journal that was forged is found, whatever was changed in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from edge_agentic.core.jsonio import sha256_file
from edge_agentic.run.verify import recompute, verify_run
from tests.gate_runs import Event, ask, events, write_events

Edit = Callable[[list[Event]], object]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gate") / "run"
    ask(out)
    return out


def forge(
    honest: Path,
    out: Path,
    edit: Edit = lambda rows: None,
    manifest: Callable[[Event], object] = lambda manifest: None,
) -> tuple[str, ...]:
    """Edit journal and manifest, seal them anew, and return what `results verify` finds."""
    shutil.copytree(honest, out)
    facts = json.loads((out / "manifest.json").read_text())
    manifest(facts)
    (out / "manifest.json").write_text(json.dumps(facts))
    rows = events(out)
    edit(rows)
    for row in rows:
        if row["event"] == "run_started":
            row["manifest_sha256"] = sha256_file(out / "manifest.json")
    write_events(out, rows)
    (out / "summary.json").write_text(json.dumps(recompute(out), indent=2) + "\n")
    return verify_run(out).findings


def case(rows: list[Event], index: int) -> Event:
    return [row for row in rows if row["event"] == "gate_case"][index]


def start(rows: list[Event]) -> Event:
    return next(row for row in rows if row["event"] == "gate_started")


def test_an_honest_gate_sealed_anew_is_honest(honest: Path, tmp_path: Path) -> None:
    assert forge(honest, tmp_path / "run") == ()


def rename(rows: list[Event], **fields: object) -> None:
    start(rows).update(fields)


@pytest.mark.parametrize(
    ("edit", "named", "said"),
    [
        (
            lambda rows: rename(rows, dataset_sha256="0" * 64),
            {"sha256": "0" * 64},
            "the gate's data set is not the 'gate-mini' that it is called",
        ),
        (
            lambda rows: rename(rows, dataset="bfcl-v4"),
            {"name": "bfcl-v4"},
            "the gate's data set is not the 'bfcl-v4' that it is called",
        ),
        (
            lambda rows: rename(rows, dataset="other"),
            {"name": "other"},
            "the gate's data set is called 'other', not by its name",
        ),
        (lambda rows: None, {"selection": "official"}, "another data set than manifest.json"),
        (lambda rows: None, {"samples": 995}, "another data set than manifest.json names"),
        (lambda rows: None, {"samples_sha256": "0" * 64}, "samples are not those that manifest"),
    ],
)
def test_a_data_set_under_another_name_is_found(
    honest: Path, tmp_path: Path, edit: Edit, named: dict[str, object], said: str
) -> None:
    findings = forge(
        honest, tmp_path / "run", edit, lambda facts: facts["datasets"]["gate"].update(named)
    )
    assert any(said in finding for finding in findings), findings


def forge_reference(rows: list[Event]) -> None:
    start(rows)["reference"]["overall"] = 1.0


def swap(rows: list[Event]) -> None:
    first, second = (rows.index(case(rows, index)) for index in (0, 1))
    rows[first], rows[second] = rows[second], rows[first]


def repeat(rows: list[Event]) -> None:
    rows.insert(rows.index(case(rows, 0)), {**case(rows, 0), "text": "x", "tool_calls": None})


def finish_first(rows: list[Event]) -> None:
    rows.insert(2, {"event": "gate_finished"})


def drop_mark(rows: list[Event]) -> None:
    disputed = next(row for row in rows if row.get("sample_id") == "irrelevance_mini-1")
    disputed.update(tool_calls=None, text="<tool_call>{", malformed=False)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda rows: case(rows, 3).update(valid=False), "its answer gives True"),
        (lambda rows: case(rows, 3).update(error_type="x", valid=False), "its answer gives True"),
        (lambda rows: case(rows, 3).update(tool_calls=None), "does not go with its answer"),
        (lambda rows: case(rows, 3).update(outcome="timeout"), "does not go with its answer"),
        (forge_reference, "held to another reference"),
        (swap, "not recorded once each, in the order of its samples"),
        (repeat, "not recorded once each, in the order of its samples"),
        (finish_first, "the gate goes on after its end"),
        (drop_mark, "its malformed call is not marked"),
    ],
)
def test_an_edited_journal_is_found(honest: Path, tmp_path: Path, edit: Edit, said: str) -> None:
    findings = forge(honest, tmp_path / "run", edit)
    assert any(said in finding for finding in findings), findings


def test_an_early_stop_that_the_manifest_does_not_name_is_found(
    honest: Path, tmp_path: Path
) -> None:
    findings = forge(
        honest,
        tmp_path / "run",
        manifest=lambda facts: facts["settings"].update(gate_early_stop_error_rate=0.4),
    )
    assert findings == (
        "journal.jsonl: the gate's early stop is not the one that manifest.json names",
    )


def test_a_reference_of_an_own_set_is_checked_without_its_data(
    honest: Path, tmp_path: Path
) -> None:
    def edit(rows: list[Event]) -> None:
        rename(rows, dataset="own", dataset_sha256="1" * 64)
        forge_reference(rows)

    findings = forge(
        honest,
        tmp_path / "run",
        edit,
        lambda facts: facts["datasets"]["gate"].update(name="own", sha256="1" * 64),
    )
    (finding,) = findings
    assert "held to another reference than the bundled one" in finding
    assert verify_run(tmp_path / "run").unchecked == (
        "the gate's verdicts: its data set 'own' is not on this machine",
    )
