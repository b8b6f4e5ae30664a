"""Checks what a caller asks for before anything is started."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from tools_sandbox.errors import InvalidRequest

MAX_TIMEOUT_S = 7 * 24 * 3600
"""The longest time-out of one command: 7 days."""

# The kernel refuses a longer word in an argument list (MAX_ARG_STRLEN).
_MAX_WORD_BYTES = 128 * 1024 - 1
# Refused as workspaces with all below them; shared memory is a usual place for scratch.
_SYSTEM_TREES = {"/usr", "/etc", "/bin", "/sbin", "/boot", "/dev", "/proc", "/sys"}
_SYSTEM_TREES |= {"/lib", "/lib32", "/lib64", "/libx32"}
_SHARED_MEMORY = "/dev/shm"
# Refused by themselves only.
_SYSTEM_DIRECTORIES = {"/", "/home", "/root", "/run", "/var", _SHARED_MEMORY}
_SYSTEM_DIRECTORIES |= {"/tmp", "/var/tmp", "/opt", "/srv", "/mnt", "/media"}


def check_timeout(timeout_s: float) -> None:
    """Refuse a time-out that is none."""
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise InvalidRequest(
            f"time-out {timeout_s} s: give seconds above zero, at most {MAX_TIMEOUT_S} (7 days)"
        )


def checked_workspace(workspace: Path) -> Path:
    """The real path of a directory that commands may write to."""
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


def checked_words(command: str | Sequence[str]) -> list[str]:
    """The words of the program to start, for a bash command line or for words as they are."""
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


def _is_system(real: Path) -> bool:
    """Whether commands that can write here could damage the machine."""
    if str(real) in _SYSTEM_DIRECTORIES:
        return True
    top = str(Path(*real.parts[:2]))
    return top in _SYSTEM_TREES and not real.is_relative_to(_SHARED_MEMORY)
