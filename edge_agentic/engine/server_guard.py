"""The guard of a server: starts it, and leaves nothing of it running when its owner is gone.

A program of its own, so that it outlives a killed owner. The owner holds the other end of the
lifeline, a pipe: when that closes, whatever the reason, the server is stopped. A byte on the
lifeline before it closes means that the server is to be kept; then SIGTERM stops it.
Usage: server_guard.py LIFELINE_FD GRACE_S WORD...; the output is the server's.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.05
_DEFAULTS = (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
"""What a server finds as it would without a guard; Python changes the last by itself."""


def main(lifeline: int, grace_s: float, words: list[str]) -> int:
    """Run a server until it ends or is to be stopped; the exit code is the server's."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.set_inheritable(lifeline, False)
    waker, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    # The terminal's own signals are the owner's business.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    guard = os.getpid()
    # Until it is the server, the child would take a signal by the guard's handler, and lose it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _DEFAULTS)
    server = os.fork()
    if server == 0:
        _become(words, libc, guard, before)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    exit_code = _follow(server, lifeline, waker)
    _stop(server, grace_s)
    return 0 if exit_code is None else exit_code


def _become(
    words: list[str], libc: ctypes.CDLL, guard: int, mask: set[int | signal.Signals]
) -> None:
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in _DEFAULTS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        # A guard that is killed takes the server with it.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == guard:
            os.execv(words[0], words)
    except OSError as error:
        os.write(2, f"{words[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _follow(server: int, lifeline: int, waker: int) -> int | None:
    """Wait for the server's end (its exit code) or for a reason to stop it (None)."""
    watched = [lifeline, waker]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if waker in ready:
            numbers = os.read(waker, 64)
            if (exit_code := _reap(server)) is not None:
                return exit_code
            if signal.SIGTERM in numbers:
                return None
        if lifeline in ready:
            if not os.read(lifeline, 1):
                return None
            watched.remove(lifeline)


def _reap(server: int) -> int | None:
    """Collect every ended child; the exit code of the server if it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if ended[0] == server:
                code = os.waitstatus_to_exitcode(ended[1])
                found = code if code >= 0 else 128 - code
    return found


def _stop(server: int, grace_s: float) -> None:
    """End the server's whole group, politely at first, then everything that is left of it."""
    deadline = time.monotonic() + grace_s
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server, signal.SIGTERM)
        while time.monotonic() < deadline:
            _reap(server)
            os.killpg(server, 0)
            time.sleep(_POLL_S)
        os.killpg(server, signal.SIGKILL)
    # Orphans of the server become children of this process, whatever group they are in.
    while children := _children():
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _children() -> list[int]:
    """Every child of this process. `/proc/PID/task/PID/children` is not in every kernel."""
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if _is_child(path)]


def _is_child(stat: Path) -> bool:
    try:
        # The name, in brackets, may hold anything; the state and the parent follow it.
        fields = stat.read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    return int(fields[1]) == os.getpid()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
