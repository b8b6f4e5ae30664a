"""The grammar of a constrained answer in the generic form."""

from __future__ import annotations

from collections.abc import Sequence

from edge_agentic.chat.call_grammar import answer_grammar
from edge_agentic.chat.grammar import Grammar
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.messages import ToolSpec


def answer_schema(tools: Sequence[ToolSpec]) -> Grammar:
    """The grammar of a whole answer; see `chat.call_grammar.answer_grammar`."""
    return answer_grammar(ToolFormat.GENERIC, tools)
