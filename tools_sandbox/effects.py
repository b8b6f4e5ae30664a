"""Which files of a workspace something changed, and to what."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, TypeVar

from tools_sandbox.places import Snapshot
from tools_sandbox.sandbox import Sandbox

Changes: TypeAlias = tuple[tuple[str, str | None], ...]
"""Names whose content is other than before, sorted, with what is there now; None for gone.

What is there: a kind, a mode, and a hash of the content or the target of a link."""

_State = dict[str, str | None]
"""What is under each name. In a layer, None for what it takes away."""

_CHUNK_BYTES = 256 * 1024
_OPAQUE = "user.overlay.opaque"
_HIDES_BELOW = " opaque"

_T = TypeVar("_T")


class Observer:
    """Tells what was done to the files of a workspace; times don't count.

    It remembers what layers hold that can't change any more, so that the cost of a look at a view
    of kind `overlay` depends on the changes and not on the size of the workspace.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._known: dict[Path, _State] = {}

    def watch(self, action: Callable[[Sandbox], _T]) -> tuple[_T, Changes]:
        """Do something in the workspace: its result, and what it changed.

        Raises:
            SandboxError: the sandbox failed; and whatever `action` raises.
        """
        return self._watched(self._sandbox, action)

    def watch_on_branch(
        self, snapshot: Snapshot, action: Callable[[Sandbox], _T]
    ) -> tuple[_T, Changes]:
        """Do something on a throw-away branch of the workspace as it stood at a snapshot.

        Raises:
            InvalidRequest: the workspace is not a view.
            SandboxError: the sandbox failed; and whatever `action` raises.
        """
        with self._sandbox.branch(snapshot) as branch:
            return self._watched(branch, action)

    def _watched(self, sandbox: Sandbox, action: Callable[[Sandbox], _T]) -> tuple[_T, Changes]:
        before = self._state(sandbox)
        result = action(sandbox)
        return result, _changes(before, self._state(sandbox))

    def _state(self, sandbox: Sandbox) -> _State:
        layers = sandbox.layers
        if layers is None:
            return _read(sandbox.workspace)
        *frozen, top = layers
        state: _State = {}
        for layer in frozen:
            if layer not in self._known:
                self._known[layer] = _read(layer)
            _put_over(state, self._known[layer])
        _put_over(state, _read(top))
        return state


def _changes(before: _State, after: _State) -> Changes:
    names = sorted(before.keys() | after.keys())
    return tuple((name, after.get(name)) for name in names if before.get(name) != after.get(name))


def _put_over(state: _State, layer: _State) -> None:
    """Put the content of a layer over what is below it."""
    gone = {name for name, found in layer.items() if _is_gone(state.get(name), found)}
    # Only directories have something in them; most changes are to files, and cost no look at all.
    closed = {name for name in gone if _is_directory(state[name] or "")}
    for name in [each for each in state if each in gone or (closed and _is_in(each, closed))]:
        del state[name]
    for name, found in layer.items():
        if found is not None:
            state[name] = found.removesuffix(_HIDES_BELOW) if _is_directory(found) else found


def _is_gone(below: str | None, found: str | None) -> bool:
    """Whether a layer leaves nothing of what is below a name."""
    if below is None:
        return False
    if found is None or not (_is_directory(found) and _is_directory(below)):
        return True
    return found.endswith(_HIDES_BELOW)


def _is_in(name: str, directories: set[str]) -> bool:
    while (end := name.rfind("/")) > 0:
        name = name[:end]
        if name in directories:
            return True
    return False


def _is_directory(found: str) -> bool:
    return found.startswith("d")


def _read(top: Path) -> _State:
    """All names below a directory, those of directories before what is in them."""
    state: _State = {}
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(top / directory) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            # A command can make a directory unreadable, or deeper than a path can be long.
            state[f"{directory}/?"] = f"unreadable {error.errno}"
            continue
        for entry in found:
            name = f"{directory}/{entry.name}" if directory else entry.name
            state[name] = _described(entry)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(name)
    return state


def _described(entry: "os.DirEntry[str]") -> str | None:
    """What an entry is; None for the mark of an overlay that a name is gone."""
    try:
        found = entry.stat(follow_symlinks=False)
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISREG(found.st_mode):
            return f"f {mode:o} {_file_digest(entry.path)}"
        if stat.S_ISLNK(found.st_mode):
            return f"l {Path(entry.path).readlink()}"
        if stat.S_ISDIR(found.st_mode):
            return f"d {mode:o}{_HIDES_BELOW if _is_opaque(entry.path) else ''}"
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
            return None
        return f"other {found.st_mode:o}"
    except OSError as error:
        return f"unreadable {error.errno}"


def _is_opaque(path: str) -> bool:
    try:
        return os.getxattr(path, _OPAQUE, follow_symlinks=False) == b"y"
    except OSError:
        return False


def _file_digest(path: str) -> str:
    """Of the size and of each chunk that is not all zeros.

    So holes, which cost a command nothing to make, cost nothing to look at, and a file is the same
    with holes or without.
    """
    # Not through a link that has come in the meantime, and not waiting for the end of a pipe.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        digest = hashlib.sha256(b"%d" % os.fstat(fd).st_size)
        data = _next_data(fd, 0)
        while data is not None:
            start = data - data % _CHUNK_BYTES
            chunk = os.pread(fd, _CHUNK_BYTES, start)
            if chunk.strip(b"\0"):
                digest.update(b"%d:" % start + chunk)
            data = _next_data(fd, start + _CHUNK_BYTES)
    finally:
        os.close(fd)
    return digest.hexdigest()


def _next_data(fd: int, place: int) -> int | None:
    """Where a file holds something, from a place on; None where only a hole or nothing is left."""
    try:
        return os.lseek(fd, place, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise
