"""Runs one isolated process to its end or its deadline, and leaves nothing of it behind."""

import contextlib
import errno
import fcntl
import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tools_sandbox.capture import HeadTail
from tools_sandbox.errors import InvalidRequest, SandboxError, SandboxStopped
from tools_sandbox.limits import Limits
from tools_sandbox.result import Result, Tier
from tools_sandbox.watch import DiskWatch, Watch, WatchedLimit

_CHUNK_BYTES = 1024 * 1024
_GRACE_NS = 5_000_000_000
_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
_KILLED = 128 + signal.SIGKILL


@dataclass(frozen=True)
class Launch:
    """How a tier starts a command.

    The program started (the *leader*) writes JSON lines to the status pipe, as bubblewrap does:
    `{"child-pid": N}` once it has a child, and `{"exit-code": N}` when the command has ended. The
    second line appears only where the command really started.
    """

    tier: Tier
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    inherited_fds: tuple[int, ...]
    stop_signal: signal.Signals
    """What makes the leader end, and the whole of the command with it."""


Prepare = Callable[[int], AbstractContextManager[Launch]]
"""Makes a launch, given the descriptor to which the leader writes its status."""


class Halt:
    """Ends commands from any thread: those under way, and those that come later."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """Readable once the halt has come."""
        # The number of a closed descriptor may be somebody else's the next moment.
        self._lock = threading.Lock()
        self._is_open = True

    def come(self) -> None:
        """End them; does nothing after `close`."""
        with self._lock:
            if self._is_open:
                os.eventfd_write(self.fd, 1)

    def close(self) -> None:
        """Let go of the descriptor; no command is under way any more."""
        with self._lock:
            self._is_open = False
            os.close(self.fd)


def execute(
    prepare: Prepare,
    *,
    timeout_s: float,
    limits: Limits,
    disk: DiskWatch | None = None,
    halt: Halt | None = None,
) -> Result:
    """Run a launch; return when nothing of it is left, at the latest just after `timeout_s`.

    The kernel kills a leader when the thread that started it ends. That can't happen in the middle
    of a command, because the thread waits here.

    Raises:
        SandboxStopped: the halt came; nothing of the launch is left.
        SandboxError: the leader could not start the command, was killed, or left something behind.
    """
    if halt and _wait_for(halt.fd, 0):
        raise SandboxStopped("the sandbox was stopped")
    kept = HeadTail(limits.output_head_bytes, limits.output_tail_bytes)
    try:
        watch = Watch(limits, disk)
    except OSError as error:
        raise SandboxError(f"the workspace can't be watched: {error.strerror}") from error
    start_ns = time.monotonic_ns()
    with _pipe() as (output_fd, output_end), _pipe() as (status_fd, status_end):
        # A larger pipe halves the cost of a flood; the system may refuse it.
        with contextlib.suppress(OSError):
            fcntl.fcntl(output_fd, fcntl.F_SETPIPE_SZ, _CHUNK_BYTES)
        with prepare(status_end.fileno()) as launch:
            leader = _start(launch, output_end.fileno(), status_end.fileno())
            output_end.close()
            status_end.close()
            pipes = _Pipes(output_fd, status_fd)
            with _Running(leader, launch.stop_signal, pipes, kept, watch, halt) as running:
                in_time = running.follow(start_ns + int(timeout_s * _NS_PER_S))
                running.stop()
                duration_ns = time.monotonic_ns() - start_ns
            tier = launch.tier
    if in_time and running.exit_code is None and not running.over_limit:
        raise SandboxError(_failure(tier, leader.returncode, kept))
    exit_code = _KILLED if running.over_limit else running.exit_code
    return Result(
        exit_code=exit_code if in_time else None,
        output=kept.text(),
        truncated=kept.dropped_bytes > 0,
        timed_out=not in_time,
        duration_ns=duration_ns,
        tier=tier,
        output_bytes=kept.total_bytes,
        over_limit=running.over_limit,
    )


def memory_file(name: str, content: bytes, stack: ExitStack) -> int:
    """A descriptor from which a launched program can read `content`; the stack closes it."""
    fd = os.memfd_create(name)
    stack.callback(os.close, fd)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


@dataclass(frozen=True)
class _Pipes:
    output_fd: int
    status_fd: int


class _Running:
    """A leader at work: its output, its status, and how to end it."""

    def __init__(
        self,
        leader: "subprocess.Popen[bytes]",
        stop_signal: signal.Signals,
        pipes: _Pipes,
        kept: HeadTail,
        watch: Watch,
        halt: Halt | None,
    ) -> None:
        self.exit_code: int | None = None
        self.over_limit: WatchedLimit | None = None
        self._watch = watch
        self._leader = leader
        self._leader_fd = os.pidfd_open(leader.pid)
        self._child_fd: int | None = None
        self._stop_signal = stop_signal
        self._output_fd = pipes.output_fd
        self._status_fd = pipes.status_fd
        self._status = b""
        self._kept = kept
        self._poll = select.poll()
        for fd in (self._output_fd, self._status_fd, self._leader_fd):
            self._poll.register(fd, select.POLLIN)
        self._halt_fd = halt.fd if halt else None
        if halt:
            self._poll.register(halt.fd, select.POLLIN)

    def __enter__(self) -> "_Running":
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self.stop()
        finally:
            os.close(self._leader_fd)
            if self._child_fd is not None:
                os.close(self._child_fd)

    def follow(self, deadline_ns: int) -> bool:
        """Take in output until the leader ends (True) or the deadline comes (False).

        A command that goes over a watched limit counts as ended.

        Raises:
            SandboxStopped: the halt came first.
        """
        look_ns = self._next_look_ns()
        while (now_ns := time.monotonic_ns()) < deadline_ns:
            if now_ns >= look_ns:
                self.over_limit = self._watch.exceeded(
                    self._leader.pid, (deadline_ns - now_ns) / _NS_PER_S
                )
                if self.over_limit:
                    return True
                look_ns = self._next_look_ns()
            ready = {
                fd
                for fd, _ in self._poll.poll(_poll_ms(max(0, min(deadline_ns, look_ns) - now_ns)))
            }
            if self._output_fd in ready and not self._read_output():
                self._poll.unregister(self._output_fd)
            if self._status_fd in ready and not self._read_status():
                self._poll.unregister(self._status_fd)
            if self._leader_fd in ready:
                return True
            if self._halt_fd in ready:
                raise SandboxStopped("the sandbox was stopped")
        return False

    def stop(self) -> None:
        """End whatever still runs and take in the last output. Does nothing the second time."""
        if self._leader.returncode is not None:
            return
        grace_ns = time.monotonic_ns() + _GRACE_NS
        if not _wait_for(self._leader_fd, 0):
            self._signal(grace_ns)
        if not _wait_for(self._leader_fd, grace_ns):
            self._leader.kill()
            raise SandboxError(f"process {self._leader.pid} did not end when told to")
        self._leader.wait()
        while self._read_status():
            pass
        if self._child_fd is not None and not _wait_for(self._child_fd, grace_ns):
            raise SandboxError("processes of the command did not end when killed")
        # Where a writer has escaped, its output is not followed without end.
        for _ in range(64):
            if not self._read_output():
                break

    def _next_look_ns(self) -> int:
        return time.monotonic_ns() + int(self._watch.pause_s * _NS_PER_S)

    def _signal(self, grace_ns: int) -> None:
        # Bubblewrap's child is bound to its parent's life only from a moment after its birth, so a
        # leader that has not named its child yet is given the time to do so.
        while self._child_fd is None and not _wait_for(self._leader_fd, 0):
            if not _wait_for(self._status_fd, grace_ns) or not self._read_status():
                break
        self._leader.send_signal(self._stop_signal)
        if self._child_fd is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._child_fd, signal.SIGKILL)

    def _read_output(self) -> bool:
        try:
            data = os.read(self._output_fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        self._kept.feed(data)
        return bool(data)

    def _read_status(self) -> bool:
        try:
            data = os.read(self._status_fd, 4096)
        except BlockingIOError:
            return False
        *lines, self._status = (self._status + data).split(b"\n")
        for line in filter(None, lines):
            record = json.loads(line)
            self.exit_code = record.get("exit-code", self.exit_code)
            if "child-pid" in record:
                with contextlib.suppress(ProcessLookupError):
                    self._child_fd = os.pidfd_open(record["child-pid"])
        return bool(data)


def _start(launch: Launch, output_fd: int, status_fd: int) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            launch.argv,
            env=launch.env,
            cwd=launch.cwd,
            stdin=subprocess.DEVNULL,
            stdout=output_fd,
            stderr=output_fd,
            pass_fds=(status_fd, *launch.inherited_fds),
            start_new_session=True,
            umask=0o022,
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise InvalidRequest("the command's words are too long together") from error
        raise SandboxError(f"{launch.argv[0]} can't be started: {error}") from error


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, BinaryIO]]:
    """A pipe: the end to read from without waiting, and the end to hand on and then close."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(read_fd, False)
    try:
        with os.fdopen(write_fd, "wb", buffering=0) as write_end:
            yield read_fd, write_end
    finally:
        os.close(read_fd)


def _wait_for(fd: int, until_ns: int) -> bool:
    """Whether `fd` became readable (for a process: ended) before a time of the monotonic clock."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(_poll_ms(max(0, until_ns - time.monotonic_ns()))))


def _poll_ms(left_ns: int) -> int:
    """A time to wait, rounded up so as not to spin, and within what poll(2) takes."""
    return min(-(-left_ns // _NS_PER_MS), 3_600_000)


def _failure(tier: Tier, returncode: int, kept: HeadTail) -> str:
    lines = kept.text().strip().splitlines()
    said = lines[-1] if lines else "no message"
    return f"the {tier.value} sandbox failed to run the command (status {returncode}): {said}"
