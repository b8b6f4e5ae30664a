"""Picks the next token in C: the likeliest one, or the likeliest that a grammar allows."""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Collection
from typing import Any, Final

import llama_cpp
import numpy as np
from llama_cpp.llama_grammar import json_schema_to_gbnf

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.engine import llama_library
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import LlamaRuntime

_LIKELIEST: Final = 64


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
    """Picks the likeliest token that a JSON schema allows."""

    def __init__(self, model: LlamaModel, runtime: LlamaRuntime, schema: JsonObject) -> None:
        """Build the sampler.

        Raises:
            BadInputError: no grammar can be made from the schema.
        """
        grammar = _grammar_sampler(model.vocabulary, schema)
        super().__init__(model, runtime, ())
        self._grammar = grammar
        self._whole = _chain()
        llama_cpp.llama_sampler_chain_add(self._whole, grammar)
        llama_cpp.llama_sampler_chain_add(self._whole, llama_cpp.llama_sampler_init_greedy())
        self._vocabulary_tokens = int(llama_cpp.llama_vocab_n_tokens(model.vocabulary))
        self._candidates = (llama_cpp.llama_token_data * _LIKELIEST)()

    def sample(self, index: int = -1) -> int:
        """The next token; see `Sampler.sample`."""
        token = super().sample(index)
        # Testing a few candidates is far cheaper than masking the whole vocabulary, and one of
        # the likeliest is nearly always allowed.
        chosen = self._first_allowed([token])
        if chosen is None:
            chosen = self._first_allowed(self._likeliest(index))
        if chosen is None:
            return int(llama_cpp.llama_sampler_sample(self._whole, self._context, index))
        llama_cpp.llama_sampler_accept(self._grammar, chosen)
        return chosen

    def _likeliest(self, index: int) -> list[int]:
        """The likeliest tokens, from the likeliest down; of equal ones the first."""
        pointer = llama_cpp.llama_get_logits_ith(self._context, index)
        logits = np.ctypeslib.as_array(pointer, (self._vocabulary_tokens,))
        count = min(_LIKELIEST, self._vocabulary_tokens)
        tokens = np.argpartition(logits, -count)[-count:]
        return [int(token) for token in tokens[np.lexsort((tokens, -logits[tokens]))]]

    def _first_allowed(self, tokens: list[int]) -> int | None:
        for place, token in enumerate(tokens):
            self._candidates[place].id, self._candidates[place].logit = token, 1.0
        candidates = llama_cpp.llama_token_data_array(
            data=self._candidates, size=len(tokens), selected=-1, sorted=False
        )
        llama_cpp.llama_sampler_apply(self._grammar, ctypes.byref(candidates))
        for place, token in enumerate(tokens):
            if not math.isinf(self._candidates[place].logit):
                return token
        return None

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        llama_cpp.llama_sampler_free(self._whole)


def _chain() -> Any:
    return llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())


def _grammar_sampler(vocabulary: Any, schema: JsonObject) -> Any:
    try:
        grammar = json_schema_to_gbnf(json.dumps(schema))
    except Exception as error:  # the converter raises whatever a hostile schema makes it raise
        raise BadInputError(f"no grammar can be made from the tools' schema: {error}") from None
    llama_library.clear_log()
    sampler = llama_cpp.llama_sampler_init_grammar(vocabulary, grammar.encode(), b"root")
    if not sampler:
        raise BadInputError(f"llama.cpp refused the tools' grammar ({llama_library.reason()})")
    return sampler
