"""The in-process engine on real GGUF files: reuse, limits, constraint, failures."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import Message
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest, Completion, FinishReason
from edge_agentic.engine.choices import DraftKind, ToolGrammar
from edge_agentic.engine.drafting import DraftSettings
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import RuntimeSettings
from edge_agentic.engine.llamacpp import LlamaCppEngine, LlamaCppSettings
from edge_agentic.engine.prefix_cache import SnapshotLimits
from tests.tiny_gguf import UINT32, build, with_number

SETTINGS = RuntimeSettings(context_tokens=2048, batch_tokens=128, micro_batch_tokens=128, threads=2)

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"type": "string", "enum": ["C", "F"]},
            },
            "required": ["city"],
        },
    },
}

NO_DRAFT = DraftSettings()
OpenEngine = Callable[..., LlamaCppEngine]


@pytest.fixture
def open_engine() -> Iterator[OpenEngine]:
    engines: list[LlamaCppEngine] = []

    def open_one(
        path: Path,
        grammar: ToolGrammar = ToolGrammar.OFF,
        snapshots: int = 4,
        draft: DraftSettings = NO_DRAFT,
        **sizes: int,
    ) -> LlamaCppEngine:
        runtime = RuntimeSettings(
            **{**vars(SETTINGS), "rollback_tokens": draft.rollback_tokens, **sizes}
        )
        settings = LlamaCppSettings(
            runtime, grammar, snapshots=SnapshotLimits(snapshots, 2**30), draft=draft
        )
        engines.append(LlamaCppEngine(path, settings))
        return engines[-1]

    yield open_one
    for engine in engines:
        engine.close()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("models")
    return lambda kind: build(folder / f"{kind}.gguf", kind)


@pytest.fixture
def smollm2_or_tiny(
    tiny: Callable[[str], Path], request: pytest.FixtureRequest
) -> Callable[[str], Path]:
    """The model of a kind of memory, or the real one, which is fetched only where it is needed."""

    def path_of(kind: str) -> Path:
        path: Path = request.getfixturevalue("smollm2") if kind == "smollm2" else tiny(kind)
        return path

    return path_of


def ask(
    engine: LlamaCppEngine,
    messages: list[Message],
    *,
    conversation: str = "c",
    tokens: int = 16,
    tools: list[dict[str, object]] | None = None,
    deadline_s: float | None = None,
    force_length: bool = False,
) -> Completion:
    return engine.generate(
        ChatRequest("r", conversation, messages, tools or [], tokens, deadline_s, force_length)
    )


def growing(turns: int) -> Iterator[list[Message]]:
    """The prompts of a conversation whose history never is what the model said."""
    messages: list[Message] = [{"role": "user", "content": "Count the lines of each file. " * 9}]
    for turn in range(turns):
        yield list(messages)
        messages += [
            {"role": "assistant", "content": f"I would rather look at file {turn} first."},
            {"role": "user", "content": f"There are {turn * 3} lines in it. Go on."},
        ]


def test_each_turn_computes_only_what_is_new(smollm2: Path, open_engine: OpenEngine) -> None:
    engine = open_engine(smollm2)
    previous = 0
    for messages in growing(5):
        tokens = ask(engine, messages).tokens
        assert tokens.cached == previous
        assert tokens.computed == tokens.ideal == tokens.prompt - previous
        previous = tokens.prompt


# Not the sliding window: batch boundaries move the logits of the tiny one by more than some gaps.
@pytest.mark.parametrize("kind", ["smollm2", "attention", "recurrent", "hybrid"])
def test_a_warm_turn_answers_as_a_cold_one(
    kind: str, smollm2_or_tiny: Callable[[str], Path], open_engine: OpenEngine
) -> None:
    path = smollm2_or_tiny(kind)
    # One batch a prompt: chunk boundaries alone may move the last bits of logits.
    warm = open_engine(path, batch_tokens=2048, micro_batch_tokens=2048)
    cold = open_engine(path, batch_tokens=2048, micro_batch_tokens=2048)
    for number, messages in enumerate(growing(4)):
        expected = ask(cold, messages, conversation=str(number))
        answer = ask(warm, messages)
        assert answer.text == expected.text
        assert (answer.tokens.cached > 0) is (number > 0)
        assert expected.tokens.cached == 0


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("attention", "cut_back"),
        ("sliding_window", "snapshots"),
        ("recurrent", "snapshots"),
        ("hybrid", "snapshots"),
    ],
)
def test_the_manifest_says_how_prefixes_are_reused(
    kind: str, method: str, tiny: Callable[[str], Path], open_engine: OpenEngine
) -> None:
    facts = open_engine(tiny(kind)).describe()
    assert (facts["memory_kind"], facts["prefix_reuse"]) == (kind, method)


def test_without_snapshots_what_cannot_be_cut_back_evaluates_each_prompt_whole(
    tiny: Callable[[str], Path], open_engine: OpenEngine
) -> None:
    engine = open_engine(tiny("hybrid"), snapshots=0)
    assert engine.describe()["prefix_reuse"] == "none"
    for messages in growing(3):
        tokens = ask(engine, messages).tokens
        assert (tokens.cached, tokens.computed) == (0, tokens.prompt)
    assert tokens.ideal < tokens.prompt


def test_conversations_share_nothing(smollm2: Path, open_engine: OpenEngine) -> None:
    engine = open_engine(smollm2)
    messages = next(growing(1))
    ask(engine, messages, conversation="a")
    assert ask(engine, messages, conversation="b").tokens.cached == 0


def test_the_same_prompt_again_computes_one_token(smollm2: Path, open_engine: OpenEngine) -> None:
    engine = open_engine(smollm2)
    messages = next(growing(1))
    first, again = ask(engine, messages), ask(engine, messages)
    assert again.text == first.text
    assert (again.tokens.ideal, again.tokens.computed) == (0, 1)


@pytest.mark.parametrize("kind", ["smollm2", "attention", "hybrid"])
@pytest.mark.parametrize("tokens", [1, 2, 77])
def test_a_forced_length_is_met_exactly(
    kind: str,
    tokens: int,
    smollm2: Path,
    tiny: Callable[[str], Path],
    open_engine: OpenEngine,
) -> None:
    engine = open_engine(smollm2 if kind == "smollm2" else tiny(kind), ToolGrammar.ON)
    short: list[Message] = [{"role": "user", "content": "Say yes."}]
    done = ask(engine, short, tokens=tokens, force_length=True, tools=[WEATHER])
    assert done.tokens.output == len(done.times.arrivals_ns) == tokens
    assert done.finish_reason is FinishReason.LENGTH


def test_an_end_token_is_not_picked_under_a_forced_length(
    smollm2: Path, open_engine: OpenEngine
) -> None:
    engine = open_engine(smollm2)
    short: list[Message] = [{"role": "user", "content": "Say yes."}]
    free = ask(engine, short, tokens=200)
    assert free.finish_reason is FinishReason.STOP
    forced = ask(engine, short, tokens=free.tokens.output + 20, force_length=True)
    assert forced.text.startswith(free.text)
    assert "<|im_end|>" not in forced.text


@pytest.mark.parametrize("kind", ["smollm2", "attention", "sliding_window"])
@pytest.mark.parametrize("tokens", [1, 8])
def test_drafting_changes_no_token(
    kind: str,
    tokens: int,
    smollm2: Path,
    tiny: Callable[[str], Path],
    open_engine: OpenEngine,
) -> None:
    path = smollm2 if kind == "smollm2" else tiny(kind)
    plain = open_engine(path)
    drafting = open_engine(path, draft=DraftSettings(DraftKind.LOOKUP, tokens))
    drafted = accepted = 0
    for messages in growing(3):
        expected, done = (ask(engine, messages, tokens=64) for engine in (plain, drafting))
        assert (done.text, done.finish_reason) == (expected.text, expected.finish_reason)
        assert done.tokens.output == len(done.times.arrivals_ns) == expected.tokens.output
        assert done.tokens.computed == expected.tokens.computed
        assert done.tokens.drafted >= done.tokens.accepted
        assert expected.tokens.drafted == 0
        drafted, accepted = drafted + done.tokens.drafted, accepted + done.tokens.accepted
    assert drafted > 0
    assert accepted > 0


def test_drafting_is_refused_where_a_state_cannot_forget(
    tiny: Callable[[str], Path], open_engine: OpenEngine
) -> None:
    with pytest.raises(BadInputError, match=r"can't take back drafted tokens .* --draft off"):
        open_engine(tiny("recurrent"), draft=DraftSettings(DraftKind.LOOKUP))


def test_tokens_and_arrivals_agree(smollm2: Path, open_engine: OpenEngine) -> None:
    done = ask(open_engine(smollm2), [{"role": "user", "content": "Say hello."}], tokens=8)
    assert done.tokens.output == len(done.times.arrivals_ns) <= 8
    assert done.times.arrivals_ns[0] > 0
    assert done.finish_reason in (FinishReason.STOP, FinishReason.LENGTH)


def test_the_limit_ends_an_answer_with_length(smollm2: Path, open_engine: OpenEngine) -> None:
    done = ask(open_engine(smollm2), [{"role": "user", "content": "Tell a story."}], tokens=3)
    assert (done.outcome, done.finish_reason) == (Outcome.OK, FinishReason.LENGTH)
    assert done.tokens.output == 3


def test_a_constrained_answer_is_a_valid_call(smollm2: Path, open_engine: OpenEngine) -> None:
    engine = open_engine(smollm2, ToolGrammar.ON)
    question: list[Message] = [{"role": "user", "content": "What is the weather in Paris?"}]
    done = ask(engine, question, tokens=64, tools=[WEATHER])
    (call,) = done.tool_calls
    assert call.name == "get_weather"
    assert call.arguments["city"] == "Paris"
    assert set(call.arguments) <= {"city", "unit"}
    assert done.finish_reason is FinishReason.TOOL_CALLS


def test_a_constrained_answer_cut_by_the_limit_is_malformed(
    smollm2: Path, open_engine: OpenEngine
) -> None:
    engine = open_engine(smollm2, ToolGrammar.ON)
    question: list[Message] = [{"role": "user", "content": "What is the weather in Paris?"}]
    done = ask(engine, question, tokens=12, tools=[WEATHER])
    assert (done.tool_calls, done.malformed) == ((), True)


def test_a_schema_without_a_grammar_fails_that_request_only(
    smollm2: Path, open_engine: OpenEngine
) -> None:
    engine = open_engine(smollm2, ToolGrammar.ON)
    hostile = {"type": "function", "function": {"name": "f", "parameters": {"type": "colour"}}}
    question: list[Message] = [{"role": "user", "content": "Hello"}]
    assert ask(engine, question, tools=[hostile]).outcome is Outcome.ENGINE_FAILED
    assert ask(engine, question, tools=[WEATHER]).outcome is Outcome.OK


def test_a_deadline_is_an_outcome_and_the_next_turn_works(
    smollm2: Path, open_engine: OpenEngine
) -> None:
    engine = open_engine(smollm2)
    prompts = list(growing(2))
    late = ask(engine, prompts[0], tokens=400, deadline_s=1e-6)
    assert (late.outcome, late.finish_reason) == (Outcome.TIMEOUT, None)
    assert "no answer within" in (late.error or "")
    fresh = open_engine(smollm2)
    assert ask(engine, prompts[1]).text == ask(fresh, prompts[1]).text


def test_what_arrived_before_the_deadline_is_kept(smollm2: Path, open_engine: OpenEngine) -> None:
    engine = open_engine(smollm2)
    story: list[Message] = [{"role": "user", "content": "Tell a very long story about a fox."}]
    done = ask(engine, story, tokens=1500, deadline_s=1.5)
    assert done.outcome is Outcome.TIMEOUT
    assert done.tokens.output == len(done.times.arrivals_ns) > 0
    assert done.text


def test_overflow_is_an_outcome_with_both_numbers(smollm2: Path, open_engine: OpenEngine) -> None:
    engine = open_engine(smollm2, context_tokens=256)
    long: list[Message] = [{"role": "user", "content": "word " * 400}]
    prompt = engine.count_prompt_tokens(long, [])
    done = ask(engine, long)
    assert done.outcome is Outcome.CONTEXT_OVERFLOW
    assert f"{prompt} prompt tokens" in (done.error or "") and "256" in (done.error or "")


def test_a_prompt_starts_with_exactly_one_start_token(
    tiny: Callable[[str], Path], open_engine: OpenEngine
) -> None:
    model = open_engine(tiny("attention")).model
    assert model.tokenize("ab")[0] == model.tokenize("<s>ab")[0] == 1
    assert model.tokenize("<s>ab") == model.tokenize("ab")


def test_invalid_utf8_from_a_model_is_replaced(
    tiny: Callable[[str], Path], open_engine: OpenEngine
) -> None:
    done = ask(open_engine(tiny("attention")), next(growing(1)))
    assert "\N{REPLACEMENT CHARACTER}" in done.text


def test_an_unknown_architecture_is_bad_input(
    tiny: Callable[[str], Path], tmp_path: Path, open_engine: OpenEngine
) -> None:
    broken = tmp_path / "odd.gguf"
    broken.write_bytes(tiny("attention").read_bytes().replace(b"llama", b"lamma"))
    said = r"llama\.cpp can't load this model \(error loading model: .*architecture: 'lamma'\)"
    with pytest.raises(BadInputError, match=said):
        open_engine(broken)


def test_as_many_layers_as_llama_cpp_takes_are_not_taken_for_damage(
    tiny: Callable[[str], Path], tmp_path: Path, open_engine: OpenEngine
) -> None:
    broken = tmp_path / "deep.gguf"
    raw = tiny("attention").read_bytes()
    broken.write_bytes(with_number(raw, "llama.block_count", UINT32, 512))
    with pytest.raises(BadInputError, match=r"\(error loading model: .*'blk\.2\..*' not found\)"):
        open_engine(broken)


@pytest.mark.parametrize(
    ("name", "value", "most"),
    [
        ("threads", 513, 512),
        ("threads", 0, 512),
        ("context_tokens", 2**24 + 1, 2**24),
        ("context_tokens", 0, 2**24),
        ("batch_tokens", 2**32, 2**24),
        ("micro_batch_tokens", -1, 2**24),
        ("rollback_tokens", 65, 64),
    ],
)
def test_sizes_that_crash_llama_cpp_are_refused(name: str, value: int, most: int) -> None:
    said = f"{name} must be from [01] to {most}, got {value}"
    with pytest.raises(BadInputError, match=said):
        RuntimeSettings(**{**vars(SETTINGS), name: value})
    assert RuntimeSettings(**{**vars(SETTINGS), name: most})


class Interruption(Exception):
    """What the signal handler of the next test raises."""


@pytest.mark.parametrize("delay_s", [0.001, 0.01, 0.03])
def test_a_signal_during_loading_is_not_lost(smollm2: Path, delay_s: float) -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interruption

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(Interruption):
            signal.setitimer(signal.ITIMER_REAL, delay_s)
            LlamaModel(smollm2).close()
            signal.pause()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
