"""Which user commands run as: the caller, or where that is root, somebody without rights."""

import contextlib
import os
import stat
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

TOOL_UID = 60800
"""Whom root runs commands as. Debian and systemd hand out no number from 60578 to 61183."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY


@dataclass(frozen=True)
class User:
    """A user and the one group that goes with it."""

    uid: int
    gid: int

    @property
    def is_caller(self) -> bool:
        """It is the user who runs this program."""
        return self.uid == os.geteuid()

    @property
    def is_dedicated(self) -> bool:
        """Nothing but commands runs as this user."""
        return self.uid == TOOL_UID


def caller() -> User:
    """The user who runs this program."""
    return User(os.geteuid(), os.getegid())


def command_user(workspace: Path | None = None) -> User:
    """The user who runs commands in a workspace; the one of private copies where none is given.

    Anybody but root runs them himself. Root runs them as the workspace's owner, or as user 60800
    where that is root too. The root of a namespace without other users is an ordinary user outside,
    and stays what it is.
    """
    itself = caller()
    if itself.uid != 0 or _outside(TOOL_UID) is None:
        return itself
    owner = workspace.stat() if workspace else None
    if owner is None or owner.st_uid == 0:
        return User(TOOL_UID, TOOL_UID)
    return User(owner.st_uid, owner.st_gid)


def is_real_root() -> bool:
    """Whether the caller is the root of the machine, whatever it is called in here."""
    return _outside(os.getuid()) == 0


def give(directory: Path, user: User, *, only_from: User | None = None) -> None:
    """Make a directory and what it holds belong to a user; no link is followed.

    Only root can; for anybody else this does nothing.
    A file with a name outside the directory stays as it is: it is not the directory's alone.

    Args:
        directory: the top of the tree.
        user: the new owner.
        only_from: leave alone what does not belong to this user.
    """
    if os.geteuid() != 0:
        return
    top = os.open(directory, _DIRECTORY)
    try:
        names_seen = Counter(_identity(found) for _, _, found in _entries(top))
        for parent, name, found in _entries(top):
            if only_from and found.st_uid != only_from.uid:
                continue
            if (found.st_uid, found.st_gid) == (user.uid, user.gid):
                continue
            if not stat.S_ISDIR(found.st_mode) and found.st_nlink > names_seen[_identity(found)]:
                continue
            with contextlib.suppress(FileNotFoundError):
                os.chown(name, user.uid, user.gid, dir_fd=parent, follow_symlinks=False)
    finally:
        os.close(top)


def give_back(directory: Path, user: User) -> None:
    """Make what belongs to a user in a directory belong to the caller again.

    Raises:
        OSError: something can't be given back.
    """
    # The program copes with trees deeper than a path can be long.
    words = ["chown", "-R", "-h", "-P", f"--from={user.uid}", f"{os.geteuid()}:{os.getegid()}"]
    done = subprocess.run(
        [*words, "--", directory],
        env={"PATH": os.defpath, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise OSError(done.stderr.decode("utf-8", "replace").strip())


def _outside(uid: int) -> int | None:
    """The number of a user on the machine; None where this namespace does not have him."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        inside, outside, count = map(int, line.split())
        if inside <= uid < inside + count:
            return outside + uid - inside
    return None


def _entries(top: int) -> Iterator[tuple[int, str, os.stat_result]]:
    """The directory and all below it: the parent, good until the next one, the name, the state.

    Each directory is opened part by part, since its owner may be at work in it: nothing but what is
    really below comes, whatever he moves and links meanwhile.
    """
    yield top, ".", os.fstat(top)
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        parts = waiting.pop()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), _opened(top, parts) as fd:
            with os.scandir(fd) as entries:
                found = list(entries)
            for entry in found:
                with contextlib.suppress(FileNotFoundError):
                    yield fd, entry.name, entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((*parts, entry.name))


@contextlib.contextmanager
def _opened(top: int, parts: Iterable[str]) -> Iterator[int]:
    fd = os.dup(top)
    try:
        for part in parts:
            below = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return (found.st_dev, found.st_ino)
