"""Writes chat requests in the dialect of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from edge_agentic.chat.generic import flatten
from edge_agentic.core.jsonio import JsonObject, dump_line
from edge_agentic.core.messages import Message
from edge_agentic.engine.api import ChatRequest
from edge_agentic.engine.openai_schema import answer_schema
from edge_agentic.engine.server_kinds import Dialect

SEED: Final = 42
"""MLPerf Inference v6.1, edge-agentic: temperature 0, seed 42."""

_RECORDED_REASONING: Final = "reasoning_content"


class RequestWriter:
    """Writes the JSON bodies of streamed, greedy requests to one model.

    A conversation repeats its messages in every turn; each is rendered once and kept until
    the next conversation.
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
        self._start = dump_line({"model": model})[:-1]
        self._conversation: str | None = None
        self._rendered: dict[int, tuple[Message, str]] = {}

    def body(self, request: ChatRequest) -> bytes:
        """The body of one request.

        Raises:
            ValueError: the messages hold what JSON or UTF-8 has no form for.
        """
        messages = ",".join(self._messages(request))
        settings = dump_line(self._settings(request))[1:]
        return f'{self._start},"messages":[{messages}],{settings}'.encode()

    def _messages(self, request: ChatRequest) -> Sequence[str]:
        if self._constrained:
            return [dump_line(message) for message in flatten(request.messages, request.tools)]
        if request.conversation_id != self._conversation:
            self._conversation, self._rendered = request.conversation_id, {}
        return [self._message(message) for message in request.messages]

    def _message(self, message: Message) -> str:
        # The message is kept along with its text: no other can have its identity meanwhile.
        known = self._rendered.get(id(message))
        if known is None:
            text = dump_line(in_dialect(message, self._dialect.history_reasoning))
            known = self._rendered[id(message)] = (message, text)
        return known[1]

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
            body["response_format"] = _response_format(answer_schema(request.tools), dialect)
        elif request.tools:
            body["tools"] = list(request.tools)
            if dialect.tool_choice is not None:
                body["tool_choice"] = dialect.tool_choice
            if dialect.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = dialect.parallel_tool_calls
        if dialect.thinking_off == "chat_template_kwargs":
            body["chat_template_kwargs"] = {"enable_thinking": False}
        elif dialect.thinking_off == "reasoning_effort":
            body["reasoning_effort"] = "none"
        if dialect.no_penalty is not None:
            body[dialect.no_penalty] = 1.0
        if dialect.cache_prompt is not None:
            body["cache_prompt"] = dialect.cache_prompt
        if request.force_length and dialect.exact is not None:
            body["ignore_eos"] = True
            if dialect.exact == "min_tokens":
                body["min_tokens"] = request.max_output_tokens
        return body


def in_dialect(message: Message, reasoning_field: str | None) -> Mapping[str, Any]:
    """The message with its recorded reasoning where the server reads it; left out for None."""
    if _RECORDED_REASONING not in message or reasoning_field == _RECORDED_REASONING:
        return message
    kept = {key: value for key, value in message.items() if key != _RECORDED_REASONING}
    if reasoning_field is not None:
        kept[reasoning_field] = message[_RECORDED_REASONING]
    return kept


def _response_format(schema: JsonObject, dialect: Dialect) -> JsonObject:
    if dialect.constraint == "json_object":
        return {"type": "json_object", "schema": schema}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
