"""The limits on one command, and how well a tier keeps them."""

import os
import resource
from dataclasses import dataclass, fields
from typing import Literal

from tools_sandbox.errors import InvalidRequest

Enforcement = Literal["enforced", "soft", "none"]
"""`enforced`: the kernel keeps it. `soft`: the kernel keeps it for each process but not for their
sum, or a watch ends the command a moment after it goes over. `none`: not limited."""

MIB = 1024 * 1024

_REAL_TIME = (os.SCHED_FIFO, os.SCHED_RR)


@dataclass(frozen=True)
class Limits:
    """What one command may use.

    Raises:
        InvalidRequest: a limit is not a positive whole number.
    """

    output_head_bytes: int = 32 * 1024
    output_tail_bytes: int = 32 * 1024
    file_size_bytes: int = 1024 * MIB
    open_files: int = 1024
    processes: int = 256
    cpu_s: int = 3600
    """CPU time of one process, all of its threads together."""
    memory_bytes: int = 2048 * MIB
    """Memory of all processes of the command together."""
    workspace_bytes: int = 512 * MIB
    """How much the workspace may grow, over all commands."""
    workspace_files: int = 100_000
    """How many files, directories and links the workspace may gain."""
    tmp_bytes: int = 256 * MIB
    home_bytes: int = 64 * MIB
    shm_bytes: int = 64 * MIB

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                raise InvalidRequest(
                    f"limit {field.name} is {value!r}: give a whole number above zero"
                )


@dataclass(frozen=True)
class LimitStatus:
    """One limit as a tier keeps it."""

    name: str
    value: int
    enforcement: Enforcement


def limit_statuses(
    limits: Limits, *, sized_tmpfs: bool, processes: bool, sized_workspace: bool
) -> tuple[LimitStatus, ...]:
    """How well each limit is kept, given what a tier and its workspace can do."""
    in_tmpfs: Enforcement = "enforced" if sized_tmpfs else "none"
    in_workspace: Enforcement = "enforced" if sized_workspace else "soft"
    kept: dict[str, Enforcement] = {
        "open_files": "soft",
        "cpu_s": "soft",
        "memory_bytes": "soft",
        "processes": "enforced" if processes else "none",
        "workspace_bytes": in_workspace,
        "workspace_files": in_workspace,
        "tmp_bytes": in_tmpfs,
        "home_bytes": in_tmpfs,
        "shm_bytes": in_tmpfs,
    }
    return tuple(
        LimitStatus(field.name, getattr(limits, field.name), kept.get(field.name, "enforced"))
        for field in fields(limits)
    )


def prlimit_argv(limits: Limits, *, processes: bool) -> list[str]:
    """The words that start a program under `limits` of the kernel's per-process kind.

    A value above the hard limit of this process is lowered to it, since a process without
    privileges can't raise its own. `processes` says whether to limit their number. A program that
    would inherit real-time priority from this process does not get it.
    """
    wanted = [
        ("core", resource.RLIMIT_CORE, 0),
        ("nofile", resource.RLIMIT_NOFILE, limits.open_files),
        ("fsize", resource.RLIMIT_FSIZE, limits.file_size_bytes),
        ("cpu", resource.RLIMIT_CPU, limits.cpu_s),
        ("data", resource.RLIMIT_DATA, limits.memory_bytes),
    ]
    if processes:
        wanted.append(("nproc", resource.RLIMIT_NPROC, limits.processes))
    limited = ["/usr/bin/prlimit", *(f"--{name}={_capped(kind, v)}" for name, kind, v in wanted)]
    if os.sched_getscheduler(0) in _REAL_TIME:
        limited += ["/usr/bin/chrt", "--other", "0"]
    return limited


def _capped(kind: int, value: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
