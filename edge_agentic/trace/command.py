"""Which bash command lines a kernel takes."""

from __future__ import annotations

from typing import Final

MAX_COMMAND_BYTES: Final = 128 * 1024 - 1
"""Linux refuses a longer word in an argument list (MAX_ARG_STRLEN)."""


def command_problem(command: str) -> str | None:
    """Why no program can be given this command line, and the remedy; None where one can."""
    if "\0" in command:
        return "holds a NUL character, which no program can be given; remove it"
    length = len(command.encode())
    if length > MAX_COMMAND_BYTES:
        return f"has {length} bytes, the kernel takes {MAX_COMMAND_BYTES}; put it into a script"
    return None
