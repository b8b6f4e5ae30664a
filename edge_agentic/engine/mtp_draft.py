"""Drafts with the model's own head that predicts a further token (multi-token prediction, MTP).

The head is one more layer. For a token and the model's last hidden state at the token before it,
it predicts what follows the token, and a hidden state of its own, with which it goes on. It
remembers every position, in a context of its own, and has to see the prompt too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import llama_cpp

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine import llama_library
from edge_agentic.engine.gguf import GgufInfo
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import DecodeError, LlamaRuntime, RuntimeSettings
from edge_agentic.engine.llama_sampler import Sampler

ARCHITECTURES: Final = ("qwen35",)
"""Those whose head is known to work. llama.cpp aborts the process on some others."""

_VALUE_BYTES: Final = ctypes.sizeof(ctypes.c_float)


def require_head(info: GgufInfo) -> None:
    """Refuse a model that has no head to draft with, before it is loaded.

    Raises:
        BadInputError: the file has none, or one that this version can't use.
    """
    layers = info.hyper_parameter("nextn_predict_layers")
    if not layers:
        raise BadInputError(
            f"{info.path}: the file holds no head that predicts further tokens (its converter "
            "may have left it out); use --draft lookup"
        )
    if info.architecture not in ARCHITECTURES or layers != 1:
        raise BadInputError(
            f"{info.path}: --draft mtp knows one head of {' or '.join(ARCHITECTURES)}, not "
            f"{layers} of {info.architecture}; use --draft lookup"
        )


class MtpDrafter:
    """Drafts with the head of the model that it drafts for.

    At position p of its memory the head has the token there and the model's hidden state at
    p - 1. The state before the first token is all zeros.
    """

    def __init__(self, model: LlamaModel, runtime: LlamaRuntime, settings: RuntimeSettings) -> None:
        """Open the head's context, and have the model's context give its hidden states.

        Args:
            model: loaded with its head.
            runtime: the model's context, which must be empty.
            settings: of that context.

        Raises:
            BadInputError: this build of llama.cpp can't, or has no memory for it.
        """
        self._calls = _calls()
        self._target = runtime
        self._row_bytes = int(llama_cpp.llama_model_n_embd_out(model.handle)) * _VALUE_BYTES
        self._prompt: Sequence[int] = ()
        self._evaluated = 0
        # Where in the model's last batch the token stands that the next one follows.
        self._last_place = 0
        self._seen = 0
        self._unseen_tokens: list[int] = []
        self._unseen_rows: list[bytes] = []
        self._rows_at: dict[int, bytes] = {}
        with ExitStack() as parts:
            self._head = _Head(model, replace(settings, rollback_tokens=0), draft_head=True)
            parts.callback(self._head.close)
            self._sampler = parts.enter_context(Sampler(model, self._head, ()))
            for context in (runtime, self._head):
                # Of all tokens of a batch. A head that is asked for those with logits only gives
                # the states of as many tokens, but of the first ones.
                self._calls.give_rows(context.handle, True, False)
            self._parts = parts.pop_all()

    def begin(self, prompt: Sequence[int], cached: int) -> None:
        """Start an answer to this prompt, whose first `cached` tokens are in memory already.

        Raises:
            DecodeError: llama.cpp refused a batch, or could not forget the last answer.
        """
        self._prompt, self._evaluated = prompt, cached
        self._unseen_tokens, self._unseen_rows = [], []
        # Later ones belong to another prompt.
        self._rows_at = {at: row for at, row in self._rows_at.items() if at <= cached}
        self._forget_from(cached)
        # Any other state than the true one costs drafts, never a right answer.
        before = self._rows_at.get(cached, bytes(self._row_bytes))
        self._show([prompt[cached]], before)

    def follow(self, tokens: int) -> None:
        """Show the head the next tokens of the prompt, which the model evaluated in one batch.

        Raises:
            DecodeError: llama.cpp refused the batch.
        """
        rows = self._rows(self._target, 0, tokens)
        start, self._evaluated = self._evaluated + 1, self._evaluated + tokens
        self._last_place = tokens - 1
        self._rows_at[self._evaluated] = rows[-self._row_bytes :]
        # What follows the prompt is not picked yet.
        following = self._prompt[start : self._evaluated + 1]
        if following:
            self._show(following, rows[: len(following) * self._row_bytes])

    def accept(self, tokens: Sequence[int]) -> None:
        """Take note of tokens that the model picked along its last batch."""
        self._unseen_tokens += tokens
        self._unseen_rows.append(self._rows(self._target, self._last_place, len(tokens)))
        self._last_place = 0

    def propose(self, most: int) -> Sequence[int]:
        """`most` tokens that may follow.

        Raises:
            DecodeError: llama.cpp refused a batch.
        """
        if most < 1:
            return ()
        # The last draft was shown with states of the head's own.
        self._forget_from(self._seen)
        last = len(self._unseen_tokens) - 1
        self._show(self._unseen_tokens, b"".join(self._unseen_rows))
        self._unseen_tokens, self._unseen_rows = [], []
        draft = [self._sampler.sample()]
        while len(draft) < most:
            self._head.evaluate_rows(draft[-1:], self._rows(self._head, last, 1))
            draft.append(self._sampler.sample())
            last = 0
        return draft

    def close(self) -> None:
        """Free the head's context, before the model. Safe to call twice."""
        self._parts.close()

    def _show(self, tokens: Sequence[int], rows: bytes) -> None:
        self._head.evaluate_rows(tokens, rows)
        self._seen += len(tokens)

    def _forget_from(self, position: int) -> None:
        if not self._head.keep(position):
            raise DecodeError("llama.cpp can't cut back the memory of the model's head")
        self._seen = position

    def _rows(self, context: LlamaRuntime, first: int, count: int) -> bytes:
        """Hidden states at tokens of the context's last batch."""
        pointer = self._calls.rows(context.handle)
        address = ctypes.cast(pointer, ctypes.c_void_p).value
        if address is None:
            raise DecodeError("llama.cpp gave no hidden states")
        return ctypes.string_at(address + first * self._row_bytes, count * self._row_bytes)


class _Head(LlamaRuntime):
    """The context of the head."""

    def evaluate_rows(self, tokens: Sequence[int], rows: bytes) -> None:
        """Evaluate tokens, each with a hidden state, in one batch; logits after the last.

        Raises:
            DecodeError: llama.cpp refused the batch.
        """
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        batch = llama_cpp.llama_batch_get_one(array, len(tokens))
        batch.embd = ctypes.cast(ctypes.c_char_p(rows), ctypes.POINTER(ctypes.c_float))
        self._decode(batch)


@dataclass(frozen=True)
class _Calls:
    """Calls that llama.cpp keeps out of its stable interface."""

    give_rows: Callable[[Any, bool, bool], None]
    rows: Callable[[Any], Any]


def _calls() -> _Calls:
    """Find the calls.

    Raises:
        BadInputError: this build lacks them. Their names in the library hold the types of their
            arguments, so that a call with others is not taken for them.
    """
    try:
        # It raises AttributeError where one of the calls is missing from the library.
        from llama_cpp import llama_cpp_ext as extension

        return _Calls(extension.llama_set_embeddings_nextn, extension.llama_get_embeddings_nextn)
    except (ImportError, AttributeError):
        raise BadInputError(
            f"llama-cpp-python {llama_library.version()} can't draft with a model's own head; "
            "use --draft lookup"
        ) from None
