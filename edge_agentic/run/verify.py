"""Recomputes a run from its raw log and finds every figure that does not follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bfcl_gate.answers import Answer
from bfcl_gate.cases import gate_mini
from bfcl_gate.checker import check
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject, dump_pretty, read_bytes, read_object
from edge_agentic.measure.summary import build_summary
from edge_agentic.replay.inline_score import score_turn
from edge_agentic.run.directory import RunDirectory, open_run_directory


def recompute(path: Path) -> JsonObject:
    """The summary that a run directory's manifest and journal give.

    Raises:
        BadInputError: no run directory, or a damaged file in it.
    """
    directory = open_run_directory(path)
    return build_summary(directory.manifest(), directory.events())


def verify_run(path: Path) -> list[str]:
    """What in a run does not follow from its raw log, one line each; empty if all does.

    Three things are recomputed: each gate verdict from the raw answer (where the bundled set
    was asked), each inline score from the raw calls, and from all that the summary, byte for
    byte.

    Raises:
        BadInputError: no run directory, unfinished, or a damaged file in it.
    """
    directory = open_run_directory(path)
    if not directory.summary_path.is_file():
        raise BadInputError(f"{path}: is unfinished (it has no {directory.summary_path.name})")
    events = directory.events()
    findings = [*_gate_findings(events), *_score_findings(events)]
    findings += _summary_findings(directory, events)
    return findings


def _gate_findings(events: Sequence[JsonObject]) -> Iterator[str]:
    started = next((event for event in events if event.get("event") == "gate_started"), None)
    dataset = gate_mini()
    if started is None or started.get("dataset_sha256") != dataset.sha256:
        return
    cases = {case.id: case for case in dataset.cases}
    for event in events:
        case = cases.get(event.get("sample_id", ""))
        if event.get("event") != "gate_case" or case is None:
            continue
        verdict = check(case, Answer(event.get("tool_calls"), event.get("text")))
        if (verdict.valid, verdict.error_type) != (event.get("valid"), event.get("error_type")):
            yield (
                f"journal.jsonl: gate case '{case.id}': recorded valid={event.get('valid')}, "
                f"its answer gives {verdict.valid}"
            )


def _score_findings(events: Sequence[JsonObject]) -> Iterator[str]:
    for event in events:
        if event.get("event") != "turn":
            continue
        score = score_turn(event.get("expected_tool_calls"), event.get("tool_calls"))
        if score != event.get("inline_score"):
            yield (
                f"journal.jsonl: conversation '{event.get('conversation_id')}' turn "
                f"{event.get('turn')}: recorded inline_score {event.get('inline_score')}, "
                f"its calls give {score}"
            )


def _summary_findings(directory: RunDirectory, events: Sequence[JsonObject]) -> Iterator[str]:
    expected = build_summary(directory.manifest(), events)
    recorded = read_bytes(directory.summary_path)
    if recorded == dump_pretty(expected).encode():
        return
    name = directory.summary_path.name
    differences = list(_differences(expected, read_object(directory.summary_path), ""))
    yield from (f"{name}: {difference}" for difference in differences)
    if not differences:
        yield f"{name}: the same values in another form; it was written by something else"


def _differences(expected: Any, recorded: Any, where: str) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(recorded, dict):
        for key in [*expected, *(key for key in recorded if key not in expected)]:
            path = f"{where}.{key}" if where else key
            if key not in recorded:
                yield f"'{path}' is missing"
            elif key not in expected:
                yield f"'{path}' does not belong there"
            else:
                yield from _differences(expected[key], recorded[key], path)
    elif type(expected) is not type(recorded) or expected != recorded:
        yield f"'{where}' is {recorded!r}, the journal gives {expected!r}"
