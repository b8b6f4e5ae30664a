"""Reads what a command takes from a file or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path


def read_input(path: Path) -> bytes:
    """The bytes of a regular file, or of standard input for `-`.

    Raises:
        BadInputError: the file is missing, unreadable or no regular file.
    """
    from edge_agentic.core.jsonio import read_bytes

    return sys.stdin.buffer.read() if str(path) == "-" else read_bytes(path)
