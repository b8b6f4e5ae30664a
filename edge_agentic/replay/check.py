"""Runs a pack's success check on what a conversation has left in its workspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edge_agentic.trace.pack import TracePack
from tools_sandbox.sandbox import Sandbox


@dataclass(frozen=True)
class Check:
    """A command that exits 0 if the job is done, and the files that it rests on."""

    command: str
    files: Mapping[str, str] = field(default_factory=dict)
    """Text by path in the workspace: put back as it was before the check runs."""


def check_of(pack: TracePack, conversation_id: str) -> Check | None:
    """The check of a conversation; None where it has none."""
    command = pack.checks.get(conversation_id)
    if command is None:
        return None
    return Check(command, pack.check_files.get(conversation_id, {}))


def passes(check: Check, sandbox: Sandbox, timeout_s: float) -> bool:
    """Whether the check passes on the present state of the workspace.

    It runs in a fresh sandbox on a copy of the state, with its own files put back. Where one
    can't be put back, because of what the work has left in its place, the check has failed.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    with sandbox.branch(sandbox.snapshot()) as fresh:
        for path, text in check.files.items():
            if not fresh.files.write_file(path, text).ok:
                return False
        return fresh.run(check.command, timeout_s=timeout_s).exit_code == 0
