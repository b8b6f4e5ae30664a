"""The leader of a command in tier `none`: runs it, then kills all of its descendants.

A program of its own rather than code in the caller: only a process with no other children can tell
which orphans belong to the command. Usage: supervisor.py STATUS_FD WORD...
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(status_fd: int, words: list[str]) -> int:
    """Run a command to its end or to SIGTERM, and report on the status descriptor."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The caller's death counts as a deadline.
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    os.set_inheritable(status_fd, False)
    signals = {signal.SIGTERM, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    child = os.fork()
    if child == 0:
        _become(words, signals)
    _report(status_fd, "child-pid", child)
    exit_code: int | None = None
    while exit_code is None:
        if signal.sigwait(signals) == signal.SIGTERM:
            break
        exit_code = _reap(child)
    _sweep()
    if exit_code is not None:
        _report(status_fd, "exit-code", exit_code)
    return 0


def _become(words: list[str], blocked: set[signal.Signals]) -> None:
    try:
        # Python ignores these two; a command expects the usual meaning.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
        os.execv(words[0], words)
    finally:
        os._exit(127)


def _reap(child: int) -> int | None:
    """Collect every ended process; the exit code of `child` if it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
                found = code if code >= 0 else 128 - code
    return found


def _sweep() -> None:
    """Kill all descendants until none is left, new orphans included."""
    while descendants := _descendants():
        for pid in descendants:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        # Every round has at least one child to wait for, since only children can have descendants.
        os.waitpid(-1, 0)
        _reap(0)


def _descendants() -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in parentheses may hold spaces and parentheses itself.
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    found = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return sorted(found - {os.getpid()})
        found |= more


def _report(status_fd: int, key: str, value: int) -> None:
    os.write(status_fd, (json.dumps({key: value}) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
