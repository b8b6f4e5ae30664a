"""Tell whether a directory holds the official BFCL v4 single-turn files, byte for byte."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TABLE: Final = Path(__file__).parent / "data" / "bfcl-v4.files"


@dataclass(frozen=True)
class OfficialFile:
    """An official file: its name relative to the data directory, its length, its SHA-256."""

    name: str
    size_bytes: int
    sha256: str


def official_files() -> tuple[OfficialFile, ...]:
    """List every file that `load_dataset` reads of the official data, ordered by name."""
    rows = [line.split() for line in _TABLE.read_text("utf-8").splitlines() if line[0] != "#"]
    return tuple(OfficialFile(name, int(size), sha256) for sha256, size, name in rows)


def find_fault(root: Path) -> str | None:
    """Say which official file under `root` is missing, cut short or different.

    Other files are not looked at.

    Returns:
        The first such file and what is wrong with it; None if `root` holds the official data.
    """
    for file in official_files():
        problem = _problem(root / file.name, file)
        if problem is not None:
            return f"{root / file.name}: {problem}"
    return None


def _problem(path: Path, official: OfficialFile) -> str | None:
    try:
        # A pipe or a device could wait or last for ever.
        if not path.is_file():
            return "is no regular file" if path.exists() else "is missing"
        with path.open("rb") as file:
            data = file.read(official.size_bytes + 1)
    except OSError as error:
        return f"can't be read ({error.strerror})"
    if len(data) < official.size_bytes:
        return f"is cut short ({len(data)} of {official.size_bytes} bytes)"
    if hashlib.sha256(data).hexdigest() != official.sha256:
        return "differs from the official file"
    return None
