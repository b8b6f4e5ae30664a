"""Writes GGUF files byte by byte: whole ones of any shape without weights, and broken ones."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edge_agentic.engine.gguf_types import TENSOR_TYPES

# Numbers that GGUF gives the types of values.
UINT8, UINT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 0, 4, 6, 7, 8, 9, 10
_FORMATS = {UINT8: "<B", UINT32: "<I", FLOAT32: "<f", BOOL: "<?", UINT64: "<Q"}
TYPE_NUMBERS = {kind.name: number for number, kind in TENSOR_TYPES.items()}

ALIGNMENT = 32

Shape = tuple[int, ...]
TensorRow = tuple[str, Shape, str]


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind: int, value: Any) -> bytes:
    return text(value) if kind == STRING else struct.pack(_FORMATS[kind], value)


def value(item: Any) -> bytes:
    """A typed value: a number is 32 bits wide, a list is of its first item's type."""
    if isinstance(item, list):
        kind = _kind(item[0])
        body = b"".join(scalar(kind, part) for part in item)
        return struct.pack("<IIQ", ARRAY, kind, len(item)) + body
    return struct.pack("<I", _kind(item)) + scalar(_kind(item), item)


def pair(key: str, item: Any) -> bytes:
    return text(key) + value(item)


def entry(name: str, shape: Sequence[int], type_number: int, offset: int) -> bytes:
    """A row of the tensor table."""
    dimensions = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + dimensions + struct.pack("<IQ", type_number, offset)


def join(
    pairs: Sequence[bytes],
    entries: Sequence[bytes] = (),
    *,
    version: int = 3,
    tensor_count: int | None = None,
    pair_count: int | None = None,
) -> bytes:
    """A header; the counts are the true ones unless given."""
    counts = (
        len(entries) if tensor_count is None else tensor_count,
        len(pairs) if pair_count is None else pair_count,
    )
    start = b"GGUF" + struct.pack("<IQQ", version, *counts)
    return start + b"".join(pairs) + b"".join(entries)


def write(path: Path, metadata: Mapping[str, Any], tensors: Sequence[TensorRow] = ()) -> Path:
    """Write a whole file whose weights are a hole: it takes no room on the disk."""
    entries, offset = [], 0
    for name, shape, type_name in tensors:
        number = TYPE_NUMBERS[type_name]
        entries.append(entry(name, shape, number, offset))
        elements = 1
        for length in shape:
            elements *= length
        kind = TENSOR_TYPES[number]
        offset += padded(elements // kind.block_elements * kind.block_bytes)
    header = join([pair(key, item) for key, item in metadata.items()], entries)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(padded(len(header)) + offset)
    return path


def padded(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def _kind(item: Any) -> int:
    return {bool: BOOL, int: UINT32, float: FLOAT32, str: STRING}[type(item)]
