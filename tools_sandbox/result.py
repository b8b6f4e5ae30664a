"""What a command did: the value that `Sandbox.run` returns."""

from dataclasses import dataclass
from enum import Enum

from tools_sandbox.watch import WatchedLimit


class Tier(str, Enum):
    """How a command is kept apart from the machine."""

    BUBBLEWRAP = "bubblewrap"
    """Linux namespaces by bubblewrap: no network, no host files or processes."""
    LANDLOCK = "landlock"
    """Rules on files and system calls, on the machine itself: a guard against accidents."""
    NONE = "none"
    """No isolation: for trusted commands only, and only where asked for by name."""


@dataclass(frozen=True)
class Result:
    """The outcome of one command.

    A command that ends by signal n has exit code 128 + n, as bash reports it. A command that met
    its deadline has no exit code: it is None, and `timed_out` is set. One that was ended because it
    went over a watched limit has exit code 137, and `over_limit` names the limit.
    """

    exit_code: int | None
    output: str
    """Standard output and standard error, merged in the order written; invalid UTF-8 replaced."""
    truncated: bool
    """The middle of the output was dropped; a marker line in `output` tells how many bytes."""
    timed_out: bool
    duration_ns: int
    """From the launch, set-up of the sandbox included, until nothing of the command is left."""
    tier: Tier
    output_bytes: int
    """All that the command wrote, dropped bytes included."""
    over_limit: WatchedLimit | None = None

    def __post_init__(self) -> None:
        if self.timed_out != (self.exit_code is None):
            raise ValueError("a command has an exit code unless it timed out")
        if self.exit_code is not None and not 0 <= self.exit_code <= 255:
            raise ValueError(f"exit code {self.exit_code} is outside 0 to 255")
        if self.duration_ns < 0 or self.output_bytes < 0:
            raise ValueError("a duration or a byte count can't be negative")
