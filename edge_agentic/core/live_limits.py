"""How far a model may go on a task that it works on by itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LiveLimits:
    """How far a model may go on one task."""

    turns: int = 50
    output_tokens: int = 32_768
    wall_s: float = 3600.0

    def __post_init__(self) -> None:
        """Refuse limits under which nothing can be done."""
        if self.turns < 1 or self.output_tokens < 1 or not self.wall_s > 0:
            raise ValueError("a live task needs at least a turn, a token and some time")
