"""Gate events of a journal to the `gate` section of a summary."""

from __future__ import annotations

from bfcl_gate.aggregate import aggregate
from bfcl_gate.references import Reference, decide
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.outcome import Outcome
from edge_agentic.measure.events import GateCase, GateStart, Journal


def gate_section(journal: Journal, reasons: dict[str, str]) -> JsonObject | None:
    raise NotImplementedError
