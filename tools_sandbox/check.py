"""A live battery: carries out real attacks on a sandbox and tells which of them it stops."""

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools_sandbox.attacks import all_attacks
from tools_sandbox.limits import MIB, Limits
from tools_sandbox.removal import remove_tree
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import Sandbox
from tools_sandbox.scene import AttackNotRun, Scene

CHECK_LIMITS = Limits(
    file_size_bytes=32 * MIB,
    processes=64,
    cpu_s=2,
    memory_bytes=256 * MIB,
    workspace_bytes=64 * MIB,
    workspace_files=2000,
    tmp_bytes=16 * MIB,
    home_bytes=16 * MIB,
    shm_bytes=16 * MIB,
)
"""Limits that a check goes over without asking much of a small board."""


_NOT_HARMLESS = "nothing promises to stop it here, and it would change the machine"


@dataclass(frozen=True)
class AttackOutcome:
    """What became of one attack."""

    name: str
    stopped: bool
    promised: bool
    """The sandbox, as it runs on this machine, undertakes to stop it."""


@dataclass(frozen=True)
class NotRun:
    """An attack that could not be carried out, so that it proves nothing."""

    name: str
    reason: str


@dataclass(frozen=True)
class CheckReport:
    """What a sandbox stops, against what it promises."""

    tier: Tier
    attacks: tuple[AttackOutcome, ...]
    not_run: tuple[NotRun, ...]

    @property
    def broken(self) -> tuple[str, ...]:
        """The attacks that got through although the sandbox promises to stop them."""
        return tuple(each.name for each in self.attacks if each.promised and not each.stopped)

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return {
            "tier": self.tier.value,
            "attacks": [asdict(each) for each in self.attacks],
            "not_run": [asdict(each) for each in self.not_run],
        }


def run_battery(sandbox: Sandbox) -> CheckReport:
    """Attack a sandbox in every way known. Takes half a minute.

    The attacks leave files in the workspace: give a throw-away one.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    outcomes: list[AttackOutcome] = []
    not_run: list[NotRun] = []
    outside = Path(tempfile.mkdtemp(prefix="outside-"))
    try:
        for attack in all_attacks():
            promised = attack.promised(sandbox.info)
            if not promised and not attack.harmless:
                not_run.append(NotRun(attack.name, _NOT_HARMLESS))
                continue
            try:
                stopped = attack.stopped(Scene(sandbox, outside))
            except AttackNotRun as reason:
                not_run.append(NotRun(attack.name, str(reason)))
            else:
                outcomes.append(AttackOutcome(attack.name, stopped, promised))
    finally:
        remove_tree(outside)
    return CheckReport(sandbox.info.tier, tuple(outcomes), tuple(not_run))
