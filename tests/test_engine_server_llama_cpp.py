"""llama.cpp's own servers, started for real on a real model, answer as the in-process engine."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bfcl_gate.request import messages, tools
from bfcl_gate.selection import Selection, select
from edge_agentic.core.outcome import Outcome
from edge_agentic.device.profile import load_profile
from edge_agentic.engine.api import ChatRequest, Completion, Engine
from edge_agentic.engine.choices import EngineKind, ToolGrammar
from edge_agentic.replay.player import ReplayLimits, ReplayPlan, TurnRecord, play
from edge_agentic.run.engines import prepare_engine
from edge_agentic.run.gate_sets import GATE_MINI, open_gate_set
from edge_agentic.run.server_settings import ServerOptions
from edge_agentic.run.settings import EngineSettings
from edge_agentic.trace.pack import load_pack

LLAMA_SERVER = os.environ.get("EDGE_AGENTIC_LLAMA_SERVER")
CONTEXT_TOKENS = 4096
CASES = 2
REPLAY_S = 40.0
"""How long the in-process engine plays: on an idle machine all of edge-mini."""

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


@pytest.fixture(scope="module")
def own_turns(smollm2: Path, cases: Selection) -> list[TurnRecord]:
    """The turns of edge-mini that the in-process engine plays in a given time."""
    end_s = time.monotonic() + REPLAY_S
    turns: list[TurnRecord] = []
    with closing(open_engine(EngineKind.LLAMACPP, smollm2, cases)) as engine:
        for turn in replayed(engine):
            turns.append(turn)
            if time.monotonic() > end_s:
                break
    return turns


def replayed(engine: Engine) -> Iterator[TurnRecord]:
    plan = ReplayPlan(load_pack("edge-mini"), ReplayLimits(None, 120.0, 20.0))
    return (record for record in play(plan, engine) if isinstance(record, TurnRecord))


@pytest.mark.parametrize("kind", SERVERS)
def test_a_real_server_gives_the_calls_of_the_in_process_engine_over_edge_mini(
    kind: EngineKind, smollm2: Path, cases: Selection, own_turns: list[TurnRecord]
) -> None:
    with closing(open_engine(kind, smollm2, cases)) as engine:
        served = list(islice(replayed(engine), len(own_turns)))
    for turn, own in zip(served, own_turns, strict=True):
        assert turn.completion.outcome is own.completion.outcome is Outcome.OK
        assert called(turn.completion) == called(own.completion), f"turn {turn.turn.index}"


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
