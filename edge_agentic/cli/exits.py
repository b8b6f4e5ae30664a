"""Which exit code each kind of error and each result has: the one place."""

from __future__ import annotations

from enum import IntEnum

from bfcl_gate.errors import GateDataError
from edge_agentic.core.errors import (
    BadInputError,
    RequirementError,
    StorageError,
)
from tools_sandbox.errors import InvalidRequest, SandboxError, SandboxUnavailable


class ExitCode(IntEnum):
    """What the exit status of a command means."""

    DONE = 0
    INTERNAL_ERROR = 1
    BAD_INPUT = 2
    GATE_FAILED = 3
    RUN_INVALID = 4
    NOT_READY = 6
    INTERRUPTED = 130


_BY_TYPE: tuple[tuple[type[Exception], ExitCode], ...] = (
    (BadInputError, ExitCode.BAD_INPUT),
    (GateDataError, ExitCode.BAD_INPUT),
    (InvalidRequest, ExitCode.BAD_INPUT),
    (RequirementError, ExitCode.NOT_READY),
    (SandboxUnavailable, ExitCode.NOT_READY),
    (SandboxError, ExitCode.RUN_INVALID),
    (StorageError, ExitCode.RUN_INVALID),
    # What the operating system refuses: a name too long, a folder without permission.
    (OSError, ExitCode.BAD_INPUT),
)


def code_of(error: Exception) -> ExitCode | None:
    """The exit code of an error; None for one that only a bug can raise."""
    for kind, code in _BY_TYPE:
        if isinstance(error, kind):
            return code
    return None


def describe(error: Exception) -> str:
    """The error's message; of the operating system's errors the file and the reason."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
