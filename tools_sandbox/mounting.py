"""Starts a holder of mounts and talks to it."""

import contextlib
import json
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools_sandbox.errors import SandboxError
from tools_sandbox.holder import PLACE, PROGRAMS
from tools_sandbox.users import User

_ROOT = Path(__file__).resolve().parent.parent
_PROGRAM = (
    "import json, sys; sys.path.insert(0, sys.argv[1]); "
    "from tools_sandbox.holder import main; main(json.loads(sys.argv[2]))"
)
_PATIENCE_S = 20.0


@dataclass(frozen=True)
class Program:
    """A program, and a directory that holds it with all that it needs."""

    directory: Path
    name: str
    """The program's path in the directory."""


class CannotMount(Exception):
    """A holder or a mount does not work on this machine; the text says why."""


class Mounts:
    """A running holder. It ends with `close`, or with the process that made it."""

    def __init__(
        self,
        source: Path,
        user: User,
        *,
        size_bytes: int = 1024 * 1024,
        files: int = 1000,
        scratch: Path | None = None,
        program: Program | None = None,
    ) -> None:
        """Start a holder over a directory.

        Args:
            source: the directory to show in views; it must belong to `user`.
            user: who uses the views.
            size_bytes: how much all layers may hold together, where there is no `scratch`.
            files: how many files they may hold.
            scratch: an empty directory for the layers; memory takes them unless given.
            program: what `user` might not reach, or the views would hide.

        Raises:
            CannotMount: the machine forbids it.
        """
        self.source = source
        self._user = user
        self._program = program
        switch = not user.is_caller
        settings = {
            "source": str(source),
            "uid": user.uid,
            "gid": user.gid,
            "switch": switch,
            "bytes": size_bytes,
            "files": files,
            "scratch": str(scratch) if scratch else None,
            "programs": str(program.directory) if program else None,
        }
        words = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_ROOT), json.dumps(settings)]
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env={},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise CannotMount(f"the keeper of mounts can't be started: {error}") from None
        self.pid = self._process.pid
        try:
            if switch:
                self._read()
                self._map_users()
                self._write("go")
            self._read()
        except (CannotMount, OSError) as error:
            self.close()
            raise CannotMount(str(error)) from None
        except BaseException:
            self.close()
            raise

    @property
    def enter(self) -> tuple[str, ...]:
        """The words before a program that is to see the views."""
        namespaces = f"/proc/{self.pid}/ns"
        words = ("/usr/bin/nsenter", f"--user={namespaces}/user", f"--mount={namespaces}/mnt")
        if self._user.is_caller:
            return (*words, "--preserve-credentials")
        return (*words, f"--setuid={self._user.uid}", f"--setgid={self._user.gid}")

    @property
    def program(self) -> str | None:
        """Where the program is found by those who enter, if one was given."""
        return f"{PLACE}/{PROGRAMS}/{self._program.name}" if self._program else None

    def inside(self, name: str) -> str:
        """Where a view is found by those who enter."""
        return f"{PLACE}/{name}"

    def outside(self, name: str) -> Path:
        """Where a view is found by this program."""
        return Path(f"/proc/{self.pid}/root{PLACE}/{name}")

    def call(self, *request: object) -> Any:
        """Have something done.

        Raises:
            CannotMount: it did not work.
            SandboxError: the holder is gone.
        """
        try:
            self._write(json.dumps(request))
        except OSError:
            raise SandboxError("the keeper of the workspace's mounts has ended") from None
        return self._read()

    def close(self) -> None:
        """End the holder, and all views and layers in memory with it."""
        process = self._process
        with contextlib.suppress(OSError):
            assert process.stdin
            process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def _map_users(self) -> None:
        for kind, number in (("uid", self._user.uid), ("gid", self._user.gid)):
            lines = [f"{each} {each} 1" for each in sorted({0, number})]
            Path(f"/proc/{self.pid}/{kind}_map").write_text("\n".join(lines) + "\n")

    def _write(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> Any:
        stdout, stderr = self._process.stdout, self._process.stderr
        assert stdout and stderr
        poll = select.poll()
        poll.register(stdout, select.POLLIN)
        if not poll.poll(_PATIENCE_S * 1000):
            raise SandboxError("the keeper of the workspace's mounts does not answer")
        line = stdout.readline()
        if not line:
            said = stderr.read().decode("utf-8", "replace").strip().splitlines()
            raise CannotMount(said[-1] if said else "the keeper of mounts has ended")
        record = json.loads(line)
        if "error" in record:
            raise CannotMount(record["error"])
        return record.get("answer")
