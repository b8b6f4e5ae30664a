"""Prompt-lookup drafting: what it proposes, and that no answer changes by it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from edge_agentic.chat.template import ChatTemplate
from edge_agentic.core.clock import monotonic_ns
from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.choices import DraftKind
from edge_agentic.engine.decoding import DecodeLimits, DecodeLoop
from edge_agentic.engine.drafting import Drafter, LookupDrafter, draft_settings
from edge_agentic.engine.gguf import read_gguf
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import LlamaRuntime, RuntimeSettings
from edge_agentic.engine.llama_sampler import Sampler
from edge_agentic.engine.prefix_cache import common_prefix
from edge_agentic.engine.prompt import build_prompt
from edge_agentic.trace.conversation import request_messages
from edge_agentic.trace.pack import load_pack
from tests.tiny_gguf import Kind, build

OUTPUT_TOKENS = 32


@pytest.mark.parametrize(
    ("seen", "most", "expected"),
    [
        pytest.param([1, 2, 3, 9, 1, 2], 8, [3, 9, 1, 2], id="what-followed-a-pair"),
        pytest.param([1, 2, 3, 9, 1, 2], 2, [3, 9], id="no-more-than-asked"),
        pytest.param([1, 2, 3, 1, 2, 4, 1, 2], 1, [4], id="the-latest-place"),
        pytest.param([7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2], 1, [3], id="the-longest-match"),
        pytest.param([1, 2, 3, 4], 8, [], id="nothing-stood-before"),
        pytest.param([5, 5, 5], 8, [5], id="an-overlapping-match"),
        pytest.param([256, 1, 65536, 256, 9, 256, 1], 1, [65536], id="whole-tokens-only"),
        pytest.param([3], 8, [], id="a-single-token"),
        pytest.param([1, 2, 3, 1, 2], 0, [], id="none-asked"),
    ],
)
def test_lookup_proposes_what_followed_before(
    seen: Sequence[int], most: int, expected: Sequence[int]
) -> None:
    drafter = LookupDrafter()
    drafter.begin(seen[:2], 0)
    drafter.accept(seen[2:])
    assert list(drafter.propose(most)) == expected


def test_a_token_of_whose_bytes_others_are_made_is_no_match() -> None:
    drafter = LookupDrafter()
    # The bytes of (1, 0) also stand across the bounds of (256, 0, 0).
    drafter.begin([256, 0, 0, 7, 1, 0], 0)
    assert list(drafter.propose(1)) == []


@pytest.mark.parametrize(
    ("kind", "given", "tokens"),
    [(DraftKind.LOOKUP, None, 8), (DraftKind.MTP, None, 3), (DraftKind.MTP, 5, 5)],
)
def test_each_kind_has_its_own_number_of_tokens_unless_told(
    kind: DraftKind, given: int | None, tokens: int
) -> None:
    settings = draft_settings(kind, given)
    assert settings.to_json() == {"kind": kind.value, "tokens": tokens}
    assert settings.rollback_tokens == tokens


@pytest.mark.parametrize("tokens", [0, -1, 65])
def test_impossible_numbers_of_drafted_tokens_are_refused(tokens: int) -> None:
    with pytest.raises(BadInputError, match="--draft-tokens must be from 1 to 64"):
        draft_settings(DraftKind.LOOKUP, tokens)


def test_a_number_of_drafted_tokens_without_drafts_is_refused() -> None:
    with pytest.raises(BadInputError, match="--draft-tokens goes with --draft lookup"):
        draft_settings(DraftKind.OFF, 4)


def answer(
    model: LlamaModel, runtime: LlamaRuntime, prompt: Sequence[int], drafter: Drafter | None
) -> DecodeLoop:
    """Answer an evaluated prompt; its last token is evaluated once more."""
    runtime.keep(len(prompt) - 1)
    runtime.evaluate(prompt[-1:], lambda: True)
    with Sampler(model, runtime, ()) as sampler:
        limits = DecodeLimits(model.end_tokens, OUTPUT_TOKENS, None)
        loop = DecodeLoop(runtime, sampler, limits, monotonic_ns, monotonic_ns())
        if drafter is None:
            loop.run()
        else:
            drafter.begin(prompt, 0)
            loop.run_drafted(prompt, drafter, 8)
    return loop


class Teacher:
    """Drafts a known answer, each third token of it wrong."""

    def __init__(self, answer: Sequence[int]) -> None:
        self.draft = [token + (at % 3 == 2) for at, token in enumerate(answer)]
        self.at = 0

    def begin(self, prompt: Sequence[int], cached: int) -> None:
        self.at = 0

    def follow(self, tokens: int) -> None: ...

    def accept(self, tokens: Sequence[int]) -> None:
        self.at += len(tokens)

    def propose(self, most: int) -> Sequence[int]:
        return self.draft[self.at : self.at + most]

    def close(self) -> None: ...


@pytest.mark.parametrize("kind", ["attention", "sliding_window", "hybrid"])
def test_rejected_tokens_are_forgotten_on_every_memory_that_can(kind: Kind, tmp_path: Path) -> None:
    sizes = RuntimeSettings(1024, 256, 256, threads=1, rollback_tokens=8)
    with (
        closing(LlamaModel(build(tmp_path / "tiny.gguf", kind))) as model,
        closing(LlamaRuntime(model, sizes)) as runtime,
    ):
        prompt = model.tokenize("Count the lines of each file, then mend the parser.")
        runtime.evaluate(prompt[:-1], lambda: True)
        plain = answer(model, runtime, prompt, None)
        runtime.clear()
        runtime.evaluate(prompt[:-1], lambda: True)
        taught = answer(model, runtime, prompt, Teacher(plain.tokens))
    assert taught.tokens == plain.tokens
    assert 0 < taught.accepted < taught.drafted


def test_every_answer_of_edge_mini_is_the_same_with_and_without(smollm2: Path) -> None:
    # One thread: with more, llama.cpp adds up the attention of a single token in another order
    # than that of a batch, which turns close calls whatever is drafted.
    with (
        closing(LlamaModel(smollm2)) as model,
        closing(LlamaRuntime(model, RuntimeSettings(8192, 512, 512, threads=1))) as runtime,
    ):
        template = ChatTemplate(read_gguf(smollm2).chat_template, bos_token=model.bos_token)
        previous: Sequence[int] = ()
        drafted = accepted = turns = 0
        for conversation in load_pack("edge-mini").conversations:
            for turn in conversation.turns:
                messages = request_messages(conversation, turn)
                prompt = build_prompt(
                    template, model, messages, conversation.tools, find_stable=False
                ).tokens
                shared = min(common_prefix(previous, prompt), len(prompt) - 1)
                runtime.keep(shared)
                runtime.evaluate(prompt[shared:], lambda: True)
                plain = answer(model, runtime, prompt, None)
                drafting = answer(model, runtime, prompt, LookupDrafter())
                assert drafting.tokens == plain.tokens
                assert drafting.finish is plain.finish
                assert len(drafting.arrivals_ns) == len(drafting.tokens)
                drafted, accepted = drafted + drafting.drafted, accepted + drafting.accepted
                previous, turns = prompt, turns + 1
    assert turns == 16
    assert 0 < accepted < drafted
