"""Finds the calls in a line of recorded model text, as `inspect calls` reads and prints it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from edge_agentic.chat.tool_calls import parse
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.errors import at_line
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import ToolCall, ToolSpec

_MAX_NAME_CHARACTERS: Final = 40


def parse_call_line(fields: JsonObject, path: Path | str, line: int) -> JsonObject:
    """The calls, the failed attempts, the reasoning and the content of one text.

    Args:
        fields: `text`, `format`, and, if they are known, the offered `tools`.
        path: the file that it stands in.
        line: its line, which makes the calls' ids unique in the file.

    Returns:
        `{calls: [{id, name, arguments}], malformed, reasoning, content}`; a call that the
        text's end cut short also has `truncated`.

    Raises:
        BadInputError: a field is missing or of a wrong type; names path and line.
    """
    text = fields.get("text")
    if not isinstance(text, str):
        raise at_line(path, line, "'text' has to be a string: what the model wrote")
    parsed = parse(
        text,
        _format(fields.get("format"), path, line),
        id_prefix=f"call_{line}",
        tools=_tools(fields.get("tools"), path, line),
    )
    return {
        "calls": [_to_json(call) for call in parsed.calls],
        "malformed": parsed.malformed,
        "reasoning": parsed.reasoning,
        "content": parsed.content,
    }


def _format(name: object, path: Path | str, line: int) -> ToolFormat:
    try:
        return ToolFormat(name)
    except ValueError:
        known = ", ".join(known.value for known in ToolFormat)
        given = "is missing" if name is None else f"is {str(name)[:_MAX_NAME_CHARACTERS]!r}"
        raise at_line(path, line, f"'format' {given}; it has to be one of {known}") from None


def _tools(value: object, path: Path | str, line: int) -> list[ToolSpec]:
    tools = [] if value is None else value
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise at_line(path, line, "'tools' has to be a list of objects, as in a chat request")
    return tools


def _to_json(call: ToolCall) -> JsonObject:
    cut = {"truncated": True} if call.truncated else {}
    return {"id": call.id, "name": call.name, "arguments": dict(call.arguments), **cut}
