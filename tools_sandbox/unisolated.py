"""Tier `none`: the command runs on the machine itself, with a fixed environment and a clean end."""

import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools_sandbox import supervisor
from tools_sandbox.environment import fixed_environment
from tools_sandbox.errors import SandboxUnavailable
from tools_sandbox.info import SandboxInfo
from tools_sandbox.limits import Limits, limit_statuses, prlimit_argv
from tools_sandbox.process import Launch
from tools_sandbox.result import Tier
from tools_sandbox.workspace import remove_tree


class Unisolated:
    """Starts commands in `workspace` without isolation."""

    def __init__(self, workspace: Path, limits: Limits) -> None:
        if not sys.executable:
            raise SandboxUnavailable("tier none needs a Python interpreter to supervise commands")
        self._workspace = workspace
        self._limits = limits
        self._private = Path(tempfile.mkdtemp(prefix="sandbox-"))

    def info(self) -> SandboxInfo:
        """What this tier is, and how it keeps the limits."""
        return SandboxInfo(tier=Tier.NONE, limits=limit_statuses(self._limits))

    @contextmanager
    def launch(self, words: Sequence[str], status_fd: int) -> Iterator[Launch]:
        """Prepare to start a program; its home and temporary directory last as long as it does."""
        private = Path(tempfile.mkdtemp(dir=self._private))
        home, tmp = private / "home", private / "tmp"
        home.mkdir()
        tmp.mkdir()
        program = [sys.executable, "-I", "-S", supervisor.__file__, str(status_fd)]
        try:
            yield Launch(
                tier=Tier.NONE,
                argv=(*program, *prlimit_argv(self._limits, processes=False), *words),
                env=fixed_environment(home=str(home), tmp=str(tmp)),
                cwd=self._workspace,
                inherited_fds=(),
                stop_signal=signal.SIGTERM,
            )
        finally:
            remove_tree(private)

    def close(self) -> None:
        """Remove the directory that holds the private ones."""
        remove_tree(self._private)
