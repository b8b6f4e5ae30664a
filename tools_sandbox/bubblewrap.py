"""Tier `bubblewrap`: every command in fresh namespaces, on a read-only system."""

import os
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools_sandbox.binaries import Bwrap
from tools_sandbox.environment import ETC, SYSTEM, USER, fixed_environment
from tools_sandbox.info import SandboxInfo
from tools_sandbox.limits import Limits, limit_statuses, prlimit_argv
from tools_sandbox.places import Place
from tools_sandbox.process import Launch, memory_file
from tools_sandbox.result import Tier
from tools_sandbox.seccomp import bubblewrap_filter, fingerprint
from tools_sandbox.users import User, is_real_root

INSIDE_WORKSPACE = "/workspace"
_HOME = f"/home/{USER}"
_UID = 1000
_ETC_FILES = {
    "passwd": f"root:x:0:0:root:/root:/bin/sh\n{USER}:x:{_UID}:{_UID}::{_HOME}:/bin/bash\n",
    "group": f"root:x:0:\n{USER}:x:{_UID}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
}


@dataclass(frozen=True)
class Form:
    """A variant of the call. What a machine forbids is left out, and recorded."""

    proc: bool = True

    @property
    def name(self) -> str:
        """`full`, or what is left out."""
        return "full" if self.proc else "no-proc"


# The most complete first. A container that masks /proc forbids a new one.
FORMS = (Form(), Form(proc=False))


class Bubblewrap:
    """Starts commands in a workspace through one bubblewrap program and one form of the call."""

    def __init__(
        self,
        place: Place,
        limits: Limits,
        bwrap: Bwrap,
        form: Form,
        refused: tuple[str, ...] = (),
    ) -> None:
        self._place = place
        self._limits = limits
        self._bwrap = bwrap
        self._form = form
        self._refused = refused
        self._filter = bubblewrap_filter()
        self._limit_processes = _counts_processes(place.user)

    def info(self) -> SandboxInfo:
        """What this tier is, and how it keeps the limits."""
        return SandboxInfo(
            tier=Tier.BUBBLEWRAP,
            limits=limit_statuses(
                self._limits,
                sized_tmpfs="--size" in self._bwrap.options,
                processes=self._limit_processes,
                sized_workspace=self._place.bounded,
            ),
            bwrap_path=str(self._bwrap.path),
            bwrap_version=self._bwrap.version,
            bwrap_origin=self._bwrap.origin,
            form=self._form.name,
            view=self._place.kind,
            filter_sha256=fingerprint(self._filter),
            has_proc=self._form.proc,
            nested_namespaces_blocked=True,
            refused=self._refused,
            command_uid=self._place.user.uid,
        )

    @contextmanager
    def launch(self, words: Sequence[str], status_fd: int) -> Iterator[Launch]:
        """Prepare to start a program."""
        with ExitStack() as stack:
            files = {
                f"/etc/{name}": memory_file(name, text.encode(), stack)
                for name, text in _ETC_FILES.items()
            }
            filter_fd = memory_file("filter", self._filter, stack)
            # Ends with this program: it alone holds the other end.
            life, held = os.pipe()
            stack.callback(os.close, life)
            stack.callback(os.close, held)
            argv = [
                *self._place.enter,
                self._place.program or str(self._bwrap.path),
                *self._isolation(),
                *_environment_options(),
                *_system_options(),
                *(w for name, fd in files.items() for w in ("--file", str(fd), name)),
                *self._mounts(),
                *("--seccomp", str(filter_fd), "--json-status-fd", str(status_fd)),
                *_unless_alone(life),
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
                inherited_fds=(life, filter_fd, *files.values()),
                stop_signal=signal.SIGKILL,
            )

    def close(self) -> None:
        """Nothing is left to release between commands."""

    def _isolation(self) -> list[str]:
        options = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        options += ["--unshare-cgroup-try", "--unshare-net"]
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
        options += ["--dir", "/run", "--bind", self._place.source, INSIDE_WORKSPACE]
        options += ["--chdir", INSIDE_WORKSPACE, "--remount-ro", "/dev", "--remount-ro", "/"]
        return options

    def _tmpfs(self, path: str, size_bytes: int) -> list[str]:
        size = ["--size", str(size_bytes)] if "--size" in self._bwrap.options else []
        return [*size, "--tmpfs", path]


def _unless_alone(life: int) -> list[str]:
    """The words before a program that is to start only while this one lives.

    Bubblewrap binds its processes to each other late. A caller killed before that would leave the
    command behind; from this moment on the kernel ends it.
    """
    ask = (
        'read -t 0 -u "$0" && exit; life=$0; exec {life}<&-; export -n PWD OLDPWD SHLVL; exec "$@"'
    )
    return ["/bin/bash", "--noprofile", "--norc", "-c", ask, str(life)]


def _environment_options() -> list[str]:
    variables = fixed_environment(home=_HOME, tmp="/tmp")
    return [word for item in variables.items() for word in ("--setenv", *item)]


def _system_options() -> list[str]:
    options = ["--ro-bind", "/usr", "/usr"]
    for name in SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
    # Made by name, so that it gets an ordinary mode and not that of an implied parent.
    options += ["--dir", "/etc"]
    for name in ETC:
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return options


def _counts_processes(user: User) -> bool:
    """Whether the kernel's limit on processes can be used.

    Before Linux 5.14 it counts all processes of the user, those outside included: then only a user
    who runs nothing else can be limited. The root user of the machine is exempt.
    """
    major, minor = (int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    if user.is_dedicated:
        return True
    return (major, minor) >= (5, 14) and not (user.uid == 0 and is_real_root())
