"""Reads the header of a GGUF model file and finds a file that is cut short or damaged.

The format: the GGUF specification, versions 2 and 3, little-endian. Only the header is read;
the weights are checked for being there, not for being right.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import open_regular

GGUF_MAGIC: Final = b"GGUF"

# Blocks of a tensor type: (elements in a block, bytes of a block), by ggml type number.
_BLOCKS: Final[Mapping[int, tuple[int, int]]] = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    9: (32, 36), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
    21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4),
    27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip

# `general.file_type` numbers that name a quantisation mix.
_FILE_TYPES: Final[Mapping[int, str]] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 38: "MXFP4_MOE",
}  # fmt: skip

_SCALARS: Final[Mapping[int, struct.Struct]] = {
    0: struct.Struct("<B"), 1: struct.Struct("<b"), 2: struct.Struct("<H"),
    3: struct.Struct("<h"), 4: struct.Struct("<I"), 5: struct.Struct("<i"),
    6: struct.Struct("<f"), 7: struct.Struct("<?"), 10: struct.Struct("<Q"),
    11: struct.Struct("<q"), 12: struct.Struct("<d"),
}  # fmt: skip
_STRING: Final = 8
_ARRAY: Final = 9
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
_MAX_KEPT_ARRAY: Final = 64
_MAX_DIMENSIONS: Final = 8

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


@dataclass(frozen=True)
class GgufInfo:
    """What the header of a GGUF file says.

    `metadata` holds scalars, strings and short arrays; of a long array (a vocabulary) it holds
    nothing.
    """

    path: Path
    size_bytes: int
    metadata: Mapping[str, Any]
    tensor_count: int
    parameter_count: int

    @property
    def architecture(self) -> str | None:
        """`general.architecture`, such as `llama` or `qwen35`."""
        return self._string("general.architecture")

    @property
    def name(self) -> str | None:
        """`general.name`, the model's own name."""
        return self._string("general.name")

    @property
    def quantisation(self) -> str | None:
        """Name of the quantisation mix, such as `Q4_K_M`; None if the file does not say."""
        file_type = self.metadata.get("general.file_type")
        return _FILE_TYPES.get(file_type) if isinstance(file_type, int) else None

    @property
    def context_length_tokens(self) -> int | None:
        """The context length the model was trained for."""
        value = self.metadata.get(f"{self.architecture}.context_length")
        return value if isinstance(value, int) and value > 0 else None

    @property
    def chat_template(self) -> str | None:
        """The model's own chat template (Jinja source)."""
        return self._string("tokenizer.chat_template")

    def _string(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) and value else None


def read_gguf(path: Path) -> GgufInfo:
    """Read and check the header of a GGUF file.

    Raises:
        BadInputError: no such file, not GGUF, damaged (names the offset where it breaks), or of
            a size that no model has (names the key).
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if file.read(4) != GGUF_MAGIC:
            raise BadInputError(f"{path}: not a GGUF file (it does not start with 'GGUF')")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(path, data, size)


def _read(path: Path, data: mmap.mmap, size: int) -> GgufInfo:
    cursor = _Cursor(data, 4)
    try:
        version = cursor.scalar(_U32)
        if version not in (2, 3):
            raise BadInputError(f"{path}: GGUF version {version} is not supported (2 and 3 are)")
        tensor_count, pair_count = cursor.scalar(_U64), cursor.scalar(_U64)
        metadata: dict[str, Any] = {}
        for _ in range(pair_count):
            key = cursor.string()
            value = cursor.value(cursor.scalar(_U32))
            if value is not None:
                metadata[key] = value
        tensors = [cursor.tensor() for _ in range(tensor_count)]
    except (struct.error, ValueError) as error:
        raise BadInputError(
            f"{path}: damaged GGUF header at offset {cursor.offset} of {size} bytes "
            f"({error}); fetch the file again"
        ) from None
    _check_hyper_parameters(path, metadata)
    _check_weights(path, size, cursor.offset, metadata, tensors)
    parameters = sum(prod(tensor.shape) for tensor in tensors)
    return GgufInfo(path, size, metadata, tensor_count, parameters)


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    type_number: int
    offset: int

    @property
    def size_bytes(self) -> int:
        elements, block_bytes = _BLOCKS.get(self.type_number, (1, 0))
        return prod(self.shape) // elements * block_bytes


def _check_hyper_parameters(path: Path, metadata: Mapping[str, Any]) -> None:
    for name, (least, most) in _HYPER_PARAMETERS.items():
        key = f"{metadata.get('general.architecture')}.{name}"
        found = metadata.get(key, [])
        # Models whose layers differ give a list, one value a layer.
        for value in found if isinstance(found, list) else [found]:
            if type(value) is not int or not least <= value <= most:
                raise BadInputError(
                    f"{path}: damaged GGUF header: {key} is {repr(value)[:40]}, not a whole "
                    f"number from {least} to {most}; fetch the file again"
                )


def _check_weights(
    path: Path, size: int, header_end: int, metadata: Mapping[str, Any], tensors: list[_Tensor]
) -> None:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise BadInputError(f"{path}: damaged GGUF header (alignment {alignment!r})")
    start = -(-header_end // alignment) * alignment
    for tensor in tensors:
        end = start + tensor.offset + tensor.size_bytes
        if end > size:
            raise BadInputError(
                f"{path}: cut short: tensor '{tensor.name}' ends at byte {end}, "
                f"the file has {size}; fetch it again"
            )


class _Cursor:
    """Reads values one after another; raises `struct.error` or `ValueError` past the end."""

    def __init__(self, data: mmap.mmap, offset: int) -> None:
        self._data, self.offset = data, offset

    def scalar(self, kind: struct.Struct) -> Any:
        (value,) = kind.unpack_from(self._data, self.offset)
        self.offset += kind.size
        return value

    def string(self) -> str:
        raw = self._take(self.scalar(_U64))
        return raw.decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self._array()
        return self.scalar(_scalar(kind))

    def tensor(self) -> _Tensor:
        name = self.string()
        dimensions = self.scalar(_U32)
        if dimensions > _MAX_DIMENSIONS:
            raise ValueError(f"a tensor of {dimensions} dimensions")
        shape = tuple(self.scalar(_U64) for _ in range(dimensions))
        return _Tensor(name, shape, self.scalar(_U32), self.scalar(_U64))

    def _array(self) -> list[Any] | None:
        kind, count = self.scalar(_U32), self.scalar(_U64)
        if count <= _MAX_KEPT_ARRAY and kind != _ARRAY:
            return [self.value(kind) for _ in range(count)]
        if kind == _STRING:
            for _ in range(count):
                self._skip(self.scalar(_U64))
        else:
            self._skip(_scalar(kind).size * count)
        return None

    def _take(self, length: int) -> bytes:
        start = self.offset
        self._skip(length)
        return self._data[start : self.offset]

    def _skip(self, length: int) -> None:
        if length > len(self._data) - self.offset:
            raise ValueError(f"a value of {length} bytes runs past the end")
        self.offset += length


def _scalar(kind: int) -> struct.Struct:
    if kind == _ARRAY:
        raise ValueError("an array of arrays")
    known = _SCALARS.get(kind)
    if known is None:
        raise ValueError(f"unknown value type {kind}")
    return known
