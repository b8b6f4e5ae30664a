"""Turn a case into what an OpenAI-style chat endpoint takes: messages and tools."""

from collections.abc import Mapping
from typing import Any, Final

from bfcl_gate.cases import Case

_JSON_TYPES: Final[Mapping[str, str]] = {
    "dict": "object",
    "object": "object",
    "float": "number",
    "number": "number",
    "tuple": "array",
    "array": "array",
    "integer": "integer",
    "boolean": "boolean",
    "string": "string",
    "any": "string",
}


def messages(case: Case) -> list[dict[str, Any]]:
    """Return the messages of the case's turn; null content becomes the empty string."""
    return [
        {**message, "content": "" if message["content"] is None else message["content"]}
        for message in case.messages
    ]


def tools(case: Case) -> list[dict[str, Any]]:
    """Return the functions offered as OpenAI tools.

    Dots in names become underscores, and the types of function descriptions become those of JSON
    Schema, at every depth. Source: BFCL v4. `tool_choice` is the caller's.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": tool_name(function["name"]),
                "description": function.get("description", ""),
                "parameters": _json_schema(function["parameters"]),
            },
        }
        for function in case.functions
    ]


def tool_name(function_name: str) -> str:
    """Return the name under which a function is offered: endpoints allow no dot in a name."""
    return function_name.replace(".", "_")


def _json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    converted = dict(schema)
    # A type that JSON Schema lacks, or none at all, is a string, as "any" is.
    converted["type"] = _JSON_TYPES.get(str(schema.get("type")), "string")
    if isinstance(schema.get("properties"), Mapping):
        converted["properties"] = {
            name: _json_schema(child) if isinstance(child, Mapping) else child
            for name, child in schema["properties"].items()
        }
    if isinstance(schema.get("items"), Mapping):
        converted["items"] = _json_schema(schema["items"])
    return converted
