"""Picks the next token in C: the likeliest one, or the likeliest that a grammar allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any, Final

import llama_cpp
import numpy as np
import numpy.typing as npt

from edge_agentic.engine.llama_grammar import LlamaGrammar
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import LlamaRuntime

NO_TOKEN: Final = -1
"""What a sampler gives where nothing may follow and the vocabulary has no end token."""


class Sampler:
    """Picks the likeliest token. A context manager: it frees the C sampler at the end."""

    def __init__(self, model: LlamaModel, runtime: LlamaRuntime, never: Collection[int]) -> None:
        """Build the sampler.

        Args:
            model: whose vocabulary the tokens are of.
            runtime: whose logits decide.
            never: tokens that are not to be picked.
        """
        self._context = runtime.handle
        # A chain keeps its list of candidates; a sampler of its own would allocate one a token.
        self._chain = _chain()
        if never:
            biases = (llama_cpp.llama_logit_bias * len(never))()
            for bias, token in zip(biases, never, strict=True):
                bias.token, bias.bias = token, -math.inf
            count = int(llama_cpp.llama_vocab_n_tokens(model.vocabulary))
            llama_cpp.llama_sampler_chain_add(
                self._chain, llama_cpp.llama_sampler_init_logit_bias(count, len(never), biases)
            )
        llama_cpp.llama_sampler_chain_add(self._chain, llama_cpp.llama_sampler_init_greedy())

    def sample(self, index: int = -1) -> int:
        """The next token.

        Args:
            index: whose logits of the last batch decide; -1 for those of its last token.
        """
        return int(llama_cpp.llama_sampler_sample(self._chain, self._context, index))

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, *exc: object) -> None:
        llama_cpp.llama_sampler_free(self._chain)


class GrammarSampler(Sampler):
    """Picks the likeliest token that a grammar allows.

    Where it allows none, the answer ends: it is complete, or it can't be completed in the
    tokens that the model has.
    """

    def __init__(self, model: LlamaModel, runtime: LlamaRuntime, gbnf: str) -> None:
        """Build the sampler.

        Args:
            model: whose vocabulary the tokens are of.
            runtime: whose logits decide.
            gbnf: what the answer has to follow; see `engine.gbnf`.

        Raises:
            BadInputError: llama.cpp can't use the grammar.
        """
        self._constraint = _Constraint(model, runtime, gbnf)
        super().__init__(model, runtime, ())

    def sample(self, index: int = -1) -> int:
        """The next token; see `Sampler.sample`. `NO_TOKEN` where there is none."""
        return self._constraint.pick(super().sample(index), index)

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._constraint.close()


class AutoSampler(Sampler):
    """Picks the likeliest token until a call begins, then the likeliest that a grammar allows."""

    def __init__(
        self, model: LlamaModel, runtime: LlamaRuntime, begin: Callable[[bytes], str | None]
    ) -> None:
        """Build the sampler.

        Args:
            model: whose vocabulary the tokens are of.
            runtime: whose logits decide.
            begin: takes the bytes of each token; gives what the answer has to follow from then
                on, or None while it is free.
        """
        self._model, self._runtime, self._begin = model, runtime, begin
        self._constraint: _Constraint | None = None
        super().__init__(model, runtime, ())

    def sample(self, index: int = -1) -> int:
        """The next token; see `Sampler.sample`. `NO_TOKEN` where there is none."""
        token = super().sample(index)
        if self._constraint is not None:
            return self._constraint.pick(token, index)
        gbnf = self._begin(self._model.piece(token))
        if gbnf is not None:
            self._constraint = _Constraint(self._model, self._runtime, gbnf)
        return token

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        if self._constraint is not None:
            self._constraint.close()


class _Constraint:
    """Holds an answer to a grammar."""

    def __init__(self, model: LlamaModel, runtime: LlamaRuntime, gbnf: str) -> None:
        self._grammar = LlamaGrammar(model, gbnf)
        self._context = runtime.handle
        self._end = min(model.end_tokens, default=NO_TOKEN)
        self._vocabulary_tokens = int(llama_cpp.llama_vocab_n_tokens(model.vocabulary))

    def pick(self, likeliest: int, index: int) -> int:
        """The likeliest allowed token, given the likeliest of all; else an end token."""
        # Testing a few candidates is far cheaper than masking the whole vocabulary, and one of
        # the likeliest is nearly always allowed.
        token = self._grammar.take_first([likeliest])
        if token is None:
            logits = self._logits(index)
            token = self._grammar.take_first(_likeliest(logits))
            if token is None:
                token = self._grammar.take_likeliest(logits)
        return self._end if token is None else token

    def _logits(self, index: int) -> npt.NDArray[np.float32]:
        pointer = llama_cpp.llama_get_logits_ith(self._context, index)
        return np.ctypeslib.as_array(pointer, (self._vocabulary_tokens,))

    def close(self) -> None:
        self._grammar.close()


_LIKELIEST: Final = 64


def _likeliest(logits: npt.NDArray[np.float32]) -> list[int]:
    """The likeliest tokens, from the likeliest down; of equal ones the first."""
    count = min(_LIKELIEST, logits.size)
    tokens = np.argpartition(logits, -count)[-count:]
    return [int(token) for token in tokens[np.lexsort((tokens, -logits[tokens]))]]


def _chain() -> Any:
    return llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
