"""Continues an unfinished gate: the same command on the same directory asks what is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject, sha256_file
from edge_agentic.measure.events import read_journal
from edge_agentic.measure.records import first_records
from edge_agentic.measure.summary import is_gate_only
from edge_agentic.run.directory import RunDirectory
from edge_agentic.run.gate import Verdicts
from edge_agentic.run.journal import read_events

_MAY_DIFFER: Final = frozenset(
    {"created", "python", "device.kernel", "device.memory_mb", "device.operating_system"}
)
"""Facts of the manifest that change with time, or with an update, on the same machine."""
_PROBE_DETAIL: Final = re.compile(r"engine\.probes\.\w+\.detail")
"""What a server said to a probe, in numbers: its caches may be warm by now."""
_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class UnfinishedGate:
    """A run directory whose gate was cut short, and what its journal holds of it."""

    directory: RunDirectory
    manifest: JsonObject
    events: tuple[JsonObject, ...]
    verdicts: Verdicts | None
    """None where the gate had not started."""
    is_finished: bool
    """Every case was asked; only the summary is missing."""


def find_unfinished_gate(out: Path | None) -> UnfinishedGate | None:
    """The unfinished gate in the directory `out`; None if there is none.

    Raises:
        BadInputError: a file of it is damaged.
    """
    if out is None:
        return None
    directory = RunDirectory(out)
    if directory.summary_path.exists() or not directory.manifest_path.is_file():
        return None
    manifest = directory.manifest()
    if not is_gate_only(manifest):
        return None
    events = read_events(directory.journal_path) if directory.journal_path.exists() else []
    journal = read_journal(events)
    verdicts = None
    if journal.gate is not None:
        recorded = first_records(journal.gate_cases)
        verdicts = {sample_id: case.is_right for sample_id, case in recorded.items()}
    return UnfinishedGate(directory, manifest, tuple(events), verdicts, journal.gate_finished)


def check_same_setup(
    unfinished: UnfinishedGate, manifest: Mapping[str, Any], gate_start: Mapping[str, Any]
) -> None:
    """Refuse to continue a run under another set-up: its figures would be of neither.

    Args:
        unfinished: what is there.
        manifest: what a new run would write.
        gate_start: the fields of `gate_started` that a new run would write.

    Raises:
        BadInputError: names what differs.
    """
    found = set(_differing(unfinished.manifest, manifest, "")) - _MAY_DIFFER
    differing = sorted(path for path in found if not _PROBE_DETAIL.fullmatch(path))
    # As JSON has it: the journal knows no tuples.
    differing += _journal_differences(unfinished, json.loads(json.dumps(gate_start)))
    if differing:
        named = ", ".join(differing[:_MOST_NAMED]) + (", …" if differing[_MOST_NAMED:] else "")
        raise BadInputError(
            f"{unfinished.directory.path}: holds an unfinished gate of another set-up "
            f"(different: {named}); give the same options to continue it, or another --out"
        )


def _journal_differences(
    unfinished: UnfinishedGate, gate_start: Mapping[str, Any]
) -> Iterator[str]:
    """What in the journal is not what the same command would have written."""
    sha256 = sha256_file(unfinished.directory.manifest_path)
    for event in unfinished.events:
        if event["event"] == "run_started" and event.get("manifest_sha256") != sha256:
            yield "the manifest that the journal names"
        if event["event"] == "gate_started":
            yield from (
                f"gate_started.{key}" for key in gate_start if event.get(key) != gate_start[key]
            )
    asked = [event["sample_id"] for event in unfinished.events if event["event"] == "gate_case"]
    if asked != gate_start["sample_ids"][: len(asked)]:
        yield "the cases that the journal records"


def _differing(before: Any, now: Any, where: str) -> Iterator[str]:
    """Dotted paths at which two manifests differ."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in before.keys() | now.keys():
            yield from _differing(before.get(key), now.get(key), f"{where}.{key}" if where else key)
    elif before != now:
        yield where
