"""What becomes of tool calls in a replay; light enough to import anywhere."""

from __future__ import annotations

from enum import Enum


class ToolMode(str, Enum):
    """What becomes of tool calls, where a conversation has a workspace for them."""

    EXECUTE = "execute"
    """Recorded calls run in the sandbox; the model's own are tried there after the replay."""
    RECORDED = "recorded"
    """Nothing runs; the replay waits as long as the recorded calls took."""
    OFF = "off"
    """Nothing runs and nothing waits."""
