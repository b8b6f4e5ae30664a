"""Prepared answers for the scripted engine: as recorded, wrong, or from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bfcl_gate.cases import Case
from bfcl_gate.scripted import right_tool_calls, wrong_tool_calls
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import text_content
from edge_agentic.engine.scripted import ScriptedAnswer, read_answers
from edge_agentic.replay.naming import request_id
from edge_agentic.trace.conversation import recorded_message
from edge_agentic.trace.pack import TracePack

RECORDED = "recorded"
WRONG = "wrong"

_WRONG_TEXT = "No tool is needed."


def gate_request_id(case_id: str) -> str:
    """The name of a gate request."""
    return f"gate/{case_id}"


def answer_book(
    choice: str, pack: TracePack | None, gate_cases: Sequence[Case]
) -> dict[str, ScriptedAnswer]:
    """The scripted engine's answers by request id.

    Args:
        choice: `recorded` answers each turn as the trace did and each gate case rightly;
            `wrong` calls no tool in the replay and answers each gate case wrongly; anything
            else is a JSONL file of `{request_id, tool_calls | text}`.
        pack: the conversations to be replayed, if any.
        gate_cases: the cases to be asked.

    Raises:
        BadInputError: the file can't be used.
    """
    if choice not in (RECORDED, WRONG):
        if not Path(choice).exists():
            raise BadInputError(f"{choice}: no such file; give 'recorded', 'wrong' or a JSONL file")
        return read_answers(Path(choice))
    right = choice == RECORDED
    book = {gate_request_id(case.id): _gate_answer(case, right) for case in gate_cases}
    for conversation in pack.conversations if pack else ():
        for turn in conversation.turns:
            answer = ScriptedAnswer(text=_WRONG_TEXT)
            if right:
                message = recorded_message(conversation, turn)
                answer = ScriptedAnswer(turn.expected_calls, text_content(message))
            book[request_id(conversation, turn.index)] = answer
    return book


def _gate_answer(case: Case, right: bool) -> ScriptedAnswer:
    calls = right_tool_calls(case) if right else wrong_tool_calls(case)
    return ScriptedAnswer(calls, "" if calls else _WRONG_TEXT)
