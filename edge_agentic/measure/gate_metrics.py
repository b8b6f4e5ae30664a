"""Gate events of a journal to the `gate` section of a summary."""

from __future__ import annotations

from collections.abc import Iterable

from bfcl_gate.aggregate import NORMALIZED, OVERALL, Scores, aggregate
from bfcl_gate.references import Floor, GateDecision, Reference, decide
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.outcome import Outcome
from edge_agentic.measure.gate_reference import reference_from_json
from edge_agentic.measure.reasons import Reasons
from edge_agentic.measure.records import GateCase, GateStart, Journal


def gate_section(journal: Journal, reasons: Reasons) -> JsonObject | None:
    """The verdict of the function-calling gate; None if it did not start.

    It is passed only if it ran to its end, every case has a record, and the scores meet the
    reference's thresholds. A gate that stopped early has no scores: those of a part would be
    read as scores of the whole. The reason of each null figure goes into `reasons`.

    Raises:
        BadInputError: the recorded reference is unusable, or a case is of no known subset or
            was never issued.
    """
    gate = journal.gate
    if gate is None:
        reasons["gate"] = "the gate did not run"
        return None
    cases = _distinct(journal.gate_cases)
    try:
        reference = reference_from_json(gate.reference, "journal.jsonl: 'gate_started' reference")
        scores = _scores(gate, cases)
    except ValueError as error:
        raise BadInputError(f"journal.jsonl: gate: {error}") from None
    decision = decide(scores, reference)
    scored = journal.gate_finished and scores.issued_samples > 0
    if not scored:
        why = "no case counts" if journal.gate_finished else "the gate stopped early"
        reasons.update({f"gate.{key}": why for key in (OVERALL, NORMALIZED)})
    return {
        "passed": scored and not unrecorded_samples(journal) and decision.passed,
        "dataset": gate.dataset,
        "dataset_sha256": gate.dataset_sha256,
        "selection": gate.selection,
        "reference": _reference(reference, reasons),
        **(_figures(scores, decision) if scored else _no_figures()),
        "thresholds": dict(decision.thresholds),
        "total_samples": scores.total_samples,
        "issued_samples": scores.issued_samples,
        "malformed": sum(case.malformed for case in cases),
    }


def unrecorded_samples(journal: Journal) -> int:
    """How many cases of the gate have no record at all; 0 without a gate."""
    if journal.gate is None:
        return 0
    recorded = {case.sample_id for case in journal.gate_cases}
    return len(set(journal.gate.sample_ids) - recorded)


def _distinct(cases: Iterable[GateCase]) -> list[GateCase]:
    """The first record of each case."""
    first: dict[str, GateCase] = {}
    for case in cases:
        first.setdefault(case.sample_id, case)
    return list(first.values())


def _scores(gate: GateStart, cases: Iterable[GateCase]) -> Scores:
    """The scores; a request that failed has no answer, and a missing answer is no right one.

    Without that rule a failed request would be right wherever no call is due.
    """
    answered = [(case.sample_id, case.valid) for case in cases if case.outcome is Outcome.OK]
    return aggregate(gate.sample_ids, answered)


def _figures(scores: Scores, decision: GateDecision) -> JsonObject:
    """Accuracies in percent, their 95 % intervals, and where they fall short."""
    return {
        OVERALL: scores.overall_accuracy,
        NORMALIZED: scores.normalized_single_turn_score,
        "category_scores": dict(scores.category_scores),
        "subset_scores": dict(scores.subset_scores),
        "interval95": dict(scores.interval95),
        "shortfalls": list(decision.shortfalls),
    }


def _no_figures() -> JsonObject:
    """What stands in for the figures of a gate without scores."""
    return {
        OVERALL: None,
        NORMALIZED: None,
        "category_scores": {},
        "subset_scores": {},
        "interval95": {},
        "shortfalls": [],
    }


def _reference(reference: Reference | Floor, reasons: Reasons) -> JsonObject:
    """What the scores were compared with, and on what ground."""
    if isinstance(reference, Floor):
        why = "no reference exists for this model; a floor applies"
        reasons.update({"gate.reference.id": why, "gate.reference.factor": why})
        return {
            "kind": "floor",
            "id": None,
            "name": "floor",
            "factor": None,
            "basis": reference.reason,
        }
    return {
        "kind": "reference",
        "id": reference.id,
        "name": reference.name,
        "factor": float(reference.factor),
        "basis": reference.provenance,
    }
