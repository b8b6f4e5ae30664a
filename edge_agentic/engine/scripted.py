"""An engine that is no model: it gives prepared answers, with chosen delays.

For tests and for measuring the suite's own overhead. Everything it touches says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from edge_agentic.core.clock import NS_PER_MS, NS_PER_S, Clock, monotonic_ns
from edge_agentic.core.errors import BadInputError, at_line
from edge_agentic.core.jsonio import JsonObject, dump_line, iter_objects
from edge_agentic.core.messages import Message, ToolSpec, calls_from_openai
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import (
    ChatRequest,
    Completion,
    FinishReason,
    TokenCounts,
    TokenTimes,
)

CHARACTERS_PER_TOKEN: Final = 4
MAX_DELAY_MS: Final = 3_600_000.0


@dataclass(frozen=True)
class ScriptedAnswer:
    """What the engine says to one request: OpenAI-shaped calls, or text, or both."""

    tool_calls: Sequence[Mapping[str, Any]] = ()
    text: str = ""

    def rendered(self) -> str:
        """The answer as one text; its length decides the number of tokens."""
        if not self.tool_calls:
            return self.text
        return self.text + dump_line(list(self.tool_calls))


AnswerBook = Callable[[str], ScriptedAnswer | None]
"""The answer to a request id; None where there is none."""


@dataclass(frozen=True)
class ScriptedDelays:
    """When tokens arrive: the first after `first_token_ms`, each further `token_ms` later."""

    first_token_ms: float = 0.0
    token_ms: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a delay that can't be waited for."""
        for option in ("first_token_ms", "token_ms"):
            value = getattr(self, option)
            if not 0 <= value <= MAX_DELAY_MS:
                raise BadInputError(
                    f"delay {option} must be from 0 to {MAX_DELAY_MS:g}, got {value}"
                )


class ScriptedEngine:
    """Answers from a book. A token is 4 characters of the rendered answer."""

    is_model = False
    can_force_length = False
    context_tokens = None

    def __init__(
        self,
        answers: AnswerBook,
        *,
        source: str,
        delays: ScriptedDelays | None = None,
        clock: Clock = monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take answers from `answers`.

        Args:
            answers: looked up by request id.
            source: what the book is, for the manifest.
            delays: when tokens arrive; all at once if None.
            clock: monotonic nanoseconds.
            sleep: waits for a number of seconds.
        """
        self._answers, self._source = answers, source
        self._delays = delays or ScriptedDelays()
        self._clock, self._sleep = clock, sleep

    def describe(self) -> JsonObject:
        """Settings and facts for the manifest."""
        return {
            "kind": "scripted",
            "is_model": False,
            "answers": self._source,
            "first_token_ms": self._delays.first_token_ms,
            "token_ms": self._delays.token_ms,
        }

    def count_prompt_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> int | None:
        """None: no tokenizer."""
        return None

    def generate(self, request: ChatRequest) -> Completion:
        """Give the prepared answer, cut at the token limit and at the deadline."""
        issued_ns = self._clock()
        answer = self._answers(request.request_id)
        if answer is None:
            return Completion(
                Outcome.ENGINE_FAILED,
                TokenTimes(issued_ns, (), None),
                error=f"no scripted answer for {request.request_id}",
            )
        text = answer.rendered()
        wanted = -(-len(text) // CHARACTERS_PER_TOKEN)
        count = min(wanted, request.max_output_tokens)
        arrivals_ns, in_time = self._play(issued_ns, count, request.deadline_s)
        whole = len(arrivals_ns) == wanted
        calls, malformed = calls_from_openai(list(answer.tool_calls)) if whole else ((), False)
        return Completion(
            outcome=Outcome.OK if in_time else Outcome.TIMEOUT,
            times=TokenTimes(issued_ns, tuple(arrivals_ns), 1 if arrivals_ns else None),
            tokens=TokenCounts(output=len(arrivals_ns)),
            finish_reason=_finish_reason(whole, bool(calls)) if in_time else None,
            text=text[: len(arrivals_ns) * CHARACTERS_PER_TOKEN],
            content=answer.text if whole else "",
            tool_calls=calls,
            malformed=malformed,
            error=None if in_time else f"no answer within {request.deadline_s:g} s",
        )

    def close(self) -> None:
        """Nothing to free."""

    def _play(
        self, issued_ns: int, tokens: int, deadline_s: float | None
    ) -> tuple[list[int], bool]:
        deadline_ns = None if deadline_s is None else int(deadline_s * NS_PER_S)
        arrivals_ns: list[int] = []
        for index in range(tokens):
            due_ns = int((self._delays.first_token_ms + index * self._delays.token_ms) * NS_PER_MS)
            if deadline_ns is not None and due_ns > deadline_ns:
                return arrivals_ns, False
            wait_ns = due_ns - (self._clock() - issued_ns)
            if wait_ns > 0:
                self._sleep(wait_ns / NS_PER_S)
            arrivals_ns.append(self._clock() - issued_ns)
        return arrivals_ns, True


def read_answers(path: Path) -> dict[str, ScriptedAnswer]:
    """Answers out of a JSONL file of `{request_id, tool_calls | text}`.

    Raises:
        BadInputError: unreadable, or a line of another shape; names the line.
    """
    answers: dict[str, ScriptedAnswer] = {}
    for number, row in iter_objects(path):
        request_id, calls, text = row.get("request_id"), row.get("tool_calls"), row.get("text")
        calls, text = [] if calls is None else calls, "" if text is None else text
        if not isinstance(request_id, str) or not isinstance(text, str):
            raise at_line(path, number, "needs 'request_id' and 'text' as strings")
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise at_line(path, number, "'tool_calls' must be a list of objects")
        if request_id in answers:
            raise at_line(path, number, f"a second answer for {json.dumps(request_id)}")
        answers[request_id] = ScriptedAnswer(calls, text)
    return answers


def _finish_reason(whole: bool, calls: bool) -> FinishReason:
    if not whole:
        return FinishReason.LENGTH
    return FinishReason.TOOL_CALLS if calls else FinishReason.STOP
