"""What llama.cpp's context memory holds for a model: which layers keep what, from the header.

Follows llama.cpp as llama-cpp-python 0.3.36 carries it (`llama_model::create_memory`,
`llama_hparams`, `load_arch_hparams` of each architecture). An architecture whose rules aren't
known here has no layout: a wrong number would be worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from edge_agentic.engine.gguf import GgufInfo
from edge_agentic.engine.hyper_parameters import HyperParameters, UnknownSizeError
from edge_agentic.engine.memory_kind import MemoryKind


@dataclass(frozen=True)
class CacheLayer:
    """A layer with a KV cache: the keys and values of a token are heads of this width."""

    heads: int
    key_width: int
    value_width: int
    windowed: bool


@dataclass(frozen=True)
class ContextLayout:
    """What the context holds.

    Each of `recurrent_layers` keeps `conv_values` and `state_values` numbers of the whole
    sequence. The layers of a next-token-prediction head (`next_token_layers`) are left out: the
    model's own context does not hold them.
    """

    kind: MemoryKind
    cache_layers: tuple[CacheLayer, ...]
    window_tokens: int | None
    recurrent_layers: int
    conv_values: int
    state_values: int
    next_token_layers: int


@dataclass(frozen=True)
class _Window:
    """Sliding-window attention in all layers but the last (or first) of every `period`.

    A period of 0 leaves out none; None: the header lists the layers. `default_tokens` is the
    window where the header names none, 0 for no window; None: it must name one. `fixed_tokens`
    wins over the header's.
    """

    period: int | None
    default_tokens: int | None = None
    fixed_tokens: int | None = None
    first_is_full: bool = False


_WINDOWED: Final[Mapping[str, _Window]] = {
    "afmoe": _Window(4, default_tokens=0),
    "cohere2": _Window(4),
    "cohere2moe": _Window(4, first_is_full=True),
    "exaone-moe": _Window(4),
    "gemma2": _Window(2, default_tokens=4096),
    "gemma3": _Window(6, default_tokens=0),
    "gemma3n": _Window(5),
    "gemma4": _Window(None),
    "gpt-oss": _Window(2),
    "lfm2": _Window(0, default_tokens=0),
    "llama4": _Window(4, default_tokens=8192, fixed_tokens=8192),
    "mellum": _Window(4, default_tokens=0),
    "olmo2": _Window(4, default_tokens=0),
    "plamo3": _Window(8, default_tokens=0),
    "smallthinker": _Window(4, default_tokens=0, fixed_tokens=4096, first_is_full=True),
}
_RWKV: Final = frozenset({"rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
_RECURRENT: Final = frozenset({"mamba", "mamba2"}) | _RWKV
_DELTA_NET: Final = frozenset({"qwen3next", "qwen35", "qwen35moe"})
_NEMOTRON: Final = frozenset({"nemotron_h", "nemotron_h_moe"})
_SHORT_CONV: Final = frozenset({"lfm2", "lfm2moe"})
_RECURRENT_WITHOUT_KV_HEADS: Final = frozenset({"jamba", "granitehybrid", "plamo2"}) | _SHORT_CONV
_BOTH_IN_EACH_LAYER: Final = frozenset({"falcon-h1"})
_HYBRID: Final = _DELTA_NET | _NEMOTRON | _RECURRENT_WITHOUT_KV_HEADS | _BOTH_IN_EACH_LAYER
# Mamba's first version has no groups.
_WITHOUT_GROUPS: Final = frozenset({"mamba", "jamba"})
_ATTENTION: Final = frozenset({
    "apertus", "arcee", "arctic", "baichuan", "bailingmoe", "bailingmoe2", "bitnet", "bloom",
    "chameleon", "chatglm", "codeshell", "command-r", "dbrx", "deci", "deepseek", "deepseek2",
    "dots1", "ernie4_5", "ernie4_5-moe", "exaone", "falcon", "gemma", "glm4", "glm4moe", "gpt2",
    "gptneox", "granite", "granitemoe", "grok", "grovemoe", "hunyuan-dense", "hunyuan-moe",
    "internlm2", "jais", "llama", "maincoder", "minicpm", "minicpm3", "minimax-m2", "mistral3",
    "mpt", "nemotron", "olmo", "olmoe", "openelm", "orion", "pangu-embedded", "phi2", "phi3",
    "phimoe", "plamo", "plm", "qwen", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe",
    "qwen3vl", "qwen3vlmoe", "refact", "seed_oss", "smollm3", "stablelm", "starcoder",
    "starcoder2", "xverse",
})  # fmt: skip
_KNOWN: Final = _ATTENTION | _RECURRENT | _HYBRID | _WINDOWED.keys()
_GEMMA3N_CACHED_LAYERS: Final = 20


def context_layout(info: GgufInfo) -> ContextLayout:
    """The layout of a context for this model.

    Raises:
        UnknownSizeError: no rules are known for the architecture, or the header lacks a size.
    """
    architecture = info.architecture
    if architecture is None:
        raise UnknownSizeError("the header names no architecture")
    if architecture not in _KNOWN:
        raise UnknownSizeError(
            f"how llama.cpp lays out a context of architecture '{architecture}' is not known here"
        )
    return _Layers(architecture, HyperParameters(info)).layout()


class _Layers:
    """Answers for each layer of one model."""

    def __init__(self, architecture: str, sizes: HyperParameters) -> None:
        self._architecture, self._sizes = architecture, sizes
        self._next_token_layers = sizes.number("nextn_predict_layers", 0)
        if self._next_token_layers >= sizes.layers:
            raise UnknownSizeError("the file holds a next-token-prediction head alone")
        query_heads = sizes.per_layer("attention.head_count", 0)
        self._first_query_heads = query_heads[0]
        self._kv_heads = sizes.per_layer("attention.head_count_kv", query_heads)

    def layout(self) -> ContextLayout:
        layers = range(self._sizes.layers - self._next_token_layers)
        recurrent = [self._is_recurrent(layer) for layer in layers]
        window_tokens, windowed = self._window()
        conv_values, state_values = self._state_values() if any(recurrent) else (0, 0)
        return ContextLayout(
            kind=self._kind(window_tokens),
            cache_layers=tuple(
                self._cache_layer(layer, windowed[layer])
                for layer in layers
                if self._is_cached(layer, recurrent[layer])
            ),
            window_tokens=window_tokens,
            recurrent_layers=sum(recurrent),
            conv_values=conv_values,
            state_values=state_values,
            next_token_layers=self._next_token_layers,
        )

    def _kind(self, window_tokens: int | None) -> MemoryKind:
        if self._architecture in _RECURRENT:
            return MemoryKind.RECURRENT
        if self._architecture in _HYBRID:
            return MemoryKind.HYBRID
        return MemoryKind.ATTENTION if window_tokens is None else MemoryKind.SLIDING_WINDOW

    def _is_recurrent(self, layer: int) -> bool:
        if self._architecture in _RECURRENT | _BOTH_IN_EACH_LAYER:
            return True
        if self._architecture in _DELTA_NET:
            return self._is_linear[layer]
        if self._architecture in _NEMOTRON:
            return self._kv_heads[layer] == 0 and self._feed_forward[layer] == 0
        return self._architecture in _RECURRENT_WITHOUT_KV_HEADS and self._kv_heads[layer] == 0

    def _is_cached(self, layer: int, recurrent: bool) -> bool:
        if self._architecture in _BOTH_IN_EACH_LAYER:
            return True
        if self._architecture in _NEMOTRON:
            return not recurrent and self._feed_forward[layer] == 0
        if self._architecture == "gemma3n":
            return layer < _GEMMA3N_CACHED_LAYERS
        if self._architecture == "gemma4":
            shared = self._sizes.number("attention.shared_kv_layers", 0)
            return layer < self._sizes.layers - shared
        return not recurrent

    @cached_property
    def _is_linear(self) -> list[bool]:
        listed = "attention.recurrent_layers"
        if self._sizes.is_per_layer(listed):
            return [bool(flag) for flag in self._sizes.per_layer(listed, 0)]
        interval = self._sizes.number("full_attention_interval", 4)
        if interval == 0:
            raise UnknownSizeError(f"{self._architecture}.full_attention_interval is 0")
        return [(layer + 1) % interval != 0 for layer in range(self._sizes.layers)]

    @cached_property
    def _feed_forward(self) -> list[int]:
        return self._sizes.per_layer("feed_forward_length", 0)

    def _cache_layer(self, layer: int, windowed: bool) -> CacheLayer:
        latent = self._architecture == "deepseek2" and all(
            self._sizes.number(f"attention.{which}_length_mla", 0) for which in ("key", "value")
        )
        return CacheLayer(
            heads=self._kv_heads[layer],
            key_width=self._head_width("key", windowed),
            # Multi-head latent attention keeps one compressed row a token, and no values.
            value_width=0 if latent else self._head_width("value", windowed),
            windowed=windowed,
        )

    def _head_width(self, which: str, windowed: bool) -> int:
        if self._first_query_heads == 0:
            return 0
        default = self._sizes.number("embedding_length") // self._first_query_heads
        width = self._sizes.number(f"attention.{which}_length", default)
        return self._sizes.number(f"attention.{which}_length_swa", width) if windowed else width

    def _window(self) -> tuple[int | None, list[bool]]:
        """The window, and which layers see no further."""
        rule = _WINDOWED.get(self._architecture)
        tokens = rule and self._sizes.number("attention.sliding_window", rule.default_tokens)
        if not rule or not tokens:
            return None, [False] * self._sizes.layers
        return rule.fixed_tokens or tokens, self._windowed_layers(rule)

    def _windowed_layers(self, rule: _Window) -> list[bool]:
        name = "attention.sliding_window_pattern"
        if rule.period is None or self._sizes.is_per_layer(name):
            return [bool(flag) for flag in self._sizes.per_layer(name, [])]
        period = self._sizes.number(name, rule.period)
        if period == 0:
            return [True] * self._sizes.layers
        full = 0 if rule.first_is_full else period - 1
        return [layer % period != full for layer in range(self._sizes.layers)]

    def _state_values(self) -> tuple[int, int]:
        """Numbers of the convolution state and of the recurrent state of a layer.

        `llama_hparams::n_embd_r` and `n_embd_s`: of state-space models and delta nets
        (kernel - 1) x (inner + 2 x groups x state) and state x inner; of RWKV
        shifts x width and width x head; of short convolutions width x (length - 1) alone.
        """
        number = self._sizes.number
        if self._architecture in _SHORT_CONV:
            return number("embedding_length") * max(number("shortconv.l_cache") - 1, 0), 0
        if self._architecture in _RWKV:
            width = number("embedding_length")
            return number("token_shift_count", 2) * width, width * number("wkv.head_size")
        inner, state = number("ssm.inner_size"), number("ssm.state_size")
        groups = 0 if self._architecture in _WITHOUT_GROUPS else number("ssm.group_count")
        kernel = number("ssm.conv_kernel")
        return max(kernel - 1, 0) * (inner + 2 * groups * state), state * inner
