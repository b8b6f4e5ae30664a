"""Several conversations are played at once, each in order, and all end when one must."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest, Completion, TokenTimes
from edge_agentic.engine.scripted import ScriptedAnswer, ScriptedEngine
from edge_agentic.replay.player import ConversationEnd, ReplayLimits, ReplayPlan, TurnRecord
from edge_agentic.replay.streams import play_at_once
from edge_agentic.trace.pack import TracePack, load_pack
from tests.trace_samples import calls, make_pack, repack, results, says, user, write
from tests.workspaces import unsandboxed
from tools_sandbox.sandbox import Sandbox

LIMITS = ReplayLimits(None, 30.0, 10.0)
WAIT_S = 30


class Meeting(ScriptedEngine):
    """Answers only once every stream is at work."""

    def __init__(self, barrier: threading.Barrier) -> None:
        super().__init__(lambda _: ScriptedAnswer(text="ok"), source="test")
        self._barrier = barrier

    def generate(self, request: ChatRequest) -> Completion:
        if request.request_id.endswith("/1"):
            self._barrier.wait(WAIT_S)
        return super().generate(request)


class Endless(ScriptedEngine):
    """Answers once it is closed, and not before; its first turn comes at once."""

    def __init__(self) -> None:
        super().__init__(lambda _: ScriptedAnswer(text="ok"), source="test")
        self.closed = threading.Event()

    def generate(self, request: ChatRequest) -> Completion:
        if request.request_id.endswith("/1"):
            return super().generate(request)
        assert self.closed.wait(WAIT_S)
        return Completion(Outcome.ENGINE_FAILED, TokenTimes(0, (), None))

    def close(self) -> None:
        self.closed.set()


class Reopening(Endless):
    """Is about to ask when it is closed: the question goes out all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.closings = 0
        self.first_close = threading.Event()
        self.asks = threading.Event()

    def generate(self, request: ChatRequest) -> Completion:
        if not request.request_id.endswith("/1"):
            self.asks.set()
            assert self.first_close.wait(WAIT_S)
        return super().generate(request)

    def close(self) -> None:
        self.closings += 1
        self.first_close.set()
        if self.closings > 1:
            super().close()


class Broken(ScriptedEngine):
    def __init__(self) -> None:
        super().__init__(lambda _: None, source="test")

    def generate(self, request: ChatRequest) -> Completion:
        raise OSError("the disk is gone")


@pytest.fixture
def pack(tmp_path: Path) -> TracePack:
    rows = [
        row(turn, conversation_id=name)
        for name in "abcd"
        for turn, row in enumerate((user, says, user, says), start=1)
    ]
    return load_pack(str(write(tmp_path / "trace.jsonl", *rows)))


def test_conversations_run_at_once_and_keep_their_order(pack: TracePack) -> None:
    barrier = threading.Barrier(2)
    engines = [Meeting(barrier) for _ in range(2)]
    records = list(play_at_once(ReplayPlan(pack, LIMITS), engines))
    turns = [(r.conversation_id, r.turn.index) for r in records if isinstance(r, TurnRecord)]
    assert sorted(turns) == [(name, number) for name in "abcd" for number in (1, 2)]
    for name in "abcd":
        assert [number for other, number in turns if other == name] == [1, 2]
    ends = [r.conversation_id for r in records if isinstance(r, ConversationEnd)]
    assert sorted(ends) == list("abcd")


def test_closing_ends_every_stream_without_waiting_for_answers(pack: TracePack) -> None:
    engines = [Endless(), Endless()]
    records = play_at_once(ReplayPlan(pack, LIMITS), engines)
    next(records)
    records.close()
    assert all(engine.closed.is_set() for engine in engines)
    assert not [thread for thread in threading.enumerate() if "stream" in thread.name]


def test_an_engine_that_asks_after_it_was_closed_is_closed_again(pack: TracePack) -> None:
    engine = Reopening()
    records = play_at_once(ReplayPlan(pack, LIMITS), [engine])
    next(records)
    assert engine.asks.wait(WAIT_S)
    records.close()
    assert engine.closings > 1


def test_closing_stops_the_tools_under_way(tmp_path: Path) -> None:
    names = ("a", "b")
    directory = make_pack(
        tmp_path / "pack",
        conversations={name: {"workspace": "work", "check": None} for name in names},
    )
    rows = [
        {**row, "conversation_id": name}
        for name in names
        for row in (
            user(1),
            says(2),
            user(3),
            calls(4, "x", command="touch up; sleep 60"),
            results(5, "x"),
            says(6),
        )
    ]
    write(directory / "t.jsonl", *rows)
    pack = load_pack(repack(directory))
    workspaces, opened = unsandboxed(pack, tmp_path), list[Path]()

    @contextmanager
    def open_workspace(name: str) -> Iterator[Sandbox | None]:
        with workspaces.open(name) as sandbox:
            assert sandbox is not None
            opened.append(sandbox.workspace)
            yield sandbox

    engines = [ScriptedEngine(lambda _: ScriptedAnswer(text="ok"), source="test") for _ in names]
    plan = ReplayPlan(pack, ReplayLimits(None, 30.0, 60.0))
    records = play_at_once(plan, engines, open_workspace)
    next(records)
    deadline_s = time.monotonic() + WAIT_S
    while len(opened) < 2 or not all((path / "up").exists() for path in opened):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    start_s = time.monotonic()
    records.close()
    assert time.monotonic() - start_s < 20
    assert not [path for path in opened if path.exists()]


def test_what_breaks_one_stream_is_raised_and_ends_the_others(pack: TracePack) -> None:
    endless = Endless()
    with pytest.raises(OSError, match="the disk is gone"):
        list(play_at_once(ReplayPlan(pack, LIMITS), [endless, Broken()]))
    assert endless.closed.is_set()
