"""A grammar in llama.cpp, asked which tokens it allows next."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, Final

import llama_cpp
import numpy as np
import numpy.typing as npt

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine import llama_library
from edge_agentic.engine.gbnf import ROOT
from edge_agentic.engine.llama_model import LlamaModel

_TOKEN_DATA: Final = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class LlamaGrammar:
    """What an answer has followed of a grammar so far.

    llama.cpp ends the process if it takes a token that the grammar forbids, so a token is taken
    only in the same step that found it allowed.
    """

    def __init__(self, model: LlamaModel, gbnf: str) -> None:
        """Start at the start of a grammar that `engine.gbnf` wrote.

        Raises:
            BadInputError: llama.cpp can't use the grammar.
        """
        llama_library.clear_log()
        self._sampler: Any = llama_cpp.llama_sampler_init_grammar(
            model.vocabulary, gbnf.encode(), ROOT.encode()
        )
        if not self._sampler:
            raise BadInputError(f"llama.cpp refused the tools' grammar ({llama_library.reason()})")

    def take_first(self, tokens: Sequence[int]) -> int | None:
        """Take the first of these tokens that is allowed; None if none is."""
        candidates = np.zeros(len(tokens), _TOKEN_DATA)
        candidates["id"] = tokens
        self._forbid(candidates)
        allowed = np.flatnonzero(candidates["logit"] == 0)
        return self._take(tokens[allowed[0]]) if allowed.size else None

    def take_likeliest(self, logits: npt.NDArray[np.float32]) -> int | None:
        """Take the likeliest allowed token of the whole vocabulary; None if none is allowed."""
        candidates = np.zeros(logits.size, _TOKEN_DATA)
        candidates["id"] = np.arange(logits.size)
        candidates["logit"] = logits
        self._forbid(candidates)
        best = int(np.argmax(candidates["logit"]))
        return None if candidates["logit"][best] == -math.inf else self._take(best)

    def close(self) -> None:
        """Free the grammar. Safe to call twice."""
        if self._sampler:
            llama_cpp.llama_sampler_free(self._sampler)
            self._sampler = None

    def _forbid(self, candidates: npt.NDArray[np.void]) -> None:
        """Give each token that is not allowed the logit -inf."""
        pointer = candidates.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        array = llama_cpp.llama_token_data_array(
            data=pointer, size=len(candidates), selected=-1, sorted=False
        )
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(array))

    def _take(self, token: int) -> int:
        llama_cpp.llama_sampler_accept(self._sampler, token)
        return token
