"""Turn a case into what an OpenAI-style chat endpoint takes: messages and tools."""

from collections.abc import Mapping
from typing import Any, Final

from bfcl_gate.cases import Case

_JSON_TYPES: Final[Mapping[str, str]] = {
    name: json_type
    for json_type, names in {
        "object": "dict object HashMap Hashtable",
        "array": "array list tuple Array ArrayList Queue Stack",
        "number": "float number double",
        "integer": "integer byte short long Bigint",
        "boolean": "boolean bool",
    }.items()
    for name in names.split()
}
"""JSON Schema's type for each declared one; every other type, and none, is a string."""

_FLOAT_NOTE: Final = "This is a float type value."


def messages(case: Case) -> list[dict[str, Any]]:
    """Return the messages of the case's turn; null content becomes the empty string."""
    return [
        {"role": message["role"], "content": message["content"] or ""} for message in case.messages
    ]


def tools(case: Case) -> list[dict[str, Any]]:
    """Return the functions offered as OpenAI tools.

    Dots in names become underscores, and the types of function descriptions become those of JSON
    Schema, at every depth, those of Java and JavaScript too. Source: BFCL v4 as MLPerf Inference
    v6.1 runs it. `tool_choice` is the caller's.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": tool_name(function["name"]),
                "description": function.get("description", ""),
                "parameters": _json_schema({**function["parameters"], "type": "dict"}),
            },
        }
        for function in case.functions
    ]


def tool_name(function_name: str) -> str:
    """Return the name under which a function is offered: endpoints allow no dot in a name."""
    return function_name.replace(".", "_")


def _parameter(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a parameter, or of a key of an object."""
    converted = _json_schema(schema)
    # Parity: "float" alone is told to the model again, in words; "double" is not.
    if schema.get("type") == "float":
        converted["description"] = f"{schema.get('description', '')} {_FLOAT_NOTE}".lstrip()
        converted["format"] = "float"
    return converted


def _json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    json_type = _JSON_TYPES.get(str(schema.get("type")), "string")
    converted = {**schema, "type": json_type}
    if json_type not in ("array", "object"):
        return converted
    # Parity: where a schema has both, its items stay as they are.
    if isinstance(properties := schema.get("properties"), Mapping):
        converted["properties"] = {
            name: _parameter(child) if isinstance(child, Mapping) else child
            for name, child in properties.items()
        }
    elif isinstance(items := schema.get("items"), Mapping):
        converted["items"] = _json_schema(items)
    return converted
