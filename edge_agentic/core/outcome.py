"""How one generation ended: an outcome is data; only a bug is an exception."""

from __future__ import annotations

from enum import Enum


class Outcome(str, Enum):
    """How the engine ended one request."""

    OK = "ok"
    """The model stopped by itself or met its token limit."""
    TIMEOUT = "timeout"
    """The deadline of the turn passed; what had arrived is kept."""
    CONTEXT_OVERFLOW = "context_overflow"
    """Prompt and output limit together exceed the context window; nothing was decoded."""
    ENGINE_FAILED = "engine_failed"
    """The engine refused or broke off the request."""
