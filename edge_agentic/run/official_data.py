"""Fetches the official BFCL v4 single-turn data into the cache, and loads it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bfcl_gate.cases import Dataset, load_dataset
from bfcl_gate.errors import GateDataError
from bfcl_gate.official import DATASET_SHA256, NAME
from bfcl_gate.official_files import find_fault, official_files
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import sync_directory
from edge_agentic.core.resources import cache_dir
from edge_agentic.core.wheels import (
    PinnedWheel,
    Say,
    Scratch,
    install,
    obtain_wheel,
    store,
    unpack_member,
)

WHEEL: Final = PinnedWheel(
    requirement="bfcl-eval==2026.3.23",
    sha256="3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
    size_mb=2,
)
LICENCE: Final = "Apache-2.0"
CASES: Final = 3641
FETCH: Final = f"edge-agentic data fetch {NAME}"

_IN_WHEEL: Final = "bfcl_eval/data"
_LAYOUTS: Final = (".", "data", _IN_WHEEL, f"berkeley-function-call-leaderboard/{_IN_WHEEL}")
"""Where a directory that a user gives may hold the files: the last is the project's repository."""


def official_path() -> Path:
    """Where the official data lies once it is fetched."""
    return cache_dir() / "data" / NAME


def is_fetched() -> bool:
    """Whether the official data is in the cache, whole and unchanged."""
    return find_fault(official_path()) is None


def fetch_official(*, source: Path | None = None, say: Say = lambda line: None) -> Path:
    """Fetch the official data into the cache and return its directory; does nothing if it is there.

    Only the data files are taken; nothing of the package is imported or run.

    Args:
        source: take this instead of asking the package index: the wheel, or a directory with the
            files, with an unpacked wheel, or with a checkout of the project's repository.
        say: told what is going on.

    Raises:
        BadInputError: a wheel with the wrong hash, or a directory whose files are not the
            official ones.
        RequirementError: the package index can't be reached, or there is no room.
    """
    folder = _data_folder(source) if source is not None and source.is_dir() else None

    def make(scratch: Scratch) -> Path:
        made = scratch.path / NAME
        folders = sorted({(made / file.name).parent for file in official_files()})
        for path in folders:
            path.mkdir()
        if folder is None:
            _unpack(obtain_wheel(WHEEL, scratch, given=source), made)
        else:
            _copy(folder, made)
        load_official(made)
        for path in folders:
            sync_directory(path)
        return made

    return install(
        NAME, official_path(), is_right=lambda path: find_fault(path) is None, make=make, say=say
    )


def load_official(root: Path) -> Dataset:
    """Load the official data from a directory.

    Raises:
        BadInputError: a file is missing, cut short or different; names it.
    """
    problem = f"{root}: changed while it was read"
    try:
        dataset = load_dataset(root, name=NAME)
        if dataset.sha256 == DATASET_SHA256:
            return dataset
    except GateDataError as error:
        problem = str(error)
    raise BadInputError(f"{find_fault(root) or problem}; run: {FETCH}")


def _data_folder(source: Path) -> Path:
    for layout in _LAYOUTS:
        if any((source / layout / file.name).is_file() for file in official_files()):
            return source / layout
    raise BadInputError(
        f"{source}: holds no BFCL v4 data; give the wheel of {WHEEL.requirement}, or a directory "
        f"with the files of its {_IN_WHEEL}"
    )


def _unpack(wheel: Path, made: Path) -> None:
    for file in official_files():
        member = f"{_IN_WHEEL}/{file.name}"
        unpack_member(wheel, member, made / file.name, max_bytes=file.size_bytes)


def _copy(folder: Path, made: Path) -> None:
    if fault := find_fault(folder):
        raise BadInputError(
            f"{fault}; take the data of {WHEEL.requirement}, or leave --from out to fetch it"
        )
    for file in official_files():
        with (folder / file.name).open("rb") as stream:
            store(stream, made / file.name, max_bytes=file.size_bytes)
