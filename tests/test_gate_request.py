from typing import Any

import pytest

from bfcl_gate.cases import Case
from bfcl_gate.request import messages, tools


def case(parameters: dict[str, Any], content: str | None = "hi", name: str = "f") -> Case:
    function = {"name": name, "description": "About it.", "parameters": parameters}
    message = {"role": "user", "content": content}
    return Case("irrelevance_0", "irrelevance", (message,), (function,))


def schema(of: dict[str, Any]) -> Any:
    return tools(case(of))[0]["function"]["parameters"]


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
    converted = schema({"type": "dict", "properties": {"type": {"type": "float"}}})
    assert converted["properties"] == {"type": {"type": "number"}}
