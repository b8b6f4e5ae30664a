"""Private copies of a pristine directory."""

import os
import secrets
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools_sandbox.errors import InvalidRequest
from tools_sandbox.private import PrivateDirectory
from tools_sandbox.removal import remove_tree

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
    private = PrivateDirectory()
    try:
        copy = private.path / secrets.token_hex(16)
        copy.mkdir()
        copy_tree(source, copy, keep_owners=False)
        copy.chmod(0o700 | copy.stat().st_mode & 0o777)
        if leave_out is not None:
            for found in list(copy.rglob(leave_out)):
                if found.is_dir() and not found.is_symlink():
                    remove_tree(found)
        yield copy
    finally:
        private.remove()


def copy_tree(source: Path, target: Path, *, keep_owners: bool = True) -> None:
    """Copy what a directory holds, its modes and times included, into an empty one.

    Raises:
        InvalidRequest: something in `source` can't be read.
    """
    problem = _copy(source, target, keep_owners)
    if problem:
        # The owner can take away his own right to read, and give it back.
        with _opened_up(source) as closed:
            remove_tree(target, keep_top=True)
            problem = _copy(source, target, keep_owners)
            for path, mode in closed if problem is None else ():
                (target / path.relative_to(source)).chmod(mode)
    if problem:
        raise InvalidRequest(f"workspace source {str(source)!r}: {problem}")


def _copy(source: Path, target: Path, keep_owners: bool) -> str | None:
    """Copy; the reason why that does not work, if it does not."""
    owners = () if keep_owners else ("--no-preserve=ownership",)
    done = subprocess.run(
        [*_COPY, *owners, "--", f"{source.absolute()}/.", target],
        env={"PATH": os.defpath, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode == 0:
        return None
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[0] if said else "cp failed"


@contextmanager
def _opened_up(top: Path) -> Iterator[list[tuple[Path, int]]]:
    """Make readable to its owner what is not, for a while; what that was, the deepest first."""
    closed: list[tuple[Path, int]] = []
    waiting = [top]
    try:
        while waiting:
            path = waiting.pop()
            found = path.lstat()
            mode = stat.S_IMODE(found.st_mode)
            is_directory = stat.S_ISDIR(found.st_mode)
            needed = stat.S_IRWXU if is_directory else stat.S_IRUSR
            if (is_directory or stat.S_ISREG(found.st_mode)) and mode & needed != needed:
                path.chmod(mode | needed)
                closed.insert(0, (path, mode))
            if is_directory:
                waiting.extend(path.iterdir())
        yield closed
    except OSError as error:
        raise InvalidRequest(f"workspace source {str(top)!r}: {error.strerror}") from None
    finally:
        for path, mode in closed:
            path.chmod(mode)
