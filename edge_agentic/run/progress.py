"""What a run tells whoever watches it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Watches a run. Called between steps, never while something is measured."""

    def phase(self, name: str, total: int, done: int = 0) -> None:
        """A phase of `total` steps begins, `done` of which were made in an earlier session."""

    def step(self, note: str = "") -> None:
        """One step of the phase is done; `note` says something about the phase so far."""

    def say(self, line: str) -> None:
        """Something worth a line happened."""


class Silent:
    """A `Progress` that nobody watches."""

    def phase(self, name: str, total: int, done: int = 0) -> None:
        """Ignore it."""

    def step(self, note: str = "") -> None:
        """Ignore it."""

    def say(self, line: str) -> None:
        """Ignore it."""
