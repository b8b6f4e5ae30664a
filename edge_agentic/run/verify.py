"""Recomputes a run from its raw log and finds every figure that does not follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject, dump_pretty, read_bytes, read_object, sha256_file
from edge_agentic.measure.summary import build_summary
from edge_agentic.replay.inline_score import score_turn
from edge_agentic.run.directory import RunDirectory, open_run_directory
from edge_agentic.run.verify_gate import dataset_name, gate_findings, verdict_findings
from edge_agentic.run.verify_tools import tool_findings

_MOST_CHARACTERS: Final = 120


@dataclass(frozen=True)
class VerifyReport:
    """What does not follow from the raw log, and what could not be checked; a line each."""

    findings: tuple[str, ...]
    unchecked: tuple[str, ...]

    def to_json(self) -> JsonObject:
        """The report as `results verify --json` prints it."""
        return {
            "verified": not self.findings,
            "findings": list(self.findings),
            "unchecked": list(self.unchecked),
        }


def recompute(path: Path) -> JsonObject:
    """The summary that a run directory's manifest and journal give.

    Raises:
        BadInputError: no run directory, or a damaged file in it.
    """
    directory = open_run_directory(path)
    return build_summary(directory.manifest(), directory.events())


def verify_run(path: Path) -> VerifyReport:
    """Check that a finished run follows from its raw log.

    Recomputed are: the manifest's hash, which the journal starts with; the data sets, which
    both name; the order gate before replay; the gate's reference, from the bundled ones; each
    gate verdict from the raw answer, where the set is on this machine; each inline score from
    the raw calls; each match of a tool's result and each effect from what was put out and changed;
    and from all that the summary, byte for byte.

    Raises:
        BadInputError: no run directory, unfinished, or a damaged file in it.
    """
    directory = open_run_directory(path)
    if not directory.summary_path.is_file():
        raise BadInputError(f"{path}: is unfinished (it has no {directory.summary_path.name})")
    manifest, events = directory.manifest(), directory.events()
    # Refuses events of a wrong shape, so that what follows can rely on it.
    expected = build_summary(manifest, events)
    first = _first_of_each_kind(events)
    findings = [
        *_binding_findings(directory, manifest, events, first),
        *gate_findings(manifest, events),
        *_score_findings(events),
        *tool_findings(events),
        *_summary_findings(directory, expected),
    ]
    unchecked = []
    verdicts = verdict_findings(events)
    if verdicts is None:
        unchecked.append(
            f"the gate's verdicts: its data set '{dataset_name(events)}' is not on this machine"
        )
    else:
        findings += verdicts
    return VerifyReport(tuple(findings), tuple(unchecked))


def _first_of_each_kind(events: Sequence[JsonObject]) -> dict[str, JsonObject]:
    first: dict[str, JsonObject] = {}
    for event in events:
        first.setdefault(event["event"], event)
    return first


def _binding_findings(
    directory: RunDirectory,
    manifest: Mapping[str, Any],
    events: Sequence[JsonObject],
    first: Mapping[str, JsonObject],
) -> Iterator[str]:
    """The manifest is the journal's own, both name the same data, and the gate came first."""
    sessions = [event for event in events if event["event"] == "run_started"]
    actual = sha256_file(directory.manifest_path)
    if any(session.get("manifest_sha256") != actual for session in sessions):
        yield "manifest.json: is not the one that the journal starts with"
    datasets = manifest.get("datasets")
    named = datasets.get("replay") if isinstance(datasets, Mapping) else None
    sha256 = named.get("sha256") if isinstance(named, Mapping) else None
    if "replay_started" in first and first["replay_started"].get("dataset_sha256") != sha256:
        yield "journal.jsonl: the replay used another data set than manifest.json names"
    order = [event["event"] for event in events]
    if "replay_started" in order and "gate_finished" not in order[: order.index("replay_started")]:
        yield "journal.jsonl: the replay starts before the gate has finished"


def _score_findings(events: Sequence[JsonObject]) -> Iterator[str]:
    for event in events:
        if event["event"] != "turn":
            continue
        score = score_turn(event.get("expected_tool_calls"), event.get("tool_calls"))
        if score != event.get("inline_score"):
            yield (
                f"journal.jsonl: conversation '{event['conversation_id']}' turn "
                f"{event['turn']}: recorded inline_score {event.get('inline_score')}, "
                f"its calls give {score}"
            )


def _summary_findings(directory: RunDirectory, expected: JsonObject) -> Iterator[str]:
    path = directory.summary_path
    if read_bytes(path) == dump_pretty(expected).encode():
        return
    differences = list(_differences(expected, read_object(path), ""))
    yield from (f"{path.name}: {difference}" for difference in differences)
    if not differences:
        yield f"{path.name}: the same values in another form; it was written by something else"


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
        yield f"'{where}' is {_short(recorded)}, the journal gives {_short(expected)}"


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _MOST_CHARACTERS else shown[:_MOST_CHARACTERS] + "…"
