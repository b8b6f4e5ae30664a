"""A loaded model and its context, through llama.cpp's C API: tokens in, tokens out.

The only module that imports `llama_cpp`; importing it loads the shared library.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import llama_cpp
from llama_cpp.llama_grammar import json_schema_to_gbnf

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.text import one_line
from edge_agentic.engine.choices import MAX_CONTEXT_TOKENS, MAX_THREADS

_SEQUENCE = 0
_LIMITS: Final = {
    "context_tokens": MAX_CONTEXT_TOKENS,
    "batch_tokens": MAX_CONTEXT_TOKENS,
    "micro_batch_tokens": MAX_CONTEXT_TOKENS,
    "threads": MAX_THREADS,
}
_LOG_LEVEL_WARN: Final = 3
_LOG_LEVEL_ERROR: Final = 4
_MAX_REASON_CHARACTERS: Final = 300
_FUNCTION_PREFIX: Final = re.compile(r"^[\w:~]+: ")

# The first line of each level: the cause comes first, its consequences follow. llama.cpp calls
# `dict.setdefault` itself. A Python function would run waiting signal handlers, and what they
# raise inside a callback is lost. The callback's third argument is never read: both calling
# conventions (x86-64, aarch64) allow to leave it out.
_first_lines: dict[int, bytes] = {}
_keep_line = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p)(_first_lines.setdefault)
_log_callback = ctypes.cast(_keep_line, llama_cpp.llama_log_callback)


@dataclass(frozen=True)
class RuntimeSettings:
    """How a model is loaded. `gpu_layers` -1 puts every layer on the accelerator."""

    context_tokens: int
    batch_tokens: int
    micro_batch_tokens: int
    threads: int
    gpu_layers: int = -1

    def __post_init__(self) -> None:
        """Refuse sizes that llama.cpp can't run with.

        Raises:
            BadInputError: they come from options, device profiles and model files.
        """
        for name, most in _LIMITS.items():
            value = getattr(self, name)
            if not 1 <= value <= most:
                raise BadInputError(f"{name} must be from 1 to {most}, got {value}")


class DecodeError(Exception):
    """llama.cpp refused a batch; the context must be cleared before it is used again."""


class DeadlineError(Exception):
    """The deadline passed between two batches of a prompt."""


class LlamaRuntime:
    """One model, one context, one sequence. Not shared between threads."""

    def __init__(self, path: Path, settings: RuntimeSettings) -> None:
        """Load the model.

        Raises:
            BadInputError: llama.cpp can't load the file or has no memory for the context.
        """
        self._model: Any = None
        self._context: Any = None
        llama_cpp.llama_log_set(_log_callback, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        model_params = llama_cpp.llama_model_default_params()
        model_params.n_gpu_layers = 999 if settings.gpu_layers < 0 else settings.gpu_layers
        _first_lines.clear()
        self._model = llama_cpp.llama_model_load_from_file(os.fsencode(path), model_params)
        if not self._model:
            raise BadInputError(f"{path}: llama.cpp can't load this model ({_reason()})")
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._open_context(path, settings)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._one_token = (llama_cpp.llama_token * 1)()
        self._one_token_batch = llama_cpp.llama_batch_get_one(self._one_token, 1)
        self._pieces: dict[int, bytes] = {}
        self.batch_tokens = int(llama_cpp.llama_n_batch(self._context))
        self.context_tokens = int(llama_cpp.llama_n_ctx(self._context))

    def _open_context(self, path: Path, settings: RuntimeSettings) -> None:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = settings.context_tokens
        params.n_batch = settings.batch_tokens
        params.n_ubatch = min(settings.micro_batch_tokens, settings.batch_tokens)
        params.n_threads = params.n_threads_batch = settings.threads
        params.no_perf = True
        _first_lines.clear()
        self._context = llama_cpp.llama_init_from_model(self._model, params)
        if not self._context:
            reason = _reason()
            self.close()
            raise BadInputError(
                f"{path}: no context of {settings.context_tokens} tokens ({reason}); "
                "try a smaller --context"
            )

    @property
    def memory_kind(self) -> str:
        """`attention`, `sliding_window`, `recurrent` or `hybrid`: what the context remembers."""
        if llama_cpp.llama_model_is_recurrent(self._model):
            return "recurrent"
        if llama_cpp.llama_model_is_hybrid(self._model):
            return "hybrid"
        if llama_cpp.llama_model_n_swa(self._model) > 0:
            return "sliding_window"
        return "attention"

    def special_token(self, token: int) -> str:
        """The text of a special token; empty where the vocabulary has none."""
        return self.piece(token).decode("utf-8", "replace") if token >= 0 else ""

    @property
    def bos_token(self) -> str:
        """The text of the token that starts a sequence."""
        return self.special_token(llama_cpp.llama_vocab_bos(self._vocab))

    @property
    def eos_token(self) -> str:
        """The text of the token that ends a sequence."""
        return self.special_token(llama_cpp.llama_vocab_eos(self._vocab))

    def tokenize(self, text: str) -> list[int]:
        """Tokens of a rendered prompt, special tokens recognised.

        A template may write the start token itself; the result starts with at most one.
        """
        raw = text.encode("utf-8", "replace")
        bos = self.bos_token
        add_special = not (bos and text.startswith(bos))
        tokens = (llama_cpp.llama_token * (len(raw) + 8))()
        count = self._tokenize_into(tokens, raw, add_special)
        if count < 0:
            # A byte can take several tokens; the negative count is the size that is needed.
            tokens = (llama_cpp.llama_token * -count)()
            count = self._tokenize_into(tokens, raw, add_special)
        return list(tokens[:count])

    def _tokenize_into(self, tokens: Any, raw: bytes, add_special: bool) -> int:
        return int(
            llama_cpp.llama_tokenize(
                self._vocab, raw, len(raw), tokens, len(tokens), add_special, True
            )
        )

    def piece(self, token: int) -> bytes:
        """The bytes of one token, special tokens included; may be part of a character."""
        known = self._pieces.get(token)
        if known is not None:
            return known
        buffer = ctypes.create_string_buffer(64)
        length = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, 64, 0, True)
        if length < 0:
            buffer = ctypes.create_string_buffer(-length)
            length = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, -length, 0, True)
        self._pieces[token] = buffer.raw[: max(length, 0)]
        return self._pieces[token]

    def is_end(self, token: int) -> bool:
        """Whether the model ends its answer with this token."""
        return bool(llama_cpp.llama_vocab_is_eog(self._vocab, token))

    def keep(self, tokens: int) -> bool:
        """Forget everything past the first `tokens` positions; False if that is impossible."""
        return bool(llama_cpp.llama_memory_seq_rm(self._memory, _SEQUENCE, tokens, -1))

    def clear(self) -> None:
        """Forget everything."""
        llama_cpp.llama_memory_clear(self._memory, True)

    def evaluate(self, tokens: Sequence[int], before_batch: Callable[[], bool]) -> None:
        """Evaluate tokens after those in memory, a batch at a time.

        Args:
            tokens: what to evaluate; at least one.
            before_batch: asked before each batch whether there is time to go on.

        Raises:
            DecodeError: llama.cpp refused a batch.
            DeadlineError: `before_batch` said no.
        """
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        pointer_type = ctypes.POINTER(llama_cpp.llama_token)
        for start in range(0, len(tokens), self.batch_tokens):
            if not before_batch():
                raise DeadlineError
            count = min(self.batch_tokens, len(tokens) - start)
            offset = start * ctypes.sizeof(llama_cpp.llama_token)
            pointer = ctypes.cast(ctypes.byref(array, offset), pointer_type)
            self._decode(llama_cpp.llama_batch_get_one(pointer, count))

    def evaluate_one(self, token: int) -> None:
        """Evaluate one token after those in memory.

        Raises:
            DecodeError: llama.cpp refused it.
        """
        self._one_token[0] = token
        self._decode(self._one_token_batch)

    def _decode(self, batch: Any) -> None:
        _first_lines.clear()
        status = llama_cpp.llama_decode(self._context, batch)
        if status != 0:
            raise DecodeError(f"llama_decode returned {status} ({_reason()})")

    def sampler(self, schema: JsonObject | None) -> Sampler:
        """A greedy sampler, held to a JSON schema if one is given.

        Raises:
            BadInputError: no grammar can be made from the schema.
        """
        return Sampler(self._vocab, self._context, schema)

    def close(self) -> None:
        """Free the context and the model. Safe to call twice."""
        if self._context:
            llama_cpp.llama_free(self._context)
            self._context = None
        if self._model:
            llama_cpp.llama_model_free(self._model)
            self._model = None


class Sampler:
    """Picks the likeliest token in C; with a schema, the likeliest that the schema allows.

    A context manager: it frees the C sampler at the end.
    """

    def __init__(self, vocab: Any, context: Any, schema: JsonObject | None) -> None:
        """Build the sampler; see `LlamaRuntime.sampler`."""
        self._context = context
        self._greedy = llama_cpp.llama_sampler_init_greedy()
        self._grammar: Any = None
        self._chain: Any = None
        if schema is None:
            return
        self._grammar = _grammar_sampler(vocab, schema)
        chain_params = llama_cpp.llama_sampler_chain_default_params()
        self._chain = llama_cpp.llama_sampler_chain_init(chain_params)
        llama_cpp.llama_sampler_chain_add(self._chain, self._grammar)
        llama_cpp.llama_sampler_chain_add(self._chain, llama_cpp.llama_sampler_init_greedy())
        self._candidate = (llama_cpp.llama_token_data * 1)()
        self._candidates = llama_cpp.llama_token_data_array(
            data=self._candidate, size=1, selected=-1, sorted=False
        )

    def sample(self) -> int:
        """The next token, from the logits of the last evaluated one."""
        token = int(llama_cpp.llama_sampler_sample(self._greedy, self._context, -1))
        if self._grammar is None:
            return token
        # Testing one candidate is far cheaper than masking the whole vocabulary, and the
        # likeliest token is nearly always allowed.
        self._candidate[0].id, self._candidate[0].logit = token, 1.0
        llama_cpp.llama_sampler_apply(self._grammar, ctypes.byref(self._candidates))
        if math.isinf(self._candidate[0].logit):
            return int(llama_cpp.llama_sampler_sample(self._chain, self._context, -1))
        llama_cpp.llama_sampler_accept(self._grammar, token)
        return token

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, *exc: object) -> None:
        llama_cpp.llama_sampler_free(self._greedy)
        if self._chain is not None:
            llama_cpp.llama_sampler_free(self._chain)


def version() -> str:
    """Version of the binding package, which pins the llama.cpp it carries."""
    return str(llama_cpp.__version__)


def _grammar_sampler(vocab: Any, schema: JsonObject) -> Any:
    try:
        grammar = json_schema_to_gbnf(json.dumps(schema))
    except Exception as error:  # the converter raises whatever a hostile schema makes it raise
        raise BadInputError(f"no grammar can be made from the tools' schema: {error}") from None
    _first_lines.clear()
    sampler = llama_cpp.llama_sampler_init_grammar(vocab, grammar.encode(), b"root")
    if not sampler:
        raise BadInputError(f"llama.cpp refused the tools' grammar ({_reason()})")
    return sampler


def _reason() -> str:
    """The first error that llama.cpp gave since its log was cleared, else the first warning."""
    line = _first_lines.get(_LOG_LEVEL_ERROR) or _first_lines.get(_LOG_LEVEL_WARN) or b""
    text = _FUNCTION_PREFIX.sub("", line.decode("utf-8", "replace").strip())
    return one_line(text[:_MAX_REASON_CHARACTERS]) or "no reason given"
