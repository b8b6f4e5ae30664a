"""Scores recorded gate answers, or verdicts on them, without a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bfcl_gate import official
from bfcl_gate.answers import Answer
from bfcl_gate.cases import Dataset
from bfcl_gate.checker import Verdict, check
from bfcl_gate.references import Reference, load_references
from bfcl_gate.selection import select
from bfcl_gate.subsets import subset_of
from edge_agentic.core.errors import BadInputError, at_line
from edge_agentic.core.jsonio import JsonObject, parse_lines
from edge_agentic.core.outcome import Outcome
from edge_agentic.measure.gate_metrics import gate_section
from edge_agentic.measure.gate_reference import reference_to_json
from edge_agentic.measure.reasons import Reasons
from edge_agentic.measure.records import GateCase, GateStart, Journal


@dataclass(frozen=True)
class Judged:
    """The verdict on one line of a file; `verdict` is None where the line holds no answer."""

    sample_id: str
    verdict: Verdict | None

    def to_json(self) -> JsonObject:
        """The line that `score gate --each` prints."""
        verdict = self.verdict or Verdict(False, "answer:missing")
        return {
            "sample_id": self.sample_id,
            "valid": verdict.valid,
            "error_type": verdict.error_type,
        }


def samples_of(dataset: Dataset, selection: str | None) -> GateStart:
    """The samples of a selection of a data set; None takes its usual one.

    Raises:
        GateDataError: no such selection.
    """
    chosen = select(dataset, selection)
    return GateStart(dataset.name, dataset.sha256, chosen.name, chosen.sample_ids, reference=None)


def official_samples() -> GateStart:
    """The official selection, by its ids alone: no data set is needed."""
    ids = official.official_ids()
    return GateStart(official.NAME, None, official.SELECTION, ids, reference=None)


def judge_answers(raw: bytes, path: Path, dataset: Dataset) -> Iterator[Judged]:
    """Judge lines of `{sample_id, tool_calls | text}`, one by one, in order.

    Raises:
        BadInputError: a line is no such object, or its sample is not in the data set; names it.
    """
    cases = {case.id: case for case in dataset.cases}
    for line, row in parse_lines(raw, path):
        sample_id = _sample_id(row, path, line)
        if sample_id not in cases:
            raise at_line(
                path, line, f"no sample {sample_id!r} in {dataset.name}; give its set with --data"
            )
        if not row.keys() & {"tool_calls", "text"}:
            raise at_line(path, line, "'tool_calls' or 'text' is needed; null stands for no answer")
        text = row.get("text")
        if not isinstance(text, str | None):
            raise at_line(path, line, "'text' must be a string or null")
        answer = Answer(row.get("tool_calls"), text)
        yield Judged(sample_id, None if answer.missing else check(cases[sample_id], answer))


def read_verdicts(raw: bytes, path: Path, samples: GateStart) -> Iterator[Judged]:
    """Read lines of `{sample_id, valid}`: true, false, 1 or 0; null stands for no answer.

    Raises:
        BadInputError: a line is no such object, or its sample is not among `samples`.
    """
    known = set(samples.sample_ids)
    for line, row in parse_lines(raw, path):
        sample_id = _sample_id(row, path, line)
        if sample_id not in known and _counts(sample_id, path, line):
            raise at_line(
                path,
                line,
                f"{sample_id!r} is not in the {samples.selection} selection of {samples.dataset}",
            )
        valid = row.get("valid", "absent")
        if valid is not None and valid not in (0, 1):
            raise at_line(path, line, "'valid' must be true, false or null")
        yield Judged(
            sample_id,
            None if valid is None else Verdict(bool(valid), None if valid else "given as wrong"),
        )


def find_reference(name: str, samples: GateStart) -> Reference:
    """The bundled reference of this name for these samples.

    Raises:
        BadInputError: there is none; names those that there are.
    """
    fitting = {
        reference.id: reference
        for reference in load_references().references
        if (reference.dataset, reference.selection) == (samples.dataset, samples.selection)
    }
    if name not in fitting:
        known = ", ".join(fitting) or "none"
        raise BadInputError(
            f"no reference {name!r} for {samples.dataset}, {samples.selection}; there are: {known}"
        )
    return fitting[name]


def score(
    samples: GateStart, judged: Iterable[Judged], reference: Reference | None
) -> tuple[JsonObject, Reasons]:
    """The `gate` section of a summary, and the reasons of its nulls.

    Of several lines about one sample the first counts; a sample without a line has no answer.
    """
    cases: dict[str, GateCase] = {}
    asked = set(samples.sample_ids)
    for one in judged:
        if one.sample_id in asked and one.verdict is not None:
            case = GateCase(
                one.sample_id, Outcome.OK, valid=one.verdict.valid, malformed=one.verdict.disputed
            )
            cases.setdefault(one.sample_id, case)
    missing = (
        GateCase(sample_id, Outcome.ENGINE_FAILED, valid=False, malformed=False)
        for sample_id in samples.sample_ids
        if sample_id not in cases
    )
    held_to = None if reference is None else reference_to_json(reference)
    journal = Journal(
        gate=replace(samples, reference=held_to),
        gate_cases=[*cases.values(), *missing],
        gate_finished=True,
    )
    reasons: Reasons = {}
    section = gate_section(journal, reasons)
    assert section is not None
    return section, reasons


def _sample_id(row: JsonObject, path: Path, line: int) -> str:
    sample_id = row.get("sample_id")
    if not isinstance(sample_id, str):
        raise at_line(path, line, "'sample_id' must be a string")
    return sample_id


def _counts(sample_id: str, path: Path, line: int) -> bool:
    """Whether an aggregate counts the sample's subset; a sample of another one is left out."""
    try:
        return subset_of(sample_id).category is not None
    except ValueError as error:
        raise at_line(path, line, str(error)) from None
