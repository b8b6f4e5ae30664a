"""Opens a sandbox for one workspace, and runs commands and file tools in it."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from tools_sandbox import files
from tools_sandbox.binaries import Bwrap, find_bwraps
from tools_sandbox.errors import SandboxError
from tools_sandbox.limits import Limits
from tools_sandbox.opening import Opened, View, Wish, open_bubblewrap, open_supervised
from tools_sandbox.places import Snapshot
from tools_sandbox.process import Halt, execute
from tools_sandbox.requests import check_timeout, checked_words, checked_workspace
from tools_sandbox.result import Result, Tier
from tools_sandbox.store import Pristine
from tools_sandbox.watch import DiskWatch


class Sandbox:
    """Runs commands in one workspace. Made by `open_sandbox` or `open_view`.

    Commands and file tools may be used from several threads; the states of a workspace from one
    thread only, while nothing runs.
    """

    def __init__(self, opened: Opened, limits: Limits, halt: Halt | None = None) -> None:
        self.info = opened.info
        self.limits = limits
        self._opened = opened
        self._is_open = True
        self._halt = halt or Halt()
        self._owns_halt = halt is None
        self._place = opened.place
        self._backend = opened.backend
        self._disk = None if self._place.bounded else DiskWatch(self._place.path)
        self.files = files.FileTools(self._place, limits, self.run)
        """The file tools, which have the same walls as commands."""

    @property
    def workspace(self) -> Path:
        """The workspace as this program finds it; a view's path is good until a state changes."""
        return self._place.path

    @property
    def layers(self) -> tuple[Path, ...] | None:
        """Of a view of kind `overlay`, the directories that make it up, the lowest first.

        Only the last one can still change.
        """
        return self._place.layers

    def run(self, command: str | Sequence[str], *, timeout_s: float) -> Result:
        """Run a bash command line, or a program with exactly these words, in the workspace.

        `timeout_s` is above zero and at most `MAX_TIMEOUT_S`.

        Each call is a process of its own: only files in the workspace last from one to the next.
        Standard input is empty. A command that leaves children behind returns without them.

        Raises:
            InvalidRequest: the command or the time-out can't be used.
            SandboxError: the sandbox failed, as opposed to the command.
            SandboxStopped: `stop` was called.
        """
        check_timeout(timeout_s)
        words = checked_words(command)
        _open_up(self._place.path)
        return execute(
            lambda status_fd: self._backend.launch(words, status_fd),
            timeout_s=timeout_s,
            limits=self.limits,
            disk=self._disk,
            halt=self._halt,
        )

    def stop(self) -> None:
        """End what runs here and in branches, and let nothing start any more.

        For other threads than the one that runs commands, where that raises `SandboxStopped`. The
        sandbox is still to be closed.
        """
        self._halt.come()

    def snapshot(self) -> Snapshot:
        """Keep the present state of a view, for `restore` and `branch`.

        Raises:
            InvalidRequest: the workspace is a directory of the caller's, not a view.
            SandboxError: the state can't be kept.
        """
        return self._place.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Take a view back to a state that it has had.

        Raises:
            InvalidRequest: the snapshot is of another kind of view.
            SandboxError: the state can't be had again.
        """
        self._place.restore(snapshot)

    def branch(self, snapshot: Snapshot) -> "Sandbox":
        """A second sandbox over a state of this view; close it before this one.

        What happens in either is not seen in the other.

        Raises:
            InvalidRequest: the snapshot is of another kind of view.
            SandboxError: the state can't be had again.
        """
        place = self._place.branch(snapshot)
        try:
            backend = self._opened.backend_for(place)
        except BaseException:
            place.close()
            raise
        opened = Opened(place, backend, self.info, self._opened.backend_for)
        return Sandbox(opened, self.limits, self._halt)

    def close(self) -> None:
        """Release what the sandbox holds outside the workspace; a view is gone after that."""
        if self._is_open:
            self._is_open = False
            if self._owns_halt:
                self._halt.close()
            self._backend.close()
            self._place.close()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def open_sandbox(
    workspace: Path,
    *,
    tier: Tier = Tier.BUBBLEWRAP,
    limits: Limits | None = None,
    bwraps: Sequence[Bwrap] | None = None,
) -> Sandbox:
    """Open a sandbox whose commands may write to `workspace` and run there.

    The tier is proved by running a command in it. Tier `none` isolates nothing. Where root runs
    this, commands run as another user (`command_user`), to whom the workspace is lent until the
    sandbox is closed.

    Args:
        workspace: an existing, writable directory; not one of the system's own.
        tier: how to isolate; there is no fallback to a weaker one.
        limits: what one command may use; the defaults suit coding tasks.
        bwraps: the bubblewrap programs to try in turn; those of the machine unless given.

    Raises:
        InvalidRequest: the workspace can't be used.
        SandboxUnavailable: the tier can't run here; the text names the remedy.
    """
    wish = Wish(checked_workspace(workspace), limits or Limits(), None)
    return _open(wish, tier, bwraps)


def open_view(
    pristine: Pristine,
    *,
    tier: Tier = Tier.BUBBLEWRAP,
    view: View = "best",
    limits: Limits | None = None,
    bwraps: Sequence[Bwrap] | None = None,
) -> Sandbox:
    """Open a sandbox over a private view of a pristine workspace, which never changes itself.

    Args:
        pristine: a workspace of a `Store`.
        tier: how to isolate; there is no fallback to a weaker one.
        view: how to provide the files; `info.view` tells what came of it.
        limits: what one command may use; the defaults suit coding tasks.
        bwraps: the bubblewrap programs to try in turn; those of the machine unless given.

    Raises:
        SandboxUnavailable: the tier or the view can't be had here; the text names the remedy.
    """
    return _open(Wish(pristine.path, limits or Limits(), view), tier, bwraps)


def _open_up(workspace: Path) -> None:
    """Let the owner of a workspace in again, should a command have shut the door.

    Raises:
        SandboxError: the workspace is gone.
    """
    try:
        fd = os.open(workspace, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise SandboxError(f"the workspace can't be opened: {error.strerror}") from error
    try:
        mode = os.fstat(fd).st_mode
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            # A descriptor of this kind can be changed only through its name in /proc.
            Path(f"/proc/self/fd/{fd}").chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
    except PermissionError:
        # It belongs to somebody else, and so did the change.
        pass
    finally:
        os.close(fd)


def _open(wish: Wish, tier: Tier, bwraps: Sequence[Bwrap] | None) -> Sandbox:
    if tier is Tier.BUBBLEWRAP:
        opened = open_bubblewrap(wish, find_bwraps() if bwraps is None else bwraps)
    else:
        opened = open_supervised(wish, tier)
    return Sandbox(opened, wish.limits)
