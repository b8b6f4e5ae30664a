"""Gate sets by name: the bundled one, the official one, or a directory of one's own."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import bfcl_gate
from bfcl_gate.cases import Dataset, gate_mini, load_dataset
from bfcl_gate.official import DATASET_SHA256
from bfcl_gate.official import NAME as BFCL_V4
from bfcl_gate.official_files import find_fault
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.wheels import Say
from edge_agentic.run.official_data import (
    CASES,
    FETCH,
    LICENCE,
    WHEEL,
    fetch_official,
    is_fetched,
    load_official,
    official_path,
)

GATE_MINI: Final = "gate-mini"


@dataclass(frozen=True)
class GateSetFacts:
    """A gate set that has a name; `path` is None while it is not fetched."""

    name: str
    licence: str
    source: str
    cases: int
    path: Path | None

    def to_json(self) -> JsonObject:
        """The facts as `data list --json` prints them."""
        path = None if self.path is None else str(self.path)
        return {**dataclasses.asdict(self), "path": path}


def list_gate_sets() -> tuple[GateSetFacts, ...]:
    """The gate sets that have a name, and where they lie."""
    bundled = len(gate_mini().cases)
    fetched = official_path() if is_fetched() else None
    return (
        GateSetFacts(GATE_MINI, "Apache-2.0", "bundled", bundled, _bundled_path()),
        GateSetFacts(BFCL_V4, LICENCE, WHEEL.requirement, CASES, fetched),
    )


def fetch_gate_set(name: str, *, source: Path | None = None, say: Say) -> Path:
    """Fetch a gate set into the cache and return its directory.

    Args:
        name: the name of a gate set.
        source: as for `fetch_official`.
        say: told what is going on.

    Raises:
        BadInputError: an unknown name, or a source that does not hold the official data.
        RequirementError: the package index can't be reached, or there is no room.
    """
    if name == BFCL_V4:
        return fetch_official(source=source, say=say)
    if name != GATE_MINI:
        raise BadInputError(f"no data set named '{name}'; there are: {GATE_MINI}, {BFCL_V4}")
    say(f"{name} is bundled: nothing to fetch")
    return _bundled_path()


def open_gate_set(name: str) -> Dataset:
    """Load a gate set: `gate-mini`, `bfcl-v4`, or a directory in BFCL's own shape.

    A directory with the content of `bfcl-v4` is `bfcl-v4`, whatever it is called. No directory
    can pass for a named set with other content: results and references go by the name.

    Raises:
        BadInputError: no such set, not fetched yet, damaged, or under a name that isn't its own.
        GateDataError: a directory that cannot be read as cases.
    """
    if name == GATE_MINI:
        return gate_mini()
    if name == BFCL_V4:
        if not official_path().is_dir():
            raise BadInputError(f"gate set '{name}' is not here yet; run: {FETCH}")
        return load_official(official_path())
    path = Path(name)
    if not path.is_dir():
        raise BadInputError(
            f"{name}: no such gate set; give '{GATE_MINI}', '{BFCL_V4}' or a directory"
        )
    dataset = load_dataset(path)
    if dataset.sha256 == DATASET_SHA256:
        return dataclasses.replace(dataset, name=BFCL_V4)
    if dataset.name == BFCL_V4:
        return _official_or_refused(path)
    if dataset.name == GATE_MINI and dataset.sha256 != gate_mini().sha256:
        raise BadInputError(f"{name}: calls itself '{GATE_MINI}' but holds other cases; rename it")
    return dataset


def find_gate_set(sha256: str) -> Dataset | None:
    """The named gate set with this digest, if it is on this machine.

    Raises:
        BadInputError: the fetched one is damaged.
    """
    if sha256 == DATASET_SHA256:
        return load_official(official_path()) if official_path().is_dir() else None
    bundled = gate_mini()
    return bundled if sha256 == bundled.sha256 else None


def named_sha256(name: str) -> str | None:
    """The digest of the gate set of this name; None where the name is nobody's."""
    if name == BFCL_V4:
        return DATASET_SHA256
    return gate_mini().sha256 if name == GATE_MINI else None


def _official_or_refused(path: Path) -> Dataset:
    """The official files may lie beside a `dataset.toml`, which the digest covers."""
    if fault := find_fault(path):
        raise BadInputError(
            f"{path}: calls itself '{BFCL_V4}' but is not the official data ({fault}); rename it, "
            f"or run: {FETCH}"
        )
    return load_official(path)


def _bundled_path() -> Path:
    return Path(bfcl_gate.__path__[0]) / "data" / GATE_MINI
