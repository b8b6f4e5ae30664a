"""The choices that a user has about engines, and their limits; light enough to import anywhere."""

from __future__ import annotations

from enum import Enum
from typing import Final

MAX_CONTEXT_TOKENS: Final = 2**24
"""Far above any model's window; larger numbers overflow llama.cpp's 32 bits."""
MAX_THREADS: Final = 512
"""The most that llama.cpp takes (GGML_MAX_N_THREADS); more crash it."""


class EngineKind(str, Enum):
    """What runs the model."""

    LLAMACPP = "llamacpp"
    SCRIPTED = "scripted"


class ToolGrammar(str, Enum):
    """Whether output is constrained to calls of the offered functions."""

    AUTO = "auto"
    """On for a model whose gate reference was measured with it on, off for any other."""
    ON = "on"
    OFF = "off"
