"""Prefix reuse on every kind of memory: the same logits as a cold evaluation, from fewer tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from edge_agentic.chat.template import ChatTemplate
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import Message
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import LlamaRuntime, RuntimeSettings, Snapshot
from edge_agentic.engine.llama_sampler import Sampler
from edge_agentic.engine.memory_kind import MemoryKind
from edge_agentic.engine.prefix_cache import PrefixCache, Reuse, SnapshotLimits
from edge_agentic.engine.prompt import Prompt, build_prompt
from tests.tiny_gguf import ARCHITECTURES, build

TURNS = 20
GENERATED = 6
# The reasoning of the current round only is rendered, and an answer starts with an empty one:
# the next prompt agrees with this one up to the start of the answer, or to the last question.
REASONING_TEMPLATE = """\
{%- set ns = namespace(last=0) %}
{%- for message in messages %}
{%- if message.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}
{%- endfor %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' and loop.index0 > ns.last %}
{{- '<think>\\n' + (message.reasoning_content or '') + '\\n</think>\\n\\n' }}
{%- endif %}
{{- message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
"""

Logits = np.ndarray[tuple[int], np.dtype[np.float32]]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("models")
    return lambda kind: build(folder / f"{kind}.gguf", kind)


class Conversation:
    """A context that prompts are played on, one after the other."""

    def __init__(self, path: Path, limits: SnapshotLimits) -> None:
        self.model = LlamaModel(path)
        self.runtime = LlamaRuntime(self.model, RuntimeSettings(4096, 2048, 512, threads=1))
        cuts_back = self.model.memory_kind is MemoryKind.ATTENTION
        self.cache: PrefixCache[Snapshot] = PrefixCache(self.runtime, limits, cuts_back=cuts_back)
        self.sampler = Sampler(self.model, self.runtime, ())

    def play(self, prompt: Prompt, *, anchor: bool = False) -> tuple[Reuse, Logits]:
        """The logits after a prompt; then a few tokens of an answer that history never has."""
        reuse = self.cache.begin("c", prompt.tokens, prompt.stable_tokens)
        start = reuse.cached
        if reuse.save_at is not None:
            self.evaluate(prompt.tokens[start : reuse.save_at])
            start = reuse.save_at
            self.cache.save(start, anchor=anchor)
        self.evaluate(prompt.tokens[start:])
        logits = self.logits()
        for _ in range(GENERATED):
            self.runtime.evaluate_one(self.sampler.sample())
        return reuse, logits

    def play_cold(self, tokens: Sequence[int], *cuts: int) -> Logits:
        """The logits after a prompt that is evaluated from its start, in pieces."""
        self.cache.forget()
        for start, end in pairwise(sorted({0, *cuts, len(tokens)})):
            self.evaluate(tokens[start:end])
        return self.logits()

    def evaluate(self, tokens: Sequence[int]) -> None:
        self.runtime.evaluate(tokens, lambda: True)

    def logits(self) -> Logits:
        pointer = llama_cpp.llama_get_logits_ith(self.runtime.handle, -1)
        count = llama_cpp.llama_vocab_n_tokens(self.model.vocabulary)
        logits: Logits = np.ctypeslib.as_array(pointer, (count,)).copy()
        return logits

    def close(self) -> None:
        self.sampler.__exit__()
        self.runtime.close()
        self.model.close()


def prompts(model: LlamaModel, template: str | None, turns: int = TURNS) -> Iterator[Prompt]:
    """Growing prompts; each third turn is a user's, the others bring tool results."""
    chat = ChatTemplate(template, bos_token=model.bos_token)
    messages: list[Message] = [{"role": "user", "content": "Count the lines of each file."}]
    for turn in range(turns):
        yield build_prompt(chat, model, messages, [], find_stable=True)
        messages += [
            {
                "role": "assistant",
                "content": f"Look at file {turn}.",
                "reasoning_content": "It may be empty. " * (turn % 3),
            },
            {
                "role": "user" if turn % 3 == 2 else "tool",
                "content": f"There are {turn * 3} lines in it.",
            },
        ]


def furthest(some: Logits, others: Logits) -> float:
    return float(np.abs(some - others).max())


@pytest.mark.parametrize(
    ("limits", "template"),
    [
        pytest.param(SnapshotLimits(4, 2**30), None, id="chatml"),
        pytest.param(SnapshotLimits(4, 2**30), REASONING_TEMPLATE, id="reasoning"),
        pytest.param(SnapshotLimits(4, 2**30, on_device=True), REASONING_TEMPLATE, id="device"),
        pytest.param(SnapshotLimits(1, 2**30, on_device=True), REASONING_TEMPLATE, id="one"),
        pytest.param(SnapshotLimits(0, 0), None, id="none"),
    ],
)
@pytest.mark.parametrize("kind", list(ARCHITECTURES))
def test_a_warm_turn_has_the_logits_of_a_cold_one(
    kind: str, limits: SnapshotLimits, template: str | None, tiny: Callable[[str], Path]
) -> None:
    path = tiny(kind)
    with (
        closing(Conversation(path, limits)) as warm,
        closing(Conversation(path, SnapshotLimits(0, 0))) as cold,
    ):
        reused, noise = 0, 0.0
        for number, prompt in enumerate(prompts(warm.model, template)):
            reuse, logits = warm.play(prompt, anchor=number % 3 == 0)
            expected = cold.play_cold(prompt.tokens, reuse.cached, reuse.save_at or 0)
            if number % 5 == 0:
                # What the boundaries of batches alone make of the last bits is the backend's noise.
                for tail in (1, 40):
                    other = cold.play_cold(prompt.tokens, len(prompt.tokens) - tail)
                    noise = max(noise, furthest(expected, other))
            assert np.isfinite(logits).all()
            assert furthest(logits, expected) <= 5 * noise + 1e-6, number
            reused += reuse.cached
        # Guards the above: a state of another history must not pass for the right one.
        half = len(prompt.tokens) // 2
        mixed = [*prompt.tokens[:half], *reversed(prompt.tokens[half:-8]), *prompt.tokens[-8:]]
        assert furthest(cold.play_cold(mixed), expected) > 20 * noise + 1e-3
        keeps_nothing = limits.count == 0 and kind != "attention"
        assert (reused == 0) is keeps_nothing


@pytest.mark.parametrize(
    ("kind", "most"), [("attention", 1.0), ("sliding_window", 1.05), ("hybrid", 1.05)]
)
@pytest.mark.parametrize("template", [None, REASONING_TEMPLATE], ids=["chatml", "reasoning"])
def test_little_more_is_computed_than_is_new(
    kind: str, most: float, template: str | None, tiny: Callable[[str], Path]
) -> None:
    with closing(Conversation(tiny(kind), SnapshotLimits(4, 2**30))) as warm:
        computed = ideal = 0
        for number, prompt in enumerate(prompts(warm.model, template)):
            reuse, _ = warm.play(prompt, anchor=number % 3 == 0)
            computed += len(prompt.tokens) - reuse.cached
            ideal += len(prompt.tokens) - reuse.shared
        # Dropped reasoning can make the next prompt part inside an answer, before its snapshot.
        assert computed / ideal <= (most if template is None else 1.15)


def test_snapshots_stay_within_their_number_and_bytes(tiny: Callable[[str], Path]) -> None:
    with closing(Conversation(tiny("hybrid"), SnapshotLimits(1, 2**30))) as one:
        first, second = prompts(one.model, None, 2)
        one.play(first)
        one.play(second)
        # The first turn's snapshot is gone: back to its prompt is all the way back.
        assert one.play(first)[0].cached == 0
    size = _snapshot_bytes(tiny("hybrid"))
    for total, cached in ((2 * size, True), (2 * size - 1, False), (size - 1, False)):
        with closing(Conversation(tiny("hybrid"), SnapshotLimits(9, total))) as some:
            some.play(first)
            some.play(second)
            diverged = Prompt("", [*first.tokens, 7, 7, 7], None, len(first.tokens))
            assert bool(some.play(diverged)[0].cached) is cached, total


def _snapshot_bytes(path: Path) -> int:
    with closing(Conversation(path, SnapshotLimits(1, 2**30))) as some:
        some.play(next(prompts(some.model, None)))
        snapshot = some.runtime.save(on_device=False)
        assert snapshot is not None
        return snapshot.size_bytes


def test_the_state_after_a_users_message_outlives_newer_ones(tiny: Callable[[str], Path]) -> None:
    with closing(Conversation(tiny("hybrid"), SnapshotLimits(2, 2**30))) as some:
        turns = list(prompts(some.model, None, 5))
        for number, prompt in enumerate(turns):
            some.play(prompt, anchor=number == 0)
        back = Prompt("", [*turns[0].tokens, 7, 7, 7], None, len(turns[0].tokens))
        assert some.play(back)[0].cached > 0


def test_a_snapshot_that_cannot_be_restored_falls_back_to_an_older_one(
    tiny: Callable[[str], Path],
) -> None:
    with (
        closing(Conversation(tiny("hybrid"), SnapshotLimits(4, 2**30))) as some,
        closing(Conversation(tiny("hybrid"), SnapshotLimits(0, 0))) as cold,
    ):
        turns = list(prompts(some.model, None, 4))
        snapshots: list[Snapshot] = []
        for prompt in turns[:3]:
            some.play(prompt)
            snapshots.append(some.cache._kept[-1].snapshot)
        for byte in range(len(snapshots[-1].data)):
            snapshots[-1].data[byte] = 0xFF
        reuse, logits = some.play(turns[3])
        assert 0 < reuse.cached < len(turns[1].tokens) + 1
        assert (
            furthest(logits, cold.play_cold(turns[3].tokens, reuse.cached, reuse.save_at or 0))
            <= 1e-5
        )


def test_negative_limits_are_refused() -> None:
    with pytest.raises(BadInputError, match="must be at least 0"):
        SnapshotLimits(-1, 0)
