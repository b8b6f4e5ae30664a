"""Reads the header of a GGUF model file and finds a file that is cut short or damaged.

The format: the GGUF specification, versions 2 and 3, little-endian; what it leaves open is
checked as llama.cpp does (`gguf.cpp`, llama-cpp-python 0.3.36). Only the header is read; the
weights are checked for being there, not for being right.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import open_regular
from edge_agentic.engine.gguf_cursor import HeaderCursor
from edge_agentic.engine.gguf_header import read_counts, read_metadata, read_tensors, read_version
from edge_agentic.engine.gguf_types import FILE_TYPES, Tensor

GGUF_MAGIC: Final = b"GGUF"


@dataclass(frozen=True)
class GgufInfo:
    """What the header of a GGUF file says.

    `metadata` holds numbers, strings and arrays of up to 512 items; of a longer array (a
    vocabulary) it holds nothing.
    """

    path: Path
    size_bytes: int
    version: int
    metadata: Mapping[str, Any]
    tensors: tuple[Tensor, ...]

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
        return FILE_TYPES.get(self.metadata.get("general.file_type", -1))

    @property
    def parameter_count(self) -> int:
        """The numbers in all tensors of this file."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def weights_bytes(self) -> int:
        """Bytes of the tensors of this file, without padding."""
        return sum(tensor.size_bytes for tensor in self.tensors)

    @property
    def part(self) -> tuple[int, int] | None:
        """Which part of how many this file is, from 1; None for a whole model."""
        count = self.metadata.get("split.count", 1)
        return (self.metadata.get("split.no", 0) + 1, count) if count > 1 else None

    @property
    def context_length_tokens(self) -> int | None:
        """The context length the model was trained for."""
        value = self.hyper_parameter("context_length")
        return value if isinstance(value, int) else None

    @property
    def chat_template(self) -> str | None:
        """The model's own chat template (Jinja source); the one for tools, if there are two."""
        key = "tokenizer.chat_template"
        return self._string(f"{key}.tool_use") or self._string(key)

    def hyper_parameter(self, name: str) -> Any:
        """The value under the architecture's name, such as `block_count`; None if absent."""
        return self.metadata.get(f"{self.architecture}.{name}")

    def _string(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) and value else None


def read_gguf(path: Path) -> GgufInfo:
    """Read and check the header of a GGUF file.

    Raises:
        BadInputError: no such file, not GGUF, of a version or byte order that can't be read, or
            damaged: names the byte, the check that failed and why.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        cursor = HeaderCursor(file, path, size)
        if size < len(GGUF_MAGIC) or cursor.take(len(GGUF_MAGIC)) != GGUF_MAGIC:
            raise BadInputError(f"{path}: not a GGUF file (byte 0: it does not start with 'GGUF')")
        version = read_version(cursor)
        tensor_count, pair_count = read_counts(cursor)
        metadata = read_metadata(cursor, pair_count)
        return GgufInfo(path, size, version, metadata, read_tensors(cursor, tensor_count, metadata))
