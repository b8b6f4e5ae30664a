"""The policy `exact`: each answer has as many tokens as the recorded one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.outcome import Outcome
from edge_agentic.core.replay_policy import ReplayPolicy
from edge_agentic.engine.llama_runtime import RuntimeSettings
from edge_agentic.engine.llamacpp import LlamaCppEngine, LlamaCppSettings
from edge_agentic.engine.scripted import ScriptedEngine
from edge_agentic.replay.lengths import recorded_lengths
from edge_agentic.replay.player import ReplayLimits, ReplayPlan, TurnRecord, play
from edge_agentic.trace.pack import TracePack, load_pack
from tests.tiny_gguf import build
from tests.trace_samples import calls, results, says, user, write

ANSWER = "Three."


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LlamaCppEngine]:
    sizes = RuntimeSettings(4096, 512, 512, threads=2)
    opened = LlamaCppEngine(build(tmp_path / "tiny.gguf", "hybrid"), LlamaCppSettings(sizes))
    yield opened
    opened.close()


@pytest.fixture
def pack(tmp_path: Path) -> TracePack:
    rows = (user(1), calls(2, "a", command="ls | wc -l"), results(3, "a"), says(4))
    rows[3]["content"] = ANSWER
    return load_pack(write(tmp_path / "t.jsonl", *rows))


def test_the_length_is_that_of_the_recorded_answer(pack: TracePack, engine: LlamaCppEngine) -> None:
    lengths = recorded_lengths(pack, engine)
    (conversation,) = pack.conversations
    # The vocabulary of the model is that of bytes.
    assert lengths[conversation.id, 2] == len(ANSWER)
    assert lengths[conversation.id, 1] > len("ls | wc -l")


def test_each_answer_has_exactly_that_length(pack: TracePack, engine: LlamaCppEngine) -> None:
    plan = ReplayPlan(pack, ReplayLimits(None, None, 1.0), recorded_lengths(pack, engine))
    assert plan.policy is ReplayPolicy.EXACT
    records = [record for record in play(plan, engine) if isinstance(record, TurnRecord)]
    assert len(records) == 2
    for record in records:
        event = record.to_json()
        assert record.completion.outcome is Outcome.OK
        assert event["output_tokens"] == event["forced_tokens"] == len(event["arrivals_ns"])
        assert event["forced_tokens"] == plan.lengths[record.conversation_id, record.turn.index]


def test_an_engine_that_cannot_is_refused_before_the_run(pack: TracePack) -> None:
    with pytest.raises(BadInputError, match="needs an engine that can suppress end tokens"):
        recorded_lengths(pack, ScriptedEngine({}.get, source="test"))
