"""Finds the tool calls in a model's text.

Formats: `hermes` (`<tool_call>{"name": …, "arguments": {…}}</tool_call>`, several in a row) and
`generic` (one JSON object or a list of them, the form that `chat.generic` asks for). JSON is
read by a JSON decoder from its opening bracket, so markup inside strings is content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from edge_agentic.chat.generic import DECLINE_NAME
from edge_agentic.core.jsonio import is_json
from edge_agentic.core.messages import ToolCall


class ToolFormat(str, Enum):
    """How a model writes its tool calls."""

    GENERIC = "generic"
    HERMES = "hermes"


@dataclass(frozen=True)
class ParsedText:
    """A model's text, taken apart.

    `malformed`: the text tried to call a tool, and some part of it could not be parsed.
    """

    content: str
    reasoning: str | None = None
    calls: tuple[ToolCall, ...] = ()
    malformed: bool = False


@dataclass
class _Found:
    calls: list[Mapping[str, Any]] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    malformed: bool = False


_DECODER: Final = json.JSONDecoder()
_THINK_OPEN, _THINK_CLOSE = "<think>", "</think>"
_CALL_OPEN, _CALL_CLOSE = "<tool_call>", "</tool_call>"
_CODE_FENCE: Final = re.compile(r"\A```(?:json)?[ \t]*\n(.*?)(?:\n```)?\Z", re.DOTALL)
_CALL_START: Final = re.compile(r'\A[\[{\s]*\{\s*"name"\s*:')


def detect_format(template: str | None) -> ToolFormat | None:
    """The format that a chat template asks for; None if it is one this module can't read."""
    if template is None or "tools" not in template:
        return ToolFormat.GENERIC
    if "<tool_call>" in template and "<function=" not in template:
        return ToolFormat.HERMES
    return None


def parse(text: str, tool_format: ToolFormat, *, id_prefix: str) -> ParsedText:
    """Take a model's text apart. No text raises.

    Calls inside `<think>` are drafts and stay in the reasoning; an unclosed `<think>` is
    reasoning to its end. A call of the reserved declining function is no call.

    Args:
        text: what the model wrote.
        tool_format: how it writes calls.
        id_prefix: start of the calls' ids; unique in the conversation.
    """
    reasoning, answer = _split_reasoning(text)
    found = _find_hermes(answer) if tool_format is ToolFormat.HERMES else _find_generic(answer)
    calls: list[ToolCall] = []
    for raw in found.calls:
        name, arguments = raw["name"], raw["arguments"]
        if name != DECLINE_NAME:
            calls.append(ToolCall(f"{id_prefix}_{len(calls)}", name, arguments))
    content = "".join(found.rest).strip()
    return ParsedText(content, reasoning, tuple(calls), found.malformed)


def _split_reasoning(text: str) -> tuple[str | None, str]:
    reasoning: list[str] = []
    answer: list[str] = []
    position = 0
    while (start := text.find(_THINK_OPEN, position)) >= 0:
        answer.append(text[position:start])
        end = text.find(_THINK_CLOSE, start)
        if end < 0:
            reasoning.append(text[start + len(_THINK_OPEN) :])
            position = len(text)
            break
        reasoning.append(text[start + len(_THINK_OPEN) : end])
        position = end + len(_THINK_CLOSE)
    answer.append(text[position:])
    thought = "\n".join(part.strip() for part in reasoning)
    return (thought or None) if reasoning else None, "".join(answer)


def _find_generic(text: str) -> _Found:
    body = text.strip()
    if fenced := _CODE_FENCE.match(body):
        body = fenced.group(1).strip()
    if not body.startswith(("{", "[")):
        return _Found(rest=[text])
    decoded = _decode(body, 0)
    if decoded is None:
        return _Found(rest=[text], malformed=_CALL_START.match(body) is not None)
    value, end = decoded
    items = value if isinstance(value, list) else [value]
    shaped = [call for item in items if (call := _as_call(item)) is not None]
    if not shaped:
        return _Found(rest=[text], malformed=any(_names_a_function(item) for item in items))
    return _Found(calls=shaped, rest=[body[end:]], malformed=len(shaped) < len(items))


def _find_hermes(text: str) -> _Found:
    found = _Found()
    position = 0
    while (start := text.find(_CALL_OPEN, position)) >= 0:
        found.rest.append(text[position:start])
        position = start + len(_CALL_OPEN)
        position = _read_hermes_block(text, position, found)
    found.rest.append(text[position:].replace(_CALL_CLOSE, ""))
    return found


def _read_hermes_block(text: str, position: int, found: _Found) -> int:
    """Read the JSON values of one block; return where the text goes on."""
    read_any = False
    while (opening := _next_brace(text, position)) is not None:
        decoded = _decode(text, opening)
        if decoded is None:
            break
        value, position = decoded
        read_any = True
        call = _as_call(value)
        if call is None:
            found.malformed = True
        else:
            found.calls.append(call)
    if not read_any:
        found.malformed = True
    following = text.find(_CALL_OPEN, position)
    # Bounded by the next block, so that a text of many openers takes linear time.
    close = text.find(_CALL_CLOSE, position, following if following >= 0 else len(text))
    if close >= 0:
        if text[position:close].strip():
            found.malformed = True
        return close + len(_CALL_CLOSE)
    if following >= 0:
        return following
    return position if read_any else len(text)


def _next_brace(text: str, position: int) -> int | None:
    while position < len(text) and text[position].isspace():
        position += 1
    return position if position < len(text) and text[position] == "{" else None


def _decode(text: str, start: int) -> tuple[Any, int] | None:
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _as_call(value: object) -> Mapping[str, Any] | None:
    if not isinstance(value, Mapping) or not _names_a_function(value):
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        decoded = _decode(arguments, 0)
        arguments = decoded[0] if decoded else None
    call = {"name": value["name"], "arguments": arguments}
    # NaN and lone surrogates could be neither sent nor written down.
    return call if isinstance(arguments, Mapping) and is_json(call) else None


def _names_a_function(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str) and bool(value["name"])
