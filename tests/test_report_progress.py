"""Progress without a terminal: a line now and then, with what remains."""

from __future__ import annotations

import io

from rich.console import Console

from edge_agentic.report.progress import TerminalProgress


def lines_of(step_s: float, steps: int) -> list[str]:
    now = 0.0
    stream = io.StringIO()
    progress = TerminalProgress(Console(file=stream, width=80), now_s=lambda: now)
    with progress:
        progress.phase("gate", steps)
        for number in range(steps):
            now += step_s
            progress.step(f"{number} right")
    return stream.getvalue().splitlines()


def test_a_line_every_ten_seconds_and_one_at_the_end() -> None:
    assert lines_of(4.0, 8) == [
        "gate: 3 of 8, 2 right, 12 s, about 20 s left",
        "gate: 6 of 8, 5 right, 24 s, about 8 s left",
        "gate: 8 of 8, 7 right, 32 s, about 0 s left",
    ]


def test_text_from_names_steers_nothing() -> None:
    stream = io.StringIO()
    with TerminalProgress(Console(file=stream, width=80)) as progress:
        progress.say("[red]pack[/red] \x1b[31mname")
    assert stream.getvalue() == "[red]pack[/red] \\u001b[31mname\n"


def test_steps_of_an_earlier_session_do_not_shorten_what_is_left() -> None:
    now = 0.0
    stream = io.StringIO()
    with TerminalProgress(Console(file=stream, width=80), now_s=lambda: now) as progress:
        progress.phase("gate", 100, done=90)
        now = 20.0
        progress.step()
    assert stream.getvalue() == "gate: 91 of 100, 20 s, about 180 s left\n"
