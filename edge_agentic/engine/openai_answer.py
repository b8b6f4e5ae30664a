"""Merges the deltas of a streamed chat completion into one answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from edge_agentic.chat.tool_calls import call_starts
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.jsonio import JsonObject, dump_line
from edge_agentic.core.messages import ToolCall
from edge_agentic.engine.openai_calls import StreamedCalls
from edge_agentic.engine.openai_events import Event
from edge_agentic.engine.openai_faults import MOST_SAID, Failure, Fault, error_failure
from edge_agentic.engine.openai_values import as_count, as_object, join_text

_THINK, _END_THINK = "<think>", "</think>"
_CALL_MARKS: Final = frozenset(
    start
    for tool_format in ToolFormat
    for start in call_starts(tool_format)
    if any(map(str.isalpha, start))
)
"""Starts of calls in text. In a server's `content` they mean a call that it could not parse.
Bare brackets are not among them: they start other JSON as well."""


@dataclass
class Answer:
    """What the deltas gave; `failure` is what is wrong with it."""

    arrivals_ns: list[int] = field(default_factory=list)
    """Of each delta that carries anything, ns after the request."""
    content_parts: list[str] = field(default_factory=list)
    reasoning_parts: list[str] = field(default_factory=list)
    calls: StreamedCalls = field(default_factory=StreamedCalls)
    finish_reason: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, Any] = field(default_factory=dict)
    first_delta_usage: int | None = None
    """Output tokens at the first delta, where the server counts along."""
    failure: Failure | None = None


@dataclass(frozen=True)
class ParsedAnswer:
    """An answer in the suite's own shape; the fields are those of a `Completion`."""

    content: str
    reasoning: str | None
    calls: tuple[ToolCall, ...]
    malformed: bool
    text: str


def merge_events(events: Sequence[Event]) -> Answer:
    """Merge a stream; what came before a fault is kept."""
    answer = Answer()
    chunks = _parse_all(events)
    for event, chunk in zip(events, chunks, strict=True):
        if chunk is None:
            shown = event.data[:MOST_SAID].decode("utf-8", "replace")
            answer.failure = Failure(Fault.BAD_EVENT, f"no JSON object: {shown!r}")
        elif event.name == b"error" or chunk.get("error") or chunk.get("object") == "error":
            answer.failure = error_failure(chunk)
        else:
            _take_chunk(answer, chunk, event.arrival_ns)
        if answer.failure is not None:
            return answer
    ids = [chunk["id"] for chunk in chunks if chunk and isinstance(chunk.get("id"), str)]
    answer.failure = _flaw(answer, [chunk_id for chunk_id in ids if chunk_id])
    return answer


def merge_whole(completion: JsonObject, arrival_ns: int) -> Answer:
    """The answer of a server that does not stream: all of it in one delta."""
    answer = Answer()
    choices = completion.get("choices")
    if completion.get("error") or not isinstance(choices, list):
        answer.failure = error_failure(completion)
        return answer
    as_deltas = [
        {**choice, "delta": choice.get("message")} for choice in choices if isinstance(choice, dict)
    ]
    _take_chunk(answer, {**completion, "choices": as_deltas}, arrival_ns)
    answer.failure = answer.failure or _flaw(answer, [])
    return answer


def parse_answer(
    answer: Answer, *, id_prefix: str, hide: Callable[[str], str] = str
) -> ParsedAnswer:
    """The answer in the suite's own shape. No answer raises.

    Reasoning that the server left in the text is taken out of it. A call that stands unparsed
    in the text makes the answer malformed.

    Args:
        answer: the merged deltas.
        id_prefix: start of the ids of calls that have none of their own.
        hide: takes out what must not be written down.
    """
    content = hide(join_text(answer.content_parts))
    reasoning = hide(join_text(answer.reasoning_parts))
    text = reasoning + content
    if not reasoning:
        reasoning, content = _split_reasoning(content)
    is_cut = answer.finish_reason == "length" or answer.failure is not None
    calls, malformed = answer.calls.parse(is_cut=is_cut, id_prefix=id_prefix, hide=hide)
    if answer.calls:
        text += hide(dump_line(answer.calls.verbatim()))
    malformed = malformed or any(mark in content for mark in _CALL_MARKS)
    return ParsedAnswer(content, reasoning or None, calls, malformed, text)


def _parse_all(events: Sequence[Event]) -> Sequence[JsonObject | None]:
    """The JSON objects of all events, None for one that is none."""
    try:
        # One call for a whole turn costs a fifth of one call for each event.
        values = json.loads(b"[" + b",".join([event.data for event in events]) + b"]")
        if len(values) == len(events) and all(type(value) is dict for value in values):
            return values  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        pass
    return [as_object(event.data) for event in events]


def _take_chunk(answer: Answer, chunk: JsonObject, arrival_ns: int) -> None:
    if chunk.get("usage") and isinstance(chunk["usage"], dict):
        answer.usage = chunk["usage"]
    if chunk.get("timings") and isinstance(chunk["timings"], dict):
        answer.timings = chunk["timings"]
    choices = chunk.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        if choice.get("index", 0) not in (0, None):
            answer.failure = Failure(Fault.MIXED, "the stream holds a second choice")
            return
        delta = choice.get("delta")
        if delta and isinstance(delta, dict) and _take_delta(answer, delta):
            if not answer.arrivals_ns:
                answer.first_delta_usage = as_count(answer.usage.get("completion_tokens"))
            answer.arrivals_ns.append(arrival_ns)
        finish = choice.get("finish_reason")
        if finish and isinstance(finish, str):
            answer.finish_reason = finish


def _take_delta(answer: Answer, delta: Mapping[str, Any]) -> bool:
    """Merge one delta; whether it carries anything: text, reasoning, a call's name or arguments."""
    carries = False
    content = delta.get("content")
    if content and isinstance(content, str):
        answer.content_parts.append(content)
        carries = True
    # A server that gives reasoning under both names gives it twice.
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")
    if reasoning and isinstance(reasoning, str):
        answer.reasoning_parts.append(reasoning)
        carries = True
    calls = delta.get("tool_calls")
    for fragment in calls if isinstance(calls, list) else ():
        if isinstance(fragment, dict) and answer.calls.add(fragment):
            carries = True
    return carries


def _flaw(answer: Answer, ids: Sequence[str]) -> Failure | None:
    """What is wrong with an answer that came to its end."""
    distinct = len(set(ids))
    # One id per chunk is a server's habit; few ids for many chunks are several answers.
    if 1 < distinct < len(ids):
        return Failure(Fault.MIXED, f"the stream holds events of {distinct} answers")
    if answer.finish_reason is not None:
        return None
    if answer.arrivals_ns:
        return Failure(Fault.CUT_SHORT, "the stream ended without a finish_reason")
    return Failure(Fault.EMPTY, "the stream ended without an answer")


def _split_reasoning(content: str) -> tuple[str, str]:
    """Reasoning and the rest: reasoning goes up to `</think>`, or to the end of the text."""
    thought, closed, rest = content.partition(_END_THINK)
    if not closed and not content.lstrip().startswith(_THINK):
        return "", content
    return thought.replace(_THINK, "", 1).strip("\n"), rest.lstrip("\n")
