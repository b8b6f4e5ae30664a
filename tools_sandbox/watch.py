"""Watches what a running command uses of memory and disk, where the kernel keeps no such limit."""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tools_sandbox.limits import Limits
from tools_sandbox.processes import descendants

WatchedLimit = Literal["memory_bytes", "workspace_bytes", "workspace_files"]

_CALM_S, _TENSE_S = 0.05, 0.02
_DU_PATIENCE_S = 10.0
_KIB = 1024
_RESIDENT = re.compile(rb"^(?:RssAnon|RssShmem|VmPTE):\s+(\d+) kB", re.MULTILINE)
_PAGE_TABLES = re.compile(rb"^VmPTE:\s+(\d+) kB", re.MULTILINE)
_SHARED_MAPPING = re.compile(
    rb"^(\w+)-(\w+) \S+ (\w+) \S+ (\d+) +/dev/zero \(deleted\)$", re.MULTILINE
)
_SHARED_OF_ALL = re.compile(r"^Shmem:\s+(\d+) kB", re.MULTILINE)
_PROPORTIONAL = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)


@dataclass(frozen=True)
class DiskUse:
    """What a directory takes up."""

    size_bytes: int
    files: int


class DiskWatch:
    """Tells how much a directory has grown since the watch began."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._start = self._measure()
        self._start_of_disk = _disk_in_use(directory)
        self._last = DiskUse(0, 0)

    def growth(self, suspicion: DiskUse, patience_s: float = _DU_PATIENCE_S) -> DiskUse:
        """How much more there is than at the start; what the file system says where time is short.

        Counting all files takes time, so it is done only where the use of the whole file system
        has grown by as much as `suspicion` names.
        """
        disk = _disk_in_use(self._directory)
        taken = DiskUse(
            disk.size_bytes - self._start_of_disk.size_bytes, disk.files - self._start_of_disk.files
        )
        if taken.size_bytes < suspicion.size_bytes and taken.files < suspicion.files:
            return DiskUse(0, 0)
        found = self._measure(patience_s)
        if found is None or self._start is None:
            return taken
        return DiskUse(found.size_bytes - self._start.size_bytes, found.files - self._start.files)

    def _measure(self, patience_s: float = _DU_PATIENCE_S) -> DiskUse | None:
        """The whole directory; None where parts of it can't be read, or not in time."""
        until_s = time.monotonic() + patience_s
        size, files = self._du("--block-size=1", until_s), self._du("--inodes", until_s)
        return None if size is None or files is None else DiskUse(size, files)

    def _du(self, unit: str, until_s: float) -> int | None:
        with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
            done = subprocess.run(
                ["du", "-s", "-x", unit, "--", self._directory],
                env={"PATH": os.defpath, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
                timeout=max(0.0, until_s - time.monotonic()),
            )
            return int(done.stdout.split()[0])
        return None


class Watch:
    """The watch over one command."""

    def __init__(self, limits: Limits, disk: DiskWatch | None) -> None:
        self._limits = limits
        self._disk = disk
        self._shared_at_start = _shared_of_all()
        self._allowed = DiskUse(limits.workspace_bytes, limits.workspace_files)
        # What an earlier command left over the limit is no reason to end one that tidies up.
        before = disk.growth(self._allowed) if disk else DiskUse(0, 0)
        self._allowed = DiskUse(
            max(self._allowed.size_bytes, before.size_bytes),
            max(self._allowed.files, before.files),
        )
        self.pause_s = _CALM_S
        """How long to wait before the next look."""

    def exceeded(self, leader: int, left_s: float) -> WatchedLimit | None:
        """The limit that a process and its descendants have gone over, if there is one.

        None also where `left_s` is over before it is known: a deadline waits for nothing.
        """
        started = time.monotonic()
        over = self._memory_is_over(leader)
        if over or not self._disk:
            return "memory_bytes" if over else None
        grown = self._disk.growth(self._allowed, min(left_s, _DU_PATIENCE_S))
        # A look that took long is followed by a rest that is longer.
        took_s = time.monotonic() - started
        self.pause_s = max(self.pause_s, 10 * took_s)
        if took_s >= left_s:
            return None
        if grown.size_bytes > self._allowed.size_bytes:
            return "workspace_bytes"
        return "workspace_files" if grown.files > self._allowed.files else None

    def _memory_is_over(self, leader: int) -> bool:
        processes = [leader, *descendants(leader)]
        limit = self._limits.memory_bytes
        # Pages that processes share are counted for each of them: quick, and never too little.
        at_most = sum(_sum_of_kib(pid, "status", _RESIDENT) or 0 for pid in processes)
        # Shared pages stay after a process has let go of them; then they are in no such sum.
        kept = _shared_of_all() - self._shared_at_start
        self.pause_s = _TENSE_S if max(at_most, kept) * 4 > limit else _CALM_S
        if kept > limit and _shared_mapped(processes) > limit:
            return True
        if at_most <= limit:
            return False
        exact = [_sum_of_kib(pid, "smaps_rollup", _PROPORTIONAL) for pid in processes]
        known = [value for value in exact if value is not None]
        tables = sum(_sum_of_kib(pid, "status", _PAGE_TABLES) or 0 for pid in processes)
        return sum(known) + tables > limit if known else True


def _sum_of_kib(pid: int, file: str, pattern: "re.Pattern[bytes]") -> int | None:
    """The sum of some lines of a file about a process, in bytes; None where it can't be read."""
    try:
        text = Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:
        return None
    return sum(map(int, pattern.findall(text))) * _KIB


def _shared_of_all() -> int:
    """Shared memory of the whole machine, files in memory included, in bytes."""
    found = _SHARED_OF_ALL.search(Path("/proc/meminfo").read_text())
    return int(found[1]) * _KIB if found else 0


def _shared_mapped(processes: Iterable[int]) -> int:
    """The most that the shared memory of some processes can hold, in bytes."""
    sizes: dict[bytes, int] = {}
    for pid in processes:
        with contextlib.suppress(OSError):
            for found in _SHARED_MAPPING.findall(Path(f"/proc/{pid}/maps").read_bytes()):
                start, end, offset = (int(word, 16) for word in found[:3])
                inode = found[3]
                sizes[inode] = max(sizes.get(inode, 0), offset + end - start)
    return sum(sizes.values())


def _disk_in_use(directory: Path) -> DiskUse:
    found = os.statvfs(directory)
    return DiskUse((found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree)
