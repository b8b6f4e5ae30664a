"""The server engine: any OpenAI-compatible server, streamed, every read stamped as it arrives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Final

from edge_agentic.chat.generic import flatten
from edge_agentic.chat.tool_calls import parse
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.clock import Clock, monotonic_ns
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import Message, ToolSpec
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import (
    ChatRequest,
    Completion,
    FinishReason,
    TokenCounts,
    TokenTimes,
)
from edge_agentic.engine.openai_answer import (
    Answer,
    ParsedAnswer,
    merge_events,
    merge_whole,
    parse_answer,
)
from edge_agentic.engine.openai_connection import Exchange, OpenAIConnection
from edge_agentic.engine.openai_count import PromptCounter
from edge_agentic.engine.openai_endpoint import ApiKey, Endpoint, hiding
from edge_agentic.engine.openai_events import (
    LAST_EVENT,
    MOST_LINES,
    TooManyLinesError,
    read_events,
)
from edge_agentic.engine.openai_faults import MOST_SAID, Failure, Fault, status_failure
from edge_agentic.engine.openai_request import RequestWriter
from edge_agentic.engine.openai_values import as_count, as_object, is_number
from edge_agentic.engine.server_kinds import Dialect, ServerKind

_REPORTED: Final = ("prompt_ms", "predicted_ms", "prompt_n", "predicted_n", "cache_n", "draft_n")


@dataclass(frozen=True)
class ServedModel:
    """Which model of which server is asked, and how."""

    endpoint: Endpoint
    model: str
    kind: ServerKind = ServerKind.OTHER
    dialect: Dialect = field(default_factory=Dialect)
    key: ApiKey | None = None
    constrained: bool = False
    """Hold every answer to the schemas of the offered functions."""

    @property
    def public_name(self) -> str:
        """The model's name; of a path only its last part."""
        return hiding(self.key)(PurePath(self.model).name or self.model)


class OpenAIEngine:
    """Asks a model on a server, greedily (temperature 0, seed 42), over one connection.

    A turn is issued when the first byte of its request is written: connecting and writing the
    JSON come before. Nothing is ever sent twice. Token counts are the server's; times are the
    client's own. `ideal` is an estimate: the prompt's tokens less those of the conversation's
    previous prompt, where the messages only grew.
    """

    is_model = True

    def __init__(
        self,
        served: ServedModel,
        *,
        context_tokens: int | None = None,
        can_force_length: bool = False,
        facts: JsonObject | None = None,
        clock: Clock = monotonic_ns,
    ) -> None:
        """Prepare to ask a model; nothing is sent before the first request.

        Args:
            served: the server, the model, and how requests are written.
            context_tokens: size of the context window, if the server told.
            can_force_length: whether the server was seen to.
            facts: what else the manifest should hold: the results of the probes.
            clock: monotonic nanoseconds.
        """
        self.context_tokens = context_tokens
        self.can_force_length = can_force_length
        self.served, self._facts, self._clock = served, facts or {}, clock
        self._connection = OpenAIConnection(served.endpoint, served.key, clock)
        self._writer = RequestWriter(served.model, served.dialect, constrained=served.constrained)
        self._counter = PromptCounter(
            self._connection, served.endpoint, served.model, served.kind, served.dialect
        )
        self._path = f"{served.endpoint.api_path}/chat/completions"
        self._previous: dict[str, tuple[Sequence[Message], int]] = {}
        self._generations = 0

    def describe(self) -> JsonObject:
        """Settings and facts for the manifest: neither a key nor an address."""
        served = self.served
        return {
            "kind": "openai",
            "is_model": True,
            "server_is_local": served.endpoint.is_loopback,
            "served_model": served.public_name,
            "server": served.kind.value,
            "dialect": served.dialect.to_json(),
            "tool_grammar": "on" if served.constrained else "off",
            "context_tokens": self.context_tokens,
            "token_counts": "the server's",
            "ideal_tokens": "estimated",
            "temperature": 0,
            **self._facts,
        }

    def count_prompt_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> int | None:
        """Tokens of the prompt as the server counts them; None where it has no way to."""
        if self.served.constrained:
            messages, tools = flatten(messages, tools), ()
        return self._counter.count(messages, tools)

    def generate(self, request: ChatRequest) -> Completion:
        """Answer one request; every failure of the server's is an outcome."""
        self._generations += 1
        try:
            body = self._writer.body(request)
        except BadInputError as error:
            times = TokenTimes(self._clock(), (), None)
            return Completion(Outcome.ENGINE_FAILED, times, error=str(error))
        exchange = self._connection.exchange(
            "POST",
            self._path,
            body,
            deadline_s=request.deadline_s,
            last_event=LAST_EVENT,
        )
        answer = _read_answer(exchange)
        completion = self._complete(request, exchange, answer)
        self._remember(request, completion)
        return completion

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._connection.close()

    def _complete(self, request: ChatRequest, exchange: Exchange, answer: Answer) -> Completion:
        parsed = self._parse(request, answer)
        tokens = self._counts(request, answer)
        failure = answer.failure
        if failure is None and request.force_length:
            failure = _inexact(request, answer, tokens.output)
        return Completion(
            outcome=failure.fault.outcome if failure else Outcome.OK,
            times=TokenTimes(
                exchange.issued_ns,
                tuple(answer.arrivals_ns),
                _first_delta_tokens(answer, tokens.output),
            ),
            tokens=tokens,
            finish_reason=None if failure else _finish_reason(answer, bool(parsed.calls)),
            text=parsed.text,
            content=parsed.content,
            reasoning=parsed.reasoning,
            tool_calls=parsed.calls,
            malformed=parsed.malformed,
            error=None if failure is None else failure.told(self.served.key),
            server=_server_report(answer),
        )

    def _parse(self, request: ChatRequest, answer: Answer) -> ParsedAnswer:
        id_prefix = f"call_{self._generations}"
        parsed = parse_answer(answer, id_prefix=id_prefix, hide=hiding(self.served.key))
        if not self.served.constrained:
            return parsed
        text = parse(parsed.content, ToolFormat.GENERIC, id_prefix=id_prefix, tools=request.tools)
        return replace(parsed, content=text.content, calls=text.calls, malformed=text.malformed)

    def _counts(self, request: ChatRequest, answer: Answer) -> TokenCounts:
        usage, timings = answer.usage, answer.timings
        details = usage.get("prompt_tokens_details")
        cached = as_count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
        prompt = as_count(usage.get("prompt_tokens"))
        output = as_count(usage.get("completion_tokens"))
        computed = as_count(timings.get("prompt_n"))
        if (kept := as_count(timings.get("cache_n"))) is not None:
            cached = kept
            prompt = kept + computed if prompt is None and computed is not None else prompt
        if output is None:
            output = as_count(timings.get("predicted_n"))
        if answer.failure is not None and answer.failure.prompt_tokens is not None:
            prompt = answer.failure.prompt_tokens
        if prompt is None or (cached is not None and cached > prompt):
            cached = None
        return TokenCounts(
            prompt=prompt,
            cached=cached,
            computed=prompt - cached if prompt is not None and cached is not None else None,
            ideal=self._ideal(request, prompt),
            output=output,
        )

    def _ideal(self, request: ChatRequest, prompt: int | None) -> int | None:
        if prompt is None:
            return None
        before, before_tokens = self._previous.get(request.conversation_id, ((), 0))
        if list(request.messages[: len(before)]) != list(before) or before_tokens >= prompt:
            return prompt
        return prompt - before_tokens

    def _remember(self, request: ChatRequest, completion: Completion) -> None:
        """Keep the last prompt of the conversation: of one alone, as they come in turn."""
        prompt = completion.tokens.prompt
        if completion.outcome is Outcome.OK and prompt is not None:
            self._previous = {request.conversation_id: (request.messages, prompt)}


def _read_answer(exchange: Exchange) -> Answer:
    """What the response holds; the first thing that is wrong with it is the answer's failure."""
    head = exchange.head
    if head is None:
        return Answer(failure=exchange.failure)
    if failure := status_failure(head.status, head.headers, exchange.body):
        return Answer(failure=failure)
    kind = head.headers.get("content-type", "").lower()
    last_ns = exchange.marks[-1][1] if exchange.marks else 0
    start = exchange.body.lstrip()[:8]
    if kind.startswith("text/event-stream") or start.startswith((b"data:", b"event:", b":")):
        try:
            answer = merge_events(read_events(exchange.body, exchange.marks))
        except TooManyLinesError:
            answer = Answer(failure=Failure(Fault.TOO_LARGE, f"more than {MOST_LINES} lines came"))
    elif (whole := as_object(exchange.body)) is not None:
        answer = merge_whole(whole, last_ns)
    else:
        shown = exchange.body[:MOST_SAID].decode("utf-8", "replace")
        detail = f"content type {kind[:60] or 'unknown'!r}, starts {shown!r}"
        answer = Answer(failure=Failure(Fault.NOT_EVENTS, detail))
    # A stream that was cut is first of all cut: what that did to its last event is no news.
    answer.failure = exchange.failure or answer.failure
    return answer


def _inexact(request: ChatRequest, answer: Answer, output: int | None) -> Failure | None:
    wanted = request.max_output_tokens
    if answer.finish_reason == FinishReason.LENGTH.value and output == wanted:
        return None
    got = "an unknown number" if output is None else str(output)
    return Failure(
        Fault.NOT_EXACT, f"{got} of {wanted} tokens, finish_reason {answer.finish_reason!r}"
    )


def _first_delta_tokens(answer: Answer, output: int | None) -> int | None:
    """The tokens of the first delta: as counted along, or 1 where every delta is one token.

    A server's count may hold an end token that no delta carries.
    """
    if not answer.arrivals_ns or output is None:
        return None
    if answer.first_delta_usage:
        return answer.first_delta_usage
    return 1 if output - 1 <= len(answer.arrivals_ns) <= output else None


def _finish_reason(answer: Answer, has_calls: bool) -> FinishReason:
    if answer.finish_reason == FinishReason.LENGTH.value:
        return FinishReason.LENGTH
    return FinishReason.TOOL_CALLS if has_calls else FinishReason.STOP


def _server_report(answer: Answer) -> JsonObject | None:
    """The server's own times and counts, as it named them; finite numbers only."""
    report: dict[str, Any] = {
        name: answer.timings[name] for name in _REPORTED if is_number(answer.timings.get(name))
    }
    return report or None
