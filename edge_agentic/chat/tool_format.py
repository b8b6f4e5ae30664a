"""The names of the forms in which models write tool calls; light enough to import anywhere."""

from __future__ import annotations

from enum import Enum


class ToolFormat(str, Enum):
    """How a model writes its tool calls."""

    GENERIC = "generic"
    """One JSON object or a list of them: the form that `chat.generic` asks for."""
    HERMES = "hermes"
    """`<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Qwen2.5, Qwen3, Granite 4, …"""
    QWEN3_XML = "qwen3_xml"
    """`<tool_call><function=NAME><parameter=KEY>…`: Qwen3-Coder, Qwen3.5, Qwen3.6, Nemotron 3."""
    LLAMA3_JSON = "llama3_json"
    """`{"name": …, "parameters": {…}}`, bare or behind `<|python_tag|>`: Llama 3.1 to 3.3."""
    MISTRAL = "mistral"
    """`[TOOL_CALLS][{…}]` or `[TOOL_CALLS]NAME[ARGS]{…}`."""
    APRIEL = "apriel"
    """`<tool_calls>[{…}]</tool_calls>`: Apriel, MiniMax M1."""
    COMMAND_R = "command_r"
    """`<|START_ACTION|>[{"tool_name": …, "parameters": {…}}]<|END_ACTION|>`: Command R7B."""
    DEEPSEEK = "deepseek"
    """A name and `{…}` between tokens of its own: V3, V3.1, R1."""
    FUNCTIONARY_3_1 = "functionary_3_1"
    """`<function=NAME>{…}</function>`."""
    FUNCTIONARY_3_2 = "functionary_3_2"
    """`>>>NAME`, then `{…}` on the next line."""
    GEMMA4 = "gemma4"
    """`<|tool_call>call:NAME{key:value}<tool_call|>`."""
    GLM = "glm"
    """`<tool_call>NAME<arg_key>…</arg_key><arg_value>…</arg_value></tool_call>`: GLM 4.5, …"""
    GPT_OSS = "gpt_oss"
    """`<|channel|>commentary to=functions.NAME<|message|>{…}`."""
    GRANITE = "granite"
    """`<|tool_call|>[{…}]`: Granite 3, Phi-4-mini."""
    KIMI_K2 = "kimi_k2"
    """`<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`."""
    NEMOTRON = "nemotron"
    """`<TOOLCALL>[{…}]</TOOLCALL>`: Nemotron Nano 2."""
