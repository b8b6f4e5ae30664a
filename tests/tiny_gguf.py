"""Builds tiny GGUF models with random weights, one for each kind of context memory."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final, Literal

import gguf
import numpy as np

Kind = Literal["attention", "sliding_window", "recurrent", "hybrid"]
Head = Literal["random", "by_token", "by_row"]
"""A head that drafts: random, or one of a model that counts, see `_counting`."""
ARCHITECTURES: Final = {
    "attention": "llama",
    "sliding_window": "gemma3",
    "recurrent": "mamba",
    "hybrid": "qwen35",
}

# Numbers that GGUF gives the types of values.
UINT32: Final = 4
FLOAT32: Final = 6

_WIDTH, _HEADS, _HEAD_WIDTH, _FEED_FORWARD, _WINDOW = 32, 2, 16, 64, 16
_LAYERS: Final = {"attention": 2, "sliding_window": 6, "recurrent": 2, "hybrid": 4}
# Of the recurrent layers: the convolution's length, the state's width, its heads and groups.
_KERNEL, _STATE, _STATE_HEADS, _GROUPS = 4, 16, 4, 2
# Smaller weights make models that hardly look at their history, larger ones overflow to NaN.
_SCALE: Final = {"attention": 0.4, "sliding_window": 0.2, "recurrent": 0.2, "hybrid": 0.2}

# Of a random head, large enough that what it remembers decides what it drafts; and of the layers
# of a model that counts, too small to put it off.
_HEAD_SCALE, _COUNTING_SCALE = 0.5, 0.02

Shapes = dict[str, tuple[int, ...]]
"""The tensors of a layer, without `blk.N.`; those with `norm` in their names are ones."""


def build(path: Path, kind: Kind, head: Head | None = None) -> Path:
    """Write a model whose vocabulary is the 256 bytes, a start, an end and two chat tokens.

    Only a hybrid one can have a head.
    """
    writer = gguf.GGUFWriter(path, ARCHITECTURES[kind])
    _add_common(writer, kind, heads=int(head is not None))
    vocabulary = _add_vocabulary(writer)
    random = np.random.default_rng(7)
    tensors: Shapes = {
        "token_embd.weight": (vocabulary, _WIDTH),
        "output_norm.weight": (_WIDTH,),
        "output.weight": (vocabulary, _WIDTH),
    }
    for layer in range(_LAYERS[kind]):
        shapes = _layer(kind, layer)
        tensors |= {f"blk.{layer}.{name}": shape for name, shape in shapes.items()}
    own_layer = f"blk.{_LAYERS[kind]}."
    if head is not None:
        tensors |= {f"{own_layer}{name}": shape for name, shape in _head().items()}
    given = {} if head in (None, "random") else _counting(vocabulary, head, own_layer)
    for name, shape in tensors.items():
        scale = _HEAD_SCALE if name.startswith(own_layer) else _SCALE[kind]
        if given:
            scale = _COUNTING_SCALE
        weights = np.ones(shape) if "norm" in name else random.standard_normal(shape) * scale
        weights = given.get(name, weights)
        if name.endswith("ssm_a"):
            weights = -np.abs(weights)  # a state that grows would overflow
        writer.add_tensor(name, weights.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _layer(kind: Kind, layer: int) -> Shapes:
    if kind == "recurrent":
        return _mamba()
    if kind == "hybrid":
        return {**(_gated_attention() if layer % 4 == 3 else _delta_net()), **_feed_forward()}
    norms: Shapes = {"attn_norm.weight": (_WIDTH,), "ffn_norm.weight": (_WIDTH,)}
    if kind == "sliding_window":
        norms |= {f"{name}.weight": (_WIDTH,) for name in ("post_attention_norm", "post_ffw_norm")}
        norms |= {f"{name}.weight": (_HEAD_WIDTH,) for name in ("attn_q_norm", "attn_k_norm")}
    return {**norms, **_attention(_HEADS * _HEAD_WIDTH), **_feed_forward()}


def _attention(query_width: int) -> Shapes:
    return {
        "attn_q.weight": (query_width, _WIDTH),
        "attn_k.weight": (_HEADS * _HEAD_WIDTH, _WIDTH),
        "attn_v.weight": (_HEADS * _HEAD_WIDTH, _WIDTH),
        "attn_output.weight": (_WIDTH, _HEADS * _HEAD_WIDTH),
    }


def _gated_attention() -> Shapes:
    norms: Shapes = {f"{name}.weight": (_HEAD_WIDTH,) for name in ("attn_q_norm", "attn_k_norm")}
    return {**_hybrid_norms(), **norms, **_attention(2 * _HEADS * _HEAD_WIDTH)}


def _delta_net() -> Shapes:
    inner = _STATE_HEADS * _STATE
    mixed = inner + 2 * _GROUPS * _STATE
    return {
        **_hybrid_norms(),
        "attn_qkv.weight": (mixed, _WIDTH),
        "attn_gate.weight": (inner, _WIDTH),
        "ssm_conv1d.weight": (mixed, _KERNEL),
        "ssm_dt.bias": (_STATE_HEADS,),
        "ssm_a": (_STATE_HEADS,),
        "ssm_alpha.weight": (_STATE_HEADS, _WIDTH),
        "ssm_beta.weight": (_STATE_HEADS, _WIDTH),
        "ssm_norm.weight": (_STATE,),
        "ssm_out.weight": (_WIDTH, inner),
    }


def _head() -> Shapes:
    norms: Shapes = {f"nextn.{name}.weight": (_WIDTH,) for name in ("enorm", "hnorm")}
    return {
        **norms,
        "nextn.shared_head_norm.weight": (_WIDTH,),
        "nextn.eh_proj.weight": (_WIDTH, 2 * _WIDTH),
        **_gated_attention(),
        **_feed_forward(),
    }


def _counting(vocabulary: int, head: Head, own_layer: str) -> dict[str, np.ndarray]:
    """Weights of a model that answers with the token after the last one, and of its head.

    A token is a point on circles that turn at different speeds, so that the next token is the
    same turn away from each. The head looks at its token only, or at the hidden state only,
    which is that of the token before: in both cases it is right if it is shown the right one.
    """
    speeds = 2 * np.pi / vocabulary * (3 + 8 * np.arange(_WIDTH // 2))

    def points(tokens: np.ndarray) -> np.ndarray:
        angles = tokens[:, None] * speeds
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(len(tokens), -1)

    turn = np.zeros((_WIDTH, _WIDTH))
    for circle, speed in enumerate(speeds):
        at = slice(2 * circle, 2 * circle + 2)
        turn[at, at] = [[np.cos(speed), -np.sin(speed)], [np.sin(speed), np.cos(speed)]]
    nothing, tokens = np.zeros((_WIDTH, _WIDTH)), np.arange(vocabulary)
    shown = {"by_token": [np.eye(_WIDTH), nothing], "by_row": [nothing, turn]}[head]
    return {
        "token_embd.weight": points(tokens),
        "output.weight": points(tokens - 1),
        f"{own_layer}nextn.eh_proj.weight": np.hstack(shown),
    }


def _hybrid_norms() -> Shapes:
    return {"attn_norm.weight": (_WIDTH,), "post_attention_norm.weight": (_WIDTH,)}


def _mamba() -> Shapes:
    inner = 2 * _WIDTH
    return {
        "attn_norm.weight": (_WIDTH,),
        "ssm_in.weight": (2 * inner, _WIDTH),
        "ssm_conv1d.weight": (inner, _KERNEL),
        "ssm_conv1d.bias": (inner,),
        "ssm_x.weight": (_STATE_HEADS + 2 * _STATE, inner),
        "ssm_dt.weight": (inner, _STATE_HEADS),
        "ssm_dt.bias": (inner,),
        "ssm_a": (inner, _STATE),
        "ssm_d": (inner,),
        "ssm_out.weight": (_WIDTH, inner),
    }


def _feed_forward() -> Shapes:
    return {
        "ffn_gate.weight": (_FEED_FORWARD, _WIDTH),
        "ffn_up.weight": (_FEED_FORWARD, _WIDTH),
        "ffn_down.weight": (_WIDTH, _FEED_FORWARD),
    }


def with_number(raw: bytes, key: str, value_type: int, number: float) -> bytes:
    """The model file with another number, of four bytes, under a key that has one."""
    name = key.encode()
    marker = struct.pack("<Q", len(name)) + name + struct.pack("<I", UINT32)
    before, found, after = raw.partition(marker)
    assert found, key
    packed = struct.pack({UINT32: "<II", FLOAT32: "<If"}[value_type], value_type, number)
    return before + marker[:-4] + packed + after[4:]


def _add_common(writer: gguf.GGUFWriter, kind: Kind, heads: int) -> None:
    writer.add_name("tiny")
    writer.add_context_length(2048)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS[kind] + heads)
    if heads:
        writer.add_nextn_predict_layers(heads)
    writer.add_feed_forward_length(_FEED_FORWARD)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_key_length(_HEAD_WIDTH)
    writer.add_value_length(_HEAD_WIDTH)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    if kind == "sliding_window":
        writer.add_sliding_window(_WINDOW)
    if kind in ("recurrent", "hybrid"):
        writer.add_ssm_conv_kernel(_KERNEL)
        writer.add_ssm_state_size(_STATE)
        writer.add_ssm_time_step_rank(_STATE_HEADS)
        writer.add_ssm_group_count(_GROUPS)
        writer.add_ssm_inner_size(2 * _WIDTH if kind == "recurrent" else _STATE_HEADS * _STATE)
    if kind == "hybrid":
        writer.add_full_attention_interval(4)
        writer.add_rope_dimension_count(_HEAD_WIDTH)
        writer.add_rope_dimension_sections([4, 2, 2, 0])


def _add_vocabulary(writer: gguf.GGUFWriter) -> int:
    special = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
    tokens = [*special, *(f"<0x{byte:02X}>" for byte in range(256))]
    types = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 4, *[gguf.TokenType.BYTE] * 256]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    return len(tokens)
