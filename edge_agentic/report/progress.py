"""Shows a run's progress: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from edge_agentic.core.text import one_line

_LINE_EVERY_S: Final = 10.0


class TerminalProgress:
    """A `run.progress.Progress` for people. A context manager; writes to standard error."""

    def __init__(
        self, console: Console | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Show on `console`, standard error if None; `now_s` paces the lines off a terminal."""
        self._console = console or Console(stderr=True, highlight=False)
        self._now_s = now_s
        self._bar = Progress(
            TextColumn("{task.description:<8}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left", markup=False),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID | None = None
        self._name, self._done, self._total, self._done_before = "", 0, 0, 0
        self._phase_start_s = self._last_line_s = 0.0

    def phase(self, name: str, total: int, done: int = 0) -> None:
        """A phase of `total` steps begins, `done` of which were made in an earlier session."""
        self._name, self._done, self._total = name, done, total
        self._done_before = done
        self._phase_start_s = self._last_line_s = self._now_s()
        with self._unless_unwatched():
            self._task = self._bar.add_task(name, total=total, completed=done, note="")

    def step(self, note: str = "") -> None:
        """One step is done."""
        self._done += 1
        if self._task is not None:
            with self._unless_unwatched():
                self._bar.update(self._task, advance=1, note=note)
        if not self._console.is_terminal:
            self._maybe_line(note)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        with self._unless_unwatched():
            self._console.print(Text(one_line(line)))

    def __enter__(self) -> TerminalProgress:
        with self._unless_unwatched():
            self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        with self._unless_unwatched():
            self._bar.stop()

    @contextmanager
    def _unless_unwatched(self) -> Iterator[None]:
        """A reader that went away (`| head`, a lost connection) must not end a run of hours."""
        try:
            yield
        except (OSError, SystemExit):
            # Rich turns a broken pipe into SystemExit.
            self._console.quiet = True

    def _maybe_line(self, note: str) -> None:
        now_s = self._now_s()
        if now_s - self._last_line_s < _LINE_EVERY_S and self._done < self._total:
            return
        self._last_line_s = now_s
        elapsed_s = now_s - self._phase_start_s
        left_s = elapsed_s / (self._done - self._done_before) * (self._total - self._done)
        self.say(
            f"{self._name}: {self._done} of {self._total}"
            + (f", {note}" if note else "")
            + f", {elapsed_s:.0f} s, about {left_s:.0f} s left"
        )
