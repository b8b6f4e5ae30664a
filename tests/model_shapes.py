"""Published shapes of models, as the headers of their GGUF files give them."""

from __future__ import annotations

from typing import Any, Final

from tests.gguf_bytes import TensorRow

TOOL_TEMPLATE: Final = (
    "{%- if tools %}{%- for tool in tools %}{{ tool | tojson }}{%- endfor %}"
    "Call: <tool_call>\n<function=name>\n<parameter=key>\nvalue\n</parameter>\n</function>\n"
    "</tool_call>{%- endif %}"
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content }}<|im_end|>\n{%- endfor %}"
)

_WIDTH, _FEED_FORWARD, _VOCABULARY = 5120, 17408, 248_320
_HEADS, _KV_HEADS, _HEAD = 24, 4, 256
_INNER, _STATE, _GROUPS, _RANK, _KERNEL = 6144, 128, 16, 48, 4


def shape(architecture: str, **values: Any) -> dict[str, Any]:
    """The metadata of a model; `__` in a name stands for a dot."""
    sizes = {f"{architecture}.{name.replace('__', '.')}": item for name, item in values.items()}
    return {"general.architecture": architecture, **sizes}


def qwen36_27b(*, draft_layers: int = 0, **changes: Any) -> dict[str, Any]:
    """Qwen3.6-27B: 64 layers, each fourth with full attention, the others delta nets."""
    metadata = shape(
        "qwen35",
        block_count=64 + draft_layers,
        context_length=262_144,
        embedding_length=_WIDTH,
        feed_forward_length=_FEED_FORWARD,
        full_attention_interval=4,
        attention__head_count=_HEADS,
        attention__head_count_kv=_KV_HEADS,
        attention__key_length=_HEAD,
        attention__value_length=_HEAD,
        ssm__conv_kernel=_KERNEL,
        ssm__state_size=_STATE,
        ssm__group_count=_GROUPS,
        ssm__time_step_rank=_RANK,
        ssm__inner_size=_INNER,
    )
    if draft_layers:
        metadata["qwen35.nextn_predict_layers"] = draft_layers
    named = {
        "general.name": "Qwen3.6-27B",
        "general.file_type": 15,
        "tokenizer.chat_template": TOOL_TEMPLATE,
    }
    return {**metadata, **named, **changes}


def qwen36_27b_tensors(*, draft_layers: int = 0, main_type: str = "Q4_K") -> list[TensorRow]:
    """Its matrices in one type but the output layer in Q6_K, its vectors in F32."""
    tensors: list[TensorRow] = [
        ("token_embd.weight", (_WIDTH, _VOCABULARY), main_type),
        ("output_norm.weight", (_WIDTH,), "F32"),
        ("output.weight", (_WIDTH, _VOCABULARY), "Q6_K"),
    ]
    for layer in range(64 + draft_layers):
        rows = _feed_forward(main_type)
        rows += _attention(main_type) if layer % 4 == 3 or layer >= 64 else _delta_net(main_type)
        if layer >= 64:
            rows += [("nextn.eh_proj.weight", (2 * _WIDTH, _WIDTH), main_type)]
            rows += [(f"nextn.{norm}.weight", (_WIDTH,), "F32") for norm in ("enorm", "hnorm")]
        tensors += [(f"blk.{layer}.{name}", lengths, kind) for name, lengths, kind in rows]
    return tensors


def _feed_forward(main_type: str) -> list[TensorRow]:
    return [
        ("attn_norm.weight", (_WIDTH,), "F32"),
        ("post_attention_norm.weight", (_WIDTH,), "F32"),
        ("ffn_gate.weight", (_WIDTH, _FEED_FORWARD), main_type),
        ("ffn_up.weight", (_WIDTH, _FEED_FORWARD), main_type),
        ("ffn_down.weight", (_FEED_FORWARD, _WIDTH), main_type),
    ]


def _attention(main_type: str) -> list[TensorRow]:
    return [
        ("attn_q.weight", (_WIDTH, 2 * _HEADS * _HEAD), main_type),
        ("attn_k.weight", (_WIDTH, _KV_HEADS * _HEAD), main_type),
        ("attn_v.weight", (_WIDTH, _KV_HEADS * _HEAD), main_type),
        ("attn_output.weight", (_HEADS * _HEAD, _WIDTH), main_type),
        ("attn_q_norm.weight", (_HEAD,), "F32"),
        ("attn_k_norm.weight", (_HEAD,), "F32"),
    ]


def _delta_net(main_type: str) -> list[TensorRow]:
    mixed = _INNER + 2 * _GROUPS * _STATE
    return [
        ("attn_qkv.weight", (_WIDTH, mixed), main_type),
        ("attn_gate.weight", (_WIDTH, _INNER), main_type),
        ("ssm_conv1d.weight", (_KERNEL, mixed), "F32"),
        ("ssm_dt.bias", (_RANK,), "F32"),
        ("ssm_a", (_RANK,), "F32"),
        ("ssm_alpha.weight", (_WIDTH, _RANK), "F32"),
        ("ssm_beta.weight", (_WIDTH, _RANK), "F32"),
        ("ssm_norm.weight", (_STATE,), "F32"),
        ("ssm_out.weight", (_INNER, _WIDTH), main_type),
    ]
