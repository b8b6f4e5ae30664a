"""Copies of a directory, whatever an agent left in it."""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools_sandbox.errors import InvalidRequest
from tools_sandbox.removal import remove_tree

_COPY = ("cp", "-a", "--reflink=auto")


def copy_tree(source: Path, target: Path) -> None:
    """Copy what a directory holds, its modes and times included, into an empty one.

    Raises:
        InvalidRequest: something in `source` can't be read.
    """
    problem = _copy(source, target)
    if problem:
        # The owner can take away his own right to read, and give it back.
        with _opened_up(source) as closed:
            remove_tree(target, keep_top=True)
            problem = _copy(source, target)
            for path, mode in closed if problem is None else ():
                (target / path.relative_to(source)).chmod(mode)
    if problem:
        raise InvalidRequest(f"workspace source {str(source)!r}: {problem}")


def _copy(source: Path, target: Path) -> str | None:
    """Copy; the reason why that does not work, if it does not."""
    done = subprocess.run(
        [*_COPY, "--", f"{source.absolute()}/.", target],
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
