"""Starts a real server on a free loopback port, waits until it is ready, and stops all of it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edge_agentic.core.clock import NS_PER_S, Clock, monotonic_ns
from edge_agentic.core.errors import RequirementError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.resources import cache_dir
from edge_agentic.core.text import one_line
from edge_agentic.engine.openai_connection import OpenAIConnection
from edge_agentic.engine.openai_endpoint import Endpoint
from edge_agentic.engine.server_commands import (
    ServerSettings,
    command_line,
    find_program,
    ready_path,
    version_command,
)
from edge_agentic.engine.server_kinds import ServerKind

START_TIMEOUT_S: Final = 1800.0
"""A large model from a slow disk, or an engine that is compiled at its first start."""

GRACE_S: Final = 15.0
"""A server frees its device memory in that time."""

_PROBE_S: Final = 2.0
_POLL_S: Final = 0.1
_VERSION_TIMEOUT_S: Final = 60.0
_TAIL_BYTES: Final = 1 << 20
_TAIL_LINES: Final = 3


@dataclass(frozen=True)
class StartedServer:
    """A server that runs: its address, what was started, and where its output goes."""

    kind: ServerKind
    endpoint: Endpoint
    words: tuple[str, ...]
    log: Path
    version: str | None
    guard_pid: int

    def to_json(self) -> JsonObject:
        """Facts for the manifest: of paths only the last part, and no port, as it changes."""
        port = str(self.endpoint.port)
        return {
            "server_program": Path(self.words[0]).name,
            "server_program_version": self.version,
            "server_flags": ["PORT" if word == port else _public(word) for word in self.words[1:]],
        }


class ManagedServer:
    """Owns a server. It stops with `close()`, and with this process, however that ends."""

    def __init__(
        self,
        kind: ServerKind,
        program: str | None,
        settings: ServerSettings,
        *,
        log_folder: Path | None = None,
        timeout_s: float = START_TIMEOUT_S,
        grace_s: float = GRACE_S,
        clock: Clock = monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Start a server and wait until it can be asked.

        Args:
            kind: which server.
            program: its program; None looks on the search path.
            settings: the model and the sizes.
            log_folder: where its output is written; the cache if None.
            timeout_s: how long it may take to get ready.
            grace_s: how long it may take to end by itself once it is told to.
            clock: monotonic nanoseconds.
            sleep: waits for a number of seconds.

        Raises:
            BadInputError: the model is none that this server can load.
            RequirementError: there is no program, it ended, or it did not get ready in time.
        """
        found = find_program(kind, program)
        port = _free_port()
        words = command_line(kind, found, port, settings)
        folder = log_folder or server_folder()
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / f"{kind.value}-{port}.log"
        version = _version(version_command(kind, found))
        self._lifeline: int | None
        self._guard, self._lifeline = _start_guard(words, log, grace_s)
        endpoint = Endpoint("http", "127.0.0.1", port, "/v1")
        self.started = StartedServer(kind, endpoint, tuple(words), log, version, self._guard.pid)
        try:
            self._wait_until_ready(timeout_s, clock, sleep)
        except BaseException:
            self.close()
            raise

    def keep(self) -> None:
        """Let the server outlive this process; it is stopped by its guard's SIGTERM."""
        if self._lifeline is not None:
            os.write(self._lifeline, b"k")
            os.close(self._lifeline)
            self._lifeline = None

    def close(self) -> None:
        """Stop the server and everything it started, unless it is kept. Safe to call twice."""
        if self._lifeline is None:
            return
        os.close(self._lifeline)
        self._lifeline = None
        self._guard.wait()

    def _wait_until_ready(
        self, timeout_s: float, clock: Clock, sleep: Callable[[float], None]
    ) -> None:
        kind, log = self.started.kind, self.started.log
        deadline_ns = clock() + int(timeout_s * NS_PER_S)
        connection = OpenAIConnection(self.started.endpoint, clock=clock)
        with contextlib.closing(connection):
            while True:
                if (code := self._guard.poll()) is not None:
                    raise RequirementError(
                        f"{kind.value} ended with exit code {code} before it was ready: "
                        f"{log_tail(log)} (all of it: {log})"
                    )
                head = connection.get(ready_path(kind), deadline_s=_PROBE_S).head
                if head is not None and head.status == 200:
                    return
                if clock() > deadline_ns:
                    raise RequirementError(
                        f"{kind.value} was not ready within {timeout_s:g} s; its log: {log}"
                    )
                sleep(_POLL_S)


def server_folder() -> Path:
    """Where logs and records of started servers are kept."""
    return cache_dir() / "servers"


def log_lines(log: Path) -> list[str]:
    """The lines at the end of a server's output, as far as a mebibyte goes; none if unreadable."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def log_tail(log: Path) -> str:
    """The last lines of a server's output that hold anything, as one line."""
    said = [line.strip() for line in log_lines(log) if line.strip()]
    return one_line(" | ".join(said[-_TAIL_LINES:])) or "no output"


def stop_guard(pid: int, timeout_s: float = GRACE_S + 15.0) -> bool:
    """Have a kept server's guard stop it; return whether it is gone."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
            return bool(select.select([descriptor], [], [], timeout_s)[0])
        finally:
            os.close(descriptor)
    return True


def _public(word: str) -> str:
    """A word of a command line; of a path, or of one behind `--flag=`, only the last part."""
    flag, equals, value = word.rpartition("=")
    return f"{flag}{equals}{Path(value).name}" if value.startswith("/") else word


def _start_guard(
    words: list[str], log: Path, grace_s: float
) -> tuple[subprocess.Popen[bytes], int]:
    guard_program = Path(__file__).with_name("server_guard.py")
    lifeline, owner_end = os.pipe()
    try:
        with log.open("wb") as output:
            guard = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", str(guard_program)),
                    *(str(lifeline), str(grace_s), *words),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(lifeline,),
                start_new_session=True,
            )
    except BaseException:
        os.close(owner_end)
        raise
    finally:
        os.close(lifeline)
    return guard, owner_end


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _version(words: list[str] | None) -> str | None:
    """What the program says of its version: the first line with a digit."""
    if words is None:
        return None
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    if done.returncode:
        return None
    return next(
        (one_line(line.strip())[:80] for line in lines if any(map(str.isdigit, line))), None
    )
