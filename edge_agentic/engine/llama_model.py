"""A GGUF model that llama.cpp has loaded: its vocabulary and what kind of memory it needs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import llama_cpp

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine import llama_library
from edge_agentic.engine.memory_kind import MemoryKind

_CUT_OUT: Final = llama_cpp.LLAMA_TOKEN_ATTR_CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED


class LlamaModel:
    """A loaded model. Not shared between threads."""

    def __init__(
        self,
        path: Path,
        *,
        gpu_layers: int = -1,
        vocabulary_only: bool = False,
        draft_head: bool = False,
    ) -> None:
        """Load the model.

        Args:
            path: a GGUF file.
            gpu_layers: layers on the accelerator; -1 is all.
            vocabulary_only: leave the weights in the file; such a model can only tokenise.
            draft_head: also load the head that predicts further tokens, if there is one.

        Raises:
            BadInputError: llama.cpp can't load the file.
        """
        self.handle: Any = None
        self.path = path
        llama_library.start()
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 999 if gpu_layers < 0 else gpu_layers
        params.vocab_only = vocabulary_only
        params.load_mtp = draft_head
        llama_library.clear_log()
        self.handle = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
        if not self.handle:
            raise BadInputError(
                f"{path}: llama.cpp can't load this model ({llama_library.reason()})"
            )
        self.vocabulary = llama_cpp.llama_model_get_vocab(self.handle)
        self._pieces: dict[int, bytes] = {}

    @property
    def memory_kind(self) -> MemoryKind:
        """What its contexts remember."""
        if llama_cpp.llama_model_is_recurrent(self.handle):
            return MemoryKind.RECURRENT
        if llama_cpp.llama_model_is_hybrid(self.handle):
            return MemoryKind.HYBRID
        if llama_cpp.llama_model_n_swa(self.handle) > 0:
            return MemoryKind.SLIDING_WINDOW
        return MemoryKind.ATTENTION

    @property
    def bos_token(self) -> str:
        """The text of the token that starts a sequence; empty where there is none."""
        return self._special_token(llama_cpp.llama_vocab_bos(self.vocabulary))

    @property
    def eos_token(self) -> str:
        """The text of the token that ends a sequence; empty where there is none."""
        return self._special_token(llama_cpp.llama_vocab_eos(self.vocabulary))

    def _special_token(self, token: int) -> str:
        return self.piece(token).decode("utf-8", "replace") if token >= 0 else ""

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        """The tokens by which the model may end its answer; empty where there is none."""
        is_end = llama_cpp.llama_vocab_is_eog
        count = int(llama_cpp.llama_vocab_n_tokens(self.vocabulary))
        return frozenset(token for token in range(count) if is_end(self.vocabulary, token))

    def tokenize(self, text: str) -> list[int]:
        """Tokens of a rendered prompt, special tokens recognised.

        A template may write the start token itself; the result starts with at most one.
        """
        bos = self.bos_token
        return self._tokenize(text, not (bos and text.startswith(bos)))

    def tokenize_part(self, text: str) -> list[int]:
        """Tokens of a text that stands within a prompt, special tokens recognised."""
        return self._tokenize(text, False)

    def stands_alone(self, token: int) -> bool:
        """Whether the token is cut out of the text first, so that none merges across it."""
        return bool(llama_cpp.llama_vocab_get_attr(self.vocabulary, token) & _CUT_OUT)

    def _tokenize(self, text: str, add_special: bool) -> list[int]:
        raw = text.encode("utf-8", "replace")
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
                self.vocabulary, raw, len(raw), tokens, len(tokens), add_special, True
            )
        )

    def text(self, tokens: Iterable[int]) -> str:
        """What the tokens say, special tokens included; bytes that are no UTF-8 are replaced."""
        return b"".join(map(self.piece, tokens)).decode("utf-8", "replace")

    def piece(self, token: int) -> bytes:
        """The bytes of one token, special tokens included; may be part of a character."""
        known = self._pieces.get(token)
        if known is not None:
            return known
        buffer = ctypes.create_string_buffer(64)
        to_piece: Callable[..., int] = llama_cpp.llama_token_to_piece
        length = to_piece(self.vocabulary, token, buffer, 64, 0, True)
        if length < 0:
            buffer = ctypes.create_string_buffer(-length)
            length = to_piece(self.vocabulary, token, buffer, -length, 0, True)
        self._pieces[token] = buffer.raw[: max(length, 0)]
        return self._pieces[token]

    def close(self) -> None:
        """Free the model, after its contexts. Safe to call twice."""
        if self.handle:
            llama_cpp.llama_model_free(self.handle)
            self.handle = None
