"""Gives a parameter that was written as plain text the type that its schema asks for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from edge_agentic.chat.formats.reading import MAX_DIGITS, decode
from edge_agentic.core.jsonio import JsonObject, is_json

_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CONSTANTS: Final[Mapping[str, Mapping[str, bool | None]]] = {
    "null": {"null": None, "None": None},
    "boolean": {"true": True, "True": True, "false": False, "False": False},
}
_ORDER: Final = ("null", "boolean", "integer", "number", "array", "object")
_UNFIT: Final = object()


def typed(text: str, key: str, parameters: JsonObject) -> Any:
    """The value of parameter `key`.

    Of several types that its schema allows, the first of null, boolean, integer, number, array
    and object that the text fits is the value's, since any text is a string. A text that fits
    none stays a string, and so does a parameter that the schema doesn't know.

    Args:
        text: what the model wrote.
        key: the parameter's name.
        parameters: the JSON schema of the function's parameters.
    """
    properties = parameters.get("properties")
    schema = properties.get(key) if isinstance(properties, Mapping) else None
    kinds = _kinds(schema, parameters)
    bare = text.strip()
    for kind in _ORDER:
        if kind in kinds and (value := _read(bare, kind)) is not _UNFIT:
            return value
    return text


def _kinds(schema: object, root: JsonObject) -> set[str]:
    """The names of the types that a schema allows; none where it doesn't say."""
    kinds: set[str] = set()
    followed: set[str] = set()
    pending = [schema]
    while pending:
        part = pending.pop()
        if not isinstance(part, Mapping):
            continue
        for word in ("anyOf", "oneOf", "allOf"):
            branches = part.get(word)
            pending += branches if isinstance(branches, list) else []
        reference = part.get("$ref")
        # Each one once: references may go round in circles.
        if isinstance(reference, str) and reference not in followed:
            followed.add(reference)
            pending.append(_referred(reference, root))
        if part.get("nullable") is True:
            kinds.add("null")
        kinds |= _own_kinds(part)
    return kinds


def _own_kinds(schema: Mapping[str, Any]) -> set[str]:
    declared = schema.get("type")
    if declared is not None:
        names = declared if isinstance(declared, list) else [declared]
        return {name for name in names if isinstance(name, str)}
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return {_kind_of(value) for value in values} if isinstance(values, list) else set()


def _referred(reference: str, root: JsonObject) -> object:
    """What a reference within the schema itself points to."""
    if not reference.startswith("#/"):
        return None
    found: object = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    for kind, type_ in (("boolean", bool), ("integer", int), ("number", float), ("array", list)):
        if isinstance(value, type_):
            return kind
    return "object" if isinstance(value, Mapping) else "string"


def _read(text: str, kind: str) -> Any:
    if kind in _CONSTANTS:
        return _CONSTANTS[kind].get(text, _UNFIT)
    if kind in ("array", "object"):
        decoded = decode(text, 0)
        fits = isinstance(decoded.value, list if kind == "array" else dict)
        whole = decoded.whole and decoded.end == len(text) and is_json(decoded.value)
        return decoded.value if fits and whole else _UNFIT
    if len(text) <= MAX_DIGITS and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number" and _NUMBER.fullmatch(text) and math.isfinite(value := float(text)):
        return value
    return _UNFIT
