"""The choices that a user has about engines; light enough for the command line to import."""

from __future__ import annotations

from enum import Enum


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
