"""Holds the answers of a model to calls of the offered functions, wholly or once a call begins."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from edge_agentic.chat.call_grammar import (
    answer_grammar,
    calls_grammar,
    formats_with_grammar,
    has_grammar,
)
from edge_agentic.chat.call_watch import CallWatch
from edge_agentic.chat.grammar import after
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import ToolSpec
from edge_agentic.engine.gbnf import to_gbnf
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import LlamaRuntime
from edge_agentic.engine.llama_sampler import AutoSampler, GrammarSampler, Sampler


class CallConstraint:
    """What calls of one form have to follow; keeps what it worked out for the last tools."""

    def __init__(self, tool_format: ToolFormat, *, whole: bool) -> None:
        """Choose the form.

        Args:
            tool_format: how the model writes calls.
            whole: the whole answer is calls or a decline; else it is free until a call begins.

        Raises:
            BadInputError: calls of this form can't be constrained.
        """
        if not has_grammar(tool_format):
            raise BadInputError(
                f"tool calls of the form {tool_format.value!r} can't be constrained; use "
                f"--tool-grammar off, or force a form with --tool-format ({formats_with_grammar()})"
            )
        self._format, self._whole = tool_format, whole
        self._tools: Sequence[ToolSpec] | None = None
        self._from_start: dict[bytes, str | None] = {}

    def sampler(
        self, model: LlamaModel, runtime: LlamaRuntime, tools: Sequence[ToolSpec], prompt: str
    ) -> Sampler:
        """The sampler of one answer.

        Args:
            model: whose vocabulary the tokens are of.
            runtime: whose logits decide.
            tools: the offered functions, at least one.
            prompt: what the answer goes on from.

        Raises:
            BadInputError: the functions can't be offered in this form, one has a schema that no
                grammar can be made from, or they are too many.
        """
        if tools != self._tools:
            self._offer(tools)
        if self._whole:
            return GrammarSampler(model, runtime, self._gbnf)
        watch = CallWatch(self._format, prompt)

        def begin(piece: bytes) -> str | None:
            start = watch.feed(piece)
            return None if start is None else self._gbnf_after(start)

        return AutoSampler(model, runtime, begin)

    def _offer(self, tools: Sequence[ToolSpec]) -> None:
        self._tools = None
        grammar = (answer_grammar if self._whole else calls_grammar)(self._format, tools)
        # Of a grammar that is too large, this fails now and not in the middle of an answer.
        self._gbnf = to_gbnf(grammar)
        self._grammar, self._from_start = grammar, {}
        self._tools = copy.deepcopy(tools)

    def _gbnf_after(self, start: bytes) -> str | None:
        """What follows the start of a call; None where no call starts like that.

        The start may have more behind its mark, up to the end of the token. Part of a character
        there is nothing that a call goes on with.
        """
        if start not in self._from_start:
            rest = after(self._grammar, start.decode("utf-8", "replace"))
            self._from_start[start] = None if rest is None else to_gbnf(rest)
        return self._from_start[start]
