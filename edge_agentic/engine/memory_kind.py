"""The kinds of context memory that models have; light enough to import anywhere."""

from __future__ import annotations

from enum import Enum


class MemoryKind(str, Enum):
    """What a model's context remembers of a token, which decides how it can be cut back."""

    ATTENTION = "attention"
    """Each token has cells of its own: any suffix can be forgotten."""
    SLIDING_WINDOW = "sliding_window"
    """Some layers keep the last tokens only: what left the window is gone."""
    RECURRENT = "recurrent"
    """One state for all tokens: nothing can be forgotten."""
    HYBRID = "hybrid"
    """Recurrent layers and attention layers."""
