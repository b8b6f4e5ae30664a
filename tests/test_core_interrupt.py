"""Signals end a run once, at once, but never in the middle of what must not be cut short."""

from __future__ import annotations

import ctypes
import os
import signal
import threading

import pytest

from edge_agentic.core.errors import RunInterrupted
from edge_agentic.core.interrupt import check, deferred, interruptible


def send(number: signal.Signals = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_raised_at_once_by_its_name(number: signal.Signals) -> None:
    with interruptible(), pytest.raises(RunInterrupted) as caught:
        send(number)
    assert caught.value.signal_name == number.name


def test_a_deferred_block_of_another_thread_keeps_nobody_waiting() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def work() -> None:
        with deferred():
            inside.set()
            go_on.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert inside.wait(30)
        with interruptible(), pytest.raises(RunInterrupted):
            signal.raise_signal(signal.SIGINT)
    finally:
        go_on.set()
        thread.join()


def test_a_deferred_block_ends_before_the_interruption_comes() -> None:
    steps = []
    with interruptible(), pytest.raises(RunInterrupted), deferred():
        send()
        steps.append("cleaned up")
    assert steps == ["cleaned up"]


def test_cleaning_up_after_an_interruption_does_not_raise_it_again() -> None:
    steps = []
    with interruptible(), pytest.raises(RunInterrupted):
        try:
            send()
        finally:
            with deferred():
                steps.append("first")
            steps.append("second")
    assert steps == ["first", "second"]


def test_later_signals_do_not_cut_the_first_ones_work_short() -> None:
    with interruptible():
        with pytest.raises(RunInterrupted, match="SIGINT"):
            send(signal.SIGINT)
        send(signal.SIGTERM)
        send(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_that_c_code_swallowed_comes_at_the_next_check() -> None:
    @ctypes.CFUNCTYPE(None)
    def callback() -> None:
        send()

    with interruptible():
        callback()
        with pytest.raises(RunInterrupted):
            check()


def test_after_the_block_the_next_one_starts_afresh() -> None:
    with interruptible(), pytest.raises(RunInterrupted):
        send()
    with interruptible():
        check()


def test_an_interruption_is_no_exception_that_ordinary_handlers_swallow() -> None:
    assert not issubclass(RunInterrupted, Exception)
