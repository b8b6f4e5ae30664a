"""JSON on disk: strict reading, one canonical rendering, durable writing."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from edge_agentic.core.errors import BadInputError, StorageError, at_line

JsonObject: TypeAlias = dict[str, Any]

_LARGEST_FILE_BYTES: Final = 4 << 30
_HASH_CHUNK_BYTES: Final = 1 << 20
_BYTE_ORDER_MARK: Final = "\ufeff"
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def dump_line(value: object) -> str:
    """The canonical one-line form: compact, UTF-8, keys in insertion order, no NaN.

    Raises:
        ValueError: the value holds NaN or an infinity, which JSON has no form for.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def dump_pretty(value: object) -> str:
    """The canonical many-line form of a file that people read; ends with a newline."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def is_json(value: object) -> bool:
    """Whether `dump_line` can write the value and UTF-8 can hold it."""
    try:
        dump_line(value).encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def parse_object(text: str, path: Path | str, line: int) -> JsonObject:
    """One JSON object out of `text`.

    Raises:
        BadInputError: not JSON, not an object, or nested too deeply; names path and line.
    """
    if text.startswith(_BYTE_ORDER_MARK):
        raise at_line(path, line, "starts with a byte-order mark; save it as UTF-8 without one")
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise at_line(
            path, line, f"not valid JSON ({error.msg} at column {error.colno}); cut short?"
        ) from None
    except (RecursionError, ValueError) as error:
        raise at_line(path, line, f"not usable JSON ({error})") from None
    # Only an escape can bring a lone surrogate in.
    if _SURROGATE_ESCAPE.search(text) and not is_json(value):
        raise at_line(path, line, "holds half of a surrogate pair, which UTF-8 has no form for")
    if not isinstance(value, dict):
        raise at_line(path, line, f"expected a JSON object, found {type(value).__name__}")
    return value


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading; anything else could wait or last for ever.

    Raises:
        BadInputError: missing, a directory, a pipe or device, or unreadable; names the path.
    """
    try:
        # Without O_NONBLOCK a FIFO would wait for a writer before it could be refused.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise BadInputError(f"{path}: no such file") from None
    except OSError as error:
        raise BadInputError(f"{path}: can't be read ({error.strerror})") from None
    except ValueError as error:
        raise BadInputError(f"{str(path)!r}: is no file name ({error})") from None
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise BadInputError(f"{path}: is a directory; give a file")
        if not stat.S_ISREG(mode):
            raise BadInputError(f"{path}: is no regular file; give a file on a disk")
        with os.fdopen(fd, "rb", closefd=False) as file:
            yield file
    except OSError as error:
        raise BadInputError(f"{path}: can't be read ({error.strerror})") from None
    finally:
        os.close(fd)


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file.

    Raises:
        BadInputError: as `open_regular`, or too large to be read as a whole.
    """
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > _LARGEST_FILE_BYTES:
            raise BadInputError(f"{path}: is larger than {_LARGEST_FILE_BYTES >> 30} GiB; split it")
        return file.read()


def read_object(path: Path) -> JsonObject:
    """The JSON object that a whole file holds.

    Raises:
        BadInputError: unreadable, not UTF-8, or not a JSON object.
    """
    raw = read_bytes(path)
    try:
        return parse_object(raw.decode("utf-8"), path, 1)
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: not UTF-8 (byte {error.start})") from None


def iter_objects(path: Path, *, torn_tail: bool = False) -> Iterator[tuple[int, JsonObject]]:
    """Line number (from 1) and object of each non-blank line of a JSONL file.

    Args:
        path: the file.
        torn_tail: leave out a last line without its newline: what a power cut leaves of an
            append that was under way.

    Raises:
        BadInputError: the first line that is not UTF-8 or not a JSON object.
    """
    yield from parse_lines(read_bytes(path), path, torn_tail=torn_tail)


def parse_lines(
    raw: bytes, path: Path | str, *, torn_tail: bool = False
) -> Iterator[tuple[int, JsonObject]]:
    """The same as `iter_objects`, of bytes that came from `path`."""
    lines = raw.split(b"\n")
    if torn_tail:
        lines.pop()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise at_line(path, number, f"not UTF-8 (byte {error.start} of the line)") from None
        yield number, parse_object(text, path, number)


def write_atomically(path: Path, text: str) -> None:
    """Write a whole file so that a reader sees the old one or the new one, never a part.

    The file and its directory are synced: after return the file survives a power cut.

    Raises:
        StorageError: the disk is full or gone; nothing is left of the new file.
    """
    temporary = path.with_name(path.name + ".partial")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise StorageError(f"{path}: can't be written ({error.strerror})") from None


def sync_directory(path: Path) -> None:
    """Make a new or renamed entry of this directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file, read in pieces.

    Raises:
        BadInputError: the file can't be read.
    """
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while chunk := file.read(_HASH_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _no_number(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:20]} is beyond the range of a float")
    return value
