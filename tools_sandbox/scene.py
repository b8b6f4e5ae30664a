"""The host side of an attack: a secret, a listener or a victim to reach, and what reached it."""

import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tools_sandbox.result import Result
from tools_sandbox.sandbox import Sandbox


class AttackNotRun(Exception):
    """An attack can't be carried out here, so that it proves nothing either way."""


class Scene:
    """A sandbox to attack, and a directory of the host, outside its workspace, to protect."""

    def __init__(self, sandbox: Sandbox, outside: Path) -> None:
        self.sandbox = sandbox
        self.outside = outside
        self.token = f"token-{secrets.token_hex(12)}"
        """What an attack must not get hold of: the content of `secret`."""
        self.secret = outside / "secret"
        self.secret.write_text(self.token)

    def bash(self, command: str, *, timeout_s: float = 20.0) -> Result:
        """Run a command line in the sandbox."""
        return self.sandbox.run(command, timeout_s=timeout_s)

    def python(self, script: str, *words: str) -> Result:
        """Run a Python script in the sandbox."""
        if self.bash("command -v python3").exit_code != 0:
            raise AttackNotRun("no python3 inside the sandbox")
        return self.sandbox.run(
            ["/usr/bin/env", "python3", "-I", "-c", script, *words], timeout_s=60
        )


@contextmanager
def listener(
    family: socket.AddressFamily, address: tuple[str, int] | bytes
) -> Iterator[socket.socket]:
    """A socket of the host that waits for a connection."""
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.bind(address)
        listening.listen()
        listening.setblocking(False)
        yield listening


def was_reached(listening: socket.socket) -> bool:
    """Whether anything has connected. A connection counts after its client is gone, too."""
    try:
        listening.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@contextmanager
def victim(mark: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the host with a mark in its command line and its environment."""
    # The shell waits for the end of its input, which comes with the end of this process at last.
    words = ["/bin/bash", "--noprofile", "--norc", "-c", "read -r", mark]
    with subprocess.Popen(words, env={"MARK": mark}, stdin=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def kill_marked(mark: str) -> int:
    """Kill all processes of the host with a mark in their command line; how many there were."""
    found = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark.encode() in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
                    found += 1
    return found
