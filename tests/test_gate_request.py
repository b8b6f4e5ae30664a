import hashlib
import json
from pathlib import Path
from typing import Any, Final

import pytest

from bfcl_gate.cases import Case, load_dataset
from bfcl_gate.request import messages, tools

OFFICIAL_REQUESTS_SHA256: Final = "1e283cf0b0912f37ac9f4d7e5f8e0627ed20d2fd049b93d3d85bebbc976a2eb7"
"""Of the JSON of [id, messages, tools] of each case, as the reference converts them."""


def case(parameters: dict[str, Any], content: str | None = "hi", name: str = "f") -> Case:
    function = {"name": name, "description": "About it.", "parameters": parameters}
    message = {"role": "user", "content": content}
    return Case("irrelevance_0", "irrelevance", (message,), (function,))


def schema(of: dict[str, Any]) -> Any:
    """The JSON schema of a parameter that is declared as `of`."""
    offered = tools(case({"type": "dict", "properties": {"p": of}}))
    return offered[0]["function"]["parameters"]["properties"]["p"]


def test_null_content_becomes_the_empty_string() -> None:
    assert messages(case({}, content=None)) == [{"role": "user", "content": ""}]
    assert messages(case({}, content="hi")) == [{"role": "user", "content": "hi"}]


def test_a_function_becomes_an_openai_tool_without_dots_in_its_name() -> None:
    parameters = {"type": "dict", "properties": {"x.y": {"type": "any"}}, "required": ["x.y"]}
    assert tools(case(parameters, name="geo.area.circle")) == [
        {
            "type": "function",
            "function": {
                "name": "geo_area_circle",
                "description": "About it.",
                "parameters": {
                    "type": "object",
                    "properties": {"x.y": {"type": "string"}},
                    "required": ["x.y"],
                },
            },
        }
    ]


@pytest.mark.parametrize(
    ("declared", "json_type"),
    [
        ("dict", "object"),
        ("float", "number"),
        ("tuple", "array"),
        ("array", "array"),
        ("any", "string"),
        ("string", "string"),
        ("integer", "integer"),
        ("boolean", "boolean"),
        ("a type nobody knows", "string"),
        ("long", "integer"),
        ("Bigint", "integer"),
        ("double", "number"),
        ("char", "string"),
        ("String", "string"),
        ("Boolean", "string"),
        ("ArrayList", "array"),
        ("HashMap", "object"),
    ],
)
def test_types_become_those_of_json_schema(declared: str, json_type: str) -> None:
    assert schema({"type": declared})["type"] == json_type


def test_types_are_converted_at_every_depth_and_the_rest_stays() -> None:
    point = {"type": "tuple", "items": {"type": "float"}, "description": "A point.", "minItems": 2}
    path = {"type": "array", "items": {"type": "dict", "properties": {"at": point}}}
    converted = schema({"type": "dict", "properties": {"path": path}})
    assert converted["properties"]["path"]["items"] == {
        "type": "object",
        "properties": {
            "at": {
                "type": "array",
                "items": {"type": "number"},
                "description": "A point.",
                "minItems": 2,
            }
        },
    }
    assert point["type"] == "tuple"


def test_a_parameter_named_type_is_no_type() -> None:
    converted = schema({"type": "dict", "properties": {"type": {"type": "long"}}})
    assert converted["properties"] == {"type": {"type": "integer"}}


def test_a_float_is_told_in_words_too_but_no_float_of_an_array() -> None:
    told = {"type": "number", "format": "float", "description": "In m. This is a float type value."}
    assert schema({"type": "float", "description": "In m."}) == told
    point = {"type": "dict", "properties": {"x": {"type": "float", "description": "In m."}}}
    assert schema({"type": "array", "items": point})["items"]["properties"]["x"] == told
    assert schema({"type": "array", "items": {"type": "float"}})["items"] == {"type": "number"}
    assert schema({"type": "double"}) == {"type": "number"}


def test_a_message_carries_nothing_but_role_and_content() -> None:
    message = {"role": "user", "content": None, "name": "x"}
    asked = Case("irrelevance_0", "irrelevance", (message,), ())
    assert messages(asked) == [{"role": "user", "content": ""}]


def test_every_official_request_is_the_one_that_the_reference_sends(official_bfcl: Path) -> None:
    digest = hashlib.sha256()
    for asked in load_dataset(official_bfcl).cases:
        digest.update(json.dumps([asked.id, messages(asked), tools(asked)]).encode())
    assert digest.hexdigest() == OFFICIAL_REQUESTS_SHA256
