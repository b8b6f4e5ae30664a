"""One exception type per kind of remedy; `cli.exits` maps them to exit codes."""

from __future__ import annotations

from pathlib import Path


class EdgeAgenticError(Exception):
    """Base of every error whose message alone tells the user what to do."""


class BadInputError(EdgeAgenticError):
    """A file, option or model that the user gave can't be used as it is (exit code 2)."""


class RequirementError(EdgeAgenticError):
    """The machine lacks what the run needs: a sandbox, a tool, a package (exit code 6)."""


class StorageError(EdgeAgenticError):
    """Results can't be written any more; what was written is whole (exit code 4)."""


class RunInterrupted(KeyboardInterrupt):
    """A signal asked the run to stop; what was measured is on disk (exit code 130).

    Not an `Exception`: no handler of ordinary errors may swallow it.
    """

    def __init__(self, signal_name: str) -> None:
        super().__init__(f"interrupted by {signal_name}")
        self.signal_name = signal_name


def signal_name(interruption: KeyboardInterrupt) -> str:
    """The signal behind an interruption; Python's own exception stands for SIGINT."""
    return interruption.signal_name if isinstance(interruption, RunInterrupted) else "SIGINT"


def at_line(path: Path | str, line: int, message: str) -> BadInputError:
    """A `BadInputError` that starts with `path:line:`, the form editors jump to."""
    return BadInputError(f"{path}:{line}: {message}")
