"""What can go wrong with a server: one word for each, and the outcome of the turn it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.outcome import Outcome
from edge_agentic.core.text import one_line
from edge_agentic.engine.openai_endpoint import ApiKey, hiding
from edge_agentic.engine.openai_values import as_count, as_object, as_text

_MOST_CHARACTERS: Final = 300
MOST_SAID: Final = 4096
"""Of what a server said: more than is shown, as the key must be hidden before the cut."""


class Fault(str, Enum):
    """Why a request has no usable answer. The word starts the turn's `error`."""

    REFUSED = "connection_refused"
    """Nothing listens there, the name is unknown, or the certificate is not trusted."""
    NO_ANSWER = "no_answer"
    """The deadline passed before the first byte of the answer."""
    STALLED = "stalled"
    """The deadline passed in the middle of the answer."""
    RESET = "connection_reset"
    """The connection broke."""
    CUT_SHORT = "cut_short"
    """The answer stopped before its end."""
    TOO_LARGE = "too_large"
    """The answer outgrew every limit; nobody would wait for its end."""
    NOT_HTTP = "not_http"
    """What came is no HTTP response."""
    NOT_EVENTS = "not_events"
    """The response is neither an event stream nor a chat completion: a web page, say."""
    BAD_EVENT = "bad_event"
    """An event of the stream is damaged: a part of the answer is lost."""
    EMPTY = "empty"
    """The stream ended without any answer in it."""
    MIXED = "mixed"
    """The stream holds another request's answer, or more than one."""
    REDIRECTED = "redirected"
    """The server points elsewhere; neither the conversation nor a key is sent after it."""
    UNAUTHORIZED = "unauthorized"
    """The server wants a key, or another one."""
    NOT_FOUND = "not_found"
    """The server does not know the path or the model."""
    RATE_LIMITED = "rate_limited"
    """The server puts the client off (429)."""
    UNAVAILABLE = "unavailable"
    """The server is not ready (503)."""
    REJECTED = "rejected"
    """The server refuses the request as it is (other 4xx)."""
    SERVER_ERROR = "server_error"
    """The server failed (5xx, or an error in the stream)."""
    CONTEXT_OVERFLOW = "context_overflow"
    """Prompt and answer don't fit the context window."""
    NOT_EXACT = "not_exact"
    """Exactly so many tokens were asked for, and the server gave another number."""

    @property
    def outcome(self) -> Outcome:
        """The outcome of a turn that ends so."""
        if self in (Fault.NO_ANSWER, Fault.STALLED):
            return Outcome.TIMEOUT
        if self is Fault.CONTEXT_OVERFLOW:
            return Outcome.CONTEXT_OVERFLOW
        return Outcome.ENGINE_FAILED


@dataclass(frozen=True)
class Failure:
    """A fault, what is known about it, and the prompt's tokens where the server names them."""

    fault: Fault
    detail: str
    prompt_tokens: int | None = None

    def told(self, key: ApiKey | None) -> str:
        """One line that starts with the fault's word, without the key, which a server may echo."""
        detail = one_line(hiding(key)(self.detail))
        if len(detail) > _MOST_CHARACTERS:
            detail = f"{detail[:_MOST_CHARACTERS]}…"
        return f"{self.fault.value}: {detail}" if detail else self.fault.value


def status_failure(status: int, headers: Mapping[str, str], body: bytes) -> Failure | None:
    """What a response's status says; None for 200."""
    if status == 200:
        return None
    payload = as_object(body)
    if payload is not None and status >= 400:
        failure = error_failure(payload)
        if failure.fault is Fault.CONTEXT_OVERFLOW:
            return failure
    said = _first_text(payload) or body[:MOST_SAID].decode("utf-8", "replace")
    detail = f"HTTP {status}: {said.strip()}" if said.strip() else f"HTTP {status}"
    if 300 <= status < 400:
        target = headers.get("location", "nowhere")
        return Failure(Fault.REDIRECTED, f"HTTP {status} to {target}; give the final --base-url")
    if wait := headers.get("retry-after"):
        detail += f" (Retry-After: {wait})"
    return Failure(_by_status(status), detail)


def error_failure(payload: JsonObject) -> Failure:
    """The failure that an error object describes, in any of the servers' shapes."""
    error = payload.get("error", payload)
    fields: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    said = _first_text(payload) or json.dumps(payload)[:MOST_SAID]
    words = " ".join(filter(None, (said, *(as_text(fields.get(key)) for key in ("type", "code")))))
    if not _OVERFLOW.search(words):
        code = as_count(fields.get("code")) or 0
        return Failure(_by_status(code) if 400 <= code < 600 else Fault.SERVER_ERROR, said)
    prompt, context = as_count(fields.get("n_prompt_tokens")), as_count(fields.get("n_ctx"))
    if prompt is None or context is None:
        prompt, context = next(_named_counts(said), (None, None))
    if prompt is None or context is None:
        return Failure(Fault.CONTEXT_OVERFLOW, said)
    verb = "exceed" if prompt > context else "and the answer exceed"
    return Failure(
        Fault.CONTEXT_OVERFLOW, f"{prompt} prompt tokens {verb} the context of {context}", prompt
    )


_OVERFLOW: Final = re.compile(
    r"exceed_context|context_length_exceeded|context[ _](?:length|size|window)"
    r"|max_(?:seq|model|input)_len|maximum (?:input|model) length|prompt is too long",
    re.IGNORECASE,
)
_PROMPT_AND_CONTEXT: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"Requested tokens \((?P<prompt>\d+)\) exceed context window of (?P<context>\d+)",
        r"maximum context length (?:is|of) (?P<context>\d+).*?"
        r"\((?P<prompt>\d+) (?:in|from|of) (?:the|your) (?:messages|prompt|input)",
        r"maximum context length (?:is|of) (?P<context>\d+).*?"
        r"(?P<prompt>\d+) tokens from the input messages",
        r"prompt \(length (?P<prompt>\d+)\) is longer than the maximum model length of "
        r"(?P<context>\d+)",
        r"request \((?P<prompt>\d+) tokens\) exceeds the available context size "
        r"\((?P<context>\d+)",
        r"input \((?P<prompt>\d+) tokens\) is longer than the model's context length "
        r"\((?P<context>\d+)",
        r"maximum context length (?:is|of) (?P<context>\d+).*?"
        r"(?:passed|contains at least|has) (?P<prompt>\d+) input tokens",
        r"prompt length \(?(?P<prompt>\d+)\)?.*?max_(?:seq|model|input)_len \(?(?P<context>\d+)",
    )
)


def _named_counts(said: str) -> Iterator[tuple[int, int]]:
    for pattern in _PROMPT_AND_CONTEXT:
        if match := pattern.search(said):
            yield int(match["prompt"]), int(match["context"])


def _by_status(status: int) -> Fault:
    known = {
        401: Fault.UNAUTHORIZED,
        403: Fault.UNAUTHORIZED,
        404: Fault.NOT_FOUND,
        429: Fault.RATE_LIMITED,
        503: Fault.UNAVAILABLE,
    }
    return known.get(status, Fault.REJECTED if 400 <= status < 500 else Fault.SERVER_ERROR)


def _first_text(payload: JsonObject | None) -> str:
    """The message of an error object, wherever the server keeps it."""
    for fields in (payload.get("error"), payload) if payload else ():
        if isinstance(fields, str):
            return fields
        if isinstance(fields, Mapping):
            for key in ("message", "detail", "error"):
                if isinstance(fields.get(key), str) and fields[key]:
                    return str(fields[key])
                if key == "detail" and fields.get(key):
                    return json.dumps(fields[key])
    return ""
