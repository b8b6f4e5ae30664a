"""Lists the gate's wrong answers for a person: question, expected, got."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bfcl_gate.answers import Answer, native_calls
from bfcl_gate.cases import Case, Dataset
from bfcl_gate.subsets import SUBSETS, Rule
from edge_agentic.core.text import one_line

_MOST_CHARACTERS: Final = 600


def render_failures(dataset: Dataset, events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines about each wrong answer of a journal, in its order.

    The text came from a model or a file: control characters are shown, never sent.

    Args:
        dataset: the cases that were asked; others are left out.
        events: the events of the journal.
    """
    cases = {case.id: case for case in dataset.cases}
    for event in events:
        if event["event"] != "gate_case" or event["valid"] or event["sample_id"] not in cases:
            continue
        case = cases[event["sample_id"]]
        yield ""
        yield one_line(f"{case.id}: {event.get('error_type')}")
        yield f"  question  {_short(_question(case))}"
        yield f"  expected  {_short(_expected(case))}"
        yield f"  got       {_short(_got(event))}"
        if detail := event.get("detail"):
            yield f"  why       {_short(str(detail))}"


def _question(case: Case) -> str:
    """What the user says last."""
    said = [message["content"] or "" for message in case.messages if message["role"] == "user"]
    return said[-1] if said else case.messages[-1]["content"] or ""


def _expected(case: Case) -> str:
    if case.ground_truth is None:
        return "no call" if SUBSETS[case.subset].rule is Rule.NO_CALL else "any call"
    return json.dumps(case.ground_truth, ensure_ascii=False)


def _got(event: Mapping[str, Any]) -> str:
    if event["outcome"] != "ok":
        return f"no answer ({event['outcome']})"
    if event.get("tool_calls") is None:
        return f"text: {event.get('text')}"
    calls = native_calls(Answer(event["tool_calls"]))
    shown = (f"{call.name}({json.dumps(call.arguments)})" for call in calls)
    return "; ".join(shown) or "no call that can be read"


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _MOST_CHARACTERS else line[:_MOST_CHARACTERS] + "…"
