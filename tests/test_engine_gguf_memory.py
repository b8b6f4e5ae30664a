"""Memory of a context, against what llama.cpp itself has printed and against sums by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edge_agentic.engine.context_layout import ContextLayout, context_layout
from edge_agentic.engine.context_memory import (
    CACHE_TYPES,
    cells,
    kv_cache_bytes,
    recurrent_state_bytes,
)
from edge_agentic.engine.gguf import read_gguf
from edge_agentic.engine.hyper_parameters import UnknownSizeError
from edge_agentic.engine.memory_kind import MemoryKind
from tests.gguf_bytes import write
from tests.model_shapes import qwen36_27b, shape

MIB = 2**20


@pytest.fixture
def layout(tmp_path: Path) -> Any:
    def of(metadata: dict[str, Any]) -> ContextLayout:
        return context_layout(read_gguf(write(tmp_path / "model.gguf", metadata)))

    return of


def kv_mib(layout: ContextLayout, context: int, cache_type: str, full_window: bool = True) -> float:
    size = kv_cache_bytes(layout, context, cache_type, full_window=full_window)
    assert size is not None
    return size / MIB


GEMMA4_12B = shape(
    "gemma4",
    block_count=48,
    embedding_length=3840,
    attention__head_count=16,
    attention__head_count_kv=[8, 8, 8, 8, 8, 1] * 8,
    attention__key_length=512,
    attention__value_length=512,
    attention__key_length_swa=256,
    attention__value_length_swa=256,
    attention__sliding_window=1024,
    attention__sliding_window_pattern=[True, True, True, True, True, False] * 8,
)
GEMMA3_1B = shape(
    "gemma3",
    block_count=26,
    embedding_length=1152,
    attention__head_count=4,
    attention__head_count_kv=1,
    attention__key_length=256,
    attention__value_length=256,
    attention__sliding_window=512,
)
MAMBA = {"ssm__conv_kernel": 4, "ssm__inner_size": 1536, "ssm__state_size": 16}
BITS_PER_VALUE = {
    "f32": 32, "f16": 16, "bf16": 16, "q8_0": 8.5, "q5_1": 6, "q5_0": 5.5, "q4_1": 5, "q4_0": 4.5,
    "iq4_nl": 4.5,
}  # fmt: skip
PLAIN = {"block_count": 4, "embedding_length": 256, "attention__head_count": 4}


class TestAgainstTheLogOfLlamaCpp:
    """Sizes that llama.cpp printed when it loaded these models."""

    @pytest.mark.parametrize(
        ("context", "cache_type", "mib"),
        [(262_144, "f16", 16_384), (131_072, "q8_0", 4352), (65_536, "q8_0", 2176)],
    )
    def test_the_cache_of_qwen36_27b(
        self, layout: Any, context: int, cache_type: str, mib: float
    ) -> None:
        assert kv_mib(layout(qwen36_27b()), context, cache_type) == mib

    def test_the_state_of_qwen36_27b(self, layout: Any) -> None:
        found = layout(qwen36_27b())
        assert found.kind is MemoryKind.HYBRID
        assert (found.recurrent_layers, len(found.cache_layers)) == (48, 16)
        assert 48 * found.conv_values * 4 / MIB == 5.625
        assert 48 * found.state_values * 4 / MIB == 144
        assert recurrent_state_bytes(found) / MIB == 149.625

    @pytest.mark.parametrize(
        ("context", "cache_type", "full_layers", "windowed_layers"),
        [(16_384, "q8_0", 136, 255), (4096, "f16", 64, 480)],
    )
    def test_both_caches_of_gemma4_12b(
        self, layout: Any, context: int, cache_type: str, full_layers: int, windowed_layers: int
    ) -> None:
        found = layout(GEMMA4_12B)
        assert kv_mib(found, context, cache_type, False) == full_layers + windowed_layers
        # The windowed layers had 1024 + 512 cells there.
        full = full_layers + windowed_layers * context / 1536
        assert kv_mib(found, context, cache_type, True) == full


class TestByHand:
    def test_smollm2(self, smollm2: Path) -> None:
        """30 layers, 3 heads of 64: 30 x 3 x 64 x 2 values a token."""
        found = context_layout(read_gguf(smollm2))
        assert found.kind is MemoryKind.ATTENTION
        assert kv_cache_bytes(found, 8192, "f16", full_window=True) == 8192 * 30 * 192 * 2 * 2
        assert recurrent_state_bytes(found) == 0

    @pytest.mark.parametrize("cache_type", CACHE_TYPES)
    def test_each_cache_type(self, layout: Any, cache_type: str) -> None:
        found = layout(shape("llama", **PLAIN))
        expected = 512 * 4 * 256 * 2 * BITS_PER_VALUE[cache_type] / 8
        assert kv_cache_bytes(found, 512, cache_type, full_window=True) == expected

    @pytest.mark.parametrize(("tokens", "room"), [(1, 256), (256, 256), (257, 512), (8192, 8192)])
    def test_a_context_has_room_for_whole_steps(self, tokens: int, room: int) -> None:
        assert cells(tokens) == room

    def test_keys_and_values_of_their_own_width(self, layout: Any) -> None:
        found = layout(
            shape("llama", **PLAIN, attention__key_length=96, attention__value_length=32)
        )
        assert kv_cache_bytes(found, 256, "f16", full_window=True) == 256 * 4 * 4 * (96 + 32) * 2

    def test_a_head_that_is_no_whole_block_keeps_a_type_out(self, layout: Any) -> None:
        found = layout(shape("phi2", **PLAIN, attention__key_length=80, attention__value_length=80))
        assert kv_cache_bytes(found, 256, "q8_0", full_window=True) is None
        assert kv_cache_bytes(found, 256, "f16", full_window=True) is not None

    @pytest.mark.parametrize(
        ("metadata", "windowed", "window"),
        [
            (GEMMA3_1B, 22, 512),
            (shape("gemma2", **PLAIN), 2, 4096),
            (shape("gpt-oss", **PLAIN, attention__sliding_window=128), 2, 128),
            (shape("cohere2", **PLAIN, attention__sliding_window=100), 3, 100),
            (shape("cohere2moe", **PLAIN, attention__sliding_window=100), 3, 100),
            (shape("llama4", **PLAIN), 3, 8192),
            (shape("smallthinker", **PLAIN, attention__sliding_window=1), 3, 4096),
            (
                shape("gemma3", **PLAIN, attention__sliding_window=9,
                      attention__sliding_window_pattern=2), 2, 9,
            ),
            (
                shape("gemma3", **PLAIN, attention__sliding_window=9,
                      attention__sliding_window_pattern=[True, False, False, False]), 1, 9,
            ),
        ],
        ids=lambda item: item["general.architecture"] if isinstance(item, dict) else "",
    )  # fmt: skip
    def test_which_layers_have_a_sliding_window(
        self, layout: Any, metadata: dict[str, Any], windowed: int, window: int
    ) -> None:
        found = layout(metadata)
        assert found.kind is MemoryKind.SLIDING_WINDOW
        assert sum(layer.windowed for layer in found.cache_layers) == windowed
        assert found.window_tokens == window

    @pytest.mark.parametrize(
        "metadata",
        [
            shape("gemma3", **PLAIN),
            shape("gemma3", **PLAIN, attention__sliding_window=0),
            shape("llama4", **PLAIN, attention__sliding_window=0),
            shape("phi3", **PLAIN, attention__sliding_window=2047),
        ],
    )
    def test_no_window_where_llama_cpp_uses_none(
        self, layout: Any, metadata: dict[str, Any]
    ) -> None:
        found = layout(metadata)
        assert (found.kind, found.window_tokens) == (MemoryKind.ATTENTION, None)
        assert not any(layer.windowed for layer in found.cache_layers)

    def test_the_first_or_the_last_of_a_period_sees_everything(self, layout: Any) -> None:
        last = layout(shape("cohere2", **PLAIN, attention__sliding_window=9))
        first = layout(shape("cohere2moe", **PLAIN, attention__sliding_window=9))
        assert [layer.windowed for layer in last.cache_layers] == [True, True, True, False]
        assert [layer.windowed for layer in first.cache_layers] == [False, True, True, True]

    @pytest.mark.parametrize(
        ("context", "windowed_cells"), [(512, 512), (1024, 1024), (9000, 1024)]
    )
    def test_a_windowed_layer_keeps_window_and_micro_batch(
        self, layout: Any, context: int, windowed_cells: int
    ) -> None:
        per_cell = 2 * 256 * 2
        expected = per_cell * (4 * cells(context) + 22 * windowed_cells)
        found = layout(GEMMA3_1B)
        assert kv_cache_bytes(found, context, "f16", full_window=False) == expected

    @pytest.mark.parametrize(
        ("metadata", "recurrent", "cached", "conv", "state"),
        [
            (shape("mamba", block_count=24, **MAMBA), 24, 0, 3 * 1536, 16 * 1536),
            (
                shape("mamba2", block_count=24, **MAMBA, ssm__group_count=2),
                24, 0, 3 * (1536 + 2 * 2 * 16), 16 * 1536,
            ),
            (
                shape("rwkv7", block_count=12, embedding_length=768, wkv__head_size=64),
                12, 0, 2 * 768, 64 * 768,
            ),
            (
                shape("arwkv7", block_count=28, embedding_length=1536, wkv__head_size=64,
                      token_shift_count=1), 28, 0, 1536, 64 * 1536,
            ),
            (
                shape("jamba", **PLAIN, **MAMBA, attention__head_count_kv=[0, 0, 2, 0]),
                3, 1, 3 * 1536, 16 * 1536,
            ),
            (
                shape("granitehybrid", **PLAIN, **MAMBA, ssm__group_count=1,
                      attention__head_count_kv=[0, 2, 0, 2]), 2, 2, 3 * (1536 + 32), 16 * 1536,
            ),
            (
                shape("lfm2", **PLAIN, shortconv__l_cache=3,
                      attention__head_count_kv=[0, 0, 2, 0]), 3, 1, 2 * 256, 0,
            ),
            (
                shape("falcon-h1", **PLAIN, **MAMBA, ssm__group_count=1),
                4, 4, 3 * (1536 + 32), 16 * 1536,
            ),
            (
                shape("nemotron_h", **PLAIN, **MAMBA, ssm__group_count=1,
                      attention__head_count_kv=[0, 0, 2, 0],
                      feed_forward_length=[0, 512, 0, 0]), 2, 1, 3 * (1536 + 32), 16 * 1536,
            ),
            (
                shape("qwen3next", **PLAIN, **MAMBA, ssm__group_count=1),
                3, 1, 3 * (1536 + 32), 16 * 1536,
            ),
            (
                shape("qwen35", **PLAIN, **MAMBA, ssm__group_count=1, full_attention_interval=2),
                2, 2, 3 * (1536 + 32), 16 * 1536,
            ),
            (
                shape("qwen35moe", **PLAIN, **MAMBA, ssm__group_count=1,
                      attention__recurrent_layers=[True, False, False, False]),
                1, 3, 3 * (1536 + 32), 16 * 1536,
            ),
        ],
        ids=lambda item: item["general.architecture"] if isinstance(item, dict) else "",
    )  # fmt: skip
    def test_what_recurrent_layers_keep(
        self, layout: Any, metadata: dict[str, Any], recurrent: int, cached: int, conv: int,
        state: int,
    ) -> None:  # fmt: skip
        found = layout(metadata)
        assert (found.recurrent_layers, len(found.cache_layers)) == (recurrent, cached)
        assert (found.conv_values, found.state_values) == (conv, state)
        assert recurrent_state_bytes(found) == recurrent * (conv + state) * 4
        assert found.kind is (MemoryKind.HYBRID if cached else MemoryKind.RECURRENT)

    def test_a_recurrent_model_has_no_cache(self, layout: Any) -> None:
        found = layout(shape("mamba", block_count=24, **MAMBA))
        assert kv_cache_bytes(found, 32_768, "f16", full_window=True) == 0

    def test_latent_attention_keeps_one_row_a_token(self, layout: Any) -> None:
        latent = {"attention__key_length": 576, "attention__value_length": 512,
                  "attention__head_count_kv": 1}  # fmt: skip
        mla = {"attention__key_length_mla": 192, "attention__value_length_mla": 128}
        with_mla = layout(shape("deepseek2", **PLAIN, **latent, **mla))
        without = layout(shape("deepseek2", **PLAIN, **latent))
        assert kv_cache_bytes(with_mla, 256, "f16", full_window=True) == 256 * 4 * 576 * 2
        assert kv_cache_bytes(without, 256, "f16", full_window=True) == 256 * 4 * (576 + 512) * 2

    @pytest.mark.parametrize(
        ("metadata", "cached"),
        [
            (shape("gemma3n", **{**PLAIN, "block_count": 30}, attention__sliding_window=9), 20),
            ({**GEMMA4_12B, "gemma4.attention.shared_kv_layers": 18}, 30),
        ],
    )
    def test_layers_that_share_a_cache_have_none(
        self, layout: Any, metadata: dict[str, Any], cached: int
    ) -> None:
        assert len(layout(metadata).cache_layers) == cached

    def test_the_layers_of_a_draft_head_are_not_in_the_context(self, layout: Any) -> None:
        plain, drafting = layout(qwen36_27b()), layout(qwen36_27b(draft_layers=1))
        assert drafting.next_token_layers == 1
        assert drafting.cache_layers == plain.cache_layers
        assert drafting.recurrent_layers == plain.recurrent_layers


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({}, "the header names no architecture"),
        (shape("foo", **PLAIN), "of architecture 'foo' is not known here"),
        (shape("llama"), r"llama\.block_count is missing"),
        (shape("llama", block_count=2, attention__head_count=2), "embedding_length is missing"),
        (shape("cohere2", **PLAIN), r"attention\.sliding_window is missing"),
        (shape("gemma4", **PLAIN, attention__sliding_window=9), "has 0 values for 4 layers"),
        (shape("mamba", block_count=2, **{**MAMBA, "ssm__inner_size": "x"}), "inner_size is 'x'"),
        (shape("mamba2", block_count=2, **MAMBA), r"ssm\.group_count is missing"),
        (shape("qwen35", **PLAIN, full_attention_interval=0), "full_attention_interval is 0"),
        (shape("llama", **PLAIN, nextn_predict_layers=4), "a next-token-prediction head alone"),
        (
            shape("llama", **PLAIN, attention__head_count_kv=[2, 2]),
            "head_count_kv has 2 values for 4 layers",
        ),
    ],
)
def test_a_layout_that_is_not_known_says_why(
    layout: Any, metadata: dict[str, Any], said: str
) -> None:
    with pytest.raises(UnknownSizeError, match=said):
        layout(metadata)
