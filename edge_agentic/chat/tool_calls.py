"""Finds the tool calls in a model's text, in the form that the model's template asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from edge_agentic.chat.formats.deepseek import CALL_BEGIN, DEEPSEEK
from edge_agentic.chat.formats.gemma4 import GEMMA4
from edge_agentic.chat.formats.glm import GLM
from edge_agentic.chat.formats.gpt_oss import GPT_OSS
from edge_agentic.chat.formats.json_calls import json_form
from edge_agentic.chat.formats.mistral import MISTRAL
from edge_agentic.chat.formats.named_calls import named_form
from edge_agentic.chat.formats.qwen3_xml import QWEN3_XML
from edge_agentic.chat.formats.reading import Form, read_text
from edge_agentic.chat.generic import DECLINE_NAME
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import ToolCall, ToolSpec


@dataclass(frozen=True)
class ParsedText:
    """A model's text, taken apart.

    `content`: what is neither reasoning nor a call; failed attempts at a call stay in it.
    `malformed`: the text tried to call a tool, and some part of it could not be parsed. A call
    that was only cut short is `truncated` instead, if its name and more are whole.
    """

    content: str
    reasoning: str | None = None
    calls: tuple[ToolCall, ...] = ()
    malformed: bool = False


def detect_format(template: str | None) -> ToolFormat | None:
    """The format that a chat template asks for; None if it is one this module can't read.

    A template that never mentions tools gets the generic form. Otherwise the marks of calls in
    the template's own text decide: the first row of a table, from the most particular marks
    to those that other forms have too.
    """
    if template is None or "tools" not in template:
        return ToolFormat.GENERIC
    for patterns, tool_format in _MARKS:
        if all(re.search(pattern, template) for pattern in patterns):
            return tool_format
    return None


def call_starts(tool_format: ToolFormat) -> tuple[str, ...]:
    """The texts that a call can start with.

    In the forms of bare JSON these are the opening brackets, and they start a call only where
    they are the first thing of the answer.
    """
    return _FORMS[tool_format].starts


def reasoning_tags(tool_format: ToolFormat) -> Mapping[str, str]:
    """The opening tags of reasoning in texts of this form, each with its closing tag."""
    return _FORMS[tool_format].thoughts


def parse(
    text: str, tool_format: ToolFormat, *, id_prefix: str, tools: Sequence[ToolSpec] = ()
) -> ParsedText:
    """Take a model's text apart. No text raises; the time is linear in its length.

    Calls inside reasoning are drafts and stay there; reasoning that is never closed goes to
    the end. A call of the reserved declining function is no call.

    Args:
        text: what the model wrote, special tokens included.
        tool_format: how it writes calls.
        id_prefix: start of the calls' ids; unique in the conversation.
        tools: the offered functions: their schemas give values that are written as plain text
            their types, and their names tell bare calls from other JSON.
    """
    form = _FORMS[tool_format]
    reading = read_text(text, form, _parameters(tools))
    found = [call for call in reading.calls if call.name != DECLINE_NAME]
    calls = tuple(
        ToolCall(f"{id_prefix}_{index}", call.name, call.arguments, call.truncated)
        for index, call in enumerate(found)
    )
    reasoning = reading.reasoning(form.thoughts)
    return ParsedText(reading.content, reasoning, calls, reading.malformed)


_TOOL_CALL: Final = (("<tool_call>",), ("</tool_call>",))

_FORMS: Final[Mapping[ToolFormat, Form]] = {
    ToolFormat.GENERIC: json_form(bare=True),
    ToolFormat.HERMES: json_form(*_TOOL_CALL, bare=True),
    ToolFormat.QWEN3_XML: QWEN3_XML,
    ToolFormat.LLAMA3_JSON: json_form(("<|python_tag|>",), bare=True),
    ToolFormat.MISTRAL: MISTRAL,
    ToolFormat.APRIEL: json_form(("<tool_calls>",), ("</tool_calls>",)),
    ToolFormat.COMMAND_R: json_form(
        ("<|START_ACTION|>",),
        ("<|END_ACTION|>",),
        thoughts={"<|START_THINKING|>": "<|END_THINKING|>"},
        silent=r"<\|(?:START|END)_RESPONSE\|>",
    ),
    ToolFormat.DEEPSEEK: DEEPSEEK,
    ToolFormat.FUNCTIONARY_3_1: named_form(
        ("<function=",), r"<function=(?P<name>[^<>\s]+)>\s*", r"\s*</function>"
    ),
    ToolFormat.FUNCTIONARY_3_2: named_form(
        (">>>",),
        r">>>(?P<name>(?!all\n)[\w.\-]+)\n\s*(?=\{)",
        "",
        silent=r">>>all\n|\A>>>",
        lead_in=">>>",
    ),
    ToolFormat.GEMMA4: GEMMA4,
    ToolFormat.GLM: GLM,
    ToolFormat.GPT_OSS: GPT_OSS,
    ToolFormat.GRANITE: json_form(("<|tool_call|>", "<tool_call>"), ("<|/tool_call|>",)),
    ToolFormat.KIMI_K2: named_form(
        ("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
        r"<\|tool_call_begin\|>\s*(?:functions\.)?(?P<name>[^\s<:]+)(?::\d+)?\s*"
        r"<\|tool_call_argument_begin\|>\s*",
        r"\s*<\|tool_call_end\|>",
        silent=r"<\|tool_calls_section_(?:begin|end)\|>",
    ),
    ToolFormat.NEMOTRON: json_form(("<TOOLCALL>",), ("</TOOLCALL>",)),
}

_MARKS: Final[tuple[tuple[tuple[str, ...], ToolFormat | None], ...]] = (
    # Tags of these contain those of other forms and mean something else.
    (("<seed:tool_call>",), None),
    ((r"\]<\]minimax\[>\[",), None),
    ((r"<\|tool_call>call:",), ToolFormat.GEMMA4),
    ((CALL_BEGIN,), ToolFormat.DEEPSEEK),
    ((r"<\|tool_calls_section_begin\|>",), ToolFormat.KIMI_K2),
    ((r"<\|channel\|>", r"<\|message\|>"), ToolFormat.GPT_OSS),
    ((r"<\|START_ACTION\|>",), ToolFormat.COMMAND_R),
    ((r"\[TOOL_CALLS\]",), ToolFormat.MISTRAL),
    (("<TOOLCALL>",), ToolFormat.NEMOTRON),
    ((r"<tool_calls>\[?[\s\\n]*\{",), ToolFormat.APRIEL),
    (("<tool_call>", "<arg_key>"), ToolFormat.GLM),
    (("<tool_call>", "<function="), ToolFormat.QWEN3_XML),
    (("<function=", "</function>"), ToolFormat.FUNCTIONARY_3_1),
    ((r">>>\$\{recipient\}",), ToolFormat.FUNCTIONARY_3_2),
    ((r"<\|tool\|>", r"<\|/tool\|>"), ToolFormat.GRANITE),
    ((r"<\|tool_call\|>",), ToolFormat.GRANITE),
    (("<tool_call>",), ToolFormat.HERMES),
    ((r"<\|python_tag\|>",), ToolFormat.LLAMA3_JSON),
    ((r"<\|start_header_id\|>", r'"parameters"\s*:'), ToolFormat.LLAMA3_JSON),
)
"""All patterns of a row have to be in the template; the first such row counts."""


def _parameters(tools: Sequence[ToolSpec]) -> Mapping[str, JsonObject]:
    """The schema of the parameters of each offered function, empty where it has none."""
    schemas = {}
    for tool in tools:
        function = tool.get("function", tool)
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str):
            parameters = function.get("parameters")
            schemas[name] = parameters if isinstance(parameters, dict) else {}
    return schemas
