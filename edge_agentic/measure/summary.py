"""Builds summary.json: a pure function of the manifest and the journal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.engine.server_kinds import ServerKind
from edge_agentic.measure.events import read_journal
from edge_agentic.measure.fields import Fields
from edge_agentic.measure.gate_metrics import gate_section
from edge_agentic.measure.reasons import Reasons
from edge_agentic.measure.records import Journal
from edge_agentic.measure.replay_metrics import replay_section
from edge_agentic.measure.validity import invalid_reasons, is_complete

SUMMARY_SCHEMA: Final = "edge-agentic/summary/1"

SIGNIFICANT_DIGITS: Final = 8
"""Of every figure: finer than any clock here, coarser than the last bits of the arithmetic."""


def build_summary(manifest: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> JsonObject:
    """The summary of a run, whole or cut short, from its manifest and its journal's events.

    Every key is always there; what is unknown is None, and `null_reasons` says why by dotted
    path. Unless the gate was finished and passed, `replay` is None and no speed figure appears.

    Raises:
        BadInputError: a field is missing or of the wrong type; names file, line and field.
    """
    facts = Fields(manifest, "manifest.json")
    engine = facts.mapping("engine")
    journal = read_journal(events)
    reasons: Reasons = {}
    gate = gate_section(journal, reasons)
    gate_only = is_gate_only(manifest)
    invalid = invalid_reasons(journal, gate, gate_only=gate_only)
    summary = {
        "schema": SUMMARY_SCHEMA,
        "valid": not invalid,
        "complete": is_complete(journal),
        "invalid_reasons": invalid,
        "division": facts.text("division"),
        "resumed": journal.sessions > 1,
        "engine": {"kind": engine.text("kind"), "is_model": engine.flag("is_model")},
        "gate": gate,
        "replay": _replay(journal, gate, reasons, _server(engine), gate_only=gate_only),
        "energy": None,
        "device": dict(facts.mapping("device").values),
        "thermal": None,
        "memory": {"peak_rss_mb": journal.peak_rss_mb, "peak_device_mb": None},
        "null_reasons": reasons,
    }
    reasons.update(dict.fromkeys(("energy", "thermal", "memory.peak_device_mb"), "not sampled"))
    if journal.peak_rss_mb is None:
        reasons["memory.peak_rss_mb"] = "not measured"
    try:
        return {key: _rounded(value, key) for key, value in summary.items()}
    except RecursionError:
        raise facts.error("'device' is nested too deeply") from None


def is_gate_only(manifest: Mapping[str, Any]) -> bool:
    """Whether the run set out to ask the gate and nothing else: its manifest has no replay."""
    datasets = manifest.get("datasets")
    return isinstance(datasets, Mapping) and datasets.get("replay", datasets) is None


def _replay(
    journal: Journal,
    gate: JsonObject | None,
    reasons: Reasons,
    server: ServerKind | None,
    *,
    gate_only: bool,
) -> JsonObject | None:
    """The replay's section; None unless the gate was passed before it."""
    if gate_only:
        reasons["replay"] = "only the gate was asked"
        return None
    if gate is None or not gate["passed"]:
        reasons["replay"] = "speed is reported only after the function-calling gate is passed"
        return None
    if journal.replay is None:
        reasons["replay"] = "the replay did not run"
        return None
    return replay_section(journal, journal.replay, reasons, server)


def _server(engine: Fields) -> ServerKind | None:
    """The kind of server that answered; None for an engine without one."""
    text = engine.optional_text("server")
    try:
        return None if text is None else ServerKind(text)
    except ValueError:
        raise engine.error(f"'server' is of an unknown kind: {text!r}") from None


def _rounded(value: Any, path: str) -> Any:
    """The value with every float in it rounded: the one place where a summary rounds."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadInputError(f"manifest.json: '{path}' is not a finite number")
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item, f"{path}[{index}]") for index, item in enumerate(value)]
    return value
