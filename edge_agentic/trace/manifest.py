"""Reads a pack's `pack.json`, and checks all that it says by itself."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.json_schema import Schema
from edge_agentic.core.jsonio import JsonObject, read_object
from edge_agentic.trace.command import command_problem
from edge_agentic.trace.schema_errors import schema_problem

MANIFEST_NAME: Final = "pack.json"
DEFAULT_TOOL_TIMEOUT_S: Final = 120.0
"""The limit that the commands of the official trace ran under."""


@dataclass(frozen=True)
class Manifest:
    """What `pack.json` says; paths are relative to the pack, in their shortest form."""

    fields: JsonObject
    """All of it, as it was read."""
    trace: str
    files: Mapping[str, str]
    """Hex SHA-256 of every file of the pack but `pack.json`."""
    conversation_ids: frozenset[str]
    workspaces: Mapping[str, str]
    """The start directory by conversation id, where there is one."""
    checks: Mapping[str, str]
    """The command that exits 0 if the job is done, by conversation id, where there is one."""
    check_files: Mapping[str, tuple[str, ...]]
    """Files that a check rests on, by conversation id, relative to the workspace."""
    max_output_tokens: int | None
    tool_timeout_s: float


def read_manifest(directory: Path) -> Manifest:
    """The `pack.json` of a pack; `trace.pack` compares it with what the directory holds.

    Raises:
        BadInputError: no manifest, a wrong field, a path that leaves the pack, or a check that no
            kernel takes.
    """
    path = directory / MANIFEST_NAME
    _require_plain_file(path)
    fields = read_object(path)
    if problem := schema_problem(_schema(), fields):
        raise BadInputError(f"{path}: {problem}")
    entries, limits = fields["conversations"], fields.get("limits", {})
    checks = {key: entry["check"] for key, entry in entries.items() if entry["check"]}
    for key, check in checks.items():
        if problem := command_problem(check):
            raise BadInputError(f"{path}: conversation {key!r}: its check {problem}")
    check_files = {
        key: tuple(_inside(file, path) for file in entry["check_files"])
        for key, entry in entries.items()
        if entry.get("check_files")
    }
    for key in check_files:
        if key not in checks or not entries[key]["workspace"]:
            raise BadInputError(
                f"{path}: conversation {key!r}: 'check_files' needs a workspace and a check"
            )
    tokens = limits.get("max_output_tokens")
    return Manifest(
        fields=fields,
        trace=_inside(fields["trace"], path),
        files={_inside(file, path): sha256 for file, sha256 in fields["files"].items()},
        conversation_ids=frozenset(entries),
        workspaces={
            key: _inside(entry["workspace"], path)
            for key, entry in entries.items()
            if entry["workspace"]
        },
        checks=checks,
        check_files=check_files,
        # JSON Schema takes 1.0 for an integer.
        max_output_tokens=None if tokens is None else int(tokens),
        tool_timeout_s=float(limits.get("tool_timeout_s", DEFAULT_TOOL_TIMEOUT_S)),
    )


def _require_plain_file(path: Path) -> None:
    """Refuse a link, which could lead out of the pack, and a pipe, which could keep us waiting."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return  # Reading it says why it can't be.
    if not stat.S_ISREG(mode):
        raise BadInputError(f"{path}: is no plain file; a pack holds plain files only")


def _inside(relative: str, path: Path) -> str:
    """A path of the manifest in its shortest form."""
    pure = PurePosixPath(relative)
    if pure.is_absolute() or ".." in pure.parts or "\0" in relative:
        raise BadInputError(f"{path}: path {relative!r} leaves the pack; keep it inside")
    return pure.as_posix()


@cache
def _schema() -> Schema:
    return Schema.read(Path(__file__).with_name("pack.schema.json"))
