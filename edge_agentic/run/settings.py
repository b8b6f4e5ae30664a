"""What the user asked a run to do, checked at construction."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bfcl_gate.early import MAX_ERROR_RATE
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.live_limits import LiveLimits
from edge_agentic.core.replay_policy import ReplayPolicy
from edge_agentic.core.tool_mode import ToolMode
from edge_agentic.engine.choices import (
    MAX_CONTEXT_TOKENS,
    MAX_THREADS,
    DraftKind,
    EngineKind,
    Reasoning,
    ToolGrammar,
)
from edge_agentic.engine.drafting import DraftSettings
from edge_agentic.engine.scripted import ScriptedDelays
from edge_agentic.run.server_settings import GGUF_SERVERS, STARTED, ServerOptions
from tools_sandbox.result import Tier

MAX_LAYERS: Final = 10_000
MAX_SNAPSHOTS: Final = 1000
MAX_SNAPSHOT_MIB: Final = 2**20
MAX_TIMEOUT_S: Final = 7 * 24 * 3600.0


@dataclass(frozen=True)
class EngineSettings:
    """Which engine, and how it is set up. None takes the device profile's value."""

    kind: EngineKind = EngineKind.LLAMACPP
    model: str | None = None
    answers: str | None = None
    delays: ScriptedDelays = field(default_factory=ScriptedDelays)
    tool_grammar: ToolGrammar = ToolGrammar.REFERENCE
    tool_format: ToolFormat | None = None
    reasoning: Reasoning = Reasoning.OFF
    context_tokens: int | None = None
    threads: int | None = None
    gpu_layers: int | None = None
    prefix_snapshots: int | None = None
    prefix_snapshot_mib: int | None = None
    draft: DraftSettings = field(default_factory=DraftSettings)
    server: ServerOptions = field(default_factory=ServerOptions)

    def __post_init__(self) -> None:
        """Refuse options that belong to another engine, or sizes that can't be."""
        if self.kind is EngineKind.LLAMACPP and self.model is None:
            raise BadInputError("give a model: --model PATH.gguf, or --model smollm2-135m")
        if self.kind is EngineKind.SCRIPTED and self.model is not None:
            raise ValueError("the scripted engine runs no model")
        self.server.check(self.kind, self.model)
        if self.kind is not EngineKind.SCRIPTED:
            _refuse(EngineKind.SCRIPTED.value, **{"--answers": self.answers})
            if self.delays != ScriptedDelays():
                raise BadInputError("--first-token-ms and --token-ms belong to --engine scripted")
        if self.kind is not EngineKind.LLAMACPP:
            if self.kind not in STARTED:
                _refuse(
                    "one that starts a server, or llamacpp", **{"--context": self.context_tokens}
                )
            if self.kind not in GGUF_SERVERS:
                _refuse(
                    "llamacpp, llama-server and llama-cpp-python",
                    **{"--threads": self.threads, "--gpu-layers": self.gpu_layers},
                )
            grammar = self.tool_grammar
            is_scripted = self.kind is EngineKind.SCRIPTED
            _refuse(
                EngineKind.LLAMACPP.value,
                **{
                    "--tool-grammar": (
                        grammar if is_scripted and grammar is not ToolGrammar.REFERENCE else None
                    ),
                    "--tool-grammar auto": grammar if grammar is ToolGrammar.AUTO else None,
                    "--tool-format": self.tool_format,
                    "--reasoning": None if self.reasoning is Reasoning.OFF else self.reasoning,
                    "--prefix-snapshots": self.prefix_snapshots,
                    "--prefix-snapshot-mib": self.prefix_snapshot_mib,
                    "--draft": None if self.draft.kind is DraftKind.OFF else self.draft.kind,
                },
            )
        _within("--context", self.context_tokens, 1, MAX_CONTEXT_TOKENS)
        _within("--threads", self.threads, 1, MAX_THREADS)
        _within("--gpu-layers", self.gpu_layers, -1, MAX_LAYERS)
        _within("--prefix-snapshots", self.prefix_snapshots, 0, MAX_SNAPSHOTS)
        _within("--prefix-snapshot-mib", self.prefix_snapshot_mib, 0, MAX_SNAPSHOT_MIB)


@dataclass(frozen=True)
class GateSettings:
    """Which cases the gate asks, and when it may stop.

    selection: `official` or `all`; None takes `official` of BFCL v4, `all` of any other set.
    subsets, limit: a part of it, for which there is no verdict.
    early_stop_error_rate: stop as soon as the verdict is decided at this rate; None asks all.
    """

    dataset: str = "gate-mini"
    selection: str | None = None
    subsets: tuple[str, ...] = ()
    limit: int | None = None
    early_stop_error_rate: float | None = None

    def __post_init__(self) -> None:
        """Refuse a limit below 1, a rate that decides nothing, and a verdict on a part."""
        if self.limit is not None and self.limit < 1:
            raise BadInputError(f"--limit must be at least 1, got {self.limit}")
        if self.early_stop_error_rate is None:
            return
        if not 0 < self.early_stop_error_rate < MAX_ERROR_RATE:
            raise BadInputError(
                f"--error-rate must be above 0 and below {MAX_ERROR_RATE}, "
                f"got {self.early_stop_error_rate}"
            )
        if self.subsets or self.limit is not None:
            raise BadInputError(
                "--early-stop looks for a verdict, which a part of a set never has; "
                "leave out --subset and --limit"
            )


@dataclass(frozen=True)
class RunSettings:
    """One run: engine, data, limits, and where its results go. Without a pack, the gate alone."""

    engine: EngineSettings
    pack: str | None = "edge-mini"
    gate: GateSettings = field(default_factory=GateSettings)
    out: Path | None = None
    max_output_tokens: int | None = None
    turn_timeout_s: float = 600.0
    policy: ReplayPolicy = ReplayPolicy.RECORDED
    tools: ToolMode = ToolMode.EXECUTE
    live: LiveLimits = field(default_factory=LiveLimits)
    tier: Tier = Tier.BUBBLEWRAP

    def __post_init__(self) -> None:
        """Refuse limits that no turn can meet."""
        _within("--max-output-tokens", self.max_output_tokens, 1, MAX_CONTEXT_TOKENS)
        if self.policy is ReplayPolicy.EXACT and self.max_output_tokens is not None:
            raise BadInputError(
                "--max-output-tokens can't go with --policy exact, which sets each answer's length"
            )
        is_live = self.policy is ReplayPolicy.LIVE
        if is_live and self.tools is not ToolMode.EXECUTE:
            raise BadInputError(
                f"--tools {self.tools.value} can't go with --policy live, which runs them"
            )
        if not is_live and self.live != LiveLimits():
            raise BadInputError(
                "--task-turns, --task-tokens and --task-timeout belong to --policy live"
            )
        if not 0 < self.turn_timeout_s <= MAX_TIMEOUT_S:
            raise BadInputError(
                f"--turn-timeout must be above 0 and at most {MAX_TIMEOUT_S:g} s, "
                f"got {self.turn_timeout_s}"
            )


def _refuse(owner: str, **options: object) -> None:
    for option, value in options.items():
        if value is not None:
            raise BadInputError(f"{option} belongs to --engine {owner}")


def _within(option: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise BadInputError(f"{option} must be from {least} to {most}, got {value}")
