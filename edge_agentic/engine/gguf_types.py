"""Tensors as a GGUF file lists them, and the types and mixes that it names by number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Final


@dataclass(frozen=True)
class TensorType:
    """How numbers are packed: blocks of `block_elements` numbers in `block_bytes` bytes."""

    name: str
    block_elements: int
    block_bytes: int

    @property
    def bits_per_weight(self) -> float:
        """Bits that a number takes, its share of the block's scales included."""
        return self.block_bytes * 8 / self.block_elements

    def row_bytes(self, elements: int) -> int:
        """Bytes of a row; its length must be a whole number of blocks."""
        assert elements % self.block_elements == 0
        return elements // self.block_elements * self.block_bytes


@dataclass(frozen=True)
class Tensor:
    """An entry of the tensor table; `shape` starts with the length of a row."""

    name: str
    shape: tuple[int, ...]
    type: TensorType

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of its data, without padding."""
        return self.type.row_bytes(self.elements)


# ggml's numbers (`enum ggml_type`) and block sizes, as of llama-cpp-python 0.3.36. Types that
# ggml has removed are absent: llama.cpp refuses them.
TENSOR_TYPES: Final[Mapping[int, TensorType]] = {
    number: TensorType(*fields)
    for number, fields in {
        0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20),
        6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36),
        10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144),
        13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
        16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98),
        19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110),
        22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2),
        26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56),
        30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
        39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18), 42: ("Q2_0", 64, 18),
    }.items()
}  # fmt: skip

# `general.file_type` (`enum llama_ftype`): the mix that the file was made as.
FILE_TYPES: Final[Mapping[int, str]] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0",
    38: "MXFP4_MOE", 39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
}  # fmt: skip
