"""Plays several conversations at once, each in turn on a stream of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Final

from edge_agentic.core.clock import Clock, monotonic_ns
from edge_agentic.engine.api import Engine
from edge_agentic.replay.player import (
    ConversationEnd,
    OpenWorkspace,
    ReplayPlan,
    TurnRecord,
    no_workspaces,
    play,
)
from edge_agentic.trace.conversation import Conversation
from tools_sandbox.sandbox import Sandbox

_Item = TurnRecord | ConversationEnd | BaseException | None
_CLOSE_AGAIN_S: Final = 0.2


def play_at_once(
    plan: ReplayPlan,
    engines: Sequence[Engine],
    open_workspace: OpenWorkspace = no_workspaces,
    clock: Clock = monotonic_ns,
) -> Generator[TurnRecord | ConversationEnd, None, None]:
    """Play a pack's conversations on as many streams as there are engines.

    A stream takes the next conversation as soon as it has ended one. Records come in the order
    in which they were made; those of one conversation keep theirs. Closing the generator ends
    every stream: engines are closed and tools stopped, so that no one waits for either.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    records: queue.SimpleQueue[_Item] = queue.SimpleQueue()
    waiting = iter(plan.pack.conversations)
    lock, stop = threading.Lock(), threading.Event()
    workspaces = _OpenWorkspaces(open_workspace)

    def take() -> Conversation | None:
        with lock:
            return None if stop.is_set() else next(waiting, None)

    def stream(engine: Engine) -> None:
        try:
            while (conversation := take()) is not None:
                alone = replace(plan, pack=replace(plan.pack, conversations=(conversation,)))
                with closing(play(alone, engine, workspaces.open, clock, stop.wait)) as played:
                    for record in played:
                        if stop.is_set():
                            return
                        records.put(record)
        except BaseException as error:
            records.put(error)
        finally:
            records.put(None)

    threads = [threading.Thread(target=stream, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    try:
        yield from _until_all_end(records, len(threads))
    finally:
        stop.set()
        workspaces.stop()
        _end(threads, engines)


def _end(threads: Sequence[threading.Thread], engines: Sequence[Engine]) -> None:
    """Close engines until no stream is left.

    More than once, because an engine that was just about to ask opens its connection anew.
    """
    while any(thread.is_alive() for thread in threads):
        for thread, engine in zip(threads, engines, strict=True):
            if thread.is_alive():
                engine.close()
        for thread in threads:
            thread.join(_CLOSE_AGAIN_S)


class _OpenWorkspaces:
    """The sandboxes that streams work in, to be stopped together."""

    def __init__(self, open_workspace: OpenWorkspace) -> None:
        self._open_workspace = open_workspace
        self._lock = threading.Lock()
        self._sandboxes: list[Sandbox] = []
        self._is_stopped = False

    @contextmanager
    def open(self, conversation_id: str) -> Iterator[Sandbox | None]:
        with self._open_workspace(conversation_id) as sandbox:
            if sandbox is None:
                yield None
                return
            with self._lock:
                self._sandboxes.append(sandbox)
                if self._is_stopped:
                    sandbox.stop()
            try:
                yield sandbox
            finally:
                with self._lock:
                    self._sandboxes.remove(sandbox)

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            for sandbox in self._sandboxes:
                sandbox.stop()


def _until_all_end(
    records: queue.SimpleQueue[_Item], streams: int
) -> Iterator[TurnRecord | ConversationEnd]:
    while streams:
        record = records.get()
        if record is None:
            streams -= 1
        elif isinstance(record, BaseException):
            raise record
        else:
            yield record
