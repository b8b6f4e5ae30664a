"""The JSON schema of an answer that a server holds to calls of the offered functions.

The schema follows the generic call form of `chat.generic`, whatever the model's own form is. It
is a schema and no grammar, because that is what servers take (`response_format`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edge_agentic.chat.generic import DECLINE_NAME
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import ToolSpec

_ANY_OBJECT: JsonObject = {"type": "object"}


def answer_schema(tools: Sequence[ToolSpec]) -> JsonObject:
    """The schema of an answer that calls the offered functions with arguments of their types.

    Alternatives: one call, a list of at least two calls, or a call of the reserved declining
    function. Without a way to decline, every irrelevance case would be lost.
    """
    calls = [_call_schema(tool.get("function", tool)) for tool in tools]
    decline = _object({"name": {"const": DECLINE_NAME}, "arguments": _object({})})
    several = {"type": "array", "items": {"anyOf": calls}, "minItems": 2}
    return {"anyOf": [*calls, several, decline] if calls else [decline]}


def _call_schema(function: JsonObject) -> JsonObject:
    parameters = function.get("parameters")
    arguments = _closed(parameters) if isinstance(parameters, dict) else _ANY_OBJECT
    return _object({"name": {"const": function.get("name")}, "arguments": arguments})


def _object(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _closed(schema: Any) -> Any:
    """The schema with unnamed properties refused, and without words no grammar can enforce."""
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key in _ENFORCED}
    properties = kept.get("properties")
    if isinstance(properties, dict):
        kept["properties"] = {name: _closed(value) for name, value in properties.items()}
        required = kept.get("required")
        if isinstance(required, list):
            kept["required"] = [name for name in required if name in properties]
        if properties:
            kept["additionalProperties"] = False
    if "items" in kept:
        kept["items"] = _closed(kept["items"])
    if not kept.get("enum"):
        kept.pop("enum", None)
    return kept


_ENFORCED = frozenset({"type", "properties", "required", "items", "enum", "const", "anyOf"})
