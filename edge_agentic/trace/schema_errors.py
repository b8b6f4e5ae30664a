"""Says in one clause what is wrong with a document, by its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from edge_agentic.core.json_schema import Schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MAX_DEPTH: Final = 64
"""Levels of objects and arrays in one another; Python's JSON writer gives up at some hundreds."""


def schema_problem(schema: Schema, document: object) -> str | None:
    """The clearest fault of a document: the field, and what it must be. None where all is well."""
    if _is_deep(document):
        return f"the object is nested more than {MAX_DEPTH} levels deep; flatten it"
    if schema.accepts(document):
        return None
    from jsonschema.exceptions import relevance

    return _explain(max(schema.errors(document), key=relevance))


def _is_deep(document: object) -> bool:
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for value in level
            for child in _children(value)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def _children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _explain(error: ValidationError) -> str:
    where = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path
    ).lstrip(".")
    subject = f"'{where}'" if where else "the object"
    rule: Any = error.validator
    value: Any = error.validator_value
    if rule == "required" and isinstance(error.instance, Mapping):
        missing = next(key for key in value if key not in error.instance)
        return f"'{f'{where}.{missing}'.lstrip('.')}' is missing; add it"
    if rule == "additionalProperties" and isinstance(error.instance, Mapping):
        known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        extra = next(key for key in error.instance if key not in known)
        return f"{subject} has an unknown field {extra!r}; remove it"
    if rule == "type":
        kinds = value if isinstance(value, str) else " or ".join(value)
        return f"{subject} must be {kinds}, not {_kind(error.instance)}"
    if rule in ("enum", "const"):
        allowed = value if isinstance(value, list) else [value]
        return f"{subject} must be {' or '.join(json.dumps(choice) for choice in allowed)}"
    phrases = {
        "minLength": "must not be empty",
        "minItems": "must not be empty",
        "maxLength": f"must have at most {value} characters",
        "maxItems": f"must have at most {value} entries",
        "minimum": f"must be at least {value}",
        "maximum": f"must be at most {value}",
        "pattern": f"must match {value}",
        "not": "can't stand here; remove it",
        "anyOf": "needs "
        + " or ".join(f"a non-empty '{key}'" for part in _parts(value) for key in part),
    }
    return f"{subject} {phrases.get(rule, f'breaks the rule {rule!r}')}"


def _parts(value: Any) -> list[list[str]]:
    return [part.get("required", []) for part in value] if isinstance(value, list) else []


def _kind(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
