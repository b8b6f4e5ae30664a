"""The manifest: everything a stranger needs to know about how a run was made."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from bfcl_gate.selection import Selection
from edge_agentic.core.clock import utc_now
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.device.facts import DeviceFacts
from edge_agentic.engine.api import Engine
from edge_agentic.engine.gguf import GgufInfo
from edge_agentic.replay.player import DEFAULT_MAX_OUTPUT_TOKENS, ReplayPlan
from edge_agentic.trace.pack import TracePack

MANIFEST_SCHEMA = "edge-agentic/manifest/1"


def model_facts(info: GgufInfo, sha256: str) -> JsonObject:
    """What the manifest says of a model file; its name, never its path."""
    return {
        "file": Path(info.path).name,
        "sha256": sha256,
        "size_bytes": info.size_bytes,
        "architecture": info.architecture,
        "name": info.name,
        "quantisation": info.quantisation,
        "context_length_tokens": info.context_length_tokens,
        "parameters": info.parameter_count,
    }


def build_manifest(
    *,
    engine: Engine,
    model: JsonObject | None,
    gate: Selection,
    gate_output_tokens: int,
    early_stop_error_rate: float | None,
    turn_timeout_s: float,
    replay: ReplayPlan | None,
    device: DeviceFacts,
    profile_id: str,
    sandbox: JsonObject | None,
) -> JsonObject:
    """The manifest of a run that is about to start; without a replay it asks the gate alone."""
    return {
        "schema": MANIFEST_SCHEMA,
        "created": utc_now().isoformat(timespec="seconds").replace("+00:00", "Z"),
        "harness": {"name": "edge-agentic", "version": version("edge-agentic")},
        "division": "open",
        "model": model,
        "engine": engine.describe(),
        "datasets": {
            "gate": {
                "name": gate.dataset.name,
                "sha256": gate.dataset.sha256,
                "selection": gate.name,
                "samples": len(gate.cases),
                "samples_sha256": gate.sha256,
            },
            "replay": None if replay is None else _pack_facts(replay.pack),
        },
        "settings": {
            "gate_max_output_tokens": gate_output_tokens,
            "gate_early_stop_error_rate": early_stop_error_rate,
            "turn_timeout_s": turn_timeout_s,
            **({} if replay is None else _replay_settings(replay)),
        },
        "device": {"profile": profile_id, **device.to_json()},
        "sandbox": sandbox,
        "python": platform.python_version(),
    }


def _pack_facts(pack: TracePack) -> JsonObject:
    return {
        "name": pack.name,
        "version": pack.version,
        "sha256": pack.sha256,
        "conversations": len(pack.conversations),
        "turns": sum(len(c.turns) for c in pack.conversations),
    }


def _replay_settings(replay: ReplayPlan) -> JsonObject:
    asked = replay.limits.max_output_tokens
    live = {}
    if replay.live:
        live = {f"task_{name}": value for name, value in asdict(replay.live).items()}
        asked = asked or DEFAULT_MAX_OUTPUT_TOKENS
    return {
        "policy": replay.policy.value,
        "concurrency": replay.concurrency,
        "max_output_tokens": asked or replay.pack.max_output_tokens,
        "tools": replay.tools.value,
        "tool_timeout_s": replay.limits.tool_timeout_s,
        **live,
    }
