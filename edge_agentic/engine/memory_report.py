"""The part of a model's report about memory: weights, KV cache, recurrent state."""

from __future__ import annotations

from typing import Final

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.engine.context_layout import ContextLayout, context_layout
from edge_agentic.engine.context_memory import (
    CACHE_TYPES,
    cells,
    kv_cache_bytes,
    recurrent_state_bytes,
)
from edge_agentic.engine.gguf import GgufInfo
from edge_agentic.engine.hyper_parameters import UnknownSizeError

_OF_THE_LAYOUT: Final = (
    "kind",
    "window_tokens",
    "next_token_layers",
    "recurrent_state_bytes",
    "caches",
    "windowed_caches",
)


def memory_report(info: GgufInfo, context_tokens: int, reasons: dict[str, str]) -> JsonObject:
    """Bytes of the weights, and of a context for one sequence at each cache type.

    A cache's `total_bytes` is weights + KV cache + recurrent state. Left out are llama.cpp's
    compute buffers, whose size depends on the backend, and the copy of the token embeddings
    that a model without an output layer of its own gets on an accelerator.

    Args:
        info: the model's header.
        context_tokens: length of the context.
        reasons: takes the reason of each null, by its place in the report.
    """
    report: JsonObject = {
        "context_tokens": context_tokens,
        "cells": cells(context_tokens),
        "weights_bytes": info.weights_bytes if info.part is None else None,
        **dict.fromkeys(_OF_THE_LAYOUT),
    }
    if info.part is not None:
        reasons["memory.weights_bytes"] = "the other parts hold the rest"
    try:
        layout = context_layout(info)
    except UnknownSizeError as error:
        reasons.update({f"memory.{key}": str(error) for key in _OF_THE_LAYOUT})
        return report
    report["kind"] = layout.kind.value
    report["next_token_layers"] = layout.next_token_layers
    report["recurrent_state_bytes"] = recurrent_state_bytes(layout)
    report["caches"] = _caches("caches", report, layout, reasons)
    if layout.window_tokens is None:
        for key in ("window_tokens", "windowed_caches"):
            reasons[f"memory.{key}"] = "no layer has a sliding window"
    else:
        report["window_tokens"] = layout.window_tokens
        report["windowed_caches"] = _caches("windowed_caches", report, layout, reasons)
    return report


def _caches(
    key: str, report: JsonObject, layout: ContextLayout, reasons: dict[str, str]
) -> JsonObject:
    weights, state = report["weights_bytes"], report["recurrent_state_bytes"]
    caches: JsonObject = {}
    for cache_type in CACHE_TYPES:
        kv_bytes = kv_cache_bytes(
            layout, report["context_tokens"], cache_type, full_window=key == "caches"
        )
        where = f"memory.{key}.{cache_type}"
        if kv_bytes is None:
            caches[cache_type] = None
            reasons[where] = "llama.cpp refuses it: a head is no whole number of its blocks"
            continue
        total = None if weights is None else weights + kv_bytes + state
        caches[cache_type] = {"kv_bytes": kv_bytes, "total_bytes": total}
        if total is None:
            reasons[f"{where}.total_bytes"] = reasons["memory.weights_bytes"]
    return caches
