"""Loads a trace pack: conversations, their workspaces and checks, every file verified."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import read_bytes, sha256_file
from edge_agentic.core.resources import data_dir
from edge_agentic.core.text import one_line
from edge_agentic.trace.conversation import Conversation
from edge_agentic.trace.loader import load_trace
from edge_agentic.trace.manifest import (
    DEFAULT_TOOL_TIMEOUT_S,
    MANIFEST_NAME,
    Manifest,
    read_manifest,
)

BYTECODE_DIRECTORY: Final = "__pycache__"
"""Never part of a pack: installers compile the Python files that they install."""


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
    check_files: Mapping[str, Mapping[str, str]]
    """The files that a check rests on, by conversation id: text by path in the workspace."""
    required_tools: tuple[str, ...]
    max_output_tokens: int | None
    tool_timeout_s: float

    def __post_init__(self) -> None:
        if not self.conversations:
            raise ValueError("a pack needs a conversation")
        if not (math.isfinite(self.tool_timeout_s) and self.tool_timeout_s > 0):
            raise ValueError(f"a tool's time limit of {self.tool_timeout_s} s is impossible")


def load_pack(name_or_path: str | Path) -> TracePack:
    """A bundled pack by its name, a pack's directory, or a bare trace file.

    A bundled name wins over a directory of the same name; write `./NAME` for the directory.

    Raises:
        BadInputError: no such pack, a wrong row, or a file that is not as `pack.json` says.
    """
    path = Path(name_or_path)
    if isinstance(name_or_path, str) and name_or_path in bundled_packs():
        path = data_dir("traces") / name_or_path
    try:
        is_directory, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise BadInputError(f"{name_or_path}: can't be read ({error.strerror})") from None
    if is_directory:
        return _load_directory(path)
    if not exists:
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
        check_files={},
        required_tools=(),
        max_output_tokens=None,
        tool_timeout_s=DEFAULT_TOOL_TIMEOUT_S,
    )


def bundled_packs() -> list[str]:
    """The names of the packs that ship with the project, sorted."""
    return sorted(path.parent.name for path in data_dir("traces").glob(f"*/{MANIFEST_NAME}"))


def hash_files(directory: Path) -> dict[str, str]:
    """Hex SHA-256 of every file of a pack but `pack.json`, by relative path, sorted.

    Raises:
        BadInputError: an entry that is neither a plain file nor a directory, whose name can't be
            written down, or that can't be read.
    """
    files = sorted(path for path, is_directory in _entries(directory) if not is_directory)
    return {path: sha256_file(directory / path) for path in files if path != MANIFEST_NAME}


def require_places(directory: Path, manifest: Manifest) -> None:
    """Refuse a manifest whose trace is no file of the pack, or a workspace no directory of it.

    The names are looked up among what the pack holds, never on the machine.

    Raises:
        BadInputError: names `pack.json`, the conversation and the remedy.
    """
    path = directory / MANIFEST_NAME
    is_directory = {".": True, **dict(_entries(directory))}
    if manifest.trace == MANIFEST_NAME or is_directory.get(manifest.trace) is not False:
        raise BadInputError(f"{path}: trace {manifest.trace!r} is no file of the pack; name one")
    for key, workspace in manifest.workspaces.items():
        if not is_directory.get(workspace):
            raise BadInputError(
                f"{path}: conversation {key!r}: workspace {workspace!r} is no directory of the "
                "pack; name one"
            )


def require_conversations(directory: Path, manifest: Manifest, ids: Collection[str]) -> None:
    """Refuse a manifest that doesn't list exactly the conversations of the trace.

    Raises:
        BadInputError: names `pack.json`, the conversation and the remedy.
    """
    if odd := manifest.conversation_ids.symmetric_difference(ids):
        name = min(odd)
        place = manifest.trace if name in manifest.conversation_ids else MANIFEST_NAME
        raise BadInputError(
            f"{directory / MANIFEST_NAME}: conversation {name!r} is missing in {place}; "
            "list each conversation of the trace once"
        )


def _load_directory(directory: Path) -> TracePack:
    manifest = read_manifest(directory)
    _verify_files(directory, manifest.files)
    require_places(directory, manifest)
    conversations = load_trace(directory / manifest.trace).conversations
    require_conversations(directory, manifest, [conversation.id for conversation in conversations])
    fields = manifest.fields
    return TracePack(
        name=fields["name"],
        version=fields["version"],
        licence=fields["licence"],
        provenance=fields["provenance"],
        path=directory,
        sha256=sha256_file(directory / MANIFEST_NAME),
        conversations=conversations,
        workspaces={key: directory / inside for key, inside in manifest.workspaces.items()},
        checks=manifest.checks,
        check_files={key: _check_files(directory, manifest, key) for key in manifest.check_files},
        required_tools=tuple(fields.get("tools", ())),
        max_output_tokens=manifest.max_output_tokens,
        tool_timeout_s=manifest.tool_timeout_s,
    )


def _check_files(directory: Path, manifest: Manifest, conversation_id: str) -> dict[str, str]:
    workspace = PurePosixPath(manifest.workspaces[conversation_id])
    texts = {}
    for name in manifest.check_files[conversation_id]:
        inside = (workspace / name).as_posix()
        if inside not in manifest.files:
            raise BadInputError(
                f"{directory / MANIFEST_NAME}: conversation {conversation_id!r}: check file "
                f"{name!r} is no file of its workspace; name one"
            )
        try:
            texts[name] = read_bytes(directory / inside).decode("utf-8")
        except UnicodeDecodeError:
            raise BadInputError(
                f"{directory / inside}: is a check file, which must be UTF-8 text"
            ) from None
    return texts


def _verify_files(directory: Path, recorded: Mapping[str, str]) -> None:
    found = hash_files(directory)
    remedy = "restore the pack, or refresh pack.json with 'edge-agentic traces record'"
    for relative in sorted(found.keys() | recorded.keys()):
        shown = f"{directory}/{one_line(relative)}"
        if relative not in found:
            raise BadInputError(f"{shown}: is missing from the pack; {remedy}")
        if relative not in recorded:
            raise BadInputError(f"{shown}: is not listed in pack.json; {remedy}")
        if found[relative] != recorded[relative]:
            raise BadInputError(f"{shown}: differs from its SHA-256; {remedy}")


def _entries(directory: Path) -> Iterator[tuple[str, bool]]:
    """Relative path of each file and directory of a pack, and whether it is a directory.

    A link could lead out of the pack, so none may be there.
    """
    pending = [""]
    while pending:
        inside = pending.pop()
        try:
            entries = list(os.scandir(directory / inside))
        except OSError as error:
            raise BadInputError(f"{directory / inside}: can't be read ({error.strerror})") from None
        for entry in entries:
            relative = inside + entry.name
            shown = f"{directory}/{one_line(relative)}"
            if one_line(entry.name) != entry.name:
                raise BadInputError(
                    f"{shown}: its name holds control characters, or bytes that are not UTF-8; "
                    "rename it"
                )
            is_directory = entry.is_dir(follow_symlinks=False)
            if not is_directory and not entry.is_file(follow_symlinks=False):
                raise BadInputError(f"{shown}: is no plain file; a pack holds plain files only")
            if is_directory:
                if entry.name == BYTECODE_DIRECTORY:
                    continue
                pending.append(f"{relative}/")
            yield relative, is_directory
