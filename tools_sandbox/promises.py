"""One attack on a sandbox, and which sandboxes promise to stop it."""

from collections.abc import Callable
from dataclasses import dataclass

from tools_sandbox.info import SandboxInfo
from tools_sandbox.result import Tier
from tools_sandbox.scene import Scene

Promise = Callable[[SandboxInfo], bool]


@dataclass(frozen=True)
class Attack:
    """One attack."""

    name: str
    stopped: Callable[[Scene], bool]
    """Carries the attack out; False where it got through. May raise `AttackNotRun`."""
    promised: Promise
    harmless: bool = True
    """If it gets through, the machine is as it was. Others are tried only where they are promised
    to be stopped."""


def always(_: SandboxInfo) -> bool:
    """Every tier."""
    return True


def isolated(info: SandboxInfo) -> bool:
    """Tier `bubblewrap`."""
    return info.tier is Tier.BUBBLEWRAP


def walled(info: SandboxInfo) -> bool:
    """Tiers `bubblewrap` and `landlock`."""
    return info.tier is not Tier.NONE


def isolated_or_other_user(info: SandboxInfo) -> bool:
    """Tier `bubblewrap`, and `landlock` where root runs commands as somebody else."""
    return isolated(info) or info.command_uid != info.uid


def keeps_signals(info: SandboxInfo) -> bool:
    """Where signals don't reach the host's processes."""
    return isolated_or_other_user(info) or (info.landlock_abi or 0) >= 6


def keeps_shared_memory(info: SandboxInfo) -> bool:
    """Where the host's shared memory can't be filled: bounded, or out of reach."""
    return info.tier is Tier.LANDLOCK or _enforcement(info, "shm_bytes") == "enforced"


def keeps(limit: str) -> Promise:
    """Sandboxes in which the kernel keeps a limit."""
    return lambda info: _enforcement(info, limit) == "enforced"


def watches(limit: str) -> Promise:
    """Sandboxes in which the kernel or a watch keeps a limit."""
    return lambda info: _enforcement(info, limit) != "none"


def _enforcement(info: SandboxInfo, limit: str) -> str:
    return next(known.enforcement for known in info.limits if known.name == limit)
