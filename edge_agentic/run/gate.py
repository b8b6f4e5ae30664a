"""Asks the engine every gate case and writes each verdict to the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bfcl_gate.answers import Answer
from bfcl_gate.cases import Case
from bfcl_gate.checker import check
from bfcl_gate.early import SequentialTest, shuffled
from bfcl_gate.references import Floor, Reference
from bfcl_gate.request import messages, tools
from bfcl_gate.selection import Selection
from edge_agentic.core import interrupt
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import calls_to_openai
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest, Completion, Engine
from edge_agentic.measure.gate_reference import reference_to_json
from edge_agentic.run.answers import gate_request_id
from edge_agentic.run.journal import JournalWriter
from edge_agentic.run.progress import Progress

Verdicts = Mapping[str, bool]
"""Whether each recorded case counts as right."""


def run_gate(
    selection: Selection,
    reference: Reference | Floor | None,
    engine: Engine,
    journal: JournalWriter,
    progress: Progress,
    *,
    max_output_tokens: int,
    turn_timeout_s: float,
    early_stop_error_rate: float | None = None,
    recorded: Verdicts | None = None,
) -> None:
    """Ask every case once, in the selection's order; with an early stop, in a shuffled one.

    Gate events carry no times: a run whose gate fails must hold no figure of speed.

    Args:
        selection: the cases to ask.
        reference: what the scores are held to; None for a part of a set.
        engine: what answers.
        journal: where events go.
        progress: who watches.
        max_output_tokens: the longest answer.
        turn_timeout_s: the deadline of one answer.
        early_stop_error_rate: stop as soon as the verdict is decided at this rate; None asks all.
        recorded: the cases that an earlier session of this journal has recorded; None for a
            journal in which the gate has not started.
    """
    cases = {case.id: case for case in selection.cases}
    start = gate_start(selection, reference, early_stop_error_rate)
    order = start["sample_ids"]
    if recorded is None:
        journal.write("gate_started", **start)
    is_decided = _decided(order, reference, early_stop_error_rate)
    before = recorded or {}
    progress.phase("gate", len(order), len(before))
    right = 0
    for asked, sample_id in enumerate(order, start=1):
        if sample_id in before:
            valid = before[sample_id]
            right += valid
        else:
            case = cases[sample_id]
            completion = engine.generate(case_request(case, max_output_tokens, turn_timeout_s))
            valid = _record(case, completion, journal)
            right += valid
            progress.step(f"{right} of {asked} right")
            interrupt.check()
        if is_decided(sample_id, valid):
            break
    journal.write("gate_finished")


def gate_start(
    selection: Selection, reference: Reference | Floor | None, early_stop_error_rate: float | None
) -> JsonObject:
    """The fields of a `gate_started` event."""
    ids = selection.sample_ids
    return {
        "dataset": selection.dataset.name,
        "dataset_sha256": selection.dataset.sha256,
        "selection": selection.name,
        "sample_ids": list(ids if early_stop_error_rate is None else shuffled(ids)),
        "reference": None if reference is None else reference_to_json(reference),
        "early_stop_error_rate": early_stop_error_rate,
    }


def case_request(case: Case, max_output_tokens: int, turn_timeout_s: float) -> ChatRequest:
    """The request of one case: a conversation of its own, which shares prefill with no other."""
    return ChatRequest(
        request_id=gate_request_id(case.id),
        conversation_id=gate_request_id(case.id),
        messages=messages(case),
        tools=tools(case),
        max_output_tokens=max_output_tokens,
        deadline_s=turn_timeout_s,
    )


def as_answer(completion: Completion) -> Answer:
    """What the checker judges: the calls, or else the text outside reasoning and calls.

    A generation that did not end by itself or at its limit is no answer.
    """
    if completion.outcome is not Outcome.OK:
        return Answer()
    if completion.tool_calls:
        return Answer(tool_calls=calls_to_openai(completion.tool_calls))
    return Answer(text=completion.content)


def _decided(
    order: Sequence[str], reference: Reference | Floor | None, error_rate: float | None
) -> Callable[[str, bool], bool]:
    """Takes each verdict in turn and tells whether the gate's own is decided by now."""
    if error_rate is None:
        return lambda sample_id, valid: False
    assert reference is not None
    test = SequentialTest(order, reference.thresholds(), error_rate)
    return lambda sample_id, valid: test.add(sample_id, valid) is not None


def _record(case: Case, completion: Completion, journal: JournalWriter) -> bool:
    """Judge and record one answer; return whether it counts as right."""
    answer = as_answer(completion)
    verdict = check(case, answer)
    journal.write(
        "gate_case",
        sample_id=case.id,
        outcome=completion.outcome.value,
        error=completion.error,
        tool_calls=answer.tool_calls,
        text=answer.text,
        malformed=completion.malformed or verdict.disputed,
        valid=verdict.valid,
        error_type=verdict.error_type,
        detail=verdict.detail,
        prompt_tokens=completion.tokens.prompt,
        output_tokens=completion.tokens.output,
    )
    return verdict.valid
