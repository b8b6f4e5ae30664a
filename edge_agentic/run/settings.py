"""What the user asked a run to do, checked at construction."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.choices import EngineKind, ToolGrammar
from edge_agentic.engine.scripted import ScriptedDelays
from tools_sandbox.result import Tier


@dataclass(frozen=True)
class EngineSettings:
    """Which engine, and how it is set up. None takes the device profile's value."""

    kind: EngineKind = EngineKind.LLAMACPP
    model: str | None = None
    answers: str | None = None
    delays: ScriptedDelays = field(default_factory=ScriptedDelays)
    tool_grammar: ToolGrammar = ToolGrammar.AUTO
    context_tokens: int | None = None
    threads: int | None = None
    gpu_layers: int | None = None

    def __post_init__(self) -> None:
        """Refuse options that belong to the other engine, or sizes that can't be."""
        if self.kind is EngineKind.LLAMACPP:
            if self.model is None:
                raise BadInputError("give a model: --model PATH.gguf, or --model smollm2-135m")
            if self.answers is not None:
                raise BadInputError("--answers belongs to --engine scripted")
        elif self.model is not None:
            raise ValueError("the scripted engine runs no model")
        _positive("--context", self.context_tokens)
        _positive("--threads", self.threads)


@dataclass(frozen=True)
class RunSettings:
    """One run: engine, data, limits, and where its results go."""

    engine: EngineSettings
    pack: str = "edge-mini"
    gate_set: str = "gate-mini"
    out: Path | None = None
    max_output_tokens: int | None = None
    turn_timeout_s: float = 600.0
    tier: Tier = Tier.BUBBLEWRAP

    def __post_init__(self) -> None:
        """Refuse limits that no turn can meet."""
        _positive("--max-output-tokens", self.max_output_tokens)
        if not (math.isfinite(self.turn_timeout_s) and self.turn_timeout_s > 0):
            raise BadInputError(f"--turn-timeout must be above zero, got {self.turn_timeout_s}")


def _positive(option: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise BadInputError(f"{option} must be at least 1, got {value}")
