"""Reads the values of a GGUF header one after another; a value that can't be read is named."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, Final

from edge_agentic.core.errors import BadInputError


class Check(str, Enum):
    """What is being checked when a header turns out to be damaged."""

    START = "file start"
    COUNTS = "counts"
    METADATA = "metadata"
    SIZES = "model sizes"
    TENSORS = "tensor table"
    WEIGHTS = "weights"


MAX_HEADER_BYTES: Final = 128 * 2**20
"""Ten times the header of a model with 250,000 tokens; bounds what a hostile file makes us read."""
MAX_KEPT_ITEMS: Final = 512
"""Longest array that is kept: one value a layer, of the most layers that llama.cpp takes."""

U32: Final = struct.Struct("<I")
U64: Final = struct.Struct("<Q")
_CHUNK_BYTES: Final = 2**20
_SCALARS: Final[Mapping[int, struct.Struct]] = {
    0: struct.Struct("<B"), 1: struct.Struct("<b"), 2: struct.Struct("<H"),
    3: struct.Struct("<h"), 4: U32, 5: struct.Struct("<i"), 6: struct.Struct("<f"),
    7: struct.Struct("<?"), 10: U64, 11: struct.Struct("<q"), 12: struct.Struct("<d"),
}  # fmt: skip
_STRING: Final = 8
_ARRAY: Final = 9


class HeaderCursor:
    """A position in a header. `check` says what is being read; it goes into every complaint.

    Reads from the file only as far as it must. Every method that reads raises `BadInputError`
    at a value that runs past the end of the file or past `MAX_HEADER_BYTES`.
    """

    def __init__(self, file: BinaryIO, path: Path, size_bytes: int) -> None:
        """Start at the first byte of `file`, which must not have been read from."""
        self._file, self._size = file, size_bytes
        self.path = path
        self._buffer = bytearray()
        self.offset = 0
        self.check = Check.START

    @property
    def left_bytes(self) -> int:
        """Bytes of the file that follow."""
        return self._size - self.offset

    def damage(self, why: str, at: int | None = None, check: Check | None = None) -> BadInputError:
        """The error that names file, byte, check and reason; the byte is the current one if None.

        To be raised by the caller.
        """
        byte = self.offset if at is None else at
        return BadInputError(
            f"{self.path}: damaged GGUF at byte {byte} of {self._size}: "
            f"{(check or self.check).value}: {why}; fetch the file again"
        )

    def scalar(self, kind: struct.Struct) -> Any:
        """One number or truth value."""
        self._load(kind.size)
        (value,) = kind.unpack_from(self._buffer, self.offset)
        self.offset += kind.size
        return value

    def take(self, length: int) -> bytes:
        """That many bytes."""
        self._load(length)
        start = self.offset
        self.offset += length
        return bytes(self._buffer[start : self.offset])

    def text_bytes(self) -> bytes:
        """A string, as it is written."""
        start = self.offset
        length = self.scalar(U64)
        if length > self.left_bytes:
            raise self._past_the_end(length, start)
        return self.take(length)

    def value(self) -> Any:
        """A typed metadata value; None stands for an array longer than `MAX_KEPT_ITEMS`."""
        start = self.offset
        kind = self.scalar(U32)
        if kind == _ARRAY:
            return self._array()
        if kind == _STRING:
            return self.text_bytes().decode("utf-8", "replace")
        return self.scalar(self._scalar_kind(kind, start))

    def _array(self) -> list[Any] | None:
        start = self.offset
        kind, count = self.scalar(U32), self.scalar(U64)
        if kind == _ARRAY:
            raise self.damage("an array of arrays", start)
        if kind == _STRING:
            return self._strings(count, start)
        scalar = self._scalar_kind(kind, start)
        if count * scalar.size > self.left_bytes:
            raise self.damage(f"an array of {count} values runs past the end", start)
        if count <= MAX_KEPT_ITEMS:
            return [self.scalar(scalar) for _ in range(count)]
        self._skip(count * scalar.size)
        return None

    def _strings(self, count: int, start: int) -> list[str] | None:
        if count * U64.size > self.left_bytes:
            raise self.damage(f"an array of {count} strings runs past the end", start)
        if count <= MAX_KEPT_ITEMS:
            return [self.text_bytes().decode("utf-8", "replace") for _ in range(count)]
        self._skip_strings(count)
        return None

    def _skip_strings(self, count: int) -> None:
        # One flat loop: a vocabulary and its merges are half a million strings.
        offset = self.offset
        for _ in range(count):
            if offset + U64.size > len(self._buffer):
                self.offset = offset
                self._load(U64.size)
            (length,) = U64.unpack_from(self._buffer, offset)
            if length > self._size - offset - U64.size:
                raise self._past_the_end(length, offset)
            offset += U64.size + length
        self.offset = offset

    def _past_the_end(self, length: int, at: int) -> BadInputError:
        return self.damage(f"a string of {length} bytes runs past the end", at)

    def _scalar_kind(self, kind: int, at: int) -> struct.Struct:
        known = _SCALARS.get(kind)
        if known is None:
            raise self.damage(f"unknown value type {kind}", at)
        return known

    def _skip(self, length: int) -> None:
        self._load(length)
        self.offset += length

    def _load(self, length: int) -> None:
        """Have the next `length` bytes in memory."""
        end = self.offset + length
        if end <= len(self._buffer):
            return
        if end > self._size:
            raise self.damage(f"cut short: a value of {length} bytes runs past the end")
        if end > MAX_HEADER_BYTES:
            raise self.damage(f"the header goes on past {MAX_HEADER_BYTES} bytes, as no model's")
        while len(self._buffer) < end:
            piece = self._file.read(max(_CHUNK_BYTES, end - len(self._buffer)))
            if not piece:
                raise self.damage("the file became shorter while it was read")
            self._buffer += piece
