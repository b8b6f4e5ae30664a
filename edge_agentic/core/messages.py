"""Chat messages and tool calls, in one internal shape.

A *message* is a mapping in the shape of the OpenAI chat API, kept as a plain `dict` so that
fields this project does not know survive. A *tool call* is a `ToolCall`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from edge_agentic.core.jsonio import JsonObject, dump_line, is_json

Message: TypeAlias = dict[str, Any]
ToolSpec: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """One function call that a model made: a name and a mapping of arguments.

    `truncated`: the model's text ended within the call, so arguments may be missing.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    truncated: bool = False

    def __post_init__(self) -> None:
        """Refuse a call without a name."""
        if not self.name:
            raise ValueError("a tool call needs a name")

    def to_openai(self) -> JsonObject:
        """The OpenAI shape: `{id, type, function: {name, arguments}}`, arguments a JSON string.

        A call that was cut short also has `truncated`.
        """
        cut = {"truncated": True} if self.truncated else {}
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": dump_line(dict(self.arguments))},
            **cut,
        }


def calls_to_openai(calls: Sequence[ToolCall]) -> list[JsonObject]:
    """The OpenAI shape of several calls, in order."""
    return [call.to_openai() for call in calls]


def calls_from_openai(raw_calls: object) -> tuple[tuple[ToolCall, ...], bool]:
    """Tool calls out of their OpenAI shape, and whether some entry was none.

    An entry without a name, or whose arguments are no mapping, is left out.
    """
    entries = raw_calls if isinstance(raw_calls, list) else []
    calls: list[ToolCall] = []
    for entry in entries:
        function = entry.get("function") if isinstance(entry, Mapping) else None
        if not isinstance(function, Mapping):
            continue
        name, arguments = function.get("name"), call_arguments(function)
        if isinstance(name, str) and name and arguments is not None:
            calls.append(ToolCall(str(entry.get("id") or f"call_{len(calls)}"), name, arguments))
    return tuple(calls), len(calls) < len(entries)


def call_arguments(function: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The arguments of an OpenAI-shaped `function`, whether a JSON string or a mapping.

    None where they are neither a mapping nor a JSON string of one, or where they hold what
    JSON has no form for, such as NaN: they could be neither sent nor written down.
    """
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    return arguments if isinstance(arguments, Mapping) and is_json(arguments) else None


def text_content(message: Mapping[str, Any]) -> str:
    """The text of a message: a string, or the joined text parts; empty for null."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    return ""
