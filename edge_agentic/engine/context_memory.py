"""Bytes that llama.cpp's context takes for one sequence, at a context length and cache type."""

from __future__ import annotations

from typing import Final

from edge_agentic.engine.context_layout import ContextLayout
from edge_agentic.engine.gguf_types import TENSOR_TYPES, TensorType

CACHE_TYPES: Final = (
    "f32",
    "f16",
    "bf16",
    "q8_0",
    "q5_1",
    "q5_0",
    "q4_1",
    "q4_0",
    "iq4_nl",
)
"""What llama.cpp takes for `--cache-type-k` and `--cache-type-v`."""

MICRO_BATCH_TOKENS: Final = 512
"""Tokens computed at once, which a sliding-window cache keeps beside its window.

llama.cpp's default; the device profiles that change it change that cache a little.
"""

_CELL_STEP: Final = 256
_STATE_VALUE_BYTES: Final = 4
_BY_NAME: Final = {kind.name.lower(): kind for kind in TENSOR_TYPES.values()}


def cells(context_tokens: int) -> int:
    """Tokens that the context has room for: llama.cpp rounds up to whole steps of 256."""
    return -(-context_tokens // _CELL_STEP) * _CELL_STEP


def kv_cache_bytes(
    layout: ContextLayout, context_tokens: int, cache_type: str, *, full_window: bool
) -> int | None:
    """Bytes of the keys and values of one sequence.

    Per layer: cells x (heads x key width + heads x value width) x bytes per value of the type
    (`llama_kv_cache`, flash attention on). A sliding-window layer has as many cells as the
    others if `full_window` (`swa_full`), else min(cells, window + micro-batch) in steps of 256
    (`llama_kv_cache_iswa`).

    Args:
        layout: what the context holds.
        context_tokens: length of the context.
        cache_type: one of `CACHE_TYPES`, for keys and values.
        full_window: whether sliding-window layers keep the whole context.

    Returns:
        None where llama.cpp refuses the type: a head is no whole number of its blocks.
    """
    kind = _BY_NAME[cache_type]
    full = cells(context_tokens)
    windowed = full
    if layout.window_tokens is not None and not full_window:
        windowed = cells(min(full, layout.window_tokens + MICRO_BATCH_TOKENS))
    total = 0
    for layer in layout.cache_layers:
        row = _row_bytes(kind, layer.heads, layer.key_width, layer.value_width)
        if row is None:
            return None
        total += row * (windowed if layer.windowed else full)
    return total


def recurrent_state_bytes(layout: ContextLayout) -> int:
    """Bytes of the recurrent state of one sequence, whatever its length.

    Layers x (convolution values + state values) x 4: llama.cpp keeps them as 32-bit floats
    (`llama_memory_recurrent`).
    """
    values = layout.conv_values + layout.state_values
    return layout.recurrent_layers * values * _STATE_VALUE_BYTES


def _row_bytes(kind: TensorType, heads: int, *widths: int) -> int | None:
    if any(width % kind.block_elements for width in widths):
        return None
    return sum(kind.row_bytes(heads * width) for width in widths)
