"""Refuses a model or a context that can't fit this machine, before the kernel kills the run."""

from __future__ import annotations

from typing import Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.context_layout import context_layout
from edge_agentic.engine.context_memory import kv_cache_bytes, recurrent_state_bytes
from edge_agentic.engine.gguf import GgufInfo
from edge_agentic.engine.hyper_parameters import UnknownSizeError

_CACHE_TYPE: Final = "f16"


def require_memory(
    info: GgufInfo, context_tokens: int, rollback_tokens: int, machine_bytes: int
) -> None:
    """Refuse what needs more than all memory of a machine: weights, KV cache, recurrent state.

    Compute buffers and snapshots come on top, so that a model which passes may still not fit.

    Args:
        info: the model's header.
        context_tokens: length of the context.
        rollback_tokens: further recurrent states that the context holds.
        machine_bytes: the machine's memory.

    Raises:
        BadInputError: it can't fit; names each part and the memory there is.
    """
    weights = info.weights_bytes
    try:
        layout = context_layout(info)
    except UnknownSizeError:
        context: int | None = None
    else:
        context = kv_cache_bytes(layout, context_tokens, _CACHE_TYPE, full_window=False)
        if context is not None:
            context += recurrent_state_bytes(layout) * (1 + rollback_tokens)
    if weights + (context or 0) <= machine_bytes:
        return
    if weights > machine_bytes or context is None:
        remedy = "use a smaller model or quantisation"
    else:
        remedy = f"use a --context smaller than {context_tokens}"
    parts = f"{_gib(weights)} of weights"
    if context is not None:
        parts += f" and {_gib(context)} for {context_tokens} tokens of context"
    raise BadInputError(
        f"{info.path}: it needs {parts}, the machine has {_gib(machine_bytes)} of memory; {remedy}"
    )


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
