"""Where the files of a workspace are: the caller's own directory, or a view of a pristine one."""

import contextlib
import fcntl
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tools_sandbox.errors import InvalidRequest, SandboxError
from tools_sandbox.mounting import CannotMount, Mounts
from tools_sandbox.private import PrivateDirectory
from tools_sandbox.removal import remove_tree
from tools_sandbox.users import User, caller, give, give_back
from tools_sandbox.workspace import copy_tree

ViewKind = Literal["direct", "overlay", "overlay-disk", "reflink", "copy"]
"""`direct`: the caller's directory itself. `overlay` and `overlay-disk`: changes go to a layer over
the pristine directory, in memory or on disk. `reflink` and `copy`: a private copy, with or without
shared blocks."""

_MOST_LAYERS = 400
_FICLONE = 0x40049409


@dataclass(frozen=True)
class Snapshot:
    """How a workspace was at one time. Good as long as the view that made it is open."""

    layers: tuple[int, ...] = ()
    copy: Path | None = None


class Place(Protocol):
    """The files of one workspace, and how commands get to them."""

    kind: ViewKind
    user: User
    path: Path
    """Where this program finds the files."""
    enter: tuple[str, ...]
    """The words before a program that is to find the files at `source`."""
    source: str
    program: str | None
    """Where the sandbox's own program is after `enter`, if it has moved."""
    bounded: bool
    """The files can't take more room than the limit: nobody needs to watch."""

    @property
    def layers(self) -> tuple[Path, ...] | None:
        """Of what the files are made up, the lowest first; None where they are just there."""

    def snapshot(self) -> Snapshot:
        """Keep the present state."""

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a state; the present one is lost."""

    def branch(self, snapshot: Snapshot) -> "Place":
        """Another workspace, which starts from a state of this one."""

    def close(self) -> None:
        """Let go of the files; a view's are gone after that."""


class Direct:
    """A directory of the caller's, reached as it is or through a holder of mounts."""

    kind: ViewKind = "direct"
    bounded = False
    layers = None

    def __init__(self, path: Path, user: User, mounts: Mounts | None = None) -> None:
        """Lend a directory to the user of commands.

        Raises:
            CannotMount: it can't be reached through `mounts`.
        """
        self.path = path
        self.user = user
        self._mounts = mounts
        self.enter: tuple[str, ...] = ()
        self.source = str(path)
        self.program: str | None = None
        if not user.is_caller:
            give(path, user, only_from=caller())
        if mounts:
            mounts.call("bind", "view")
            self.enter, self.source = mounts.enter, mounts.inside("view")
            self.program = mounts.program

    def snapshot(self) -> Snapshot:
        """Not for a directory of the caller's."""
        raise _no_states(self.path)

    def restore(self, snapshot: Snapshot) -> None:
        """Not for a directory of the caller's."""
        raise _no_states(self.path)

    def branch(self, snapshot: Snapshot) -> Place:
        """Not for a directory of the caller's."""
        raise _no_states(self.path)

    def close(self) -> None:
        """Give the files back to the caller."""
        if self._mounts:
            self._mounts.close()
        if self.user.is_dedicated and self.path.is_dir():
            give_back(self.path, self.user)


class Overlay:
    """A view whose changes lie in layers; states share all that did not change."""

    def __init__(
        self,
        mounts: Mounts,
        user: User,
        scratch: PrivateDirectory | None,
        *,
        below: tuple[int, ...] = (),
        numbers: "_Numbers | None" = None,
    ) -> None:
        """Mount a view.

        Args:
            mounts: the holder, started over the pristine directory.
            user: who uses the view.
            scratch: where on disk the layers are, to be removed at the end; None for memory.
            below: the layers to start from.
            numbers: those of the view that this one is a branch of.

        Raises:
            SandboxError: it can't be mounted.
        """
        self.user = user
        self.kind: ViewKind = "overlay-disk" if scratch else "overlay"
        self.bounded = scratch is None
        self._scratch = scratch
        self.enter = mounts.enter
        self.program: str | None = mounts.program
        self._mounts = mounts
        self._numbers = numbers or _Numbers()
        self._is_branch = numbers is not None
        self._name = f"view{self._numbers.next()}"
        self.path = mounts.outside(self._name)
        self.source = mounts.inside(self._name)
        self._mount(below)

    @property
    def layers(self) -> tuple[Path, ...]:
        """The pristine directory and the layers over it."""
        numbers = (*reversed(self._below), self._layer)
        return (self._mounts.source, *(self._mounts.outside(f"u{each}") for each in numbers))

    def snapshot(self) -> Snapshot:
        """Freeze the layer of changes, if there are any, and go on in a new one."""
        if not self._call("is_changed", self._layer):
            return Snapshot(self._below)
        if len(self._below) >= _MOST_LAYERS:
            raise InvalidRequest(f"no more than {_MOST_LAYERS} snapshots of one workspace")
        frozen = (self._layer, *self._below)
        self._call("release", self._name)
        self._mount(frozen)
        return Snapshot(frozen)

    def restore(self, snapshot: Snapshot) -> None:
        """Put a new layer over the ones of the snapshot."""
        _require(snapshot.copy is None)
        self._call("release", self._name)
        self._call("forget", self._layer)
        self._mount(snapshot.layers)

    def branch(self, snapshot: Snapshot) -> Place:
        """A second view over the layers of the snapshot."""
        _require(snapshot.copy is None)
        return Overlay(
            self._mounts,
            self.user,
            self._scratch,
            below=snapshot.layers,
            numbers=self._numbers,
        )

    def close(self) -> None:
        """End the view; the first one takes all layers with it."""
        if self._is_branch:
            with contextlib.suppress(SandboxError):
                self._call("release", self._name)
                self._call("forget", self._layer)
        else:
            self._mounts.close()
            if self._scratch:
                self._scratch.remove()

    def _mount(self, below: tuple[int, ...]) -> None:
        self._below = below
        self._layer = self._numbers.next()
        self._call("overlay", self._name, self._layer, below)

    def _call(self, *request: object) -> object:
        try:
            return self._mounts.call(*request)
        except CannotMount as error:
            raise SandboxError(f"a view of the workspace: {error}") from None


class Copied:
    """A private copy of a pristine directory; states are copies too."""

    bounded = False
    layers = None

    def __init__(
        self, pristine: Path, user: User, through: Callable[[Path, User], Mounts] | None = None
    ) -> None:
        """Copy a directory.

        Args:
            pristine: the directory to copy.
            user: who uses the copy.
            through: makes a holder of mounts through which to reach the copy.
        """
        self._through = through
        self._private = PrivateDirectory()
        self._states = self._private.path / "states"
        self._states.mkdir(mode=0o700)
        # The name can't be guessed by others who may pass.
        path = self._private.path / secrets.token_hex(16)
        path.mkdir()
        self.kind: ViewKind = "reflink" if _shares_blocks(self._private.path) else "copy"
        try:
            _fill(path, pristine)
            give(path, user)
            self._direct = Direct(path, user, through(path, user) if through else None)
        except BaseException:
            self._private.remove()
            raise
        self._count = 0
        self.path, self.user = path, user
        self.enter, self.source = self._direct.enter, self._direct.source
        self.program = self._direct.program

    def snapshot(self) -> Snapshot:
        """Copy the present state."""
        self._count += 1
        kept = self._states / str(self._count)
        kept.mkdir()
        _fill(kept, self.path)
        return Snapshot(copy=kept)

    def restore(self, snapshot: Snapshot) -> None:
        """Replace all files by the ones of the snapshot."""
        _require(snapshot.copy is not None)
        assert snapshot.copy
        remove_tree(self.path, keep_top=True)
        _fill(self.path, snapshot.copy)

    def branch(self, snapshot: Snapshot) -> Place:
        """A copy of the snapshot."""
        _require(snapshot.copy is not None)
        assert snapshot.copy
        return Copied(snapshot.copy, self.user, self._through)

    def close(self) -> None:
        """Remove the copy and its states."""
        self._direct.close()
        self._private.remove()


class _Numbers:
    """Names for views and layers, each used once."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last


def _fill(target: Path, source: Path) -> None:
    try:
        copy_tree(source, target)
    except InvalidRequest as error:
        raise SandboxError(str(error)) from None


def _shares_blocks(directory: Path) -> bool:
    with (
        tempfile.TemporaryFile(dir=directory) as one,
        tempfile.TemporaryFile(dir=directory) as other,
    ):
        one.write(b"x" * 4096)
        one.flush()
        try:
            fcntl.ioctl(other.fileno(), _FICLONE, one.fileno())
        except OSError:
            return False
        return True


def _require(fits: bool) -> None:
    if not fits:
        raise InvalidRequest("this snapshot belongs to a view of another kind")


def _no_states(path: Path) -> InvalidRequest:
    return InvalidRequest(
        f"workspace {str(path)!r}: a directory of the caller's has no snapshots; open a view of it"
    )
