"""Writes chat requests in the dialect of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any, Final

from edge_agentic.chat.call_grammar import answer_grammar
from edge_agentic.chat.generic import flatten
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.jsonio import JsonObject, dump_line
from edge_agentic.core.messages import Message, ToolSpec
from edge_agentic.engine.api import ChatRequest
from edge_agentic.engine.gbnf import to_gbnf
from edge_agentic.engine.openai_schema import answer_schema
from edge_agentic.engine.server_kinds import Dialect

SEED: Final = 42
"""MLPerf Inference v6.1, edge-agentic: temperature 0, seed 42."""

_RECORDED_REASONING: Final = "reasoning_content"


class RequestWriter:
    """Writes the JSON bodies of streamed, greedy requests to one model.

    A conversation repeats its messages in every turn, so what was written last is kept and the
    new ones are added to it.
    """

    def __init__(self, model: str, dialect: Dialect, *, constrained: bool) -> None:
        """Write for one model.

        Args:
            model: the server's name of the model.
            dialect: how this server is asked.
            constrained: offer the tools in the generic text form, as the in-process engine does
                for a model without a form of its own, and hold the answer to their schemas.
        """
        self._dialect, self._constrained = dialect, constrained
        self._start = (dump_line({"model": model})[:-1] + ',"messages":[').encode()
        self._written: tuple[Sequence[Message], bytes] = ((), b"")

    def body(self, request: ChatRequest) -> bytes:
        """The body of one request.

        Raises:
            BadInputError: a tool has a schema that no grammar can be made from.
            ValueError: the messages hold what JSON or UTF-8 has no form for.
        """
        settings = dump_line(self._settings(request))[1:].encode()
        return b"".join((self._start, self._messages(request), b"],", settings))

    def _messages(self, request: ChatRequest) -> bytes:
        if self._constrained:
            return _dump_messages(flatten(request.messages, request.tools))
        before, written = self._written
        # Only the very same messages: equal ones may differ in JSON, as 1 and true do.
        if len(before) > len(request.messages) or not all(map(is_, before, request.messages)):
            before, written = (), b""
        new = [in_dialect(message, self._dialect) for message in request.messages[len(before) :]]
        parts = [part for part in (written, _dump_messages(new)) if part]
        self._written = (tuple(request.messages), b",".join(parts))
        return self._written[1]

    def _settings(self, request: ChatRequest) -> JsonObject:
        """Everything but the model and the messages."""
        dialect = self._dialect
        body: JsonObject = {
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
            "seed": SEED,
            dialect.token_limit: request.max_output_tokens,
        }
        if request.tools and self._constrained:
            # A constrained answer ends where its schema does, so it can't have a given length.
            if not request.force_length:
                body |= _constraint(request.tools, dialect)
        elif request.tools:
            body["tools"] = list(request.tools)
            if dialect.tool_choice is not None:
                body["tool_choice"] = dialect.tool_choice
            if dialect.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = dialect.parallel_tool_calls
        body |= thinking_off(dialect)
        if dialect.no_penalty is not None:
            body[dialect.no_penalty] = 1.0
        if dialect.cache_prompt is not None:
            body["cache_prompt"] = dialect.cache_prompt
        if request.force_length and dialect.exact is not None:
            body["ignore_eos"] = True
            if dialect.exact == "min_tokens":
                body["min_tokens"] = request.max_output_tokens
        return body


def in_dialect(message: Message, dialect: Dialect) -> Mapping[str, Any]:
    """The message as the server reads it: recorded reasoning in its field, or left out."""
    written = dict(message)
    reasoning = written.pop(_RECORDED_REASONING, None)
    if reasoning is not None and dialect.history_reasoning is not None:
        written[dialect.history_reasoning] = reasoning
    if written.get("content", "") is None:
        written["content"] = dialect.no_content
    return written


def thinking_off(dialect: Dialect) -> JsonObject:
    """The fields that switch reasoning off; a prompt is counted with the same ones."""
    if dialect.thinking_off == "chat_template_kwargs":
        return {"chat_template_kwargs": {"enable_thinking": False}}
    return {"reasoning_effort": "none"} if dialect.thinking_off == "reasoning_effort" else {}


def _dump_messages(messages: Sequence[Mapping[str, Any]]) -> bytes:
    """The messages as the inside of a JSON list."""
    return dump_line(messages)[1:-1].encode()


def _constraint(tools: Sequence[ToolSpec], dialect: Dialect) -> JsonObject:
    if dialect.constraint == "grammar":
        return {"grammar": to_gbnf(answer_grammar(ToolFormat.GENERIC, tools))}
    schema = answer_schema(tools)
    if dialect.constraint == "json_object":
        return {"response_format": {"type": "json_object", "schema": schema}}
    named = {"name": "answer", "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}
