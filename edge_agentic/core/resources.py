"""Finds the data that ships with the project, from a checkout and from an installed wheel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from edge_agentic.core.errors import RequirementError

DataKind = Literal["traces", "device_profiles"]

_PACKAGE_DIR = Path(__file__).resolve().parent.parent


def data_dir(kind: DataKind) -> Path:
    """The directory of bundled trace packs or device profiles.

    In a wheel it lies inside the package (`edge_agentic/_data`), in a checkout at the root.

    Raises:
        RequirementError: the installation is incomplete.
    """
    for candidate in (_PACKAGE_DIR / "_data" / kind, _PACKAGE_DIR.parent / kind):
        if candidate.is_dir():
            return candidate
    raise RequirementError(f"bundled data '{kind}' is missing; reinstall edge-agentic")


def cache_dir() -> Path:
    """Where fetched models and data are kept.

    `EDGE_AGENTIC_CACHE`, else `XDG_CACHE_HOME/edge-agentic`, else `~/.cache/edge-agentic`.
    """
    if override := os.environ.get("EDGE_AGENTIC_CACHE"):
        return Path(override)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "edge-agentic"
