"""Checks the shape of one trace row against `row.schema.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from edge_agentic.core.errors import at_line
from edge_agentic.core.jsonio import JsonObject, dump_line

_SCHEMA_PATH: Final = Path(__file__).with_name("row.schema.json")
_ROLES: Final = ("user", "assistant", "tool")
_MAX_NAME_CHARACTERS: Final = 80


def check_row(row: JsonObject, path: Path, line: int) -> None:
    """Refuse a row that no order could make right.

    Raises:
        BadInputError: names path, line, conversation, and the first field that is wrong.
    """
    try:
        dump_line(row).encode()
    except ValueError:
        raise at_line(
            path, line, f"{_name(row)}holds NaN, an infinity or half a surrogate pair; remove it"
        ) from None
    role = row.get("role")
    validator = _validators().get(role if isinstance(role, str) else "", _validators()[""])
    if not validator.is_valid(row):
        error = best_match(validator.iter_errors(row))
        raise at_line(path, line, f"{_name(row)}{explain(error)}")


def explain(error: ValidationError) -> str:
    """One short clause for a schema error: where in the document, and what it must be."""
    where = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path
    ).lstrip(".")
    subject = f"'{where}'" if where else "the object"
    rule: Any = error.validator
    value: Any = error.validator_value
    if rule == "required" and isinstance(error.instance, Mapping):
        missing = next(key for key in value if key not in error.instance)
        return f"'{f'{where}.{missing}'.lstrip('.')}' is missing; add it"
    if rule == "type":
        kinds = value if isinstance(value, str) else " or ".join(value)
        return f"{subject} must be {kinds}, not {_kind(error.instance)}"
    if rule in ("enum", "const"):
        allowed = value if isinstance(value, list) else [value]
        return f"{subject} must be {' or '.join(json.dumps(choice) for choice in allowed)}"
    if rule in ("minLength", "minItems", "minProperties"):
        return f"{subject} must not be empty"
    if rule in ("minimum", "maximum"):
        return f"{subject} must be {'at least' if rule == 'minimum' else 'at most'} {value}"
    if rule == "maxLength":
        return f"{subject} must have at most {value} characters"
    if rule == "pattern":
        return f"{subject} must match {value}"
    if rule == "additionalProperties" and isinstance(error.instance, Mapping):
        known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        extra = next((key for key in error.instance if key not in known), "?")
        return f"{subject} has an unknown field {extra!r}; remove it"
    if error.schema is False:
        return f"{subject} can't stand in this kind of row; remove it"
    if rule == "anyOf":
        return "needs non-empty 'content' or non-empty 'tool_calls'"
    return f"{subject} breaks the rule '{rule}'"


def _name(row: Mapping[str, Any]) -> str:
    name = row.get("conversation_id")
    return f"conversation {name[:_MAX_NAME_CHARACTERS]!r}: " if isinstance(name, str) else ""


def _kind(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


@cache
def _validators() -> Mapping[str, Draft202012Validator]:
    """A validator for each role, and under "" the one for rows without a known role.

    Going straight to the role's own part halves the time that the schema's conditions take.
    """
    schema = json.loads(_SCHEMA_PATH.read_text("utf-8"))
    direct = {key: value for key, value in schema.items() if key != "allOf"}
    roles = {role: {**direct, "$ref": f"#/$defs/{role}"} for role in _ROLES}
    return {name: Draft202012Validator(part) for name, part in ({"": schema} | roles).items()}
