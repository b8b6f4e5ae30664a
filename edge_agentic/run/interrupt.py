"""Turns SIGINT and SIGTERM into one `RunInterrupted`, raised in the main thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from edge_agentic.core.errors import RunInterrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block a signal raises `RunInterrupted`; a second one is ignored.

    The second must be: what the first one leaves to do (close the journal, stop a tool) takes
    milliseconds and must not be cut short.
    """

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        for other in _SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        raise RunInterrupted(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
