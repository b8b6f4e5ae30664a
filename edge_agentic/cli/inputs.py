"""Reads what a command takes from a file or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path


def read_input(path: Path) -> bytes:
    """The bytes of a regular file, or of standard input for `-`.

    Raises:
        BadInputError: the file is missing, unreadable or no regular file, or standard input is
            closed.
    """
    from edge_agentic.core.errors import BadInputError
    from edge_agentic.core.jsonio import read_bytes

    if str(path) != "-":
        return read_bytes(path)
    if sys.stdin is None:
        raise BadInputError("standard input is closed; give a file")
    return sys.stdin.buffer.read()
