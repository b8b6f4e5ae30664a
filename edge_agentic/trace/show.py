"""Describes packs and conversations to a person; nothing of a trace reaches a terminal raw."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import text_content
from edge_agentic.core.text import printable
from edge_agentic.trace.bash_call import bash_command
from edge_agentic.trace.conversation import Conversation
from edge_agentic.trace.pack import TracePack

_MAX_LINES: Final = 12
_MAX_CHARACTERS: Final = 1_200


def describe_pack(pack: TracePack) -> JsonObject:
    """What a pack is and holds, one entry for each conversation."""
    return {
        "name": pack.name,
        "version": pack.version,
        "licence": pack.licence,
        "provenance": pack.provenance,
        "sha256": pack.sha256,
        "tools": list(pack.required_tools),
        "conversations": [
            {
                "id": conversation.id,
                "rows": len(conversation.rows),
                "turns": len(conversation.turns),
                "calls": sum(len(turn.expected_calls) for turn in conversation.turns),
                "characters": _prompt_characters(conversation),
                "workspace": conversation.id in pack.workspaces,
                "check": pack.checks.get(conversation.id),
            }
            for conversation in pack.conversations
        ],
    }


def pack_lines(description: JsonObject) -> Iterator[str]:
    """The result of `describe_pack` as a table."""
    facts = [description[key] for key in ("version", "licence", "provenance") if description[key]]
    yield ", ".join([description["name"], *facts])
    yield f"sha256 {description['sha256']}"
    entries = description["conversations"]
    width = max(len("conversation"), *(len(entry["id"]) for entry in entries))
    yield f"{'conversation':{width}}  turns  calls  characters  workspace"
    for entry in entries:
        yield (
            f"{entry['id']:{width}}  {entry['turns']:5}  {entry['calls']:5}  "
            f"{entry['characters']:10}  {'yes' if entry['workspace'] else 'no'}"
        )


def conversation_lines(conversation: Conversation) -> Iterator[str]:
    """A conversation turn by turn; long texts are shortened."""
    if conversation.system is not None:
        yield "[system]"
        yield from _shortened(conversation.system)
    generated = 0
    for row in conversation.rows:
        if row["role"] == "assistant":
            generated += 1
            yield f"[turn {generated}, row {row['turn']}: assistant]"
            yield from _shortened(row.get("reasoning_content") or "", "  | ")
            yield from _shortened(text_content(row))
            for call in row.get("tool_calls") or ():
                yield from _shortened(_call_text(call), "  $ ")
        elif row["role"] == "tool":
            delay_s = row.get("delay_seconds")
            yield f"[row {row['turn']}: tool{'' if delay_s is None else f', {delay_s} s'}]"
            for result in row["tool_results"]:
                yield from _shortened(result["content"])
        else:
            yield f"[row {row['turn']}: user]"
            yield from _shortened(text_content(row))


def _prompt_characters(conversation: Conversation) -> int:
    """The length of the longest prompt's texts, in characters."""
    total = len(conversation.system or "")
    for row in conversation.rows[:-1]:
        total += len(text_content(row)) + len(row.get("reasoning_content") or "")
        total += sum(len(_call_text(call)) for call in row.get("tool_calls") or ())
        total += sum(len(result["content"]) for result in row.get("tool_results") or ())
    return total


def _call_text(call: JsonObject) -> str:
    """The command of a bash call; of any other call the name and the arguments."""
    command = bash_command(call)
    if command is not None:
        return command
    function = call["function"]
    return f"{function['name']} {json.dumps(function['arguments'], ensure_ascii=False)}"


def _shortened(text: str, prefix: str = "  ") -> Iterator[str]:
    if not text:
        return
    lines = text[:_MAX_CHARACTERS].rstrip("\n").split("\n")[:_MAX_LINES]
    yield from (printable(prefix + line) for line in lines)
    left = len(text.rstrip("\n")) - len("\n".join(lines))
    if left > 0:
        yield f"{prefix}[{left} characters more]"
