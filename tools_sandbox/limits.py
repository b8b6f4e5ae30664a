"""The limits on one command, and how well a tier keeps them."""

import resource
from dataclasses import dataclass, fields
from typing import Literal

from tools_sandbox.errors import InvalidRequest

Enforcement = Literal["enforced", "soft", "none"]
"""`enforced`: holds. `soft`: holds for each process, not for their sum. `none`: not limited."""

MIB = 1024 * 1024


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
    limits: Limits, *, sized_tmpfs: bool = False, processes: bool = False
) -> tuple[LimitStatus, ...]:
    """How well each limit is kept, given what else a tier can do."""
    optional: dict[str, bool] = {
        "processes": processes,
        "tmp_bytes": sized_tmpfs,
        "home_bytes": sized_tmpfs,
        "shm_bytes": sized_tmpfs,
    }

    def enforcement(name: str) -> Enforcement:
        if name in ("open_files", "cpu_s"):
            return "soft"
        return "enforced" if optional.get(name, True) else "none"

    return tuple(
        LimitStatus(field.name, getattr(limits, field.name), enforcement(field.name))
        for field in fields(limits)
    )


def prlimit_argv(limits: Limits, *, processes: bool) -> list[str]:
    """The words that start a program under `limits` of the kernel's per-process kind.

    A value above the hard limit of this process is lowered to it, since a process without
    privileges can't raise its own. `processes` says whether to limit their number.
    """
    wanted = [
        ("core", resource.RLIMIT_CORE, 0),
        ("nofile", resource.RLIMIT_NOFILE, limits.open_files),
        ("fsize", resource.RLIMIT_FSIZE, limits.file_size_bytes),
        ("cpu", resource.RLIMIT_CPU, limits.cpu_s),
    ]
    if processes:
        wanted.append(("nproc", resource.RLIMIT_NPROC, limits.processes))
    return ["/usr/bin/prlimit", *(f"--{name}={_capped(kind, v)}" for name, kind, v in wanted)]


def _capped(kind: int, value: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
