"""Whether a GGUF file can be the model of the closed division, as far as its header shows.

The rules: MLPerf Inference v6.1 edge-agentic, whose model is Qwen3.6-27B; the sizes are those
of the published model. The reference runs it at 4 bits (Q4_K_M), which the closed division asks
of a GGUF file here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from edge_agentic.engine.gguf import GgufInfo
from edge_agentic.engine.template_facts import TemplateFacts

MODEL_NAME: Final = "Qwen3.6-27B"
REFERENCE_CONTEXT_TOKENS: Final = 32768
"""The window of MLPerf's reference server."""
FOUR_BIT_TYPES: Final = frozenset({"Q4_0", "Q4_1", "Q4_K", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4"})
"""Types whose numbers take 4 bits each, the scales of their blocks left aside."""

_ARCHITECTURE: Final = "qwen35"
_LAYERS: Final = 64
_SIZES: Final[Mapping[str, int]] = {
    "embedding_length": 5120,
    "feed_forward_length": 17408,
    "full_attention_interval": 4,
    "attention.head_count": 24,
    "attention.head_count_kv": 4,
    "attention.key_length": 256,
    "attention.value_length": 256,
    "ssm.conv_kernel": 4,
    "ssm.state_size": 128,
    "ssm.group_count": 16,
    "ssm.time_step_rank": 48,
    "ssm.inner_size": 6144,
}
# 26.9 billion, 27.3 with the layer that predicts a further token; the vision encoder is a file
# of its own.
_LEAST_PARAMETERS, _MOST_PARAMETERS = 26.5e9, 27.8e9
_MOST_SHOWN: Final = 2


@dataclass(frozen=True)
class ClosedCheck:
    """One condition: what it asks for and what the file has.

    `passed` is None where this can't be seen in the file.
    """

    name: str
    passed: bool | None
    found: str
    needed: str


def closed_checks(info: GgufInfo, template: TemplateFacts) -> list[ClosedCheck]:
    """The conditions on a model file; it qualifies unless one of them is not passed."""
    return [
        _architecture(info),
        _name(info),
        _sizes(info),
        _parameters(info),
        _four_bits(info),
        _context(info),
        _tool_calls(template),
        ClosedCheck(
            "weights",
            None,
            "not in the header",
            "the published ones, not pruned or tuned; the gate tests what they answer",
        ),
    ]


def _architecture(info: GgufInfo) -> ClosedCheck:
    found = info.architecture
    return ClosedCheck("architecture", found == _ARCHITECTURE, found or "none", _ARCHITECTURE)


def _name(info: GgufInfo) -> ClosedCheck:
    # Converters write the name with a space or a hyphen, and some with the publisher before it.
    plain = (info.name or "").casefold().replace(" ", "-").replace("_", "-")
    passed = plain.removeprefix("qwen-") == MODEL_NAME.casefold()
    return ClosedCheck("name", passed, info.name or "none", MODEL_NAME)


def _sizes(info: GgufInfo) -> ClosedCheck:
    differing = list(_differing_sizes(info))
    found = "; ".join(differing[:_MOST_SHOWN]) or f"{_LAYERS} layers of the published sizes"
    if len(differing) > _MOST_SHOWN:
        found += f"; {len(differing) - _MOST_SHOWN} more differ"
    return ClosedCheck("sizes", not differing, found, f"those of {MODEL_NAME}")


def _differing_sizes(info: GgufInfo) -> Iterator[str]:
    extra = info.hyper_parameter("nextn_predict_layers")
    layers = _LAYERS + (extra if isinstance(extra, int) else 0)
    for name, needed in {"block_count": layers, **_SIZES}.items():
        found = info.hyper_parameter(name)
        if found is None and name == "full_attention_interval":
            continue  # llama.cpp takes 4 for granted
        if found != needed:
            shown = "missing" if found is None else repr(found)[:40]
            yield f"{name} is {shown}, not {needed}"


def _parameters(info: GgufInfo) -> ClosedCheck:
    needed = f"{_LEAST_PARAMETERS / 1e9:.1f} to {_MOST_PARAMETERS / 1e9:.1f} billion, in one file"
    found = f"{info.parameter_count / 1e9:.2f} billion"
    if info.part is not None:
        part, parts = info.part
        return ClosedCheck("parameters", False, f"{found} in part {part} of {parts}", needed)
    passed = _LEAST_PARAMETERS <= info.parameter_count <= _MOST_PARAMETERS
    return ClosedCheck("parameters", passed, found, needed)


def _four_bits(info: GgufInfo) -> ClosedCheck:
    kept = sum(tensor.elements for tensor in info.tensors if tensor.type.name in FOUR_BIT_TYPES)
    share = kept / max(info.parameter_count, 1)
    return ClosedCheck(
        "4-bit weights",
        share > 0.5,
        f"{share:.1%} of the parameters are in a 4-bit type",
        "more than half",
    )


def _context(info: GgufInfo) -> ClosedCheck:
    found = info.context_length_tokens
    return ClosedCheck(
        "context",
        found is not None and found >= REFERENCE_CONTEXT_TOKENS,
        "none" if found is None else f"{found} tokens",
        f"{REFERENCE_CONTEXT_TOKENS} tokens or more",
    )


def _tool_calls(template: TemplateFacts) -> ClosedCheck:
    needed = "the model's own template, which knows tools and whose calls can be read"
    if template.problem is not None:
        passed = False if template.broken else None
        return ClosedCheck("tool calls", passed, template.problem, needed)
    if template.characters is None:
        return ClosedCheck("tool calls", False, "no template", needed)
    if not template.knows_tools:
        return ClosedCheck("tool calls", False, "a template that does not know tools", needed)
    if template.tool_format is None:
        return ClosedCheck("tool calls", False, "calls of a form that can't be read", needed)
    return ClosedCheck("tool calls", True, template.tool_format.value, needed)
