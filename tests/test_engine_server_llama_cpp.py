"""llama.cpp's own servers, started for real on a real model, answer as the in-process engine."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import llama_cpp
import pytest

from bfcl_gate.request import messages, tools
from bfcl_gate.selection import Selection, select
from edge_agentic.core.outcome import Outcome
from edge_agentic.device.profile import load_profile
from edge_agentic.engine.api import ChatRequest, Completion, Engine
from edge_agentic.engine.choices import EngineKind, ToolGrammar
from edge_agentic.engine.llamacpp import LlamaCppEngine
from edge_agentic.engine.prefix_cache import common_prefix
from edge_agentic.engine.prompt import build_prompt
from edge_agentic.replay.player import (
    ReplayLimits,
    ReplayPlan,
    TurnRecord,
    play,
    turn_request,
)
from edge_agentic.run.engines import prepare_engine
from edge_agentic.run.gate_sets import GATE_MINI, open_gate_set
from edge_agentic.run.server_settings import ServerOptions
from edge_agentic.run.settings import EngineSettings
from edge_agentic.trace.pack import load_pack

LLAMA_SERVER = os.environ.get("EDGE_AGENTIC_LLAMA_SERVER")
CONTEXT_TOKENS = 4096
CASES = 2
REPLAY_S = 20.0
"""How long the in-process engine plays: on an idle machine half of edge-mini."""
NEAR_TIE = 0.5
"""In logits. Servers reuse other parts of a prompt than the in-process engine does, so a prompt is
evaluated in other pieces; that alone moves the logits of a Q4 model by some tenths."""
PLAN = ReplayPlan(load_pack("edge-mini"), ReplayLimits(None, 300.0, 20.0))

SERVERS = [
    pytest.param(
        EngineKind.LLAMA_CPP_PYTHON,
        marks=pytest.mark.skipif(
            importlib.util.find_spec("sse_starlette") is None,
            reason="needs pip install 'llama-cpp-python[server]'",
        ),
    ),
    pytest.param(
        EngineKind.LLAMA_SERVER,
        marks=pytest.mark.skipif(
            LLAMA_SERVER is None, reason="EDGE_AGENTIC_LLAMA_SERVER names no llama-server"
        ),
    ),
]


@pytest.fixture(scope="module")
def cases() -> Selection:
    return select(open_gate_set(GATE_MINI), None, subsets=("simple_python",), limit=CASES)


def open_engine(kind: EngineKind, model: Path, cases: Selection) -> Engine:
    server_bin = LLAMA_SERVER if kind is EngineKind.LLAMA_SERVER else None
    settings = EngineSettings(
        kind=kind,
        model=str(model),
        tool_grammar=ToolGrammar.ON,
        context_tokens=CONTEXT_TOKENS,
        # Two threads wait for each other on a busy machine.
        threads=1,
        server=ServerOptions(server_bin=server_bin),
    )
    return prepare_engine(settings, load_profile(), None, cases, lambda line: None).engine


def answers(engine: Engine, cases: Selection) -> Iterator[Completion]:
    for case in cases.cases:
        yield engine.generate(
            ChatRequest(case.id, case.id, messages(case), tools(case), 96, deadline_s=120.0)
        )


def called(completion: Completion) -> list[tuple[str, Mapping[str, Any]]]:
    return [(call.name, call.arguments) for call in completion.tool_calls]


@pytest.mark.parametrize("kind", SERVERS)
def test_a_real_server_gives_the_calls_of_the_in_process_engine(
    kind: EngineKind, smollm2: Path, cases: Selection
) -> None:
    given: dict[EngineKind, list[Completion]] = {}
    for engine_kind in (kind, EngineKind.LLAMACPP):
        engine = open_engine(engine_kind, smollm2, cases)
        try:
            given[engine_kind] = list(answers(engine, cases))
        finally:
            engine.close()
    served, own = given[kind], given[EngineKind.LLAMACPP]
    assert {completion.outcome for completion in served} == {Outcome.OK}
    assert all(completion.tool_calls for completion in served)
    assert [called(done) for done in served] == [called(done) for done in own]


@dataclass(frozen=True)
class OwnReplay:
    """The in-process engine, and the turns of edge-mini that it played in a given time."""

    engine: LlamaCppEngine
    turns: list[TurnRecord]

    def gap(self, at: int, other_text: str) -> float:
        """How far apart, in logits, the tokens are with which another answer to a turn parts."""
        requests = [
            turn_request(PLAN, conversation, turn)
            for conversation in PLAN.pack.conversations
            for turn in conversation.turns
        ]
        asked, model, runtime = requests[at], self.engine.model, self.engine.runtime
        prompt = build_prompt(
            self.engine.template, model, asked.messages, asked.tools, find_stable=False
        )
        own = model.tokenize_part(self.turns[at].completion.text)
        other = model.tokenize_part(other_text)
        shared = common_prefix(own, other)
        runtime.clear()
        runtime.evaluate([*prompt.tokens, *own[:shared]], lambda: True, None)
        size = llama_cpp.llama_vocab_n_tokens(model.vocabulary)
        logits = llama_cpp.llama_get_logits_ith(runtime.handle, -1)[:size]
        return abs(float(logits[own[shared]] - logits[other[shared]]))


@pytest.fixture(scope="module")
def own_replay(smollm2: Path, cases: Selection) -> Iterator[OwnReplay]:
    end_s = time.monotonic() + REPLAY_S
    turns: list[TurnRecord] = []
    with closing(open_engine(EngineKind.LLAMACPP, smollm2, cases)) as engine:
        for turn in replayed(engine):
            turns.append(turn)
            if time.monotonic() > end_s:
                break
        assert isinstance(engine, LlamaCppEngine)
        yield OwnReplay(engine, turns)


def replayed(engine: Engine) -> Iterator[TurnRecord]:
    return (record for record in play(PLAN, engine) if isinstance(record, TurnRecord))


@pytest.mark.parametrize("kind", SERVERS)
def test_over_edge_mini_a_real_server_differs_only_where_the_model_is_undecided(
    kind: EngineKind, smollm2: Path, cases: Selection, own_replay: OwnReplay
) -> None:
    own_turns = [turn.completion for turn in own_replay.turns]
    with closing(open_engine(kind, smollm2, cases)) as engine:
        served = [turn.completion for turn in islice(replayed(engine), len(own_turns))]
    assert {completion.outcome for completion in served} == {Outcome.OK}
    apart = [at for at, done in enumerate(served) if called(done) != called(own_turns[at])]
    for at in apart:
        assert own_replay.gap(at, served[at].text) < NEAR_TIE, served[at].text
    assert len(apart) <= len(served) / 2
    for done, own in zip(served, own_turns, strict=True):
        assert done.tokens.prompt in (None, own.tokens.prompt)


@pytest.mark.skipif(LLAMA_SERVER is None, reason="EDGE_AGENTIC_LLAMA_SERVER names no llama-server")
def test_llama_server_counts_and_reuses(smollm2: Path, cases: Selection) -> None:
    engine = open_engine(EngineKind.LLAMA_SERVER, smollm2, cases)
    try:
        question = [{"role": "user", "content": "Count to three, please. " * 20}]
        asked = ChatRequest("r", "c", question, (), 8, deadline_s=60.0)
        first, again = engine.generate(asked), engine.generate(asked)
        counted = engine.count_prompt_tokens(question, ())
    finally:
        engine.close()
    assert engine.context_tokens == CONTEXT_TOKENS
    assert engine.can_force_length
    assert counted == first.tokens.prompt == again.tokens.prompt
    assert again.tokens.cached is not None
    assert again.tokens.cached > 0
