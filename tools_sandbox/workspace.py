"""Private copies of a pristine directory, and their removal whatever an agent left in them."""

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from tools_sandbox.errors import InvalidRequest

_COPY = ("cp", "-a", "--reflink=auto")


@contextmanager
def fresh_copy(source: Path, *, leave_out: str | None = None) -> Iterator[Path]:
    """A private, writable copy of a directory, removed at the end.

    Symbolic links stay links, and modes and modification times stay as they are; the files belong
    to the user who runs this. File systems that share blocks between copies do so.

    Args:
        source: the pristine directory.
        leave_out: the name of directories that the copy goes without, at any depth.

    Raises:
        InvalidRequest: `source` is not a directory, or holds what can't be read.
    """
    if not source.is_dir():
        raise InvalidRequest(f"workspace source {str(source)!r}: not a directory")
    private = Path(tempfile.mkdtemp(prefix="workspace-"))
    try:
        # Open for passing: where root runs commands as another user, the copy is that user's.
        private.chmod(0o711)
        copy = private / "workspace"
        copy.mkdir()
        copy_tree(source, copy, keep_owners=False)
        copy.chmod(0o700 | copy.stat().st_mode & 0o777)
        if leave_out is not None:
            for found in list(copy.rglob(leave_out)):
                if found.is_dir() and not found.is_symlink():
                    remove_tree(found)
        yield copy
    finally:
        remove_tree(private)


def copy_tree(source: Path, target: Path, *, keep_owners: bool = True) -> None:
    """Copy what a directory holds, its modes and times included, into an empty one.

    Raises:
        InvalidRequest: something in `source` can't be read.
    """
    owners = () if keep_owners else ("--no-preserve=ownership",)
    done = subprocess.run(
        [*_COPY, *owners, "--", f"{source.absolute()}/.", target],
        env={"PATH": os.defpath, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["cp failed"]
        raise InvalidRequest(f"workspace source {str(source)!r}: {said[0]}")


def remove_tree(root: Path, *, keep_top: bool = False) -> None:
    """Remove a directory with all that it holds; follow no link out of it.

    With `keep_top` the directory itself stays, empty.

    Copes with directories without permissions and with any depth: each one found is moved up to
    the top before its own turn comes, so that no path grows long and no recursion deep.

    Raises:
        OSError: something can't be removed, for instance because another user owns it.
    """
    with _directory(root) as top_fd:
        while entries := _entries(top_fd):
            for entry in entries:
                _remove(entry, top_fd)
    if not keep_top:
        root.rmdir()


def _remove(entry: "os.DirEntry[str]", top_fd: int) -> None:
    """Remove one entry of the top directory, and move the directories in it up to the top."""
    if not entry.is_dir(follow_symlinks=False):
        os.unlink(entry.name, dir_fd=top_fd)
        return
    with _directory(entry.name, top_fd) as fd:
        for inner in _entries(fd):
            if not inner.is_dir(follow_symlinks=False):
                os.unlink(inner.name, dir_fd=fd)
                continue
            # A directory can change its parent only while it is writable itself.
            with _directory(inner.name, fd):
                os.rename(inner.name, uuid4().hex, src_dir_fd=fd, dst_dir_fd=top_fd)
    os.rmdir(entry.name, dir_fd=top_fd)


def _entries(fd: int) -> "list[os.DirEntry[str]]":
    with os.scandir(fd) as found:
        return list(found)


@contextmanager
def _directory(path: Path | str, dir_fd: int | None = None) -> Iterator[int]:
    """A directory, never a link to one, open for its owner to list and to change."""
    place = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=dir_fd)
    try:
        if os.fstat(place).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            # A descriptor of this kind can be changed only through its name in /proc.
            Path(f"/proc/self/fd/{place}").chmod(stat.S_IRWXU)
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=place)
    finally:
        os.close(place)
    try:
        yield fd
    finally:
        os.close(fd)
