"""Gate events of a journal to the `gate` section of a summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bfcl_gate.aggregate import NORMALIZED, OVERALL, Scores, aggregate
from bfcl_gate.early import EarlyVerdict, SequentialTest
from bfcl_gate.references import Floor, Reference, decide
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.outcome import Outcome
from edge_agentic.measure.gate_reference import reference_from_json
from edge_agentic.measure.reasons import Reasons
from edge_agentic.measure.records import GateCase, GateStart, Journal, first_records


def gate_section(journal: Journal, reasons: Reasons) -> JsonObject | None:
    """The verdict of the function-calling gate; None if it did not start.

    It is passed only if it ran to its end, every case has a record, and the scores meet the
    reference's thresholds; or if a sequential test, where one was asked for, said so before. A
    gate that stopped early has no scores: those of a part would be read as scores of the whole.
    Without a reference there is no verdict. The reason of each null figure goes into `reasons`.

    Raises:
        BadInputError: the recorded reference is unusable, or a case is of no known subset or
            was never issued.
    """
    gate = journal.gate
    if gate is None:
        reasons["gate"] = "the gate did not run"
        return None
    try:
        return _section(journal, gate, reasons)
    except ValueError as error:
        raise BadInputError(f"journal.jsonl: gate: {error}") from None


def unrecorded_samples(journal: Journal) -> int:
    """How many of the cases to be asked have no record at all; 0 without a gate."""
    if journal.gate is None:
        return 0
    asked = _asked(journal.gate, _early_verdict(journal))
    return len(set(asked) - first_records(journal.gate_cases).keys())


def _early_verdict(journal: Journal) -> EarlyVerdict | None:
    """What a sequential test said before every case was asked; None where there was none.

    Raises:
        BadInputError, ValueError: the recorded reference is unusable.
    """
    gate = journal.gate
    if gate is None or gate.early_stop_error_rate is None:
        return None
    reference = _reference_of(gate)
    assert reference is not None
    test = SequentialTest(gate.sample_ids, reference.thresholds(), gate.early_stop_error_rate)
    cases = first_records(journal.gate_cases)
    for sample_id in gate.sample_ids[:-1]:
        if sample_id not in cases:
            return None
        if verdict := test.add(sample_id, cases[sample_id].is_right):
            return verdict
    return None


def _section(journal: Journal, gate: GateStart, reasons: Reasons) -> JsonObject:
    reference = _reference_of(gate)
    early = _early_verdict(journal) if journal.gate_finished else None
    cases = first_records(journal.gate_cases)
    scores = _scores(_asked(gate, early), cases)
    decision = None if reference is None else decide(scores, reference)
    scored = journal.gate_finished and scores.issued_samples > 0 and early is None
    if not scored:
        why = _why_unscored(journal, early)
        reasons.update({f"gate.{key}": why for key in (OVERALL, NORMALIZED)})
    if decision is None:
        passed = None
        reasons["gate.passed"] = "held to no reference, so there is no verdict"
        shortfalls: list[str] = []
    elif early is not None:
        passed = early.passed
        shortfalls = [] if passed else [_early_shortfall(gate, early)]
    else:
        passed = scored and not unrecorded_samples(journal) and decision.passed
        shortfalls = list(decision.shortfalls) if scored else []
    return {
        "passed": passed,
        "dataset": gate.dataset,
        "dataset_sha256": gate.dataset_sha256,
        "selection": gate.selection,
        "reference": _reference(reference, reasons),
        **(_figures(scores) if scored else _no_figures()),
        "shortfalls": shortfalls,
        "thresholds": dict(decision.thresholds) if decision else {},
        "total_samples": scores.total_samples,
        "issued_samples": scores.issued_samples,
        "malformed": sum(case.malformed for case in cases.values()),
        "malformed_right": sum(case.malformed and case.valid for case in cases.values()),
        "early_stop": _early_stop(gate, early, scores, reasons),
    }


def _reference_of(gate: GateStart) -> Reference | Floor | None:
    if gate.reference is None:
        return None
    return reference_from_json(gate.reference, "journal.jsonl: 'gate_started' reference")


def _asked(gate: GateStart, early: EarlyVerdict | None) -> tuple[str, ...]:
    """The samples that the gate had to ask before it could end."""
    return gate.sample_ids if early is None else gate.sample_ids[: early.asked]


def _scores(asked: Iterable[str], cases: Mapping[str, GateCase]) -> Scores:
    """The scores; a missing answer is no right one."""
    answered = [
        (sample_id, case.is_right)
        for sample_id, case in cases.items()
        if case.outcome is Outcome.OK
    ]
    return aggregate(asked, answered)


def _why_unscored(journal: Journal, early: EarlyVerdict | None) -> str:
    if early is not None:
        return "the gate ended with an early verdict; 'early_stop' holds estimates"
    return "no case counts" if journal.gate_finished else "the gate stopped early"


def _figures(scores: Scores) -> JsonObject:
    """Accuracies in percent and their 95 % intervals."""
    return {
        OVERALL: scores.overall_accuracy,
        NORMALIZED: scores.normalized_single_turn_score,
        "category_scores": dict(scores.category_scores),
        "subset_scores": dict(scores.subset_scores),
        "interval95": dict(scores.interval95),
    }


def _no_figures() -> JsonObject:
    """What stands in for the figures of a gate without scores."""
    return {
        OVERALL: None,
        NORMALIZED: None,
        "category_scores": {},
        "subset_scores": {},
        "interval95": {},
    }


def _early_stop(
    gate: GateStart, early: EarlyVerdict | None, scores: Scores, reasons: Reasons
) -> JsonObject | None:
    """How an early verdict came about, and the scores of the asked cases alone."""
    if gate.early_stop_error_rate is None:
        reasons["gate.early_stop"] = "not asked for"
        return None
    if early is None:
        reasons["gate.early_stop"] = "no verdict came before the last case"
        return None
    return {
        "error_rate": gate.early_stop_error_rate,
        "certain": early.certain,
        "asked_samples": early.asked,
        "selected_samples": len(gate.sample_ids),
        "estimates": {
            OVERALL: scores.overall_accuracy,
            NORMALIZED: scores.normalized_single_turn_score,
        },
        "interval95": {name: scores.interval95[name] for name in (OVERALL, NORMALIZED)},
    }


def _early_shortfall(gate: GateStart, early: EarlyVerdict) -> str:
    sure = (
        "whatever the others' answers"
        if early.certain
        else f"at an error rate of {gate.early_stop_error_rate}"
    )
    return (
        f"decided after {early.asked} of {len(gate.sample_ids)} cases, {sure}: "
        "a threshold is out of reach"
    )


def _reference(reference: Reference | Floor | None, reasons: Reasons) -> JsonObject | None:
    """What the scores were compared with, and on what ground."""
    if reference is None:
        reasons["gate.reference"] = "held to none: a part of a set was asked, or none was named"
        return None
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
