"""The schema of a valid answer is one that llama.cpp's grammars can enforce."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from edge_agentic.chat.constrain import answer_schema

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a file",
        "parameters": {
            "type": "object",
            "description": "what to look at",
            "properties": {
                "path": {"type": "string", "description": "a path", "default": "."},
                "lines": {"type": "array", "items": {"type": "integer"}},
                "mode": {"type": "string", "enum": []},
                "how": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
            },
            "required": ["path", "no_such_parameter"],
        },
    },
}


def accepts(answer: Any) -> bool:
    return jsonschema.Draft202012Validator(answer_schema([LOOK])).is_valid(answer)


def look(**arguments: Any) -> dict[str, Any]:
    return {"name": "look", "arguments": arguments}


@pytest.mark.parametrize(
    "answer",
    [
        look(path="."),
        look(path=".", lines=[1, 2], how={"deep": True}, mode="any"),
        [look(path="a"), look(path="b")],
        {"name": "no_suitable_function", "arguments": {}},
    ],
)
def test_one_call_several_calls_and_a_decline_are_answers(answer: Any) -> None:
    assert accepts(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "text",
        look(),
        look(path=3),
        look(path=".", colour="red"),
        look(path=".", how={"deep": True, "wide": True}),
        look(path=".", lines=["1"]),
        {"name": "other", "arguments": {}},
        [look(path="a")],
        [look(path="a"), {"name": "no_suitable_function", "arguments": {}}],
    ],
)
def test_anything_else_is_none(answer: Any) -> None:
    assert not accepts(answer)


def test_without_functions_only_a_decline_is_left() -> None:
    assert len(answer_schema([])["anyOf"]) == 1
