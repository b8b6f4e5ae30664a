"""Asks the engine every gate case and writes each verdict to the journal."""

from __future__ import annotations

from bfcl_gate.answers import Answer
from bfcl_gate.cases import Case, Dataset
from bfcl_gate.checker import check
from bfcl_gate.references import Floor, Reference
from bfcl_gate.request import messages, tools
from edge_agentic.core import interrupt
from edge_agentic.core.messages import calls_to_openai
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest, Completion, Engine
from edge_agentic.measure.gate_reference import reference_to_json
from edge_agentic.run.answers import gate_request_id
from edge_agentic.run.journal import JournalWriter
from edge_agentic.run.progress import Progress

SELECTION_ALL = "all"


def run_gate(
    dataset: Dataset,
    reference: Reference | Floor,
    engine: Engine,
    journal: JournalWriter,
    progress: Progress,
    *,
    max_output_tokens: int,
    turn_timeout_s: float,
) -> None:
    """Ask every case once, in file order.

    Gate events carry no times: a run whose gate fails must hold no figure of speed.
    """
    journal.write(
        "gate_started",
        dataset=dataset.name,
        dataset_sha256=dataset.sha256,
        selection=SELECTION_ALL,
        sample_ids=[case.id for case in dataset.cases],
        reference=reference_to_json(reference),
    )
    progress.phase("gate", len(dataset.cases))
    right = 0
    for asked, case in enumerate(dataset.cases, start=1):
        completion = engine.generate(case_request(case, max_output_tokens, turn_timeout_s))
        right += _record(case, completion, journal)
        progress.step(f"{right} of {asked} right")
        interrupt.check()
    journal.write("gate_finished")


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


def _record(case: Case, completion: Completion, journal: JournalWriter) -> bool:
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
