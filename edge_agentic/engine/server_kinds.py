"""The kinds of OpenAI-compatible servers: what each takes in a request, and what to change on it.

The facts are those of each server's documentation; none of the kinds but llama.cpp's two was
tried on hardware.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject


class ServerKind(str, Enum):
    """Which server answers."""

    LLAMA_SERVER = "llama-server"
    LLAMA_CPP_PYTHON = "llama-cpp-python"
    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM_SERVE = "trtllm-serve"
    TRTLLM_EDGE = "trtllm-edge"
    OLLAMA = "ollama"
    OTHER = "other"
    """Any other: nothing but the common part of the API is used."""


class Cause(str, Enum):
    """What a user can change on a server."""

    TOOLS = "tools"
    """The tools don't reach the model, or its calls come back as text."""
    REUSE = "reuse"
    """The prompt is processed again in every turn."""
    CACHE_REPORT = "cache_report"
    """The prompt tokens that it reused are not counted."""
    CONTEXT = "context"
    """The window is too small."""
    EXACT = "exact"
    """The number of output tokens can't be fixed."""
    REASONING = "reasoning"
    """The model reasons before it answers."""


@dataclass(frozen=True)
class Dialect:
    """How a request to a server is written. Each field is a name of `--server-setting`."""

    history_reasoning: str | None = None
    """The message field that carries recorded reasoning; None leaves it out."""
    no_content: str | None = None
    """What a message of calls alone carries as its content."""
    tool_choice: str | None = "auto"
    """Sent with tools; None leaves it out."""
    parallel_tool_calls: bool | None = None
    """None leaves the server's default."""
    token_limit: str = "max_tokens"
    """The name of the output limit."""
    thinking_off: str | None = "chat_template_kwargs"
    """How reasoning is switched off: `chat_template_kwargs` or `reasoning_effort`."""
    exact: str | None = "ignore_eos"
    """How an exact length is asked for: `ignore_eos`, or `min_tokens` along with it."""
    no_penalty: str | None = None
    """The name of the penalty on repetition, sent as 1: some servers set another by default."""
    constraint: str = "json_schema"
    """How answers are held to the functions' schemas: `response_format` of this type, `json_object`
    with the schema beside it, or the in-process engine's own `grammar`, which llama.cpp takes."""
    cache_prompt: bool | None = None
    """Sent as `cache_prompt`; None leaves it out."""

    def to_json(self) -> JsonObject:
        """The settings as the manifest holds them."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}


@dataclass(frozen=True)
class _Facts:
    dialect: Dialect
    remedies: Mapping[Cause, str]


def dialect_of(kind: ServerKind, overrides: Sequence[str] = ()) -> Dialect:
    """How to write requests for a kind of server.

    Args:
        kind: the server.
        overrides: `NAME=VALUE`, fields of `Dialect`; the value `none` leaves a field out.

    Raises:
        BadInputError: an unknown name, or a value that it can't have.
    """
    dialect = _KINDS[kind].dialect
    for override in overrides:
        name, has_value, text = override.partition("=")
        choices = _CHOICES.get(name)
        if not has_value or choices is None:
            raise BadInputError(
                f"--server-setting {override!r}: give NAME=VALUE with one of the names "
                + ", ".join(_CHOICES)
            )
        if text not in choices:
            raise BadInputError(
                f"--server-setting {override!r}: the value is one of {', '.join(choices)}"
            )
        changes: dict[str, Any] = {name: choices[text]}
        dialect = replace(dialect, **changes)
    return dialect


def remedy(kind: ServerKind, cause: Cause) -> str:
    """What to change on a server, as the end of a sentence."""
    return _KINDS[kind].remedies.get(cause) or _ANY[cause]


_NONE: Final = "none"
_SWITCH: Final = {"true": True, "false": False, _NONE: None}
_CHOICES: Final[Mapping[str, Mapping[str, Any]]] = {
    "history_reasoning": {
        "reasoning_content": "reasoning_content",
        "reasoning": "reasoning",
        _NONE: None,
    },
    "no_content": {"empty": "", _NONE: None},
    "tool_choice": {"auto": "auto", _NONE: None},
    "parallel_tool_calls": _SWITCH,
    "token_limit": {
        "max_tokens": "max_tokens",
        "max_completion_tokens": "max_completion_tokens",
    },
    "thinking_off": {
        "chat_template_kwargs": "chat_template_kwargs",
        "reasoning_effort": "reasoning_effort",
        _NONE: None,
    },
    "exact": {"ignore_eos": "ignore_eos", "min_tokens": "min_tokens", _NONE: None},
    "no_penalty": {
        "repeat_penalty": "repeat_penalty",
        "repetition_penalty": "repetition_penalty",
        _NONE: None,
    },
    "constraint": {
        "json_schema": "json_schema",
        "json_object": "json_object",
        "grammar": "grammar",
    },
    "cache_prompt": _SWITCH,
}

_ANY: Final[Mapping[Cause, str]] = {
    Cause.TOOLS: "serve the model with a chat template and a parser for its tool calls",
    Cause.REUSE: "switch prefix caching on, and let no other client use the server",
    Cause.CACHE_REPORT: "only times can tell whether it reuses prompts",
    Cause.CONTEXT: "serve the model with a larger context window",
    Cause.EXACT: "use a server that takes ignore_eos, or another policy",
    Cause.REASONING: "serve the model with reasoning switched off",
}

_KINDS: Final[Mapping[ServerKind, _Facts]] = {
    ServerKind.LLAMA_SERVER: _Facts(
        Dialect(
            history_reasoning="reasoning_content",
            parallel_tool_calls=True,
            constraint="grammar",
            cache_prompt=True,
        ),
        {
            Cause.TOOLS: (
                "start llama-server with --jinja and, if the GGUF's own template knows no "
                "tools, --chat-template-file with one that does"
            ),
            Cause.REUSE: (
                "start llama-server with --parallel 1 and without --no-cache-prompt; a hybrid "
                "or recurrent model needs a version with context checkpoints "
                "(--ctx-checkpoints), a sliding-window model these or --swa-full"
            ),
            Cause.CONTEXT: "start llama-server with a larger --ctx-size",
            Cause.REASONING: "start llama-server with --reasoning-budget 0",
        },
    ),
    ServerKind.LLAMA_CPP_PYTHON: _Facts(
        Dialect(
            # It refuses a message whose content is null.
            no_content="",
            thinking_off=None,
            exact=None,
            no_penalty="repeat_penalty",
            constraint="grammar",
        ),
        {
            Cause.TOOLS: "start llama_cpp.server with --chat_format chatml-function-calling",
            Cause.REUSE: (
                "llama_cpp.server can't reuse the prompt of a hybrid, recurrent or sliding-window "
                "model; use llama-server or --engine llamacpp"
            ),
            Cause.CONTEXT: "start llama_cpp.server with a larger --n_ctx",
        },
    ),
    ServerKind.VLLM: _Facts(
        Dialect(history_reasoning="reasoning", exact="min_tokens", no_penalty="repetition_penalty"),
        {
            Cause.TOOLS: "start vLLM with --enable-auto-tool-choice and --tool-call-parser",
            Cause.REUSE: (
                "start vLLM with --enable-prefix-caching and enough KV cache "
                "(--gpu-memory-utilization)"
            ),
            Cause.CACHE_REPORT: "start vLLM with --enable-prompt-tokens-details",
            Cause.CONTEXT: "start vLLM with a larger --max-model-len",
            Cause.REASONING: (
                "start vLLM with --default-chat-template-kwargs '{\"enable_thinking\": false}'"
            ),
        },
    ),
    ServerKind.SGLANG: _Facts(
        Dialect(history_reasoning="reasoning_content", no_penalty="repetition_penalty"),
        {
            Cause.TOOLS: "start SGLang with --tool-call-parser",
            Cause.REUSE: (
                "start SGLang without --disable-radix-cache and with enough KV cache "
                "(--mem-fraction-static)"
            ),
            Cause.CACHE_REPORT: "start SGLang with --enable-cache-report",
            Cause.CONTEXT: "start SGLang with a larger --context-length",
        },
    ),
    ServerKind.TRTLLM_SERVE: _Facts(
        Dialect(history_reasoning="reasoning_content", no_penalty="repetition_penalty"),
        {
            Cause.TOOLS: "start trtllm-serve with --tool_parser",
            Cause.REUSE: "set enable_block_reuse: true in trtllm-serve's kv_cache_config",
            Cause.CONTEXT: "start trtllm-serve with a larger --max_seq_len",
        },
    ),
    ServerKind.TRTLLM_EDGE: _Facts(
        Dialect(history_reasoning="reasoning_content"),
        {
            Cause.TOOLS: (
                "start TensorRT Edge-LLM with --enable-auto-tool-choice and --tool-call-parser"
            ),
            Cause.REUSE: "start TensorRT Edge-LLM with --enable-context-reuse",
            Cause.CONTEXT: (
                "start TensorRT Edge-LLM with a larger --max-input-len and --max-kv-cache-capacity"
            ),
        },
    ),
    ServerKind.OLLAMA: _Facts(
        Dialect(thinking_off="reasoning_effort", exact=None),
        {
            Cause.TOOLS: "give the Ollama model a TEMPLATE with tools",
            Cause.REUSE: "set OLLAMA_NUM_PARALLEL=1, and keep the model loaded (OLLAMA_KEEP_ALIVE)",
            Cause.CONTEXT: (
                "set OLLAMA_CONTEXT_LENGTH: Ollama cuts a longer prompt without a word"
            ),
            Cause.EXACT: "Ollama ignores ignore_eos; use another server, or another policy",
        },
    ),
    ServerKind.OTHER: _Facts(Dialect(), {}),
}
