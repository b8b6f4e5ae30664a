"""Keeps a mount namespace alive in which workspaces are mounted, and mounts what it is told to.

A program of its own, since a thread can't enter a user namespace. It reads one JSON request a line
and answers each with one line; it ends with its input, and all that it mounted ends with it. What
it mounts is found beneath `PLACE` by those who enter its namespaces, and by nobody else.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tools_sandbox import kernel
from tools_sandbox.removal import remove_tree

PLACE = "/tmp"
"""Where a holder mounts. It hides what the machine has there, inside the namespace only."""
PROGRAMS = "programs"
"""The directory with the sandbox's own program, for users who can't reach it otherwise."""

_RESERVE = "reserve"
_RESERVED_FILES, _FILES_OF_A_VIEW = 64, 8


def main(settings: dict[str, Any]) -> None:
    """Set up the namespaces, then serve requests until the input ends."""
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
    uid, gid = settings["uid"], settings["gid"]
    if settings["switch"]:
        # Only the starter may map more than one user.
        _answer({"unshared": True})
        sys.stdin.readline()
    else:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    mounts = _Mounts(settings)
    if settings["switch"]:
        _become(uid, gid)
    os.umask(0o022)
    _answer({"ready": True})
    actions: dict[str, Callable[..., Any]] = {
        "bind": mounts.bind,
        "overlay": mounts.overlay,
        "release": mounts.release,
        "forget": mounts.forget,
        "is_changed": mounts.is_changed,
    }
    for line in sys.stdin:
        words = json.loads(line)
        try:
            _answer({"answer": actions[words[0]](*words[1:])})
        except OSError as error:
            _answer({"error": str(error)})


class _Mounts:
    """The directories beneath `PLACE`: views by name, and layers by number."""

    def __init__(self, settings: dict[str, Any]) -> None:
        kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        self._root_modes: dict[int, int] = {}
        # Opened here, since descriptors of the outer namespace can't be mounted; and before
        # anything is hidden.
        self._source = os.open(settings["source"], os.O_PATH | os.O_DIRECTORY)
        programs = settings["programs"] and os.open(settings["programs"], os.O_PATH)
        flags = kernel.MS_NOSUID | kernel.MS_NODEV
        if settings["scratch"]:
            scratch = os.open(settings["scratch"], os.O_PATH | os.O_DIRECTORY)
            kernel.mount(_name(scratch), PLACE, None, kernel.MS_BIND | kernel.MS_REC)
        else:
            size, files = settings["bytes"], settings["files"]
            owner = f"uid={settings['uid']},gid={settings['gid']}"
            options = f"size={size},nr_inodes={files + _RESERVED_FILES},mode=755,{owner}"
            kernel.mount("tmpfs", PLACE, "tmpfs", flags, options)
        # Short relative names keep many layers within the page that mount options may fill.
        os.chdir(PLACE)
        # Room for further views, which commands that fill all the rest must not take.
        self._reserved: list[str] = []
        self._has_reserve = not settings["scratch"]
        if self._has_reserve:
            Path(_RESERVE).mkdir()
            self._reserve()
        if programs:
            Path(PROGRAMS).mkdir()
            kernel.mount(_name(programs), PROGRAMS, None, kernel.MS_BIND | kernel.MS_REC)

    def bind(self, name: str) -> None:
        """Show the source itself."""
        Path(name).mkdir()
        kernel.mount(_name(self._source), name, None, kernel.MS_BIND | kernel.MS_REC)

    def overlay(self, name: str, layer: int, below: Sequence[int]) -> None:
        """Show the source with layers over it, the newest first; `layer` takes the changes."""
        for _ in range(min(_FILES_OF_A_VIEW, len(self._reserved))):
            Path(self._reserved.pop()).unlink()
        root = Path(f"u{below[0]}" if below else _name(self._source)).stat()
        self._root_modes[layer] = root.st_mode
        for directory in (f"u{layer}", f"w{layer}", name):
            Path(directory).mkdir(exist_ok=True)
        Path(f"u{layer}").chmod(root.st_mode & 0o7777)
        os.utime(f"u{layer}", ns=(root.st_atime_ns, root.st_mtime_ns))
        # An overlay notes in such attributes that a directory hides the one below.
        os.setxattr(f"w{layer}", "user.overlay.probe", b"x")
        lower = ":".join([*(f"u{number}" for number in below), _name(self._source)])
        options = f"lowerdir={lower},upperdir=u{layer},workdir=w{layer},userxattr"
        try:
            kernel.mount("overlay", name, "overlay", kernel.MS_NOSUID | kernel.MS_NODEV, options)
        except OSError as error:
            raise OSError(error.errno, f"overlay: {error.strerror}") from error

    def release(self, name: str) -> None:
        """Take a view away; its layers stay."""
        kernel.unmount(name)
        Path(name).rmdir()

    def forget(self, layer: int) -> None:
        """Remove a layer that no view is over."""
        for directory in (f"u{layer}", f"w{layer}"):
            with contextlib.suppress(FileNotFoundError):
                remove_tree(Path(directory))
        if self._has_reserve:
            self._reserve()

    def _reserve(self) -> None:
        with contextlib.suppress(OSError):
            while len(self._reserved) < _RESERVED_FILES - 2:
                name = f"{_RESERVE}/{len(self._reserved)}"
                Path(name).touch(exist_ok=False)
                self._reserved.append(name)

    def is_changed(self, layer: int) -> bool:
        """Whether a layer holds anything, or the top of its view has another mode."""
        upper = Path(f"u{layer}")
        return any(os.scandir(upper)) or upper.stat().st_mode != self._root_modes[layer]


def _name(fd: int) -> str:
    return f"/proc/self/fd/{fd}"


def _become(uid: int, gid: int) -> None:
    """Be another user, with the rights to mount kept."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
    os.setresuid(uid, uid, uid)
    kernel.raise_permitted_capabilities()


def _answer(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()
