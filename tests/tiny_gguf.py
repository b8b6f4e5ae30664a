"""Builds tiny GGUF models with random weights, one for each kind of context memory."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final, Literal

import gguf
import numpy as np

Kind = Literal["attention", "sliding_window"]

# Numbers that GGUF gives the types of values.
UINT32: Final = 4
FLOAT32: Final = 6

_WIDTH, _HEADS, _HEAD_WIDTH, _FEED_FORWARD = 32, 2, 16, 64
# Larger random weights overflow to NaN within a few hundred tokens, and NaN equals nothing.
_SCALE = 0.02


def build(path: Path, kind: Kind) -> Path:
    """Write a model whose vocabulary is the 256 bytes, a start, an end and two chat tokens."""
    architecture = {"attention": "llama", "sliding_window": "gemma3"}[kind]
    writer = gguf.GGUFWriter(path, architecture)
    layers = {"attention": 2, "sliding_window": 6}[kind]
    _add_common(writer, layers)
    vocabulary = _add_vocabulary(writer)
    random = np.random.default_rng(7)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * _SCALE).astype(np.float32))

    def add_ones(name: str, width: int) -> None:
        writer.add_tensor(name, np.ones(width, dtype=np.float32))

    add("token_embd.weight", vocabulary, _WIDTH)
    add_ones("output_norm.weight", _WIDTH)
    add("output.weight", vocabulary, _WIDTH)
    if kind == "sliding_window":
        writer.add_sliding_window(16)
    for layer in range(layers):
        block = f"blk.{layer}"
        add_ones(f"{block}.attn_norm.weight", _WIDTH)
        add(f"{block}.attn_q.weight", _HEADS * _HEAD_WIDTH, _WIDTH)
        add(f"{block}.attn_k.weight", _HEADS * _HEAD_WIDTH, _WIDTH)
        add(f"{block}.attn_v.weight", _HEADS * _HEAD_WIDTH, _WIDTH)
        add(f"{block}.attn_output.weight", _WIDTH, _HEADS * _HEAD_WIDTH)
        add_ones(f"{block}.ffn_norm.weight", _WIDTH)
        add(f"{block}.ffn_gate.weight", _FEED_FORWARD, _WIDTH)
        add(f"{block}.ffn_up.weight", _FEED_FORWARD, _WIDTH)
        add(f"{block}.ffn_down.weight", _WIDTH, _FEED_FORWARD)
        if kind == "sliding_window":
            for norm, width in (
                ("attn_q_norm", _HEAD_WIDTH),
                ("attn_k_norm", _HEAD_WIDTH),
                ("post_attention_norm", _WIDTH),
                ("post_ffw_norm", _WIDTH),
            ):
                add_ones(f"{block}.{norm}.weight", width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def with_number(raw: bytes, key: str, value_type: int, number: float) -> bytes:
    """The model file with another number, of four bytes, under a key that has one."""
    name = key.encode()
    marker = struct.pack("<Q", len(name)) + name + struct.pack("<I", UINT32)
    before, found, after = raw.partition(marker)
    assert found, key
    packed = struct.pack({UINT32: "<II", FLOAT32: "<If"}[value_type], value_type, number)
    return before + marker[:-4] + packed + after[4:]


def _add_common(writer: gguf.GGUFWriter, layers: int) -> None:
    writer.add_name("tiny")
    writer.add_context_length(2048)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(_FEED_FORWARD)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_key_length(_HEAD_WIDTH)
    writer.add_value_length(_HEAD_WIDTH)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


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
