"""Reads single values out of a server's JSON, which may hold anything."""

from __future__ import annotations

import json
from collections.abc import Sequence

from edge_agentic.core.jsonio import JsonObject


def as_object(data: bytes | str) -> JsonObject | None:
    """The JSON object that the data is; None if it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def as_count(value: object) -> int | None:
    """A whole number from 0; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


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
