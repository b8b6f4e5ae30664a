"""The replay policies; light enough to import anywhere."""

from __future__ import annotations

from enum import Enum


class ReplayPolicy(str, Enum):
    """Where history comes from, and when an answer ends."""

    RECORDED = "recorded"
    """History from the trace, whatever the model said; the model ends its answer itself."""
    EXACT = "exact"
    """As recorded, but each answer has as many tokens as the recorded one."""
    LIVE = "live"
    """The model works by itself: its own calls run, and it sees what comes of them."""
