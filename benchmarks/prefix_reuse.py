"""Prompt tokens computed over a 20-turn conversation, against those that are new.

Each kind of memory has a tiny model with random weights, built here. The same conversation goes
through this suite's engine and through `Llama.create_completion` of llama-cpp-python, in one
process. Every turn ends with a few generated tokens that history never has, as in a replay.
Then the cost of a snapshot: bytes and time on the tiny models, and its bytes on Qwen3.6-27B.

    python benchmarks/prefix_reuse.py [--turns 20] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import llama_cpp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from edge_agentic.chat.template import ChatTemplate
from edge_agentic.core.messages import Message
from edge_agentic.engine.api import ChatRequest
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import LlamaRuntime, RuntimeSettings
from edge_agentic.engine.llamacpp import LlamaCppEngine, LlamaCppSettings
from edge_agentic.engine.memory_kind import MemoryKind
from edge_agentic.engine.prefix_cache import common_prefix
from tests.tiny_gguf import ARCHITECTURES, Kind, build

SIZES = RuntimeSettings(context_tokens=16384, batch_tokens=512, micro_batch_tokens=512, threads=1)
GENERATED_TOKENS = 8
SNAPSHOT_ROUNDS = 50
RESULT = "src/parser.py:{line}: expected ')' before the end of the line, found 'return'\n"

# Qwen3.6-27B, from its published configuration: 48 of 64 layers are gated delta nets.
DELTA_LAYERS, KERNEL, INNER, GROUPS, STATE, VALUE_BYTES = 48, 4, 6144, 16, 128, 4


class CountingLlama(llama_cpp.Llama):  # type: ignore[misc]
    """llama-cpp-python's own class; counts the prompt tokens that it evaluates."""

    prompt_evaluated = 0
    _prompt_to_come = True

    def begin_turn(self) -> None:
        """The next evaluation is that of a prompt."""
        self._prompt_to_come = True

    def eval(self, tokens: Sequence[int]) -> None:
        """Evaluate tokens; those of a prompt count."""
        if self._prompt_to_come:
            self.prompt_evaluated += len(tokens)
            self._prompt_to_come = False
        super().eval(tokens)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        figures = {
            kind: measure(build(Path(scratch) / f"{kind}.gguf", cast(Kind, kind)), arguments.turns)
            for kind in ARCHITECTURES
        }
    qwen = (
        DELTA_LAYERS * ((KERNEL - 1) * (INNER + 2 * GROUPS * STATE) + STATE * INNER) * VALUE_BYTES
    )
    if arguments.json:
        print(json.dumps({**figures, "qwen3.6-27b": {"snapshot_bytes": qwen}}, indent=2))
        return
    print(f"{'':16}{'prompt':>9}{'new':>8}{'computed':>10}{'ratio':>7}", end="")
    print(f"{'create_completion':>19}{'snapshot':>12}{'save':>9}{'restore':>9}")
    for kind, row in figures.items():
        snapshot = row["snapshot"] or {}
        print(f"{kind:16}{row['prompt_tokens']:>9}{row['ideal_tokens']:>8}", end="")
        print(f"{row['computed_tokens']:>10}{row['computed_over_ideal']:>7.3f}", end="")
        print(f"{row['create_completion_over_ideal']:>18.2f}x", end="")
        if snapshot:
            print(f"{snapshot['bytes']:>10} B", end="")
            print(f"{snapshot['save_ms']:>6.3f} ms{snapshot['restore_ms']:>6.3f} ms", end="")
        print()
    print(f"a snapshot of Qwen3.6-27B: {qwen} bytes ({qwen / 2**20:.1f} MiB)")
    print(
        f"  = {DELTA_LAYERS} layers x ({KERNEL - 1} x {INNER + 2 * GROUPS * STATE} values of the "
        f"convolution + {STATE} x {INNER} of the state) x {VALUE_BYTES} bytes"
    )


def measure(path: Path, turns: int) -> dict[str, Any]:
    """The figures of one model."""
    engine = LlamaCppEngine(path, LlamaCppSettings(SIZES))
    prompt_tokens = computed = ideal = 0
    for number, messages in enumerate(conversation(turns)):
        request = ChatRequest(f"turn {number}", "c", messages, [], GENERATED_TOKENS)
        tokens = engine.generate(request).tokens
        assert tokens.prompt is not None
        assert tokens.computed is not None
        assert tokens.ideal is not None
        prompt_tokens += tokens.prompt
        computed += tokens.computed
        ideal += tokens.ideal
    engine.close()
    theirs, theirs_ideal = through_create_completion(path, turns)
    return {
        "computed_over_ideal": computed / ideal,
        "create_completion_over_ideal": theirs / theirs_ideal,
        "create_completion_over_ours": theirs / computed,
        "prompt_tokens": prompt_tokens,
        "ideal_tokens": ideal,
        "computed_tokens": computed,
        "snapshot": snapshot_cost(path),
    }


def conversation(turns: int) -> Iterator[list[Message]]:
    """Growing prompts of an agent that reads what its commands say."""
    messages: list[Message] = [
        {"role": "system", "content": "You mend programs. Run commands until the tests pass."},
        {"role": "user", "content": "The parser fails on its last line. Find out why. " * 2},
    ]
    for turn in range(turns):
        yield list(messages)
        messages += [
            {"role": "assistant", "content": f"Let me look at line {turn * 40} first."},
            {"role": "user", "content": "".join(RESULT.format(line=turn + i) for i in range(2))},
        ]


def through_create_completion(path: Path, turns: int) -> tuple[int, int]:
    """Prompt tokens that llama-cpp-python's own API evaluates, and those that were new."""
    llama = CountingLlama(
        str(path),
        n_ctx=SIZES.context_tokens,
        n_batch=SIZES.batch_tokens,
        n_ubatch=SIZES.micro_batch_tokens,
        n_threads=SIZES.threads,
        verbose=False,
    )
    template = ChatTemplate(None)
    ideal, previous = 0, list[int]()
    for messages in conversation(turns):
        tokens = llama.tokenize(template.render(messages, []).encode(), special=True)
        ideal += len(tokens) - common_prefix(previous, tokens)
        previous = tokens
        llama.begin_turn()
        llama.create_completion(tokens, max_tokens=GENERATED_TOKENS, temperature=0.0)
    evaluated = llama.prompt_evaluated
    llama.close()
    return evaluated, ideal


def snapshot_cost(path: Path) -> dict[str, float] | None:
    """Bytes and median times of a snapshot; None where the memory can be cut back."""
    model = LlamaModel(path)
    if model.memory_kind is MemoryKind.ATTENTION:
        model.close()
        return None
    runtime = LlamaRuntime(model, SIZES)
    tokens = model.tokenize("Find the line that fails. " * 40)
    runtime.evaluate(tokens, lambda: True)
    saves, restores, size = [], [], 0
    for _ in range(SNAPSHOT_ROUNDS):
        start_ns = time.monotonic_ns()
        snapshot = runtime.save(on_device=False)
        saved_ns = time.monotonic_ns()
        assert snapshot is not None
        assert runtime.restore(snapshot)
        assert runtime.keep(len(tokens))
        saves.append(saved_ns - start_ns)
        restores.append(time.monotonic_ns() - saved_ns)
        size = snapshot.size_bytes
    runtime.close()
    model.close()
    return {
        "bytes": size,
        "save_ms": statistics.median(saves) / 1e6,
        "restore_ms": statistics.median(restores) / 1e6,
    }


if __name__ == "__main__":
    main()
