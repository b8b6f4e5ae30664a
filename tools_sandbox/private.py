"""Private directories that go away with whoever made them, even if that one is killed."""

import fcntl
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tools_sandbox.removal import remove_tree

_PREFIX = "agent-sandbox-"
# A new one is locked within this time at the latest.
_YOUNG_S = 60.0


class PrivateDirectory:
    """A directory for temporary files, locked as long as its maker lives."""

    def __init__(self, parent: Path | None = None, now: Callable[[], float] = time.time) -> None:
        """Make it, and remove those whose makers were killed before they could.

        Other users can pass but not list it, so that what has a name that can't be guessed, or a
        mode of its own, is out of their reach.

        Args:
            parent: where to make it; the directory for temporary files unless given.
            now: the time, in seconds since 1970.
        """
        parent = parent or Path(tempfile.gettempdir())
        _remove_abandoned(parent, now())
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self.path.chmod(0o711)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove it with all that it holds."""
        try:
            remove_tree(self.path)
        finally:
            os.close(self._lock)


def _remove_abandoned(parent: Path, now_s: float) -> None:
    for found in parent.glob(f"{_PREFIX}*"):
        try:
            fd = os.open(found, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            state = os.fstat(fd)
            if state.st_uid == os.geteuid() and now_s - state.st_ctime > _YOUNG_S:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(found)
        except OSError:
            # Somebody holds the lock, or something can't be removed: it stays.
            continue
        finally:
            os.close(fd)
