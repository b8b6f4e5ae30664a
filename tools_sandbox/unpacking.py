"""Writes a workspace file by file from names and contents that nobody vouches for."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tools_sandbox.environment import EPOCH_S
from tools_sandbox.errors import InvalidRequest

_CHUNK_BYTES = 256 * 1024
_LONGEST_NAME_BYTES, _DEEPEST = 255, 64
_TIME_NS = EPOCH_S * 10**9


@dataclass(frozen=True)
class Bounds:
    """The most that one workspace may take."""

    size_bytes: int = 2 * 1024**3
    files: int = 200_000


class Unpacked:
    """A directory that fills up with files, directories and links that stay inside."""

    def __init__(self, top: Path, name: str, bounds: Bounds) -> None:
        """Start with an empty directory; `name` is what messages call the source."""
        self.top = top
        self._name = name
        self._bounds = bounds
        self._size_bytes = 0
        self._directories: set[tuple[str, ...]] = {()}
        self._others: set[tuple[str, ...]] = set()

    def directory(self, name: str) -> None:
        """Add a directory, and those above it."""
        self._make_directories(self._parts(name, may_be_top=True))

    def file(self, name: str, content: IO[bytes], *, executable: bool) -> None:
        """Add a file."""
        path = self._new(name)
        with path.open("xb") as file:
            while chunk := content.read(_CHUNK_BYTES):
                self._size_bytes += len(chunk)
                if self._size_bytes > self._bounds.size_bytes:
                    raise self._refused(f"holds more than {self._bounds.size_bytes} bytes")
                file.write(chunk)
        path.chmod(0o755 if executable else 0o644)

    def link(self, name: str, target: str) -> None:
        """Add a symbolic link; where it leads is looked at when all is there."""
        if "\0" in target or not target:
            raise self._refused(f"the link {name!r} has no target")
        self._new(name).symlink_to(target)

    def same_as(self, name: str, earlier: str) -> None:
        """Add a file with the content of one that is there already."""
        parts = self._parts(earlier)
        if parts not in self._others:
            raise self._refused(f"{name!r} is a hard link to {earlier!r}, which is not before it")
        source = self.top.joinpath(*parts)
        if source.is_symlink():
            raise self._refused(f"{name!r} is a hard link to a link")
        with source.open("rb") as content:
            self.file(name, content, executable=bool(source.stat().st_mode & 0o100))

    def finish(self) -> None:
        """Refuse links that lead out, and give everything the same time.

        Raises:
            InvalidRequest: a link leads out.
        """
        top = self.top.resolve()
        for parts in self._others:
            path = self.top.joinpath(*parts)
            if path.is_symlink() and not self._stays_inside(path, top):
                name = "/".join(parts)
                raise self._refused(f"the link {name!r} leads out of the workspace")
        for parts in self._others:
            os.utime(self.top.joinpath(*parts), ns=(_TIME_NS, _TIME_NS), follow_symlinks=False)
        for parts in sorted(self._directories, key=len, reverse=True):
            path = self.top.joinpath(*parts)
            path.chmod(0o755)
            os.utime(path, ns=(_TIME_NS, _TIME_NS))

    def _stays_inside(self, link: Path, top: Path) -> bool:
        if link.readlink().is_absolute():
            return False
        try:
            return link.resolve().is_relative_to(top)
        except (OSError, RuntimeError):
            # Links that lead to each other lead nowhere.
            return True

    def _new(self, name: str) -> Path:
        parts = self._parts(name)
        self._make_directories(parts[:-1])
        if parts in self._others or parts in self._directories:
            raise self._refused(f"{name!r} is there twice")
        self._others.add(parts)
        self._count()
        return self.top.joinpath(*parts)

    def _make_directories(self, parts: tuple[str, ...]) -> None:
        for length in range(1, len(parts) + 1):
            directory = parts[:length]
            if directory in self._directories:
                continue
            if directory in self._others:
                raise self._refused(f"{'/'.join(directory)!r} is no directory, but has files in it")
            self.top.joinpath(*directory).mkdir()
            self._directories.add(directory)
            self._count()

    def _count(self) -> None:
        if len(self._directories) + len(self._others) > self._bounds.files:
            raise self._refused(f"holds more than {self._bounds.files} files and directories")

    def _parts(self, name: str, *, may_be_top: bool = False) -> tuple[str, ...]:
        if name.startswith("/"):
            raise self._refused(f"{name!r} is an absolute name")
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        if ".." in parts:
            raise self._refused(f"{name!r} leads out of the workspace")
        if not parts and not may_be_top:
            raise self._refused(f"{name!r} is no name of a file")
        if len(parts) > _DEEPEST or any(_is_bad(part) for part in parts):
            raise self._refused(f"{name[:80]!r}: a name too long, too deep, or with a NUL")
        return parts

    def _refused(self, reason: str) -> InvalidRequest:
        return InvalidRequest(f"workspace {self._name!r}: {reason}")


def _is_bad(part: str) -> bool:
    try:
        return "\0" in part or len(os.fsencode(part)) > _LONGEST_NAME_BYTES
    except UnicodeEncodeError:
        return True
