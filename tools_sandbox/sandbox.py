"""Opens a sandbox for one workspace and runs commands in it."""

import contextlib
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from tools_sandbox.binaries import Bwrap, find_bwraps
from tools_sandbox.bubblewrap import FORMS, Bubblewrap
from tools_sandbox.errors import InvalidRequest, SandboxError, SandboxUnavailable
from tools_sandbox.info import SandboxInfo
from tools_sandbox.limits import Limits
from tools_sandbox.process import Launch, execute
from tools_sandbox.result import Result, Tier
from tools_sandbox.unisolated import Unisolated

MAX_TIMEOUT_S = 7 * 24 * 3600
"""The longest time-out of one command: 7 days."""

_PROBE = "if [ -w . ]; then echo writable; else echo read-only; fi"
_PROBE_TIMEOUT_S = 30.0
# The kernel refuses a longer word in an argument list (MAX_ARG_STRLEN).
_MAX_WORD_BYTES = 128 * 1024 - 1
# Refused as workspaces with all below them; shared memory is a usual place for scratch.
_SYSTEM_TREES = {"/usr", "/etc", "/bin", "/sbin", "/boot", "/dev", "/proc", "/sys"}
_SYSTEM_TREES |= {"/lib", "/lib32", "/lib64", "/libx32"}
_SHARED_MEMORY = "/dev/shm"
# Refused by themselves only.
_SYSTEM_DIRECTORIES = {"/", "/home", "/root", "/run", "/var", _SHARED_MEMORY}
_DOCS = "see docs/sandbox.md"


class Backend(Protocol):
    """What a tier provides."""

    def info(self) -> SandboxInfo:
        """What the tier is, and how it keeps the limits."""

    def launch(self, words: Sequence[str], status_fd: int) -> AbstractContextManager[Launch]:
        """Prepare to start a program."""

    def close(self) -> None:
        """Release what outlives single commands."""


class Sandbox:
    """Runs commands in one workspace. Made by `open_sandbox`; safe to share between threads."""

    def __init__(self, backend: Backend, workspace: Path, limits: Limits) -> None:
        self.info = backend.info()
        self.workspace = workspace
        self.limits = limits
        self._backend = backend

    def run(self, command: str | Sequence[str], *, timeout_s: float) -> Result:
        """Run a bash command line, or a program with exactly these words, in the workspace.

        `timeout_s` is above zero and at most `MAX_TIMEOUT_S`.

        Each call is a process of its own: only files in the workspace last from one to the next.
        Standard input is empty. A command that leaves children behind returns without them.

        Raises:
            InvalidRequest: the command or the time-out can't be used.
            SandboxError: the sandbox failed, as opposed to the command.
        """
        if not 0 < timeout_s <= MAX_TIMEOUT_S:
            raise InvalidRequest(
                f"time-out {timeout_s} s: give seconds above zero, at most {MAX_TIMEOUT_S} (7 days)"
            )
        words = _words(command)
        return execute(
            lambda status_fd: self._backend.launch(words, status_fd),
            timeout_s=timeout_s,
            limits=self.limits,
        )

    def close(self) -> None:
        """Release what the sandbox holds outside the workspace."""
        self._backend.close()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def open_sandbox(
    workspace: Path,
    *,
    tier: Tier = Tier.BUBBLEWRAP,
    limits: Limits | None = None,
    bwraps: Sequence[Bwrap] | None = None,
) -> Sandbox:
    """Open a sandbox whose commands may write to `workspace` and run there.

    The tier is proved by running a command in it. Tier `none` isolates nothing.

    Args:
        workspace: an existing, writable directory; not one of the system's own.
        tier: how to isolate; there is no fallback to a weaker one.
        limits: what one command may use; the defaults suit coding tasks.
        bwraps: the bubblewrap programs to try in turn; those of the machine unless given.

    Raises:
        InvalidRequest: the workspace can't be used.
        SandboxUnavailable: the tier can't run here; the text names the remedy.
    """
    workspace = _checked(workspace)
    limits = limits or Limits()
    _check_kernel()
    if tier is Tier.NONE:
        sandbox = Sandbox(Unisolated(workspace, limits), workspace, limits)
        problem = _probe(sandbox)
        if problem:
            sandbox.close()
            raise SandboxUnavailable(f"tier none can't run a command: {problem}")
        return sandbox
    return _open_bubblewrap(workspace, limits, find_bwraps() if bwraps is None else bwraps)


def _open_bubblewrap(workspace: Path, limits: Limits, bwraps: Sequence[Bwrap]) -> Sandbox:
    if not bwraps:
        raise SandboxUnavailable(
            "no bubblewrap answers on this machine: "
            "apt install bubblewrap or pip install 'edge-agentic[sandbox]'"
        )
    refused: list[str] = []
    verdicts: list[str] = []
    for bwrap in bwraps:
        for form in FORMS:
            backend = Bubblewrap(workspace, limits, bwrap, form, tuple(refused))
            sandbox = Sandbox(backend, workspace, limits)
            problem = _probe(sandbox)
            if problem is None:
                return sandbox
            refused.append(f"{bwrap.path} {bwrap.version} ({bwrap.origin}), {form.name}: {problem}")
        # The least demanding form fails for the reason that the others can't avoid either.
        verdicts.append(refused[-1])
    raise SandboxUnavailable(f"{'; '.join(verdicts)}; {_remedy(verdicts[0])}")


def _probe(sandbox: Sandbox) -> str | None:
    """Run a command; the reason why that does not work, if it does not."""
    try:
        result = sandbox.run(_PROBE, timeout_s=_PROBE_TIMEOUT_S)
    except SandboxError as error:
        if "Can't chdir to" not in str(error):
            return str(error)
    else:
        if result.output == "writable\n":
            return None
        if result.output != "read-only\n":
            return result.output.strip() or "no answer to a test command"
    sandbox.close()
    raise InvalidRequest(
        f"workspace {str(sandbox.workspace)!r}: not writable inside the sandbox; "
        "it must belong to the user who runs it"
    )


def _remedy(problem: str) -> str:
    if "setting up uid map: Permission denied" in problem or "RTM_NEWADDR" in problem:
        return (
            "AppArmor forbids user namespaces: "
            f"load a profile that grants userns to /usr/bin/bwrap, {_DOCS}"
        )
    return f"for what a machine or a container must allow, {_DOCS}"


def _check_kernel() -> None:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        raise SandboxUnavailable(
            f"process descriptors don't work here ({error.strerror}): Linux 5.3 or later is needed"
        ) from None


def _checked(workspace: Path) -> Path:
    try:
        real = workspace.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise InvalidRequest(f"workspace {str(workspace)!r}: no such directory") from None
    if not real.is_dir():
        raise InvalidRequest(f"workspace {str(workspace)!r}: not a directory")
    if _is_system(real):
        raise InvalidRequest(
            f"workspace {str(workspace)!r}: belongs to the system, "
            "and commands may write to all of a workspace; give a directory of its own"
        )
    if not os.access(real, os.R_OK | os.W_OK | os.X_OK):
        raise InvalidRequest(
            f"workspace {str(workspace)!r}: not writable; change its mode or owner"
        )
    return real


def _is_system(real: Path) -> bool:
    """Whether commands that can write here could damage the machine."""
    if str(real) in _SYSTEM_DIRECTORIES:
        return True
    top = str(Path(*real.parts[:2]))
    return top in _SYSTEM_TREES and not real.is_relative_to(_SHARED_MEMORY)


def _words(command: str | Sequence[str]) -> list[str]:
    words = (
        ["/bin/bash", "--noprofile", "--norc", "-c", command]
        if isinstance(command, str)
        else list(command)
    )
    if not words or not words[0]:
        raise InvalidRequest("no program to run: give at least one word")
    for word in words:
        encoded = b""
        with contextlib.suppress(UnicodeEncodeError):
            encoded = os.fsencode(word)
        if word and not encoded:
            raise InvalidRequest("the command holds characters that are not valid Unicode")
        if b"\0" in encoded:
            raise InvalidRequest("the command holds a NUL character, which no program can be given")
        if len(encoded) > _MAX_WORD_BYTES:
            raise InvalidRequest(
                f"the command has {len(encoded)} bytes in one word; "
                f"the kernel takes {_MAX_WORD_BYTES}: write long text to a file instead"
            )
    return words
