"""Drafting with the model's own head: the same answers, from drafts that are worth it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import psutil
import pytest

from edge_agentic.core.clock import Clock, monotonic_ns
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import Message
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest, Completion, FinishReason
from edge_agentic.engine.choices import DraftKind
from edge_agentic.engine.decoding import DecodeLimits, DecodeLoop
from edge_agentic.engine.drafting import DraftSettings
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import LlamaRuntime, RuntimeSettings, Snapshot
from edge_agentic.engine.llama_sampler import Sampler
from edge_agentic.engine.llamacpp import LlamaCppEngine, LlamaCppSettings
from edge_agentic.engine.mtp_draft import MtpDrafter
from edge_agentic.engine.prefix_cache import PrefixCache, Reuse, SnapshotLimits
from tests.tiny_gguf import UINT32, Head, Kind, build, with_number

DRAFTED = 3
HEADS: tuple[Head, ...] = ("random", "by_token", "by_row")
AGREEING: tuple[Head, ...] = ("by_token", "by_row")

Models = Callable[[Head], Path]
OpenEngine = Callable[..., LlamaCppEngine]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    folder = tmp_path_factory.mktemp("models")
    return lambda head: build(folder / f"{head}.gguf", "hybrid", head)


@pytest.fixture
def open_engine() -> Iterator[OpenEngine]:
    with ExitStack() as engines:
        yield lambda *given, **options: engines.enter_context(closing(engine(*given, **options)))


def engine(
    path: Path, kind: DraftKind = DraftKind.MTP, *, context: int = 2048, clock: Clock = monotonic_ns
) -> LlamaCppEngine:
    draft = DraftSettings(kind, DRAFTED)
    runtime = RuntimeSettings(context, 32, 16, threads=1, rollback_tokens=draft.rollback_tokens)
    return LlamaCppEngine(path, LlamaCppSettings(runtime, draft=draft), clock=clock)


def ask(
    engine: LlamaCppEngine,
    messages: Sequence[Message],
    tokens: int = 40,
    *,
    conversation: str = "c",
    deadline_s: float | None = None,
    force_length: bool = False,
) -> Completion:
    return engine.generate(
        ChatRequest("r", conversation, messages, [], tokens, deadline_s, force_length)
    )


def growing(turns: int) -> Iterator[list[Message]]:
    """The prompts of a conversation whose history never is what the model said."""
    messages: list[Message] = []
    for turn in range(turns):
        messages = [*messages, {"role": "user", "content": f"Show file {turn} " * (turn + 2)}]
        yield messages
        messages = [*messages, {"role": "assistant", "content": f"It has {turn * 7} lines."}]


@pytest.mark.parametrize("head", HEADS)
def test_every_answer_is_the_one_without_drafting(
    head: Head, models: Models, open_engine: OpenEngine
) -> None:
    drafting, plain = open_engine(models(head)), open_engine(models(head), DraftKind.OFF)
    for messages in growing(6):
        answer, expected = ask(drafting, messages), ask(plain, messages)
        assert answer.outcome is expected.outcome is Outcome.OK
        assert (answer.text, answer.finish_reason) == (expected.text, expected.finish_reason)
        assert answer.tokens.output == expected.tokens.output == len(answer.times.arrivals_ns)
        assert answer.tokens.cached == expected.tokens.cached
        assert expected.tokens.drafted == 0 < answer.tokens.drafted


@pytest.mark.parametrize("head", AGREEING)
def test_every_draft_of_a_head_that_agrees_is_accepted_on_every_turn(
    head: Head, models: Models, open_engine: OpenEngine
) -> None:
    drafting = open_engine(models(head))
    for messages in growing(6):
        tokens = ask(drafting, messages).tokens
        # A batch picks a draft of 3 and one more; the first token comes without a draft.
        assert tokens.output == 40
        assert tokens.drafted == tokens.accepted == 30 - 1


def test_few_drafts_of_a_random_head_are_accepted(models: Models, open_engine: OpenEngine) -> None:
    drafting = open_engine(models("random"))
    answers = [ask(drafting, messages).tokens for messages in growing(6)]
    assert sum(tokens.accepted for tokens in answers) < 0.2 * sum(
        tokens.drafted for tokens in answers
    )


class Recorded:
    """A drafter; `rounds` are its drafts, each with the answer up to there."""

    def __init__(self, drafter: MtpDrafter) -> None:
        self.rounds: list[tuple[list[int], list[int]]] = []
        self.begin, self.follow, self.close = drafter.begin, drafter.follow, drafter.close
        self._answer: list[int] = []
        self._drafter = drafter

    def accept(self, tokens: Sequence[int]) -> None:
        self._answer += tokens
        self._drafter.accept(tokens)

    def propose(self, most: int) -> Sequence[int]:
        draft = self._drafter.propose(most)
        self.rounds.append((list(self._answer), list(draft)))
        return draft


class Conversations:
    """A model's context and its head's, on which prompts are played one after the other."""

    def __init__(self, path: Path, batch_tokens: int, parts: ExitStack) -> None:
        settings = RuntimeSettings(2048, batch_tokens, 64, threads=1, rollback_tokens=DRAFTED)
        model = parts.enter_context(closing(LlamaModel(path, draft_head=True)))
        self.runtime = parts.enter_context(closing(LlamaRuntime(model, settings)))
        limits = SnapshotLimits(2, 2**20)
        self.cache: PrefixCache[Snapshot] = PrefixCache(self.runtime, limits, cuts_back=False)
        self.drafter = parts.enter_context(closing(MtpDrafter(model, self.runtime, settings)))
        self.sampler = parts.enter_context(Sampler(model, self.runtime, ()))

    def answer(
        self, conversation: str, prompt: Sequence[int], stable: int, tokens: int = 24
    ) -> tuple[Reuse, list[tuple[list[int], list[int]]]]:
        """What of the prompt was reused, and the drafts of the answer."""
        drafter = Recorded(self.drafter)
        reuse = self.cache.begin(conversation, prompt, stable)
        drafter.begin(prompt, reuse.cached)
        place = reuse.save_at or reuse.cached
        self.runtime.evaluate(prompt[reuse.cached : place], lambda: True, drafter.follow)
        if reuse.save_at:
            self.cache.save(place, anchor=False)
        self.runtime.evaluate(prompt[place:], lambda: True, drafter.follow)
        limits = DecodeLimits(frozenset(), tokens, None)
        loop = DecodeLoop(self.runtime, self.sampler, limits, monotonic_ns, 0)
        loop.run_drafted(prompt, drafter, DRAFTED)
        return reuse, drafter.rounds


@pytest.mark.parametrize("batch_tokens", [DRAFTED + 2, 64, 512])
def test_every_draft_is_that_of_a_head_that_has_just_seen_the_whole_text(
    batch_tokens: int, models: Models
) -> None:
    with ExitStack() as parts:
        warm = Conversations(models("random"), batch_tokens, parts)
        cold = Conversations(models("random"), 512, parts)
        history: list[int] = []
        for turn in range(4):
            history += [5 + (turn * 97 + at * at * 31) % 256 for at in range(20 + 9 * turn)]
            prompt = [*history, 3, 4 + turn, 6]
            reuse, rounds = warm.answer("c", prompt, len(history))
            assert (reuse.cached > 0) == (turn > 0)
            assert len({tuple(draft) for _, draft in rounds}) > len(rounds) / 2
            for answer, draft in [*rounds[:2], *rounds[2:-3:5]]:
                text = [*prompt, *answer[:-1]]
                name = f"{turn}, {len(answer)}"
                _, expected = cold.answer(name, text, len(text), DRAFTED + 2)
                assert expected[0] == (answer[-1:], draft)


def test_a_forced_length_is_met_past_end_tokens(models: Models, open_engine: OpenEngine) -> None:
    messages = next(growing(1))
    drafting, plain = open_engine(models("by_row")), open_engine(models("by_row"), DraftKind.OFF)
    free = ask(drafting, messages, 400)
    assert free.finish_reason is FinishReason.STOP
    forced, expected = (
        ask(engine, messages, 400, force_length=True) for engine in (drafting, plain)
    )
    assert forced.finish_reason is FinishReason.LENGTH
    assert forced.tokens.output == 400
    assert forced.text == expected.text


def test_after_a_deadline_the_next_turn_is_as_if_nothing_had_been(
    models: Models, open_engine: OpenEngine
) -> None:
    ticks = count(0, 1_000_000)
    late = open_engine(models("random"), clock=lambda: next(ticks))
    turns = list(growing(2))
    assert ask(late, turns[0]).outcome is Outcome.OK
    prefill = ask(late, turns[1], deadline_s=0.002)
    assert (prefill.outcome, prefill.tokens.output) == (Outcome.TIMEOUT, 0)
    decode = ask(late, turns[1], deadline_s=0.025)
    assert decode.outcome is Outcome.TIMEOUT
    assert 0 < decode.tokens.output < 40
    assert ask(late, turns[1]).text == ask(open_engine(models("random")), turns[1]).text


def test_a_context_is_freed_with_its_engine(models: Models) -> None:
    path, process = models("by_row"), psutil.Process()

    def open_and_ask() -> int:
        with closing(engine(path, context=32768)) as opened:
            ask(opened, next(growing(1)), 4)
        return process.memory_info().rss

    for _ in range(3):
        before = open_and_ask()
    for _ in range(12):
        after = open_and_ask()
    # The head's keys and values alone take 4 MiB.
    assert after - before < 24 * 2**20


@pytest.mark.parametrize("kind", ["attention", "sliding_window", "recurrent", "hybrid"])
def test_a_model_without_a_head_is_refused_before_it_is_loaded(kind: Kind, tmp_path: Path) -> None:
    path = build(tmp_path / "m.gguf", kind)
    with pytest.raises(BadInputError, match=r"m\.gguf: the file holds no head.*--draft lookup"):
        engine(path)


def test_several_heads_are_refused_instead_of_crashing(models: Models, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    raw = models("random").read_bytes()
    path.write_bytes(with_number(raw, "qwen35.nextn_predict_layers", UINT32, 2))
    with pytest.raises(BadInputError, match="one head of qwen35, not 2 of qwen35"):
        engine(path)


def test_a_head_that_lacks_a_tensor_is_one_clear_error(models: Models, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(models("random").read_bytes().replace(b"nextn.enorm", b"nextn.xnorm"))
    with pytest.raises(BadInputError, match=r"can't load this model.*nextn\.enorm"):
        engine(path)


def test_a_build_without_the_calls_is_one_clear_error(models: Models) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from tests.test_engine_mtp_draft import engine\n"
        "sys.modules['llama_cpp.llama_cpp_ext'] = None\n"
        "engine(Path(sys.argv[1]))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(models("random"))], capture_output=True, text=True
    )
    assert result.stderr.splitlines()[-1].endswith(
        "can't draft with a model's own head; use --draft lookup"
    )


@pytest.mark.parametrize(("batch", "micro_batch"), [(4, 512), (512, 4)])
def test_batches_too_small_for_a_draft_are_refused_instead_of_crashing(
    batch: int, micro_batch: int
) -> None:
    with pytest.raises(BadInputError, match=r"drafts of 3 tokens need .* at least 5"):
        RuntimeSettings(2048, batch, micro_batch, threads=1, rollback_tokens=3)
