"""Tier `bubblewrap`: every command in fresh namespaces, on a read-only system."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools_sandbox.binaries import Bwrap
from tools_sandbox.environment import USER, fixed_environment
from tools_sandbox.info import SandboxInfo
from tools_sandbox.limits import Limits, limit_statuses, prlimit_argv
from tools_sandbox.process import Launch
from tools_sandbox.result import Tier

INSIDE_WORKSPACE = "/workspace"
_HOME = f"/home/{USER}"
_UID = 1000
_SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl/certs", "mime.types")
_ETC_FILES = {
    "passwd": f"root:x:0:0:root:/root:/bin/sh\n{USER}:x:{_UID}:{_UID}::{_HOME}:/bin/bash\n",
    "group": f"root:x:0:\n{USER}:x:{_UID}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
}


@dataclass(frozen=True)
class Form:
    """A variant of the call. What a machine forbids is left out, and recorded."""

    proc: bool = True
    disable_userns: bool = True

    @property
    def name(self) -> str:
        """`full`, or what is left out."""
        missing = ["no-proc"] * (not self.proc) + ["nested-namespaces"] * (not self.disable_userns)
        return "+".join(missing) or "full"


# The most complete first. A container that masks /proc forbids a new one, and where it mounts
# /proc/sys read-only, the setting that blocks nested namespaces too.
FORMS = (Form(), Form(disable_userns=False), Form(proc=False), Form(False, False))


class Bubblewrap:
    """Starts commands in `workspace` through one bubblewrap program and one form of the call."""

    def __init__(
        self,
        workspace: Path,
        limits: Limits,
        bwrap: Bwrap,
        form: Form,
        refused: tuple[str, ...] = (),
    ) -> None:
        self._workspace = workspace
        self._limits = limits
        self._bwrap = bwrap
        self._form = form
        self._refused = refused
        self._limit_processes = _counts_processes_per_namespace()

    def info(self) -> SandboxInfo:
        """What this tier is, and how it keeps the limits."""
        return SandboxInfo(
            tier=Tier.BUBBLEWRAP,
            limits=limit_statuses(
                self._limits,
                sized_tmpfs="--size" in self._bwrap.options,
                processes=self._limit_processes,
            ),
            bwrap_path=str(self._bwrap.path),
            bwrap_version=self._bwrap.version,
            bwrap_origin=self._bwrap.origin,
            form=self._form.name,
            has_proc=self._form.proc,
            nested_namespaces_blocked=self._blocks_userns(),
            refused=self._refused,
        )

    @contextmanager
    def launch(self, words: Sequence[str], status_fd: int) -> Iterator[Launch]:
        """Prepare to start a program."""
        with ExitStack() as stack:
            files = {
                f"/etc/{name}": _memory_file(name, text, stack) for name, text in _ETC_FILES.items()
            }
            argv = [
                str(self._bwrap.path),
                *self._isolation(),
                *_environment_options(),
                *_system_options(),
                *(w for name, fd in files.items() for w in ("--file", str(fd), name)),
                *self._mounts(),
                *("--json-status-fd", str(status_fd)),
                *prlimit_argv(self._limits, processes=self._limit_processes),
                *words,
            ]
            # An empty environment for bubblewrap itself, whose own is readable inside as
            # /proc/1/environ.
            yield Launch(
                tier=Tier.BUBBLEWRAP,
                argv=tuple(argv),
                env={},
                cwd=Path("/"),
                inherited_fds=tuple(files.values()),
                stop_signal=signal.SIGKILL,
            )

    def close(self) -> None:
        """Nothing is left to release between commands."""

    def _blocks_userns(self) -> bool:
        return self._form.disable_userns and "--disable-userns" in self._bwrap.options

    def _isolation(self) -> list[str]:
        options = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        options += ["--unshare-cgroup-try", "--unshare-net"]
        if self._blocks_userns():
            options.append("--disable-userns")
        options += ["--uid", str(_UID), "--gid", str(_UID), "--hostname", "sandbox"]
        options += ["--cap-drop", "ALL", "--new-session", "--die-with-parent"]
        if "--clearenv" in self._bwrap.options:
            options.append("--clearenv")
        return options

    def _mounts(self) -> list[str]:
        limits = self._limits
        options = ["--proc", "/proc"] if self._form.proc else []
        options += ["--dev", "/dev"]
        options += self._tmpfs("/dev/shm", limits.shm_bytes)
        options += self._tmpfs("/tmp", limits.tmp_bytes)
        options += self._tmpfs(_HOME, limits.home_bytes)
        options += ["--dir", "/run", "--bind", str(self._workspace), INSIDE_WORKSPACE]
        options += ["--chdir", INSIDE_WORKSPACE, "--remount-ro", "/dev", "--remount-ro", "/"]
        return options

    def _tmpfs(self, path: str, size_bytes: int) -> list[str]:
        size = ["--size", str(size_bytes)] if "--size" in self._bwrap.options else []
        return [*size, "--tmpfs", path]


def _environment_options() -> list[str]:
    variables = fixed_environment(home=_HOME, tmp="/tmp")
    return [word for item in variables.items() for word in ("--setenv", *item)]


def _system_options() -> list[str]:
    options = ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM_LINKS:
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
    # Made by name, so that it gets an ordinary mode and not that of an implied parent.
    options += ["--dir", "/etc"]
    for name in _ETC:
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return options


def _memory_file(name: str, text: str, stack: ExitStack) -> int:
    fd = os.memfd_create(name)
    stack.callback(os.close, fd)
    os.write(fd, text.encode())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _counts_processes_per_namespace() -> bool:
    """Whether the kernel's limit on processes works here.

    Before Linux 5.14 it counts all processes of the user, those outside included. The root user of
    the machine is exempt.
    """
    major, minor = (int(part) for part in os.uname().release.split(".")[:2])
    return (major, minor) >= (5, 14) and not _is_real_root()


def _is_real_root() -> bool:
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        inside, outside, count = map(int, line.split())
        if inside <= os.getuid() < inside + count:
            return outside + os.getuid() - inside == 0
    return False
