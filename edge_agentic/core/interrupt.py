"""Turns SIGINT, SIGTERM and SIGHUP into one `RunInterrupted`, raised in the main thread.

The exception comes at once, but for two cases: inside `deferred()` it waits for the block's end,
and where C code swallows it (a callback that Python runs for a library), `check()` raises it at
the next step. Signals after the first change nothing: what it leaves to do (close the journal,
stop a tool) takes milliseconds and must not be cut short.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from edge_agentic.core.errors import RunInterrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    pending: str | None = None
    deferred = 0


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block, which the main thread runs, signals raise `RunInterrupted`."""
    before = {number: signal.signal(number, _on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _State.pending = None


@contextmanager
def deferred() -> Iterator[None]:
    """Within the block nothing is interrupted; what came meanwhile is raised at its end.

    For work that would leave half a directory behind. Signals interrupt the main thread alone, so
    in any other there is nothing to defer: whoever is interrupted waits for its threads.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _State.pending
    _State.deferred += 1
    try:
        yield
    finally:
        _State.deferred -= 1
    if before is None and not _State.deferred:
        check()


def check() -> None:
    """Raise the interruption that was deferred or swallowed, if there was one.

    Raises:
        RunInterrupted: a signal came.
    """
    if _State.pending is not None:
        raise RunInterrupted(_State.pending)


def _on_signal(number: int, frame: FrameType | None) -> None:
    if _State.pending is not None:
        return
    _State.pending = signal.Signals(number).name
    if not _State.deferred:
        check()
