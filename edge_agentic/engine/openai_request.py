"""Writes a chat request in the dialect of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from edge_agentic.chat.constrain import answer_schema
from edge_agentic.chat.generic import flatten
from edge_agentic.core.jsonio import JsonObject, dump_line
from edge_agentic.core.messages import Message
from edge_agentic.engine.api import ChatRequest
from edge_agentic.engine.server_kinds import Dialect

SEED: Final = 42
"""MLPerf Inference v6.1, edge-agentic: temperature 0, seed 42."""

_RECORDED_REASONING: Final = "reasoning_content"


def chat_body(
    request: ChatRequest, model: str, dialect: Dialect, *, constrained: bool = False
) -> bytes:
    """The JSON body of a streamed, greedy request.

    Args:
        request: what to ask.
        model: the server's name of the model.
        dialect: how this server is asked.
        constrained: offer the tools in the generic text form, as the in-process engine does for
            a model without a form of its own, and hold the answer to their schemas.

    Raises:
        ValueError: the messages hold what JSON or UTF-8 has no form for.
    """
    messages: list[Any]
    if constrained:
        messages = list(flatten(request.messages, request.tools))
    else:
        messages = [_message(message, dialect.history_reasoning) for message in request.messages]
    body: JsonObject = {
        "model": model,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "seed": SEED,
        dialect.token_limit: request.max_output_tokens,
    }
    if constrained and request.tools:
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
    return dump_line(body).encode("utf-8")


def _response_format(schema: JsonObject, dialect: Dialect) -> JsonObject:
    if dialect.constraint == "json_object":
        return {"type": "json_object", "schema": schema}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _message(message: Message, reasoning_field: str | None) -> Mapping[str, Any]:
    if _RECORDED_REASONING not in message or reasoning_field == _RECORDED_REASONING:
        return message
    kept = {key: value for key, value in message.items() if key != _RECORDED_REASONING}
    if reasoning_field is not None:
        kept[reasoning_field] = message[_RECORDED_REASONING]
    return kept
