"""File tools for a model: read, write, replace, list and search, with the walls of commands.

They work on the files of the workspace from outside, through one descriptor, and as the user who
runs the commands. The kernel refuses every path that leads out. What can't be done is an outcome
for the model to read, not an exception.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from tools_sandbox import kernel
from tools_sandbox.bubblewrap import INSIDE_WORKSPACE
from tools_sandbox.capture import HeadTail
from tools_sandbox.errors import SandboxUnavailable
from tools_sandbox.limits import Limits
from tools_sandbox.places import Place
from tools_sandbox.result import Result

_CHUNK_BYTES = 256 * 1024
_MOST_LINKS = 40
_EDITABLE_BYTES = 16 * 1024 * 1024
_DIRECTORY = os.O_PATH | os.O_DIRECTORY


@dataclass(frozen=True)
class FileOutcome:
    """What a file tool has to say."""

    ok: bool
    output: str
    """What was asked for, or in one line why it can't be had."""
    truncated: bool = False


class _Refused(Exception):
    """The tool can't do it; the text is for the model."""


class FileTools:
    """The file tools of one workspace."""

    def __init__(self, place: Place, limits: Limits, run: Callable[..., Result]) -> None:
        self._place = place
        self._limits = limits
        self._run = run

    def read_file(
        self, path: str, *, first_line: int = 1, last_line: int | None = None
    ) -> FileOutcome:
        """The text of a file, or of some of its lines; long text is cut in the middle."""
        with self._answering() as answer, self._root() as root:
            kept = HeadTail(self._limits.output_head_bytes, self._limits.output_tail_bytes)
            chunks = _chunks(root, self._relative(path), self._limits.file_size_bytes)
            for piece in _lines(chunks, first_line, last_line):
                kept.feed(piece)
            answer.give(kept.text(), truncated=kept.dropped_bytes > 0)
        return answer.outcome

    def write_file(self, path: str, content: str) -> FileOutcome:
        """Make a file hold exactly this text; missing directories are made."""
        with self._answering() as answer, self._root() as root:
            data = _encoded(content)
            if len(data) > self._limits.file_size_bytes:
                raise _Refused(f"a file may have at most {self._limits.file_size_bytes} bytes")
            _write(root, self._relative(path), data, self._relative, create=True)
            answer.give(f"wrote {len(data)} bytes")
        return answer.outcome

    def str_replace(self, path: str, old: str, new: str) -> FileOutcome:
        """Replace the one place in a file where a text stands."""
        with self._answering() as answer, self._root() as root:
            name = self._relative(path)
            if not old:
                raise _Refused("the text to replace is empty")
            data = b"".join(_chunks(root, name, _EDITABLE_BYTES + 1))
            if len(data) > _EDITABLE_BYTES:
                raise _Refused(f"the file has more than {_EDITABLE_BYTES} bytes")
            count = data.count(_encoded(old))
            if count != 1:
                raise _Refused(
                    f"the text to replace is there {count} times; it must be there exactly once"
                )
            _write(root, name, data.replace(_encoded(old), _encoded(new)), self._relative)
            answer.give("replaced one occurrence")
        return answer.outcome

    def list_dir(self, path: str = ".") -> FileOutcome:
        """The names in a directory, sorted, one a line; `/` marks directories, `@` links."""
        with self._answering() as answer, self._root() as root:
            fd = kernel.open_beneath(root, self._relative(path), os.O_RDONLY | os.O_DIRECTORY)
            kept = HeadTail(self._limits.output_head_bytes, self._limits.output_tail_bytes)
            try:
                with os.scandir(fd) as entries:
                    lines = sorted(_line(entry) for entry in entries)
            finally:
                os.close(fd)
            for line in lines:
                kept.feed(os.fsencode(line) + b"\n")
            answer.give(kept.text(), truncated=kept.dropped_bytes > 0)
        return answer.outcome

    def grep(self, pattern: str, path: str = ".", *, timeout_s: float) -> FileOutcome:
        """The lines that match an extended regular expression, with file name and line number.

        Raises:
            SandboxError: the sandbox failed.
            InvalidRequest: the pattern can't be a word of a program.
        """
        with self._answering() as answer, self._root() as root:
            name = self._relative(path)
            # Only to have the kernel refuse a path that leads out.
            os.close(kernel.open_beneath(root, name, os.O_PATH))
            answer.give(name)
        if not answer.outcome.ok:
            return answer.outcome
        # In the sandbox, since some patterns take for ever.
        words = ["/usr/bin/grep", "-r", "-n", "-H", "-I", "-E", "-D", "skip", "-e", pattern]
        result = self._run([*words, "--", name], timeout_s=timeout_s)
        if result.exit_code == 1 and not result.output:
            return FileOutcome(True, "no line matches")
        if result.timed_out:
            return FileOutcome(False, f"the search took longer than {timeout_s:g} s")
        return FileOutcome(result.exit_code in (0, 1), result.output, result.truncated)

    def _relative(self, path: str) -> str:
        """A path as the tools take it, relative to the workspace."""
        if "\0" in path:
            raise _Refused("a path can't hold a NUL character")
        if not path.startswith("/"):
            return path or "."
        for top in (INSIDE_WORKSPACE, str(self._place.path)):
            if PurePosixPath(path).is_relative_to(top):
                return str(PurePosixPath(path).relative_to(top))
        raise _Refused("the path is outside of the workspace")

    @contextmanager
    def _root(self) -> Iterator[int]:
        """The workspace itself, with the rights of the user who runs commands."""
        fd = os.open(self._place.path, _DIRECTORY)
        try:
            with kernel.FilesAs(self._place.user.uid, self._place.user.gid):
                yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _answering(self) -> Iterator["_Answer"]:
        answer = _Answer()
        try:
            yield answer
        except _Refused as reason:
            answer.refuse(str(reason))
        except UnicodeError:
            answer.refuse("the text is not valid Unicode")
        except OSError as error:
            if error.errno == errno.ENOSYS:
                raise SandboxUnavailable("the file tools need Linux 5.6 or later") from None
            answer.refuse(_REASONS.get(error.errno or 0, error.strerror or "it can't be done"))


class _Answer:
    def __init__(self) -> None:
        self.outcome = FileOutcome(False, "")

    def give(self, text: str, *, truncated: bool = False) -> None:
        self.outcome = FileOutcome(True, text, truncated)

    def refuse(self, reason: str) -> None:
        self.outcome = FileOutcome(False, f"error: {reason}")


_REASONS = {
    errno.EXDEV: "the path leads out of the workspace",
    errno.ELOOP: "too many links",
    errno.ENOENT: "no such file or directory",
    errno.EISDIR: "it is a directory",
    errno.ENOTDIR: "a part of the path is no directory",
    errno.EACCES: "permission denied",
    errno.ENOSPC: "the workspace is full",
}


def _chunks(root: int, path: str, most_bytes: int) -> Iterator[bytes]:
    """A file's content."""
    place = kernel.open_beneath(root, path, os.O_PATH)
    try:
        _require_file(os.fstat(place).st_mode)
        # Opening a pipe would wait and opening a device may do things, so that only what has been
        # looked at is opened.
        file_fd = os.open(f"/proc/self/fd/{place}", os.O_RDONLY)
    finally:
        os.close(place)
    with os.fdopen(file_fd, "rb") as file:
        left = most_bytes
        while left > 0 and (chunk := file.read(min(left, _CHUNK_BYTES))):
            left -= len(chunk)
            yield chunk


def _lines(chunks: Iterable[bytes], first: int, last: int | None) -> Iterator[bytes]:
    """The part of a content from one line to another.

    Chunks that are in or out as a whole are not looked at line by line: a file of nothing but line
    ends would take minutes.
    """
    number = 1
    for chunk in chunks:
        if last is not None and number > last:
            return
        following = number + chunk.count(b"\n")
        if number >= first and (last is None or following <= last):
            yield chunk
        elif following >= first:
            for line in chunk.splitlines(keepends=True):
                if number >= first and (last is None or number <= last):
                    yield line
                number += line.endswith(b"\n")
        number = following


def _write(
    root: int,
    path: str,
    data: bytes,
    relative: Callable[[str], str],
    *,
    create: bool = False,
) -> None:
    """Put a new file in the place of the old one: no link is written through, no half file left."""
    directory, name = _locate(root, path, relative, create=create)
    try:
        mode = 0o644
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            if not create:
                raise
        else:
            _require_file(found.st_mode)
            mode = found.st_mode & 0o777
        draft = f".{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(draft, flags, 0o600, dir_fd=directory)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                os.fchmod(file.fileno(), mode)
            os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.unlink(draft, dir_fd=directory)
            raise
    finally:
        os.close(directory)


def _locate(
    root: int, path: str, relative: Callable[[str], str], *, create: bool
) -> tuple[int, str]:
    """The directory and the name of a file that may not be there yet; links are followed."""
    for _ in range(_MOST_LINKS):
        parent, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            raise _Refused("the path names no file")
        directory = _directory(root, parent or ".", create=create)
        try:
            target = os.readlink(name, dir_fd=directory)
        except BaseException as error:
            if isinstance(error, OSError) and error.errno in (errno.EINVAL, errno.ENOENT):
                return directory, name
            os.close(directory)
            raise
        os.close(directory)
        path = relative(target) if target.startswith("/") else f"{parent or '.'}/{target}"
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _directory(root: int, path: str, *, create: bool) -> int:
    """Open a directory that the kernel finds beneath the root; make it if it is missing."""
    missing: list[str] = []
    while True:
        try:
            found = kernel.open_beneath(root, path or ".", _DIRECTORY)
            break
        except FileNotFoundError:
            path, _, name = path.rstrip("/").rpartition("/")
            if not create or name in ("", ".", ".."):
                raise
            missing.append(name)
    # One below the other, since a path may have more parts than a program may have levels.
    while missing:
        name = missing.pop()
        try:
            os.mkdir(name, 0o755, dir_fd=found)
            below = kernel.open_beneath(found, name, _DIRECTORY)
        finally:
            os.close(found)
        found = below
    return found


def _require_file(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise _Refused("it is a directory")
    if not stat.S_ISREG(mode):
        raise _Refused("it is neither a file nor a directory")


def _line(entry: "os.DirEntry[str]") -> str:
    mark = "@" if entry.is_symlink() else "/" if entry.is_dir(follow_symlinks=False) else ""
    # A name with a line end, or with bytes that are no text, would not be one line.
    return (entry.name if entry.name.isprintable() else ascii(entry.name)) + mark


def _encoded(text: str) -> bytes:
    return text.encode("utf-8")
