"""Reads the parts of a GGUF header in their order, and checks each as llama.cpp does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.gguf_cursor import U32, U64, Check, HeaderCursor
from edge_agentic.engine.gguf_types import TENSOR_TYPES, Tensor

_VERSIONS: Final = (2, 3)
_DEFAULT_ALIGNMENT: Final = 32
_MAX_DIMENSIONS: Final = 4
_MAX_TENSOR_NAME_BYTES: Final = 63
_MAX_ELEMENTS: Final = 2**63 - 1

# Far above any model's; each also bounds the memory that a hostile header can take.
_MAX_PAIRS: Final = 2**14
_MAX_TENSORS: Final = 2**17
_LEAST_PAIR_BYTES: Final = 14
_LEAST_TENSOR_BYTES: Final = 24

_TEXT_KEYS: Final = (
    "general.architecture",
    "general.name",
    "tokenizer.chat_template",
    "tokenizer.chat_template.tool_use",
)
_NUMBER_KEYS: Final = ("general.alignment", "general.file_type", "split.no", "split.count")

# Sizes that llama.cpp asserts or allocates by, as (least, most) under the architecture's name;
# a failed assertion would end the process. It takes 512 layers (`LLAMA_MAX_LAYERS`). A model
# without attention has 0 heads.
_HYPER_PARAMETERS: Final[Mapping[str, tuple[int, int]]] = {
    "block_count": (1, 512),
    "context_length": (1, 2**24),
    "embedding_length": (1, 2**24),
    "attention.head_count": (0, 2**24),
    "attention.head_count_kv": (0, 2**24),
}
_PER_LAYER: Final = frozenset({"attention.head_count", "attention.head_count_kv"})


@dataclass(frozen=True)
class _Entry:
    """A tensor, the byte where its entry starts, and where its data shall start."""

    tensor: Tensor
    at: int
    data_offset: int


def read_version(cursor: HeaderCursor) -> int:
    """The version of the format.

    Raises:
        BadInputError: a version or byte order that can't be read.
    """
    version: int = cursor.scalar(U32)
    if version in _VERSIONS:
        return version
    if int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS:
        raise BadInputError(
            f"{cursor.path}: a big-endian GGUF (version at byte 4); convert it to little-endian"
        )
    raise BadInputError(
        f"{cursor.path}: GGUF version {version} (at byte 4) is not supported; 2 and 3 are"
    )


def read_counts(cursor: HeaderCursor) -> tuple[int, int]:
    """How many tensors and how many metadata pairs follow.

    Raises:
        BadInputError: more than any model has, or than the file has room for.
    """
    cursor.check = Check.COUNTS
    counts = []
    for what, most, least_bytes in (
        ("tensors", _MAX_TENSORS, _LEAST_TENSOR_BYTES),
        ("metadata pairs", _MAX_PAIRS, _LEAST_PAIR_BYTES),
    ):
        start = cursor.offset
        count: int = cursor.scalar(U64)
        if count > most or count * least_bytes > cursor.left_bytes:
            raise cursor.damage(f"{count} {what} can't be", start)
        counts.append(count)
    return counts[0], counts[1]


def read_metadata(cursor: HeaderCursor, pair_count: int) -> dict[str, Any]:
    """The metadata values by key; arrays that are too long to keep are left out.

    Raises:
        BadInputError: a value that can't be read, a key twice, or a value that is of the wrong
            type or that would crash llama.cpp.
    """
    cursor.check = Check.METADATA
    metadata: dict[str, Any] = {}
    places: dict[str, int] = {}
    for _ in range(pair_count):
        start = cursor.offset
        key = cursor.text_bytes().decode("utf-8", "replace")
        if not key:
            raise cursor.damage("an empty key", start)
        if key in places:
            raise cursor.damage(f"key '{key[:80]}' a second time", start)
        places[key] = cursor.offset
        value = cursor.value()
        if value is not None:
            metadata[key] = value
    _check_metadata(cursor, metadata, places)
    return metadata


def read_tensors(
    cursor: HeaderCursor, count: int, metadata: Mapping[str, Any]
) -> tuple[Tensor, ...]:
    """The tensor table; the data of each tensor is within the file.

    Raises:
        BadInputError: an entry that can't be, or data that is misplaced or missing.
    """
    cursor.check = Check.TENSORS
    entries: list[_Entry] = []
    names: set[str] = set()
    for _ in range(count):
        entry = _read_tensor(cursor)
        if entry.tensor.name in names:
            raise cursor.damage(f"tensor '{entry.tensor.name}' a second time", entry.at)
        names.add(entry.tensor.name)
        entries.append(entry)
    _check_weights(cursor, entries, metadata.get("general.alignment", _DEFAULT_ALIGNMENT))
    return tuple(entry.tensor for entry in entries)


def _check_metadata(
    cursor: HeaderCursor, metadata: Mapping[str, Any], places: Mapping[str, int]
) -> None:
    """Check the values that are used here or that llama.cpp asserts; `places`: their bytes."""

    def damage(key: str, wanted: str, check: Check = Check.METADATA) -> BadInputError:
        found = repr(metadata.get(key, "a long array"))[:40]
        return cursor.damage(f"{key} is {found}, not {wanted}", places[key], check)

    for key in _TEXT_KEYS:
        if key in places and not isinstance(metadata.get(key), str):
            raise damage(key, "a text")
    for key in _NUMBER_KEYS:
        if key in places and not _is_whole(metadata.get(key), 0, 2**32 - 1):
            raise damage(key, "a whole number")
    alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if alignment.bit_count() != 1:
        raise damage("general.alignment", "a power of two")
    for name, (least, most) in _HYPER_PARAMETERS.items():
        key = f"{metadata.get('general.architecture')}.{name}"
        if key not in places:
            continue
        found = metadata.get(key)
        # Models whose layers differ give a list, one value a layer.
        for value in found if isinstance(found, list) and name in _PER_LAYER else [found]:
            if not _is_whole(value, least, most):
                raise damage(key, f"a whole number from {least} to {most}", Check.SIZES)


def _is_whole(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _read_tensor(cursor: HeaderCursor) -> _Entry:
    start = cursor.offset
    raw_name = cursor.text_bytes()
    if len(raw_name) > _MAX_TENSOR_NAME_BYTES:
        raise cursor.damage(f"a tensor name of {len(raw_name)} bytes", start)
    name = raw_name.decode("utf-8", "replace")
    shape_at = cursor.offset
    dimensions = cursor.scalar(U32)
    if dimensions > _MAX_DIMENSIONS:
        raise cursor.damage(f"tensor '{name}' has {dimensions} dimensions", shape_at)
    shape = tuple(cursor.scalar(U64) for _ in range(dimensions))
    # A dimension of 0 makes no product small: llama.cpp's own would overflow before.
    if prod(max(length, 1) for length in shape) > _MAX_ELEMENTS:
        raise cursor.damage(f"tensor '{name}' of shape {list(shape)} is too large", shape_at)
    type_at = cursor.offset
    number = cursor.scalar(U32)
    if number not in TENSOR_TYPES:
        raise cursor.damage(f"tensor '{name}' is of the unknown type {number}", type_at)
    kind = TENSOR_TYPES[number]
    row = shape[0] if shape else 1
    if row % kind.block_elements:
        raise cursor.damage(
            f"tensor '{name}' has rows of {row}, no multiple of {kind.name}'s "
            f"{kind.block_elements}",
            shape_at,
        )
    return _Entry(Tensor(name, shape, kind), start, cursor.scalar(U64))


def _check_weights(cursor: HeaderCursor, entries: list[_Entry], alignment: int) -> None:
    """Each tensor's data starts where the one before ends, padded, and ends within the file."""
    cursor.check = Check.WEIGHTS
    size = cursor.offset + cursor.left_bytes
    start = _padded(cursor.offset, alignment)
    expected = 0
    for entry in entries:
        tensor, offset = entry.tensor, entry.data_offset
        if offset % alignment:
            raise cursor.damage(
                f"tensor '{tensor.name}' at offset {offset} is not aligned to {alignment} bytes",
                entry.at,
            )
        if offset != expected:
            wrong = "overlaps the one before" if offset < expected else "leaves a gap"
            raise cursor.damage(
                f"tensor '{tensor.name}' at offset {offset} {wrong}; it must be at {expected}",
                entry.at,
            )
        end = start + offset + tensor.size_bytes
        if end > size:
            raise cursor.damage(
                f"cut short: tensor '{tensor.name}' ends at byte {end}, the file has {size}",
                entry.at,
            )
        expected = _padded(offset + tensor.size_bytes, alignment)


def _padded(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
