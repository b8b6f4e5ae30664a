"""Removes a directory whatever an agent left in it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


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
