"""Checks the shape of one trace row against `row.schema.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

from edge_agentic.core.errors import at_line
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.trace.schema_errors import schema_problem

_SCHEMA_PATH: Final = Path(__file__).with_name("row.schema.json")
_ROLES: Final = ("user", "assistant", "tool")
_MAX_NAME_CHARACTERS: Final = 80


def check_row(row: JsonObject, path: Path, line: int) -> None:
    """Refuse a row that no order could make right.

    Raises:
        BadInputError: names path, line, conversation, and the first field that is wrong.
    """
    role = row.get("role")
    validator = _validators().get(role if isinstance(role, str) else "", _validators()[""])
    if problem := schema_problem(validator, row):
        raise at_line(path, line, f"{_name(row)}{problem}")


def _name(row: Mapping[str, Any]) -> str:
    name = row.get("conversation_id")
    return f"conversation {name[:_MAX_NAME_CHARACTERS]!r}: " if isinstance(name, str) else ""


@cache
def _validators() -> Mapping[str, Draft202012Validator]:
    """A validator for each role, and under "" the one for rows without a known role.

    Going straight to the role's own part halves the time that the schema's conditions take.
    """
    schema = json.loads(_SCHEMA_PATH.read_text("utf-8"))
    direct = {key: value for key, value in schema.items() if key != "allOf"}
    roles = {role: {**direct, "$ref": f"#/$defs/{role}"} for role in _ROLES}
    return {name: Draft202012Validator(part) for name, part in ({"": schema} | roles).items()}
