"""How a task ended that a model worked on by itself."""

from __future__ import annotations

from enum import Enum


class Ending(str, Enum):
    """Why the model stopped, or was stopped."""

    SUBMITTED = "submitted"
    """It answered in text without a call, or printed the line that submits."""
    GAVE_UP = "gave_up"
    """It said nothing at all, or made no call that can be read several times in a row."""
    TURN_LIMIT = "turn_limit"
    TOKEN_LIMIT = "token_limit"
    TIME_LIMIT = "time_limit"
    CONTEXT_LIMIT = "context_limit"
    """What has been said so far and a further answer exceed the context window."""
    FAILED = "failed"
    """The engine broke off: says nothing about the model."""
