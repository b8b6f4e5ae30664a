"""What conversations are put into another form for, where a chat template can't take theirs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from edge_agentic.chat.template_messages import SYSTEM_ROLES, joined_texts
from edge_agentic.core.messages import Message, ToolSpec, text_content

_NO_THINK: Final = "/no_think"
_TOOL_CALL: Final = "<|tool_call|>"
_PHI_TOOL: Final = "<|/tool|>"


class Change(str, Enum):
    """What a template can't take, and what it gets instead; in the order of application."""

    SINGLE_CALLS = "single_calls"
    """It takes one call a message: each gets a message of its own, its result behind it."""
    TOOLS_IN_SYSTEM = "tools_in_system"
    """It reads the tools only out of the system message, as JSON: Phi-4-mini."""
    NULL_CONTENT = "null_content"
    """It drops calls beside a text, even an empty one: calls without a text have no content."""
    CALLS_IN_TEXT = "calls_in_text"
    """It leaves calls out: they are written into the text, as the model writes them."""
    NO_THINK = "no_think"
    """It turns reasoning off only where the system prompt says `/no_think`."""
    SYSTEM_IN_USER = "system_in_user"
    """It has no system role: that text leads the first user message."""
    JOINED_TURNS = "joined_turns"
    """It wants roles to alternate: messages of one role in a row become one."""
    CONTENT_PARTS = "content_parts"
    """It reads texts only out of lists of parts."""


@dataclass(frozen=True)
class Offer:
    """The template's own text, and the tools that a request offers."""

    source: str
    tools: Sequence[ToolSpec]


def possible_changes(source: str, *, knows_tools: bool, reasoning: bool) -> list[Change]:
    """The changes that can be of use to a template, in the order of application.

    Args:
        source: the template.
        knows_tools: it gets tools and calls.
        reasoning: it is asked for reasoning.
    """
    left_out = set() if knows_tools else set(_OF_CALLS)
    if reasoning or _NO_THINK not in source:
        left_out.add(Change.NO_THINK)
    return [change for change in Change if change not in left_out]


def apply_changes(
    messages: list[Message], changes: Collection[Change], offer: Offer
) -> list[Message]:
    """The messages with these changes; new ones where anything changes."""
    for change in Change:
        if change in changes:
            messages = _CHANGES[change](messages, offer)
    return messages


def _single_calls(messages: list[Message], _: Offer) -> list[Message]:
    single: list[Message] = []
    for message in messages:
        calls = message.get("tool_calls") or []
        if message.get("role") == "tool":
            single.insert(_place_of(message, single), message)
            continue
        single.append({**message, "tool_calls": calls[:1]} if calls else message)
        single += [
            {"role": message["role"], "content": "", "tool_calls": [call]} for call in calls[1:]
        ]
    return single


def _place_of(result: Message, messages: Sequence[Message]) -> int:
    """Where a result goes: behind its call, if that is still without one."""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if message.get("role") not in ("assistant", "tool"):
            break
        calls = message.get("tool_calls") or []
        answered = at + 1 < len(messages) and messages[at + 1].get("role") == "tool"
        if calls and not answered and calls[0].get("id") == result.get("tool_call_id"):
            return at + 1
    return len(messages)


def _tools_in_system(messages: list[Message], offer: Offer) -> list[Message]:
    if not offer.tools:
        return messages
    if not messages or messages[0].get("role") not in SYSTEM_ROLES:
        messages = [{"role": "system", "content": ""}, *messages]
    functions = [tool["function"] for tool in offer.tools]
    return [{**messages[0], "tools": _json(functions)}, *messages[1:]]


def _null_content(messages: list[Message], _: Offer) -> list[Message]:
    return [
        {**message, "content": None}
        if message.get("tool_calls") and not message["content"]
        else message
        for message in messages
    ]


def _calls_in_text(messages: list[Message], offer: Offer) -> list[Message]:
    is_phi = _PHI_TOOL in offer.source
    opening = _TOOL_CALL if is_phi or _TOOL_CALL in offer.source else ""
    closing = "<|/tool_call|>" if is_phi else ""
    written = []
    for message in messages:
        calls = message.get("tool_calls")
        if calls:
            message = {key: value for key, value in message.items() if key != "tool_calls"}
            body = _json([_bare(call["function"]) for call in calls])
            message["content"] = f"{text_content(message)}{opening}{body}{closing}"
        written.append(message)
    return written


def _no_think(messages: list[Message], _: Offer) -> list[Message]:
    if messages and messages[0].get("role") in SYSTEM_ROLES:
        first = messages[0]
        return [{**first, "content": f"{first['content']}\n{_NO_THINK}"}, *messages[1:]]
    return [{"role": "system", "content": _NO_THINK}, *messages]


def _system_in_user(messages: list[Message], _: Offer) -> list[Message]:
    if not messages or messages[0].get("role") not in SYSTEM_ROLES:
        return messages
    system, *others = messages
    for at, message in enumerate(others):
        if message.get("role") == "user":
            others[at] = {**message, "content": joined_texts(system, message)}
            return others
    return [{**system, "role": "user"}, *others]


def _joined_turns(messages: list[Message], _: Offer) -> list[Message]:
    joined: list[Message] = []
    for message in messages:
        before = joined[-1] if joined else {}
        same = message.get("role") == before.get("role") != "tool"
        if same and not (message.get("tool_calls") or before.get("tool_calls")):
            joined[-1] = {**before, **message, "content": joined_texts(before, message)}
        else:
            joined.append(message)
    return joined


def _content_parts(messages: list[Message], _: Offer) -> list[Message]:
    return [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        if message["content"]
        else message
        for message in messages
    ]


def _bare(function: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": function.get("name"), "arguments": function.get("arguments")}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


_OF_CALLS: Final = (
    Change.SINGLE_CALLS,
    Change.TOOLS_IN_SYSTEM,
    Change.NULL_CONTENT,
    Change.CALLS_IN_TEXT,
)
_CHANGES: Final[Mapping[Change, Callable[[list[Message], Offer], list[Message]]]] = {
    Change.SINGLE_CALLS: _single_calls,
    Change.TOOLS_IN_SYSTEM: _tools_in_system,
    Change.NULL_CONTENT: _null_content,
    Change.CALLS_IN_TEXT: _calls_in_text,
    Change.NO_THINK: _no_think,
    Change.SYSTEM_IN_USER: _system_in_user,
    Change.JOINED_TURNS: _joined_turns,
    Change.CONTENT_PARTS: _content_parts,
}
