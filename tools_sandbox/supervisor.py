"""The leader of a command without a namespace: runs it, then kills all of its descendants.

A program of its own rather than code in the caller: only a process with no other children can tell
which orphans belong to the command. It starts before every command: hence no modules that take long
to import.
"""

import contextlib
import os
import signal

from tools_sandbox import kernel
from tools_sandbox.processes import descendants

_BLOCKED = {signal.SIGTERM, signal.SIGCHLD}


def main(
    *,
    words: list[str],
    caller: int,
    status_fd: int,
    uid: int,
    gid: int,
    filter: bytes,
    rules: int | None,
) -> None:
    """Run a command to its end or to the caller's SIGTERM, and report on the status descriptor.

    Args:
        words: the program and its words.
        caller: the process that starts this one.
        status_fd: where to report.
        uid: the user to run it as.
        gid: his group.
        filter: the filter of system calls.
        rules: a descriptor of Landlock's rules; None where they are not used.
    """
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    # The caller's death counts as a deadline.
    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != caller:
        return
    os.set_inheritable(status_fd, False)
    # Closed by the start of the command, so that its end without a word means success.
    failed, failing = os.pipe()
    child = os.fork()
    if child == 0:
        _become(words, uid, gid, filter, rules, failing)
    os.close(failing)
    _report(status_fd, "child-pid", child)
    if os.read(failed, 1):
        return
    exit_code: int | None = None
    while exit_code is None:
        came = signal.sigwaitinfo(_BLOCKED)
        # The kernel names the caller for its death too. A command of the same user can send one.
        if came.si_signo == signal.SIGTERM and came.si_pid == caller:
            break
        exit_code = _reap(child)
    _sweep()
    if exit_code is not None:
        _report(status_fd, "exit-code", exit_code)


def _become(
    words: list[str], uid: int, gid: int, filter: bytes, rules: int | None, failing: int
) -> None:
    try:
        # So that `kill 0` does not reach the supervisor.
        os.setsid()
        # Python ignores these two; a command expects the usual meaning.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)
        _give_up_rights(uid, gid, filter, rules)
        os.execv(words[0], words)
    except BaseException as error:
        os.write(2, f"{error}\n".encode())
        os.write(failing, b"x")
    finally:
        os._exit(127)


def _give_up_rights(uid: int, gid: int, filter: bytes, rules: int | None) -> None:
    if uid != os.getuid():
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.load_filter(filter)
    if rules is not None:
        os.set_inheritable(rules, False)
        kernel.landlock_restrict_self(rules)


def _reap(child: int) -> int | None:
    """Collect every ended process; the exit code of `child` if it is among them."""
    found = None
    try:
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
                found = code if code >= 0 else 128 - code
    except ChildProcessError:
        pass
    return found


def _sweep() -> None:
    """Kill all descendants until none is left, new orphans included."""
    while left := descendants(os.getpid()):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        # Every round has at least one child to wait for, since only children can have descendants.
        os.waitpid(-1, 0)
        _reap(0)


def _report(status_fd: int, key: str, value: int) -> None:
    # Nobody listens any more where the caller has died; what it started has to end all the same.
    with contextlib.suppress(BrokenPipeError):
        os.write(status_fd, f'{{"{key}": {value}}}\n'.encode())
