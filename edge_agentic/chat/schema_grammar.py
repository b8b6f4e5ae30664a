"""Turns a JSON schema into the grammar of the JSON texts that follow it.

Enforced are types, properties, required ones, items, enum, const, anyOf and oneOf. Properties
that are not named are refused where some are. Every other word of a schema is left out: what it
forbids is allowed. A reference stands for any value.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from edge_agentic.chat.formats.reading import MAX_NESTING
from edge_agentic.chat.grammar import (
    SPACE,
    Chain,
    Grammar,
    Json,
    JsonKind,
    Many,
    Maybe,
    Text,
    chain,
    either,
)
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject

MAX_ALTERNATIVES: Final = 2048
"""Values of an enum, properties of an object, branches of a union: each is tried at every token."""


def schema_grammar(schema: object) -> Grammar:
    """The grammar of the values that a JSON schema allows.

    The text has at most one space behind brackets, commas, colons and values. Required
    properties come first, then the others, both in the schema's order.

    Raises:
        BadInputError: it is no schema, nests too deeply, or lists too much.
    """
    return _value(schema, 0)


def object_grammar(properties: Sequence[tuple[str, Grammar]]) -> Grammar:
    """The grammar of an object with all of these properties, in this order."""
    return _object([_pair(name, value) for name, value in properties], [])


def json_text(value: Any) -> str:
    """The JSON text of a value.

    Raises:
        BadInputError: it holds what no JSON file can.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        raise BadInputError("a tool's schema holds a value that has no JSON text") from None
    return text


def alternatives(schema: Mapping[str, Any]) -> list[Any] | None:
    """The schemas of which a value has to follow one; None where there is no such list."""
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if isinstance(branches, list) and branches:
            _check_count(branches, word)
            return branches
    types = schema.get("type")
    if isinstance(types, list) and types and literals(schema) is None:
        _check_count(types, "type")
        return [{**schema, "type": name} for name in types]
    return None


def literals(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values that `const` or `enum` lists; None where there is no such list."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    if not isinstance(values, list) or not values:
        return None
    _check_count(values, "enum")
    return values


def properties_of(schema: JsonObject) -> tuple[Mapping[str, Any], frozenset[str]] | None:
    """The properties of an object and the names of the required ones; None if it names none."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return None
    names = required if isinstance(required, list) else []
    _check_count(properties, "properties")
    return properties, frozenset(name for name in names if isinstance(name, str))


_KINDS: Final[Mapping[object, JsonKind]] = {kind.value: kind for kind in JsonKind}


def _check_count(values: Collection[object], word: str) -> None:
    if len(values) > MAX_ALTERNATIVES:
        raise BadInputError(
            f"a tool's schema has {len(values)} entries in {word!r}; constrained calls take "
            f"up to {MAX_ALTERNATIVES}: use --tool-grammar off"
        )


def _value(schema: object, depth: int) -> Grammar:
    if depth > MAX_NESTING:
        raise BadInputError(
            f"a tool's schema nests more than {MAX_NESTING} levels deep; use --tool-grammar off"
        )
    if schema is True or schema == {}:
        return Json(JsonKind.VALUE)
    if not isinstance(schema, Mapping):
        raise BadInputError("a tool's schema has something in it that is no schema")
    if (branches := alternatives(schema)) is not None:
        return either([_value(branch, depth + 1) for branch in branches])
    if (values := literals(schema)) is not None:
        return either([Text(json_text(value)) for value in values])
    kind = schema.get("type")
    if kind in (None, "object") and (named := properties_of(dict(schema))) is not None:
        return _properties(*named, depth)
    if kind in (None, "array") and "items" in schema:
        return _array(_value(schema["items"], depth + 1))
    if kind is None:
        return Json(JsonKind.VALUE)
    if not isinstance(kind, str) or kind not in _KINDS or kind == JsonKind.VALUE.value:
        raise BadInputError(f"a tool's schema has the unknown type {str(kind)[:40]!r}")
    return Json(_KINDS[kind])


def _properties(properties: Mapping[str, Any], required: frozenset[str], depth: int) -> Grammar:
    first: list[Grammar] = []
    others: list[Grammar] = []
    for name, schema in properties.items():
        pair = _pair(name, _value(schema, depth + 1))
        (first if name in required else others).append(pair)
    return _object(first, others)


def _object(required: Sequence[Grammar], optional: Sequence[Grammar]) -> Grammar:
    comma = chain(",", SPACE)
    further = [Maybe(chain(comma, pair)) for pair in optional]
    if required:
        commas = [chain(comma, pair) for pair in required[1:]]
        inner: Grammar = Chain((required[0], *commas, *further))
    elif optional:
        starts = [Chain((pair, *further[at + 1 :])) for at, pair in enumerate(optional)]
        inner = Maybe(either(starts))
    else:
        inner = Text("")
    return chain("{", SPACE, inner, "}", SPACE)


def _pair(name: str, value: Grammar) -> Grammar:
    return chain(json_text(name), SPACE, ":", SPACE, value)


def _array(item: Grammar) -> Grammar:
    items = chain(item, Many(chain(",", SPACE, item)))
    return chain("[", SPACE, Maybe(items), "]", SPACE)
