"""A recorded conversation, its generated turns, and the messages that each request carries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import Message, ToolSpec

_MESSAGE_FIELDS: Final = ("role", "content", "name", "tool_calls", "reasoning_content")


@dataclass(frozen=True)
class Turn:
    """One generated turn: what the recording answered, and what came of its calls."""

    index: int
    """Counts the conversation's generated turns from 1."""
    row: int
    """The `turn` number of the assistant row, which counts all rows from 1."""
    expected_calls: tuple[JsonObject, ...]
    """The recorded calls, verbatim, in the OpenAI shape; empty where the answer is text."""
    recorded_results: tuple[JsonObject, ...]
    """`{tool_call_id, content}` of the tool row that follows; empty where none does."""
    delay_s: float | None
    """How long the recorded calls ran, seconds; None where nothing was recorded."""
    max_output_tokens: int | None
    """The output limit that the trace sets for this turn; None where it sets none."""

    def __post_init__(self) -> None:
        if not 1 <= self.index < self.row:
            raise ValueError(f"generated turn {self.index} can't be row {self.row}")
        if self.delay_s is not None and not (self.delay_s >= 0 and math.isfinite(self.delay_s)):
            raise ValueError(f"a delay of {self.delay_s} s is impossible")
        if self.max_output_tokens is not None and self.max_output_tokens < 1:
            raise ValueError(f"an output limit of {self.max_output_tokens} tokens is impossible")


@dataclass(frozen=True)
class Conversation:
    """All rows of one recorded conversation; build it with `conversation_from_rows`."""

    id: str
    system: str | None
    tools: tuple[ToolSpec, ...]
    rows: tuple[JsonObject, ...]
    turns: tuple[Turn, ...]

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("a conversation needs an id")
        if not self.turns or self.turns[-1].row != len(self.rows):
            raise ValueError(f"conversation {self.id!r} doesn't end with a generated turn")

    @cached_property
    def system_messages(self) -> tuple[Message, ...]:
        """The system message that every request starts with; empty where there is none."""
        return () if self.system is None else ({"role": "system", "content": self.system},)

    @cached_property
    def row_messages(self) -> tuple[tuple[Message, ...], ...]:
        """The chat messages that each row stands for, in row order."""
        return tuple(_messages(row) for row in self.rows)


def conversation_from_rows(rows: Sequence[JsonObject]) -> Conversation:
    """A conversation out of its validated rows (`trace.loader` validates)."""
    first = rows[0]
    turns: list[Turn] = []
    for position, row in enumerate(rows):
        if row["role"] != "assistant":
            continue
        following = rows[position + 1] if position + 1 < len(rows) else {}
        tool_row = following if following.get("role") == "tool" else {}
        turns.append(
            Turn(
                index=len(turns) + 1,
                row=position + 1,
                expected_calls=tuple(row.get("tool_calls") or ()),
                recorded_results=tuple(tool_row.get("tool_results", ())),
                delay_s=_number(tool_row, "delay_seconds", float),
                max_output_tokens=_number(rows[position - 1], "max_new_tokens", int)
                or _number(first, "max_new_tokens", int),
            )
        )
    return Conversation(
        id=first["conversation_id"],
        system=first.get("system") or None,
        tools=tuple(first.get("tools") or ()),
        rows=tuple(rows),
        turns=tuple(turns),
    )


def unrecorded_turn(index: int) -> Turn:
    """A generated turn that no recording holds."""
    return Turn(index, index + 1, (), (), None, None)


def request_messages(conversation: Conversation, turn: Turn) -> list[Message]:
    """The messages of the request that `turn` answers.

    The system prompt, then every row before the turn's own: the *recorded* history, whatever a
    model answered since (MLPerf Inference v6.1 edge-agentic rules). A tool row is one message
    per result; calls without text have `content: null`; reasoning is kept. The list is new, its
    messages are shared between calls: treat them as read-only.
    """
    messages: list[Message] = [*conversation.system_messages]
    for row_messages in conversation.row_messages[: turn.row - 1]:
        messages += row_messages
    return messages


def recorded_message(conversation: Conversation, turn: Turn) -> Message:
    """The assistant message that the recording gave in this turn; shared, read-only."""
    return conversation.row_messages[turn.row - 1][0]


def _messages(row: Mapping[str, Any]) -> tuple[Message, ...]:
    if row["role"] == "tool":
        return tuple(
            {"role": "tool", "tool_call_id": result["tool_call_id"], "content": result["content"]}
            for result in row["tool_results"]
        )
    message = {key: row[key] for key in _MESSAGE_FIELDS if row.get(key) is not None}
    if "tool_calls" in message:
        message.setdefault("content", None)
    return (message,)


def _number(row: Mapping[str, Any], key: str, kind: type[Any]) -> Any:
    """The row's number as `kind`; None where it is missing or null."""
    value = row.get(key)
    return None if value is None else kind(value)
