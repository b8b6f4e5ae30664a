"""Continues an unfinished gate: the same command on the same directory asks what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.outcome import Outcome
from edge_agentic.measure.events import read_journal
from edge_agentic.measure.summary import is_gate_only
from edge_agentic.run.directory import RunDirectory
from edge_agentic.run.gate import Verdicts
from edge_agentic.run.journal import read_events

_OF_A_SESSION: Final = frozenset({"created"})
"""Facts of the manifest that differ between two starts of the same run."""
_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class UnfinishedGate:
    """A run directory whose gate was cut short, and what its journal holds of it."""

    directory: RunDirectory
    manifest: JsonObject
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
    journal = read_journal(read_events(directory.journal_path) if directory.has_journal else [])
    verdicts: dict[str, bool] | None = None
    if journal.gate is not None:
        verdicts = {}
        for case in journal.gate_cases:
            verdicts.setdefault(case.sample_id, case.valid and case.outcome is Outcome.OK)
    return UnfinishedGate(directory, manifest, verdicts, journal.gate_finished)


def check_same_setup(unfinished: UnfinishedGate, manifest: Mapping[str, Any]) -> None:
    """Refuse to continue a run under another set-up: its figures would be of neither.

    Raises:
        BadInputError: names what differs.
    """
    differing = list(_differing(unfinished.manifest, manifest, ""))
    if differing:
        named = ", ".join(differing[:_MOST_NAMED]) + (", …" if differing[_MOST_NAMED:] else "")
        raise BadInputError(
            f"{unfinished.directory.path}: holds an unfinished gate of another set-up "
            f"(different: {named}); give the same options to continue it, or another --out"
        )


def _differing(before: Any, now: Any, where: str) -> Iterator[str]:
    """Dotted paths at which two manifests differ."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted((before.keys() | now.keys()) - (set() if where else _OF_A_SESSION)):
            yield from _differing(before.get(key), now.get(key), f"{where}.{key}" if where else key)
    elif before != now:
        yield where
