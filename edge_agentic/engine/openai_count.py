"""Counts the tokens of a prompt with a server's own template and tokenizer, where it lends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from edge_agentic.core.jsonio import JsonObject, dump_line
from edge_agentic.core.messages import Message, ToolSpec
from edge_agentic.engine.openai_connection import OpenAIConnection
from edge_agentic.engine.openai_endpoint import Endpoint
from edge_agentic.engine.openai_request import in_dialect, thinking_off
from edge_agentic.engine.openai_values import as_count, as_object
from edge_agentic.engine.server_kinds import Dialect, ServerKind

_TIMEOUT_S: Final = 60.0


class PromptCounter:
    """Counts prompts of one model. Evaluates nothing, so it leaves the prefix cache as it is."""

    def __init__(
        self,
        connection: OpenAIConnection,
        endpoint: Endpoint,
        model: str,
        kind: ServerKind,
        dialect: Dialect,
    ) -> None:
        """Count by way of a connection; nothing is sent before the first prompt."""
        self._connection, self._root, self._model = connection, endpoint.root_path, model
        self._kind, self._dialect = kind, dialect

    def count(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> int | None:
        """The prompt's tokens; None where the server has no way to tell."""
        body: JsonObject = {
            "model": self._model,
            "messages": [in_dialect(message, self._dialect) for message in messages],
            "add_generation_prompt": True,
            **thinking_off(self._dialect),
        }
        if tools:
            body["tools"] = list(tools)
        if self._kind is ServerKind.VLLM:
            return as_count((self._post("/tokenize", body) or {}).get("count"))
        if self._kind is not ServerKind.LLAMA_SERVER:
            return None
        prompt = (self._post("/apply-template", body) or {}).get("prompt")
        if not isinstance(prompt, str):
            return None
        asked = {"content": prompt, "add_special": True, "parse_special": True}
        tokens: Any = (self._post("/tokenize", asked) or {}).get("tokens")
        return len(tokens) if isinstance(tokens, list) else None

    def _post(self, path: str, body: JsonObject) -> JsonObject | None:
        exchange = self._connection.exchange(
            "POST", f"{self._root}{path}", dump_line(body).encode(), deadline_s=_TIMEOUT_S
        )
        if exchange.failure is not None or exchange.head is None or exchange.head.status != 200:
            return None
        return as_object(exchange.body)
