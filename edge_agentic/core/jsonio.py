"""JSON on disk: strict reading, one canonical rendering, durable writing."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from edge_agentic.core.errors import BadInputError, at_line

JsonObject: TypeAlias = dict[str, Any]

_HASH_CHUNK_BYTES = 1 << 20


def dump_line(value: object) -> str:
    """The canonical one-line form: compact, UTF-8, keys in insertion order, no NaN.

    Raises:
        ValueError: the value holds NaN or an infinity, which JSON has no form for.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def dump_pretty(value: object) -> str:
    """The canonical many-line form of a file that people read; ends with a newline."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def parse_object(text: str, path: Path | str, line: int) -> JsonObject:
    """One JSON object out of `text`.

    Raises:
        BadInputError: not JSON, not an object, or nested too deeply; names path and line.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise at_line(
            path, line, f"not valid JSON ({error.msg} at column {error.colno}); cut short?"
        ) from None
    except (RecursionError, ValueError) as error:
        raise at_line(path, line, f"not usable JSON ({error})") from None
    if not isinstance(value, dict):
        raise at_line(path, line, f"expected a JSON object, found {type(value).__name__}")
    return value


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file.

    Raises:
        BadInputError: missing, a directory, or unreadable; names the path.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BadInputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise BadInputError(f"{path}: is a directory; give a file") from None
    except OSError as error:
        raise BadInputError(f"{path}: can't be read ({error.strerror})") from None


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
    lines = read_bytes(path).split(b"\n")
    if torn_tail:
        lines.pop()
    for number, raw in enumerate(lines, start=1):
        if not raw.strip():
            continue
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise at_line(path, number, f"not UTF-8 (byte {error.start} of the line)") from None
        yield number, parse_object(text, path, number)


def write_atomically(path: Path, text: str) -> None:
    """Write a whole file so that a reader sees the old one or the new one, never a part.

    The file and its directory are synced: after return the file survives a power cut.
    """
    temporary = path.with_name(path.name + ".partial")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


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
    try:
        with path.open("rb") as file:
            while chunk := file.read(_HASH_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise BadInputError(f"{path}: can't be read ({error.strerror})") from None
    return digest.hexdigest()
