"""What can't fit the machine is refused before it is loaded."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.context_layout import context_layout
from edge_agentic.engine.context_memory import recurrent_state_bytes
from edge_agentic.engine.gguf import GgufInfo, read_gguf
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import LlamaRuntime, RuntimeSettings
from edge_agentic.engine.memory_check import require_memory
from tests.tiny_gguf import Kind, build

# Of the tiny attention model: 2 layers x (2 + 2) heads x 16 values x 2 bytes for a token.
TOKEN_BYTES = 256


def test_what_fits_exactly_passes_and_one_byte_less_does_not(tmp_path: Path) -> None:
    info = read_gguf(build(tmp_path / "m.gguf", "attention"))
    needed = info.weights_bytes + 2048 * TOKEN_BYTES
    require_memory(info, 2048, 0, needed)
    with pytest.raises(BadInputError, match="use a --context smaller than 2048"):
        require_memory(info, 2048, 0, needed - 1)


def test_weights_alone_can_be_too_much(tmp_path: Path) -> None:
    info = read_gguf(build(tmp_path / "m.gguf", "attention"))
    with pytest.raises(BadInputError, match="use a smaller model or quantisation"):
        require_memory(info, 256, 0, info.weights_bytes - 1)


@pytest.mark.parametrize(("kind", "grows"), [("hybrid", True), ("attention", False)])
def test_tokens_to_forget_take_states_of_recurrent_layers_only(
    kind: Kind, grows: bool, tmp_path: Path
) -> None:
    info = read_gguf(build(tmp_path / "m.gguf", kind))
    least = next(size for size in range(0, 10**7, 256) if _fits(info, 0, size))
    assert _fits(info, 64, least) is not grows


@pytest.mark.parametrize("kind", ["recurrent", "hybrid"])
def test_a_snapshot_has_the_bytes_of_the_recurrent_state(kind: Kind, tmp_path: Path) -> None:
    path = build(tmp_path / "m.gguf", kind)
    expected = recurrent_state_bytes(context_layout(read_gguf(path)))
    with (
        closing(LlamaModel(path)) as model,
        closing(LlamaRuntime(model, RuntimeSettings(256, 64, 64, threads=1))) as runtime,
    ):
        runtime.evaluate(model.tokenize("hello"), lambda: True)
        snapshot = runtime.save(on_device=False)
    assert snapshot is not None
    # llama.cpp writes a few numbers about the cell and about each layer before the values.
    assert 0 < snapshot.size_bytes - expected < 128


def _fits(info: GgufInfo, rollback_tokens: int, machine_bytes: int) -> bool:
    try:
        require_memory(info, 256, rollback_tokens, machine_bytes)
    except BadInputError:
        return False
    return True
