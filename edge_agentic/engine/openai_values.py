"""Reads single values out of a server's JSON, which may hold anything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from edge_agentic.core.jsonio import JsonObject

LARGEST_COUNT: Final = 2**53
"""No server counts so far; every larger number is a mistake, and no float could hold it."""


def as_object(data: bytes | str) -> JsonObject | None:
    """The JSON object that the data is; None if it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def as_count(value: object) -> int | None:
    """A whole number from 0 to `LARGEST_COUNT`; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT:
        return value
    return None


def is_number(value: object) -> bool:
    """Whether a value is a finite number of a size that the journal takes."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return -LARGEST_COUNT <= value <= LARGEST_COUNT


def as_text(value: object) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""


def join_text(parts: Sequence[str]) -> str:
    """The parts as one text that UTF-8 can hold.

    JSON escapes can bring half a surrogate pair in; the other half may come in the next part.
    """
    text = "".join(parts)
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
