"""Finds the processes that come from one process."""

import contextlib
import os
from pathlib import Path


def descendants(root: int) -> list[int]:
    """All processes that `root` has started, and those that they have; not `root` itself."""
    if _knows_children():
        return _by_children(root)
    return _by_parents(root)


def _knows_children() -> bool:
    """Whether the kernel lists the children of a process; not every one is built to."""
    return Path(f"/proc/self/task/{os.getpid()}/children").exists()


def _by_children(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{waiting.pop()}/task").iterdir():
                children = (thread / "children").read_bytes().split()
                found += [int(child) for child in children]
                waiting += [int(child) for child in children]
    return found


def _by_parents(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The name in parentheses may hold spaces and parentheses itself.
            fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
            parents[int(process.name)] = int(fields[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {root})
