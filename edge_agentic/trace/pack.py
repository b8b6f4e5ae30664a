"""Loads a trace pack: conversations, their workspaces and checks, every file verified."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from jsonschema import Draft202012Validator

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject, read_object, sha256_file
from edge_agentic.core.resources import data_dir
from edge_agentic.trace.conversation import Conversation
from edge_agentic.trace.loader import load_trace
from edge_agentic.trace.schema_errors import schema_problem

MANIFEST_NAME: Final = "pack.json"
BYTECODE_DIRECTORY: Final = "__pycache__"
"""Never part of a pack: installers compile the Python files that they install."""
DEFAULT_TOOL_TIMEOUT_S: Final = 120.0
"""The limit that the commands of the official trace ran under."""


@dataclass(frozen=True)
class TracePack:
    """Conversations to replay, and what they need to run their tools."""

    name: str
    version: str | None
    """None for a bare trace file, which states none; so for licence and provenance."""
    licence: str | None
    provenance: str | None
    path: Path
    """The pack's directory, or the bare trace file."""
    sha256: str
    """Of `pack.json`, which holds the hash of every other file; of a bare file's bytes."""
    conversations: tuple[Conversation, ...]
    workspaces: Mapping[str, Path]
    """The pristine start directory by conversation id, where there is one; never written to."""
    checks: Mapping[str, str]
    """The command that exits 0 if the job is done, by conversation id, where there is one."""
    required_tools: tuple[str, ...]
    max_output_tokens: int | None
    tool_timeout_s: float

    def __post_init__(self) -> None:
        if not self.conversations:
            raise ValueError("a pack needs a conversation")
        if self.tool_timeout_s <= 0:
            raise ValueError("a tool's time limit must be above zero")


def load_pack(name_or_path: str | Path) -> TracePack:
    """A bundled pack by its name, a pack's directory, or a bare trace file.

    A bundled name wins over a directory of the same name; write `./NAME` for the directory.

    Raises:
        BadInputError: no such pack, a wrong row, or a file that is not as `pack.json` says.
    """
    path = Path(name_or_path)
    if isinstance(name_or_path, str) and name_or_path in bundled_packs():
        path = data_dir("traces") / name_or_path
    if path.is_dir():
        return _load_directory(path)
    if not path.exists():
        raise BadInputError(
            f"{name_or_path}: no such trace; give a bundled pack "
            f"({', '.join(bundled_packs())}), a pack's directory or a JSONL file"
        )
    return TracePack(
        name=path.stem,
        version=None,
        licence=None,
        provenance=None,
        path=path,
        sha256=sha256_file(path),
        conversations=load_trace(path).conversations,
        workspaces={},
        checks={},
        required_tools=(),
        max_output_tokens=None,
        tool_timeout_s=DEFAULT_TOOL_TIMEOUT_S,
    )


def bundled_packs() -> list[str]:
    """The names of the packs that ship with the project, sorted."""
    return sorted(path.parent.name for path in data_dir("traces").glob(f"*/{MANIFEST_NAME}"))


def read_manifest(directory: Path) -> JsonObject:
    """The `pack.json` of a pack, its shape and paths checked, its hashes not.

    Raises:
        BadInputError: no manifest, a wrong field, or a path that leaves the pack.
    """
    path = directory / MANIFEST_NAME
    manifest = read_object(path)
    if problem := schema_problem(_validator(), manifest):
        raise BadInputError(f"{path}: {problem}")
    workspaces = (entry["workspace"] for entry in manifest["conversations"].values())
    for relative in (manifest["trace"], *manifest["files"], *filter(None, workspaces)):
        parts = PurePosixPath(relative).parts
        if PurePosixPath(relative).is_absolute() or ".." in parts or "\0" in relative:
            raise BadInputError(f"{path}: path {relative!r} leaves the pack; keep it inside")
    return manifest


def hash_files(directory: Path) -> dict[str, str]:
    """Hex SHA-256 of every file of a pack but `pack.json`, by relative path, sorted.

    Raises:
        BadInputError: an entry that is neither a plain file nor a directory.
    """
    return {relative: sha256_file(directory / relative) for relative in sorted(_files(directory))}


def tool_timeout_s(manifest: JsonObject) -> float:
    """The time limit, seconds, of each command of a pack."""
    return float(manifest.get("limits", {}).get("tool_timeout_s", DEFAULT_TOOL_TIMEOUT_S))


def _load_directory(directory: Path) -> TracePack:
    manifest = read_manifest(directory)
    _verify_files(directory, manifest["files"])
    trace_path = directory / manifest["trace"]
    conversations = load_trace(trace_path).conversations
    entries: Mapping[str, JsonObject] = manifest["conversations"]
    ids = {conversation.id for conversation in conversations}
    if ids != set(entries):
        odd = min(ids ^ set(entries))
        place = trace_path.name if odd in entries else MANIFEST_NAME
        raise BadInputError(
            f"{directory / MANIFEST_NAME}: conversation {odd!r} is missing in {place}; "
            "list each conversation of the trace once"
        )
    workspaces = {key: directory / e["workspace"] for key, e in entries.items() if e["workspace"]}
    for key, workspace in workspaces.items():
        if not workspace.is_dir():
            raise BadInputError(
                f"{directory / MANIFEST_NAME}: conversation {key!r}: workspace {workspace} "
                "is not a directory"
            )
    return TracePack(
        name=manifest["name"],
        version=manifest["version"],
        licence=manifest["licence"],
        provenance=manifest["provenance"],
        path=directory,
        sha256=sha256_file(directory / MANIFEST_NAME),
        conversations=conversations,
        workspaces=workspaces,
        checks={key: entry["check"] for key, entry in entries.items() if entry["check"]},
        required_tools=tuple(manifest.get("tools", ())),
        max_output_tokens=manifest.get("limits", {}).get("max_output_tokens"),
        tool_timeout_s=tool_timeout_s(manifest),
    )


def _verify_files(directory: Path, recorded: Mapping[str, str]) -> None:
    found = hash_files(directory)
    remedy = "restore the pack, or refresh pack.json with 'edge-agentic traces record'"
    for relative in sorted(found.keys() | recorded.keys()):
        if relative not in found:
            raise BadInputError(f"{directory / relative}: is missing from the pack; {remedy}")
        if relative not in recorded:
            raise BadInputError(f"{directory / relative}: is not listed in pack.json; {remedy}")
        if found[relative] != recorded[relative]:
            raise BadInputError(f"{directory / relative}: differs from its SHA-256; {remedy}")


def _files(directory: Path) -> Iterator[str]:
    """Relative paths of all files; a link could lead out of the pack, so none may be there."""
    pending = [""]
    while pending:
        inside = pending.pop()
        try:
            entries = list(os.scandir(directory / inside))
        except OSError as error:
            raise BadInputError(f"{directory / inside}: can't be read ({error.strerror})") from None
        for entry in entries:
            relative = inside + entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name != BYTECODE_DIRECTORY:
                    pending.append(f"{relative}/")
            elif not entry.is_file(follow_symlinks=False):
                raise BadInputError(
                    f"{entry.path}: is no plain file; a pack holds plain files only"
                )
            elif relative != MANIFEST_NAME:
                yield relative


@cache
def _validator() -> Draft202012Validator:
    schema = Path(__file__).with_name("pack.schema.json").read_text("utf-8")
    return Draft202012Validator(json.loads(schema))
