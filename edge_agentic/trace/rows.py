"""Checks the shape of one trace row against `row.schema.json`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from edge_agentic.core.errors import at_line
from edge_agentic.core.json_schema import Schema
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.trace.schema_errors import schema_problem

_SCHEMA_PATH: Final = Path(__file__).with_name("row.schema.json")
_MAX_NAME_CHARACTERS: Final = 80


def check_row(row: JsonObject, path: Path, line: int) -> None:
    """Refuse a row that no order could make right.

    Raises:
        BadInputError: names path, line, conversation, and the first field that is wrong.
    """
    if problem := schema_problem(_schema(), row):
        raise at_line(path, line, f"{_name(row)}{problem}")


def _name(row: Mapping[str, Any]) -> str:
    name = row.get("conversation_id")
    return f"conversation {name[:_MAX_NAME_CHARACTERS]!r}: " if isinstance(name, str) else ""


@cache
def _schema() -> Schema:
    return Schema.read(_SCHEMA_PATH)
