"""Puts a conversation into the shape that a chat template reads.

What every template gets, as servers of the OpenAI chat API give it to them: one leading system
message, texts in place of lists of text parts, an empty text where there is none, the calls'
arguments as mappings, and tools with all their fields. What a template can't take of this,
`chat.template_changes` changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from edge_agentic.chat.tool_calls import detect_format
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.jsonio import dump_line
from edge_agentic.core.messages import Message, ToolSpec, call_arguments, text_content

SYSTEM_ROLES: Final = ("system", "developer")
_NINE_CHARACTERS: Final = re.compile(r"[a-zA-Z0-9]{9}")
_THOUGHT_FIELDS: Final = ("thinking", "tool_plan")


@dataclass(frozen=True)
class Dialect:
    """The names and forms that a template's own text shows it to use.

    `thought_field`: where it reads a message's reasoning, if not from `reasoning_content`.
    `ids`: whose form of call ids it wants, if any: Mistral's or that of Kimi K2.
    """

    developer_role: bool
    thought_field: str | None
    ids: ToolFormat | None


class Arguments(dict[str, Any]):
    """A call's arguments: a mapping that reads as its JSON text where a template wants text."""

    def __init__(self, values: Mapping[str, Any], text: str) -> None:
        super().__init__(values)
        self.__text = text

    def __str__(self) -> str:
        return self.__text

    def __radd__(self, left: str) -> str:
        return left + self.__text

    def __add__(self, right: str) -> str:
        return self.__text + right


def dialect_of(source: str) -> Dialect:
    """The dialect of a template."""
    found = detect_format(source)
    fields = () if "reasoning_content" in source else _THOUGHT_FIELDS
    return Dialect(
        developer_role="developer" in source,
        thought_field=next((field for field in fields if _reads(source, field)), None),
        ids=found if found in (ToolFormat.MISTRAL, ToolFormat.KIMI_K2) else None,
    )


def prepare_messages(messages: Sequence[Message], dialect: Dialect) -> list[Message]:
    """New messages in the shape that every template gets; the given ones are left as they are."""
    prepared = _with_one_system(map(_plain, messages), dialect)
    _name_results(prepared, dialect.ids)
    if dialect.thought_field is not None:
        for message in prepared:
            _move_thought(message, dialect.thought_field)
    return prepared


def prepare_tools(tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    """The tools in the shape of the OpenAI chat API, with a description and parameters each."""
    prepared = []
    for tool in tools:
        function = dict(tool.get("function", tool))
        if function.get("description") is None:
            function["description"] = ""
        if function.get("parameters") is None:
            function["parameters"] = {"type": "object", "properties": {}}
        prepared.append({"type": "function", "function": function})
    return prepared


def joined_texts(first: Message, second: Message) -> str:
    """The texts of two messages that become one."""
    return f"{text_content(first)}\n\n{text_content(second)}"


def _reads(source: str, field: str) -> bool:
    return re.search(rf"""\bmessage(?:\.|\[\s*['"]){field}\b""", source) is not None


def _plain(message: Message) -> Message:
    """The message with its content as text, its calls' arguments as mappings, and no nulls."""
    plain = {key: value for key, value in message.items() if value not in (None, [])}
    plain["content"] = text_content(message)
    if "tool_calls" in plain:
        plain["tool_calls"] = [_plain_call(call) for call in plain["tool_calls"]]
    return plain


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    arguments = call_arguments(function)
    if arguments is not None:
        given = function["arguments"]
        text = given if isinstance(given, str) else dump_line(dict(arguments))
        function["arguments"] = Arguments(arguments, text)
    return {**call, "function": function}


def _with_one_system(messages: Iterator[Message], dialect: Dialect) -> list[Message]:
    """The messages with those of the system at their head as one."""
    prepared: list[Message] = []
    for message in messages:
        if message.get("role") == "developer" and not dialect.developer_role:
            message["role"] = "system"
        leads = len(prepared) == 1 and prepared[0].get("role") in SYSTEM_ROLES
        if leads and message.get("role") in SYSTEM_ROLES:
            prepared[0]["content"] = joined_texts(prepared[0], message)
        else:
            prepared.append(message)
    return prepared


def _name_results(messages: Sequence[Message], form: ToolFormat | None) -> None:
    """Give each result its function's name, and all calls and results ids of the wanted form."""
    waiting: list[tuple[Any, Any, Any]] = []
    count = 0
    for message in messages:
        if message.get("tool_calls"):
            waiting = []
            for call in message["tool_calls"]:
                name, id_ = call["function"].get("name"), call.get("id")
                call["id"] = _id(id_, name, count, form)
                waiting.append((id_, call["id"], name))
                count += 1
        elif message.get("role") == "tool" and waiting:
            answered = next(
                (entry for entry in waiting if entry[0] == message.get("tool_call_id")), waiting[0]
            )
            waiting.remove(answered)
            message["tool_call_id"] = answered[1]
            message.setdefault("name", answered[2])


def _id(given: Any, name: Any, count: int, form: ToolFormat | None) -> Any:
    if form is ToolFormat.KIMI_K2:
        return f"functions.{name}:{count}"
    if form is ToolFormat.MISTRAL and not _NINE_CHARACTERS.fullmatch(str(given)):
        return f"{count:09d}"
    return given


def _move_thought(message: Message, field: str) -> None:
    """Put reasoning where the template reads it, and beside calls the text with it.

    Such a template has one place for what was said before a call.
    """
    thought = message.get("reasoning_content")
    if thought and field not in message:
        message[field] = thought
        if message.get("tool_calls") and message["content"]:
            message[field] = f"{thought}\n\n{message['content']}"
            message["content"] = ""
