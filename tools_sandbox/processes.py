"""Finds the processes that come from one process.

Also part of the supervisor, which starts before every command of two tiers: hence no modules that
take long to import.
"""

import os


def descendants(root: int) -> list[int]:
    """All processes that `root` has started, and those that they have; not `root` itself."""
    if _knows_children():
        return _by_children(root)
    return _by_parents(root)


def _knows_children() -> bool:
    """Whether the kernel lists the children of a process; not every one is built to."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # noqa: PTH110


def _by_children(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        tasks = f"/proc/{waiting.pop()}/task"
        try:
            for thread in os.listdir(tasks):  # noqa: PTH208
                children = _read(f"{tasks}/{thread}/children").split()
                found += [int(child) for child in children]
                waiting += [int(child) for child in children]
        except OSError:
            continue
    return found


def _by_parents(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        try:
            # The name in parentheses may hold spaces and parentheses itself.
            fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
        except OSError:
            continue
        parents[int(name)] = int(fields[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {root})


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()
