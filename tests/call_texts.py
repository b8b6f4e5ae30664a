"""Texts as models of each family write them: two calls, in the family's documented form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from edge_agentic.chat.tool_calls import parse
from edge_agentic.chat.tool_format import ToolFormat

Found = list[tuple[str, dict[str, Any]]]

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "lines": {"type": "integer"},
                    "deep": {"type": "boolean"},
                },
            },
        },
    },
    {"type": "function", "function": {"name": "status"}},
]


def token(name: str) -> str:
    """A token of DeepSeek's: full-width bars, low blocks for spaces."""
    return f"<\uff5c{name}\uff5c>".replace(" ", "\u2581")


def xml_call(name: str, **values: str) -> str:
    """A call in the form of Qwen3-Coder; the values are written as they are."""
    parameters = "".join(
        f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items()
    )
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


def json_call(name: str, arguments: Mapping[str, Any], key: str = "arguments") -> str:
    return json.dumps({"name": name, key: arguments})


LOOK: dict[str, Any] = {"path": "a b", "lines": 3}
ARGUMENTS = json.dumps(LOOK)
TWO_CALLS: Found = [("look", LOOK), ("status", {})]
_PAIR = f"[{json_call('look', LOOK)}, {json_call('status', {})}]"

SAMPLES: dict[ToolFormat, tuple[str, ...]] = {
    ToolFormat.GENERIC: (_PAIR, f"```json\n{_PAIR}\n```", _PAIR[1:-1].replace("}}, ", "}}\n")),
    ToolFormat.HERMES: (
        f"<tool_call>\n{json_call('look', LOOK)}\n</tool_call>\n"
        f"<tool_call>\n{json_call('status', {})}\n</tool_call>",
        f"<tool_call>{json_call('look', LOOK)}\n{json_call('status', {})}</tool_call>",
        f"<tool_call>{_PAIR}</tool_call>",
    ),
    ToolFormat.QWEN3_XML: (
        f"{xml_call('look', path='a b', lines='3')}\n{xml_call('status')}",
        "<function=look><parameter=path>a b</parameter><parameter=lines>3</parameter></function>"
        "<function=status></function>",
    ),
    ToolFormat.LLAMA3_JSON: (
        f"{json_call('look', LOOK, 'parameters')}; {json_call('status', {}, 'parameters')}",
        f"<|python_tag|>{json_call('look', LOOK, 'parameters')};"
        f"{json_call('status', {}, 'parameters')}",
        f'{{"type": "function", "name": "look", "parameters": {ARGUMENTS}}}\n{{"name": "status"}}',
    ),
    ToolFormat.MISTRAL: (
        f"[TOOL_CALLS]{_PAIR}",
        f"[TOOL_CALLS] {_PAIR}",
        f"[TOOL_CALLS]look[ARGS]{ARGUMENTS}[TOOL_CALLS]status[ARGS]{{}}",
        f"[TOOL_CALLS]look[CALL_ID]a1b2c3d4e[ARGS]{ARGUMENTS}[TOOL_CALLS]status{{}}",
    ),
    ToolFormat.APRIEL: (f"<tool_calls>{_PAIR}</tool_calls>",),
    ToolFormat.COMMAND_R: (
        '<|START_ACTION|>[\n{"tool_call_id": "0", "tool_name": "look", '
        f'"parameters": {ARGUMENTS}}},'
        '\n{"tool_call_id": "1", "tool_name": "status", "parameters": {}}\n]<|END_ACTION|>',
    ),
    ToolFormat.DEEPSEEK: (
        f"{token('tool calls begin')}{token('tool call begin')}look{token('tool sep')}{ARGUMENTS}"
        f"{token('tool call end')}{token('tool call begin')}status{token('tool sep')}{{}}"
        f"{token('tool call end')}{token('tool calls end')}",
        f"{token('tool calls begin')}{token('tool call begin')}function{token('tool sep')}look\n"
        f"```json\n{ARGUMENTS}\n```{token('tool call end')}\n{token('tool call begin')}function"
        f"{token('tool sep')}status\n```json\n{{}}\n```{token('tool call end')}"
        f"{token('tool calls end')}",
    ),
    ToolFormat.FUNCTIONARY_3_1: (
        f"<function=look>{ARGUMENTS}</function><function=status></function>",
    ),
    ToolFormat.FUNCTIONARY_3_2: (f"look\n{ARGUMENTS}>>>status\n{{}}",),
    ToolFormat.GEMMA4: (
        '<|tool_call>call:look{path:<|"|>a b<|"|>,lines:3}<tool_call|>'
        "<|tool_call>call:status{}<tool_call|>",
    ),
    ToolFormat.GLM: (
        "<tool_call>look\n<arg_key>path</arg_key>\n<arg_value>a b</arg_value>\n"
        "<arg_key>lines</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n"
        "<tool_call>status\n</tool_call>",
    ),
    ToolFormat.GPT_OSS: (
        f"<|channel|>commentary to=functions.look <|constrain|>json<|message|>{ARGUMENTS}<|call|>"
        "<|start|>assistant<|channel|>commentary to=functions.status json<|message|>{}",
        f" to=functions.look<|channel|>commentary json<|message|>{ARGUMENTS}<|call|>"
        "<|start|>assistant to=functions.status<|channel|>commentary<|message|>{}<|call|>",
    ),
    ToolFormat.GRANITE: (f"<|tool_call|>{_PAIR}", f"<tool_call>{_PAIR}"),
    ToolFormat.KIMI_K2: (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0"
        f"<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|><|tool_call_begin|>"
        "functions.status:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
        "<|tool_calls_section_end|>",
    ),
    ToolFormat.NEMOTRON: (f"<TOOLCALL>{_PAIR}</TOOLCALL>",),
}


def found(text: str, tool_format: ToolFormat, tools: list[dict[str, Any]] = TOOLS) -> Found:
    """Names and arguments of the calls in a text."""
    parsed = parse(text, tool_format, id_prefix="call", tools=tools)
    return [(call.name, dict(call.arguments)) for call in parsed.calls]
