"""Which tool-call form a chat template asks for."""

from __future__ import annotations

import pytest

from edge_agentic.chat.tool_calls import detect_format
from edge_agentic.chat.tool_format import ToolFormat
from tests.call_texts import token

HEADER = "<|start_header_id|>"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (None, ToolFormat.GENERIC),
        ("<tool_call>{{ x | tojson }}</tool_call>", ToolFormat.HERMES),
        ('<tool_call>\\n{\\"name\\": <function-name>}\\n</tool_call>', ToolFormat.HERMES),
        ("<tool_call><function={{ n }}>", ToolFormat.QWEN3_XML),
        ("<tool_call><function=f><parameter=p></parameter>", ToolFormat.QWEN3_XML),
        ("<tool_call>{name}<arg_key>{k}</arg_key>", ToolFormat.GLM),
        ("<function={{ n }}>{{ a }}</function><|python_tag|>", ToolFormat.FUNCTIONARY_3_1),
        (">>>${recipient}\\n${content}", ToolFormat.FUNCTIONARY_3_2),
        (f'{HEADER}{{"name": "x", "parameters": {{}}}}', ToolFormat.LLAMA3_JSON),
        (f"{HEADER}<|python_tag|>", ToolFormat.LLAMA3_JSON),
        ("[TOOL_CALLS]", ToolFormat.MISTRAL),
        ("[TOOL_CALLS]{{ n }}[ARGS]", ToolFormat.MISTRAL),
        ("in <tool_call></tool_call> tags: <tool_calls>[{\"name\": 1}]", ToolFormat.APRIEL),
        ('<|START_ACTION|>[{"tool_name": 1, "parameters": 2}]', ToolFormat.COMMAND_R),
        (token("tool call begin"), ToolFormat.DEEPSEEK),
        ("<|tool_call>call:{{ n }}", ToolFormat.GEMMA4),
        ("<|start|>assistant<|channel|>commentary<|message|>", ToolFormat.GPT_OSS),
        ("respond with <|tool_call|> and a JSON list", ToolFormat.GRANITE),
        ("<|tool_calls_section_begin|>", ToolFormat.KIMI_K2),
        ("<TOOLCALL>[{}]</TOOLCALL>", ToolFormat.NEMOTRON),
        # Other forms, some of them with tags that contain those of a known one.
        ("{{ tools | tojson }}", None),
        ("<seed:tool_call><function=f><parameter=p></parameter></function>", None),
        ("]<]minimax[>[<tool_call>", None),
        ('<minimax:tool_call><invoke name="f">', None),
        ("<|tool_call_start|>[f(x=1)]<|tool_call_end|>", None),
    ],
)  # fmt: skip
def test_the_format_is_chosen_from_the_template(template: str | None, expected: object) -> None:
    offering = None if template is None else f"{{% if tools %}}{template}{{% endif %}}"
    assert detect_format(offering) is expected


def test_a_template_that_never_mentions_tools_gets_the_generic_form() -> None:
    assert detect_format("<tool_call>") is ToolFormat.GENERIC
