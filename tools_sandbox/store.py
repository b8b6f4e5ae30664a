"""Pristine workspaces by the hash of their content: unpacked once, checked at every use."""

import bz2
import gzip
import hashlib
import lzma
import os
import stat
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from tools_sandbox.errors import InvalidRequest
from tools_sandbox.private import PrivateDirectory
from tools_sandbox.removal import remove_tree
from tools_sandbox.unpacking import Bounds, Unpacked
from tools_sandbox.users import command_user, give

_CHUNK_BYTES = 256 * 1024
_LONGEST_HEADER_BYTES = 4 * 1024 * 1024
# The last three come from headers that lie, and from headers of headers without end.
_NO_ARCHIVE: tuple[type[Exception], ...] = (
    *(tarfile.TarError, EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error),
    *(ValueError, IndexError, RecursionError),
)


@dataclass(frozen=True)
class Pristine:
    """A workspace as it is at the start of a conversation. Nobody writes to it."""

    path: Path
    digest: str
    """SHA-256 of names, kinds, executable bits, link targets and contents."""


class Store:
    """Keeps pristine workspaces below one directory.

    Modes are 755 and 644 and all times are the same, so that a listing repeats on every machine.
    """

    def __init__(self, root: Path, bounds: Bounds | None = None) -> None:
        """Use a directory, which is made if it is not there.

        Args:
            root: where to keep workspaces; nobody else gets access to it.
            bounds: the most that one workspace may take.
        """
        self._root = root
        self._bounds = bounds or Bounds()
        root.mkdir(parents=True, exist_ok=True)
        # Where root runs this, the files belong to the user of commands, who must not reach them.
        root.chmod(0o700)

    def add_directory(self, source: Path, *, leave_out: str | None = None) -> Pristine:
        """Keep a copy of a directory.

        Args:
            source: the directory.
            leave_out: the name of directories that the copy goes without, at any depth.

        Raises:
            InvalidRequest: `source` can't be read, is too large, or holds something other than
                files, directories and links that stay inside.
        """
        if not source.is_dir():
            raise InvalidRequest(f"workspace source {str(source)!r}: not a directory")
        with self._unpacking(str(source)) as unpacked:
            _take_directory(source, unpacked, leave_out)
            return self._keep(unpacked)

    def add_archive(self, archive: Path) -> Pristine:
        """Keep what is in a tar archive, compressed or not.

        Raises:
            InvalidRequest: the archive can't be read, is too large when unpacked, or holds a name
                with `..`, an absolute name, a link out, a device, a pipe, or one name twice.
        """
        with self._unpacking(str(archive)) as unpacked:
            try:
                _take_archive(archive, unpacked)
            except InvalidRequest:
                raise
            except _NO_ARCHIVE as error:
                raise InvalidRequest(f"workspace archive {str(archive)!r}: {error}") from None
            except OSError as error:
                reason = error.strerror or error
                raise InvalidRequest(f"workspace archive {str(archive)!r}: {reason}") from None
            return self._keep(unpacked)

    @contextmanager
    def _unpacking(self, name: str) -> Iterator[Unpacked]:
        private = PrivateDirectory(self._root)
        try:
            top = private.path / "workspace"
            top.mkdir()
            yield Unpacked(top, name, self._bounds)
        finally:
            private.remove()

    def _keep(self, unpacked: Unpacked) -> Pristine:
        unpacked.finish()
        digest = tree_digest(unpacked.top)
        user = command_user()
        # A root of a container, whose users are other ones, may come to the same store.
        kept = self._root / f"{digest}-{user.uid}"
        if kept.is_dir():
            if tree_digest(kept) == digest:
                give(kept, user)
                return Pristine(kept, digest)
            # Somebody has changed it, or it was cut off by a power failure.
            remove_tree(kept)
        give(unpacked.top, user)
        try:
            unpacked.top.rename(kept)
        except OSError:
            # Another program has been quicker with the same content.
            if not kept.is_dir():
                raise
        return Pristine(kept, digest)


def tree_digest(top: Path) -> str:
    """SHA-256 of what a directory holds: names, kinds, executable bits, link targets, contents."""
    total = hashlib.sha256()
    for path in sorted(_walk(top), key=os.fsencode):
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            kind, content = b"l", os.fsencode(path.readlink())
        elif stat.S_ISDIR(found.st_mode):
            kind, content = b"d", b""
        elif stat.S_ISREG(found.st_mode):
            kind, content = b"x" if found.st_mode & 0o100 else b"f", _file_digest(path)
        else:
            kind, content = b"?", b""
        for part in (kind, os.fsencode(path.relative_to(top)), content):
            total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()


def _walk(top: Path) -> Iterator[Path]:
    waiting = [top]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                path = Path(entry.path)
                yield path
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)


def _file_digest(path: Path) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.digest()


def _take_directory(source: Path, unpacked: Unpacked, leave_out: str | None) -> None:
    for path in sorted(_walk(source)):
        name = str(path.relative_to(source))
        if leave_out is not None and leave_out in path.relative_to(source).parts:
            continue
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            unpacked.link(name, str(path.readlink()))
        elif stat.S_ISDIR(mode):
            unpacked.directory(name)
        elif stat.S_ISREG(mode):
            with path.open("rb") as file:
                unpacked.file(name, file, executable=bool(mode & 0o100))
        else:
            raise InvalidRequest(
                f"workspace source {str(source)!r}: {name!r} is neither file, directory nor link"
            )


def _take_archive(archive: Path, unpacked: Unpacked) -> None:
    with ExitStack() as stack:
        raw = stack.enter_context(archive.open("rb"))
        start = raw.read(6)
        raw.seek(0)
        plain: IO[bytes] = raw
        if start.startswith(b"\x1f\x8b"):
            plain = cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=raw)))
        elif start.startswith(b"BZh"):
            plain = stack.enter_context(bz2.BZ2File(raw))
        elif start.startswith(b"\xfd7zXZ\x00"):
            plain = stack.enter_context(lzma.LZMAFile(raw))
        with tarfile.open(fileobj=cast("IO[bytes]", _ShortReads(plain)), mode="r:") as members:
            for member in members:
                _take_member(member, members, unpacked)


def _take_member(member: tarfile.TarInfo, members: tarfile.TarFile, unpacked: Unpacked) -> None:
    if member.isdir():
        unpacked.directory(member.name)
    elif member.issym():
        unpacked.link(member.name, member.linkname)
    elif member.islnk():
        unpacked.same_as(member.name, member.linkname)
    elif member.isreg() and (content := members.extractfile(member)):
        unpacked.file(member.name, content, executable=bool(member.mode & 0o100))
    else:
        raise InvalidRequest(
            f"workspace archive: {member.name!r} is neither file, directory nor link"
        )


class _ShortReads:
    """A file that refuses to read much at once, as only a monstrous header asks for."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek = file.seek
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LONGEST_HEADER_BYTES:
            raise tarfile.ReadError("a header is too long")
        return self._file.read(size)
