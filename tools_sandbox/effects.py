"""What a command did: its outcome, and which files of the workspace it changed to what."""

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools_sandbox.places import Snapshot
from tools_sandbox.result import Result
from tools_sandbox.sandbox import Sandbox

_State = dict[str, str | None]
"""What is under each name: a kind, a mode, and a hash of the content or the target of a link.
In a layer, None for what it takes away."""

_CHUNK_BYTES = 256 * 1024
_NOT_RUN = (126, 127)
_OPAQUE = "user.overlay.opaque"
_HIDES_BELOW = " opaque"


@dataclass(frozen=True)
class Effect:
    """What one call did."""

    result: Result
    changes: tuple[tuple[str, str | None], ...]
    """Names whose content is other than before, sorted, with what is there now; None for gone."""

    @property
    def ran(self) -> bool:
        """The call could be executed: bash found its programs, and it came to an end."""
        result = self.result
        return (
            not result.timed_out and result.over_limit is None and result.exit_code not in _NOT_RUN
        )


class Observer:
    """Runs commands in a workspace and tells what they did to its files; times don't count.

    It remembers what layers hold that can't change any more, so that the cost of a call to a view
    of kind `overlay` depends on the changes and not on the size of the workspace.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._known: dict[Path, _State] = {}

    def run(self, command: str | Sequence[str], *, timeout_s: float) -> Effect:
        """Run a command in the workspace.

        Raises:
            InvalidRequest: the command can't be used.
            SandboxError: the sandbox failed.
        """
        return self._observed(self._sandbox, command, timeout_s)

    def try_on_copy(
        self, snapshot: Snapshot, command: str | Sequence[str], *, timeout_s: float
    ) -> Effect:
        """Run a command on a throw-away branch of the workspace as it stood at a snapshot.

        Raises:
            InvalidRequest: the command can't be used, or the workspace is not a view.
            SandboxError: the sandbox failed.
        """
        with self._sandbox.branch(snapshot) as branch:
            return self._observed(branch, command, timeout_s)

    def _observed(self, sandbox: Sandbox, command: str | Sequence[str], timeout_s: float) -> Effect:
        before = self._state(sandbox)
        result = sandbox.run(command, timeout_s=timeout_s)
        return Effect(result, _changes(before, self._state(sandbox)))

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


def same_effect(one: Effect, other: Effect) -> bool:
    """Whether two calls did the same: same exit status, same files with the same content.

    Of calls that change nothing the output has to be the same too, since that is all they do.
    """
    if one.result.exit_code != other.result.exit_code or one.changes != other.changes:
        return False
    return bool(one.changes) or one.result.output == other.result.output


def _changes(before: _State, after: _State) -> tuple[tuple[str, str | None], ...]:
    names = sorted(before.keys() | after.keys())
    return tuple((name, after.get(name)) for name in names if before.get(name) != after.get(name))


def _put_over(state: _State, layer: _State) -> None:
    """Put the content of a layer over what is below it."""
    for name, found in layer.items():
        below = state.get(name)
        if found is None or (below and not (_is_directory(found) and _is_directory(below))):
            _remove(state, name)
        elif found.endswith(_HIDES_BELOW):
            _remove(state, name)
            found = found.removesuffix(_HIDES_BELOW)
        if found is not None:
            state[name] = found.removesuffix(_HIDES_BELOW)


def _remove(state: _State, name: str) -> None:
    for inner in [each for each in state if each == name or each.startswith(f"{name}/")]:
        del state[inner]


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
    digest = hashlib.sha256()
    # Not through a link that has come in the meantime, and not waiting for the end of a pipe.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
