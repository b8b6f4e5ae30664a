"""The quick check of a document and jsonschema agree on every document."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from edge_agentic.core.json_schema import Schema

REPOSITORY = Path(__file__).resolve().parent.parent
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "bash", "description": "", "parameters": {}}}
RIGHT: dict[str, list[Any]] = {
    "edge_agentic/trace/row.schema.json": [
        {"conversation_id": "a", "turn": 1, "role": "user", "content": "x", "tools": [TOOL]},
        {"conversation_id": "a", "turn": 1, "role": "user", "content": [{}], "max_new_tokens": 9},
        {"conversation_id": "a", "turn": 2, "role": "assistant", "content": "x"},
        {"conversation_id": "a", "turn": 2, "role": "assistant", "tool_calls": [CALL]},
        {
            "conversation_id": "a",
            "turn": 3,
            "role": "tool",
            "tool_results": [{"tool_call_id": "c1", "content": ""}],
            "delay_seconds": 0.5,
        },
    ],
    "edge_agentic/trace/pack.schema.json": [
        json.loads((REPOSITORY / "traces/edge-mini/pack.json").read_text()),
    ],
    "device_profiles/profile.schema.json": [
        {
            "id": "a",
            "name": "A",
            "engine": {
                "context_tokens": 256,
                "batch_tokens": 1,
                "micro_batch_tokens": 1,
                "gpu_layers": -1,
            },
        },
    ],
}
DOCUMENTS = [(path, document) for path, documents in RIGHT.items() for document in documents]
STRANGE: tuple[Any, ...] = (None, True, 0, -1, 1.0, 1.5, "", "x", "user", [], {}, [None], {"x": 1})


def schema(path: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((REPOSITORY / path).read_text())
    return loaded


@pytest.mark.parametrize(("path", "document"), DOCUMENTS)
def test_a_right_document_is_accepted(path: str, document: object) -> None:
    assert Schema(schema(path)).accepts(document)
    assert not list(Schema(schema(path)).errors(document))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_changed_document_gets_the_verdict_of_jsonschema(data: st.DataObject) -> None:
    path, right = data.draw(st.sampled_from(DOCUMENTS))
    document = copy.deepcopy(right)
    for _ in range(data.draw(st.integers(1, 3))):
        _change(data, document)
    expected = Draft202012Validator(schema(path)).is_valid(document)
    assert Schema(schema(path)).accepts(document) is expected


@pytest.mark.parametrize(
    "unknown", [{"format": "date"}, {"enum": [1]}, {"items": {"uniqueItems": True}}]
)
def test_a_word_that_is_not_known_is_refused_and_not_ignored(unknown: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="JSON schema"):
        Schema(unknown)


def _change(data: st.DataObject, document: Any) -> None:
    """Drop, replace or add something, somewhere in the document."""
    places = list(_places(document))
    holder, key = data.draw(st.sampled_from(places)) if places else (document, None)
    action = data.draw(st.sampled_from(["drop", "replace", "add"]))
    strange = copy.deepcopy(data.draw(st.sampled_from(STRANGE)))
    if key is None:
        document["x"] = strange
    elif action == "drop":
        del holder[key]
    elif action == "replace":
        holder[key] = strange
    elif isinstance(holder, list):
        holder.append(strange)
    else:
        names = ["x", "system", "tools", "content", "tool_calls", "max_new_tokens", "limits"]
        holder[data.draw(st.sampled_from(names))] = strange


def _places(value: Any) -> Any:
    keys = value if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])
