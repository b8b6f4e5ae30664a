"""Records a pack: runs every command of its conversations and writes down what really came out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, TypeAlias

from edge_agentic.core.clock import NS_PER_S
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject, dump_line, dump_pretty, write_atomically
from edge_agentic.trace.bash_call import bash_command
from edge_agentic.trace.loader import read_rows
from edge_agentic.trace.order import check_order
from edge_agentic.trace.pack import MANIFEST_NAME, hash_files, read_manifest, tool_timeout_s
from edge_agentic.trace.tool_output import Executed, render

Execute: TypeAlias = Callable[[str, float], Executed]
"""Runs a bash command line under a time limit in seconds."""
OpenExecutor: TypeAlias = Callable[[Path], AbstractContextManager[Execute]]
"""Opens a place to run commands in: a fresh copy of the workspace given."""

_DELAY_DIGITS: Final = 6


def record_pack(directory: Path, open_executor: OpenExecutor) -> None:
    """Run every command of a pack again; rewrite its trace, and the hashes in its `pack.json`.

    The trace may be a draft: one without tool rows. Tool rows that are there are replaced.
    Nothing is written unless every conversation was recorded, and its check, where it has one,
    failed before the commands and passed after them.

    Raises:
        BadInputError: a wrong manifest or draft, a check that tells nothing, or a pack that can't
            be written.
    """
    manifest = read_manifest(directory)
    if not os.access(directory, os.W_OK):
        raise BadInputError(f"{directory}: is not writable; record a copy of the pack")
    trace_path = directory / manifest["trace"]
    metadata, drafts = read_rows(trace_path)
    limit_s = tool_timeout_s(manifest)
    rows: list[JsonObject] = [] if metadata is None else [metadata]
    for draft in drafts:
        name = draft[0][1]["conversation_id"]
        entry = manifest["conversations"].get(name, {})
        if not entry.get("workspace"):
            raise BadInputError(
                f"{directory / MANIFEST_NAME}: conversation {name!r} has no workspace; "
                "name the directory that its commands start from"
            )
        with open_executor(directory / entry["workspace"]) as execute:
            if check := entry.get("check"):
                _require_check(check, execute, limit_s, name, passes=False)
            recorded = record([row for _, row in draft], execute, limit_s)
            if check:
                _require_check(check, execute, limit_s, name, passes=True)
        check_order(list(enumerate(recorded, start=len(rows) + 1)), trace_path)
        rows += recorded
    write_atomically(trace_path, "".join(dump_line(row) + "\n" for row in rows))
    manifest["files"] = hash_files(directory)
    write_atomically(directory / MANIFEST_NAME, dump_pretty(manifest))


def record(rows: Sequence[JsonObject], execute: Execute, timeout_s: float) -> list[JsonObject]:
    """One conversation with real tool rows in the place of any it had, renumbered.

    The calls of the last assistant row end the conversation and are not run.

    Raises:
        BadInputError: a call that is not `bash` with a `command`.
    """
    spoken = [row for row in rows if row["role"] != "tool"]
    recorded: list[JsonObject] = []
    for position, row in enumerate(spoken, start=1):
        recorded.append({**row, "turn": len(recorded) + 1})
        calls = row.get("tool_calls") or ()
        if not calls or position == len(spoken):
            continue
        results, duration_ns = [], 0
        for call in calls:
            executed = execute(_command(call, row["conversation_id"]), timeout_s)
            duration_ns += executed.duration_ns
            results.append({"tool_call_id": call["id"], "content": render(executed, timeout_s)})
        recorded.append(
            {
                "conversation_id": row["conversation_id"],
                "turn": len(recorded) + 1,
                "role": "tool",
                "tool_results": results,
                "delay_seconds": round(duration_ns / NS_PER_S, _DELAY_DIGITS),
            }
        )
    return recorded


def _command(call: JsonObject, conversation_id: str) -> str:
    command = bash_command(call)
    if command is None:
        raise BadInputError(
            f"conversation {conversation_id!r}: call {call['id']!r} can't be recorded; "
            "only 'bash' with a string 'command' can"
        )
    return command


def _require_check(
    check: str, execute: Execute, timeout_s: float, name: str, *, passes: bool
) -> None:
    if (execute(check, timeout_s).exit_code == 0) is not passes:
        when = "fails after the commands" if passes else "passes before any command"
        raise BadInputError(
            f"conversation {name!r}: its check {when}; it must pass if and only if the job is done"
        )
