"""Records a pack: runs every command of its conversations and writes down what really came out."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, TypeAlias

from edge_agentic.core.clock import NS_PER_S
from edge_agentic.core.errors import BadInputError, StorageError
from edge_agentic.core.jsonio import (
    JsonObject,
    dump_line,
    dump_pretty,
    sync_directory,
    write_atomically,
)
from edge_agentic.trace.bash_call import bash_command
from edge_agentic.trace.command import command_problem
from edge_agentic.trace.loader import read_rows
from edge_agentic.trace.manifest import MANIFEST_NAME, Manifest, read_manifest
from edge_agentic.trace.order import NumberedRow, check_order
from edge_agentic.trace.pack import hash_files, require_conversations, require_places
from edge_agentic.trace.rows import check_row
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

    Every file of the pack is checked before the first command runs.

    Raises:
        BadInputError: a wrong file, manifest or draft, a check that tells nothing, or a pack that
            is not writable.
        StorageError: the storage gave out; the pack is as it was.
    """
    manifest = read_manifest(directory)
    trace_path = directory / manifest.trace
    files = hash_files(directory)
    require_places(directory, manifest)
    for place in {directory, trace_path.parent}:
        if not os.access(place, os.W_OK):
            raise BadInputError(f"{place}: is not writable; record a copy of the pack")
    metadata, drafts = read_rows(trace_path)
    require_conversations(directory, manifest, [_id(draft) for draft in drafts])
    for draft in drafts:
        _require_workspace(directory, manifest, _id(draft))
    recorded: list[JsonObject] = [] if metadata is None else [metadata]
    for draft in drafts:
        with open_executor(directory / manifest.workspaces[_id(draft)]) as execute:
            rows = _record_checked(draft, execute, manifest)
        _require_valid(rows, trace_path, len(recorded) + 1)
        recorded += rows
    trace = "".join(dump_line(row) + "\n" for row in recorded)
    files[manifest.trace] = hashlib.sha256(trace.encode()).hexdigest()
    new_manifest = dump_pretty({**manifest.fields, "files": files})
    _replace_together(directory, {trace_path: trace, directory / MANIFEST_NAME: new_manifest})


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


def _record_checked(
    draft: Sequence[NumberedRow], execute: Execute, manifest: Manifest
) -> list[JsonObject]:
    """The recorded rows of one conversation, its check tried before and after."""
    check, limit_s = manifest.checks.get(_id(draft)), manifest.tool_timeout_s
    if check:
        _require_check(check, execute, limit_s, _id(draft), passes=False)
    rows = record([row for _, row in draft], execute, limit_s)
    if check:
        _require_check(check, execute, limit_s, _id(draft), passes=True)
    return rows


def _require_workspace(directory: Path, manifest: Manifest, conversation_id: str) -> None:
    if conversation_id not in manifest.workspaces:
        raise BadInputError(
            f"{directory / MANIFEST_NAME}: conversation {conversation_id!r} has no workspace; "
            "name the directory that its commands start from"
        )


def _require_valid(rows: Sequence[JsonObject], path: Path, first_line: int) -> None:
    """Refuse rows that couldn't be loaded from where they are to be written."""
    numbered = list(enumerate(rows, start=first_line))
    for line, row in numbered:
        check_row(row, path, line)
    check_order(numbered, path)


def _id(rows: Sequence[NumberedRow]) -> str:
    name: str = rows[0][1]["conversation_id"]
    return name


def _command(call: JsonObject, conversation_id: str) -> str:
    command = bash_command(call)
    if command is None:
        problem = "can't be recorded; only 'bash' with a string 'command' can"
    elif fault := command_problem(command):
        problem = f"its command {fault}"
    else:
        return command
    raise BadInputError(f"conversation {conversation_id!r}: call {call['id']!r}: {problem}")


def _require_check(
    check: str, execute: Execute, timeout_s: float, name: str, *, passes: bool
) -> None:
    if (execute(check, timeout_s).exit_code == 0) is not passes:
        when = "fails after the commands" if passes else "passes before any command"
        raise BadInputError(
            f"conversation {name!r}: its check {when}; it must pass if and only if the job is done"
        )


def _replace_together(directory: Path, texts: Mapping[Path, str]) -> None:
    """Replace all of these files or, where the storage gives out, none."""
    try:
        with tempfile.TemporaryDirectory(prefix=".recording-", dir=directory) as scratch:
            staged = {Path(scratch, str(n)): path for n, path in enumerate(texts)}
            for new, path in staged.items():
                write_atomically(new, texts[path])
            for new, path in staged.items():
                new.replace(path)
        for place in {path.parent for path in texts}:
            sync_directory(place)
    except (OSError, StorageError) as error:
        raise StorageError(f"{directory}: the recording can't be kept: {error}") from None
