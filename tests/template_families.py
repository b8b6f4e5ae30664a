"""Chat templates written from the documented prompt formats of model families.

Each is this project's own and has what its family is known for: its tokens, how it offers tools
and writes calls and results, its switch for reasoning, and what it refuses. Default system
prompts and instructions around the tools are left out or shortened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from edge_agentic.chat.tool_format import ToolFormat
from tests.call_texts import token


@dataclass(frozen=True)
class Family:
    """A template and what is to be expected of it.

    tool_format: the form of its calls.
    changes: what it can't take. switch: whether it can turn reasoning on and off.
    append_only: whether prompts grow only at their ends, from the first user message on; where
        this holds only until the next user message, `rounds_only`.
    asks: whether it has a prompt to answer of its own. keeps_text: whether it shows the text
        beside calls.
    """

    name: str
    source: str
    tool_format: ToolFormat
    changes: tuple[str, ...] = ()
    bos: str = ""
    eos: str = ""
    switch: bool = False
    rounds_only: bool = False
    asks: bool = True
    keeps_text: bool = True


_HERMES_TOOLS: Final = """
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content + '\\n\\n' }}{% endif -%}
# Tools
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
Answer with <tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif -%}
"""

_QWEN_RESULTS: Final = """
{%- elif message.role == 'tool' %}
{%- if loop.previtem and loop.previtem.role != 'tool' %}{{ '<|im_start|>user' }}{% endif -%}
{{ '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{%- if loop.last or loop.nextitem.role != 'tool' %}{{ '<|im_end|>\\n' }}{% endif %}
"""

QWEN25 = Family(
    "qwen2.5",
    _HERMES_TOOLS
    + """
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first)
    or (message.role == 'assistant' and not message.tool_calls) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant' }}
{%- if message.content %}{{ '\\n' + message.content }}{% endif %}
{%- for call in message.tool_calls %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": '
    + (call.function.arguments | tojson) + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
"""
    + _QWEN_RESULTS
    + """
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}""",
    ToolFormat.HERMES,
)

_LAST_QUERY: Final = """
{%- set ns = namespace(looking=true, last_query=messages | length - 1) %}
{%- for message in messages[::-1] %}
{%- set index = (messages | length - 1) - loop.index0 %}
{%- if ns.looking and message.role == 'user' and message.content is string
    and not message.content.startswith('<tool_response>') %}
{%- set ns.looking = false %}{% set ns.last_query = index %}
{%- endif %}
{%- endfor %}
"""

QWEN3 = Family(
    "qwen3",
    _HERMES_TOOLS
    + _LAST_QUERY
    + """
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
{%- elif message.role == 'assistant' %}
{%- set content = message.content %}{% set thought = '' %}
{%- if message.reasoning_content is defined and message.reasoning_content is not none %}
{%- set thought = message.reasoning_content %}
{%- elif '</think>' in message.content %}
{%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
{%- set thought = message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1] %}
{%- endif %}
{{- '<|im_start|>assistant\\n' }}
{%- if loop.index0 > ns.last_query and (loop.last or thought) %}
{{- '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
{%- else %}{{ content }}{% endif %}
{%- for call in message.tool_calls or [] %}
{%- if not (loop.first and not content) %}{{ '\\n' }}{% endif %}
{{- '<tool_call>\\n{"name": "' ~ call.function.name ~ '", "arguments": ' }}
{%- if call.function.arguments is string %}{{ call.function.arguments }}
{%- else %}{{ call.function.arguments | tojson }}{% endif %}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
"""
    + _QWEN_RESULTS
    + """
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
{%- endif %}""",
    ToolFormat.HERMES,
    switch=True,
    rounds_only=True,
)

QWEN35 = Family(
    "qwen3.5",
    """
{%- if not messages %}{{ raise_exception('No messages provided.') }}{% endif %}
{%- if tools and tools is iterable and tools is not mapping %}
{{- '<|im_start|>system\\n# Tools\\n\\n<tools>' }}
{%- for tool in tools %}{{ '\\n' ~ (tool | tojson) }}{% endfor %}
{{- '\\n</tools>\\n\\nCall them like this:\\n<tool_call>\\n<function=example>\\n<parameter=key>\\n'
    ~ 'value\\n</parameter>\\n</function>\\n</tool_call>' }}
{%- if messages[0].role == 'system' %}{{ '\\n\\n' + messages[0].content | trim }}{% endif %}
{{- '<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content | trim + '<|im_end|>\\n' }}
{%- endif %}"""
    + _LAST_QUERY
    + """
{%- for message in messages %}
{%- set content = message.content | trim %}
{%- if message.role == 'system' %}
{%- if not loop.first %}{{ raise_exception('System message must be at the beginning.') }}{% endif %}
{%- elif message.role == 'user' %}
{{- '<|im_start|>user\\n' + content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{%- set thought = (message.reasoning_content or '') | trim %}
{{- '<|im_start|>assistant\\n' }}
{%- if loop.index0 > ns.last_query %}{{ '<think>\\n' + thought + '\\n</think>\\n\\n' }}{% endif %}
{{- content }}
{%- if message.tool_calls and message.tool_calls is iterable %}
{%- for call in message.tool_calls %}
{%- if call.function is defined %}{% set call = call.function %}{% endif %}
{%- if loop.first and not content %}{{ '<tool_call>\\n<function=' + call.name + '>\\n' }}
{%- else %}{{ '\\n\\n<tool_call>\\n<function=' + call.name + '>\\n' }}{% endif %}
{%- for key, value in call.arguments | items %}
{{- '<parameter=' + key + '>\\n' }}
{%- set text = value | tojson | safe if value is mapping or (value is sequence
    and value is not string) else value | string %}
{{- text + '\\n</parameter>\\n' }}
{%- endfor %}
{{- '</function>\\n</tool_call>' }}
{%- endfor %}
{%- endif %}
{{- '<|im_end|>\\n' }}
"""
    + _QWEN_RESULTS
    + """
{%- else %}{{ raise_exception('Unexpected message role.') }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}
{%- else %}{{ '<think>\\n' }}{% endif %}
{%- endif %}""",
    ToolFormat.QWEN3_XML,
    switch=True,
    rounds_only=True,
)

LLAMA31 = Family(
    "llama3.1",
    """
{{- bos_token }}
{%- if not tools is defined %}{% set tools = none %}{% endif %}
{%- if messages[0]['role'] == 'system' %}
{%- set system_message = messages[0]['content'] | trim %}{% set messages = messages[1:] %}
{%- else %}{% set system_message = '' %}{% endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nEnvironment: ipython\\n' }}
{{- system_message + '<|eot_id|>' }}
{%- if tools is not none %}
{%- if messages | length == 0 %}{{ raise_exception('Cannot put tools first') }}{% endif %}
{%- set first = messages[0]['content'] | trim %}{% set messages = messages[1:] %}
{{- '<|start_header_id|>user<|end_header_id|>\\n\\nRespond in the format '
    ~ '{"name": function name, "parameters": dictionary of arguments}.\\n\\n' }}
{%- for tool in tools %}{{ tool | tojson(indent=4) }}{{ '\\n\\n' }}{% endfor %}
{{- first + '<|eot_id|>' }}
{%- endif %}
{%- for message in messages %}
{%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'
    + message['content'] | trim + '<|eot_id|>' }}
{%- elif 'tool_calls' in message %}
{%- if not message.tool_calls | length == 1 %}
{{- raise_exception('This model only supports single tool-calls at once!') }}
{%- endif %}
{%- set call = message.tool_calls[0].function %}
{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n{"name": "' + call.name + '", ' }}
{{- '"parameters": ' }}{{ call.arguments | tojson }}{{ '}<|eot_id|>' }}
{%- else %}
{{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' }}
{%- if message.content is mapping or message.content is iterable %}{{ message.content | tojson }}
{%- else %}{{ message.content }}{% endif %}
{{- '<|eot_id|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}""",
    ToolFormat.LLAMA3_JSON,
    changes=("single_calls",),
    bos="<|begin_of_text|>",
    eos="<|eot_id|>",
    keeps_text=False,
)

_MISTRAL_IDS: Final = """
{%- if call.id is not defined or call.id | length != 9 %}
{{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}
{%- endif %}
"""

MISTRAL_V3 = Family(
    "mistral-v3",
    """
{%- if messages[0].role == 'system' %}
{%- set system = messages[0].content %}{% set rest = messages[1:] %}
{%- else %}{% set rest = messages %}{% endif %}
{%- set users = rest | selectattr('role', 'equalto', 'user') | list %}
{%- set ns = namespace(index=0) %}
{%- for message in rest %}
{%- if not (message.role == 'tool' or message.role == 'tool_results'
    or (message.tool_calls is defined and message.tool_calls is not none)) %}
{%- if (message.role == 'user') != (ns.index % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{%- endif %}{% set ns.index = ns.index + 1 %}
{%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in rest %}
{%- if message.role == 'user' %}
{%- if tools is not none and message == users[-1] %}
{{- '[AVAILABLE_TOOLS] ' }}{{ tools | tojson }}{{ '[/AVAILABLE_TOOLS]' }}
{%- endif %}
{%- if loop.last and system is defined %}{{ '[INST] ' + system + '\\n\\n' + message.content }}
{%- else %}{{ '[INST] ' + message.content }}{% endif %}{{ '[/INST]' }}
{%- elif message.tool_calls is defined and message.tool_calls is not none %}
{{- '[TOOL_CALLS] [' }}
{%- for call in message.tool_calls %}{% set out = call.function | tojson %}"""
    + _MISTRAL_IDS
    + """
{{- out[:-1] }}{{ ', "id": "' + call.id + '"}' }}
{%- if not loop.last %}{{ ', ' }}{% else %}{{ ']' + eos_token }}{% endif %}
{%- endfor %}
{%- elif message.role == 'assistant' %}{{ ' ' + message.content | trim + eos_token }}
{%- else %}
{{- '[TOOL_RESULTS] {"content": ' + message.content | tojson + ', ' }}
{%- if message.tool_call_id is not defined or message.tool_call_id | length != 9 %}
{{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}
{%- endif %}
{{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
{%- endif %}
{%- endfor %}""",
    ToolFormat.MISTRAL,
    changes=("system_in_user",),
    bos="<s>",
    eos="</s>",
    rounds_only=True,
    asks=False,
    keeps_text=False,
)

MISTRAL_V7 = Family(
    "mistral-v7",
    """
{{- bos_token }}
{%- if messages[0].role == 'system' %}
{{- '[SYSTEM_PROMPT]' + messages[0].content + '[/SYSTEM_PROMPT]' }}{% set rest = messages[1:] %}
{%- else %}{% set rest = messages %}{% endif %}
{%- if tools %}{{ '[AVAILABLE_TOOLS]' + tools | tojson + '[/AVAILABLE_TOOLS]' }}{% endif %}
{%- for message in rest %}
{%- if message.role == 'user' %}{{ '[INST]' + message.content + '[/INST]' }}
{%- elif message.role == 'assistant' and message.tool_calls %}
{{- message.content }}
{%- for call in message.tool_calls %}"""
    + _MISTRAL_IDS
    + """
{{- '[TOOL_CALLS]' + call.function.name + '[CALL_ID]' + call.id + '[ARGS]'
    + call.function.arguments | tojson }}
{%- endfor %}{{ eos_token }}
{%- elif message.role == 'assistant' %}{{ message.content + eos_token }}
{%- elif message.role == 'tool' %}
{{- '[TOOL_RESULTS]' + message.tool_call_id + '[TOOL_CONTENT]' + message.content
    + '[/TOOL_RESULTS]' }}
{%- else %}{{ raise_exception('Only user, system, assistant and tool roles are supported!') }}
{%- endif %}
{%- endfor %}""",
    ToolFormat.MISTRAL,
    bos="<s>",
    eos="</s>",
    asks=False,
)

GEMMA2 = Family(
    "gemma2",
    """
{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
{{- raise_exception('System role not supported') }}
{%- endif %}
{%- for message in messages %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{%- endif %}
{%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}
{{- '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}""",
    ToolFormat.GENERIC,
    changes=("joined_turns", "system_in_user"),
    bos="<bos>",
)

GEMMA3 = Family(
    "gemma3",
    """
{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
{%- if messages[0]['content'] is string %}{% set lead = messages[0]['content'] + '\\n\\n' %}
{%- else %}{% set lead = messages[0]['content'][0]['text'] + '\\n\\n' %}{% endif %}
{%- set rest = messages[1:] %}
{%- else %}{% set lead = '' %}{% set rest = messages %}{% endif %}
{%- for message in rest %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{%- endif %}
{{- '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' }}
{%- if loop.first %}{{ lead }}{% endif %}
{%- if message['content'] is string %}{{ message['content'] | trim }}
{%- elif message['content'] is iterable %}
{%- for item in message['content'] %}{{ item['text'] | trim }}{% endfor %}
{%- else %}{{ raise_exception('Invalid content type') }}{% endif %}
{{- '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}""",
    ToolFormat.GENERIC,
    changes=("joined_turns",),
    bos="<bos>",
)

PHI4_MINI = Family(
    "phi-4-mini",
    """
{%- for message in messages %}
{%- if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}
{{- '<|system|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|><|end|>' }}
{%- else %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}""",
    ToolFormat.GRANITE,
    changes=("calls_in_text", "tools_in_system"),
    eos="<|endoftext|>",
)

DEEPSEEK_V31 = Family(
    "deepseek-v3.1",
    f"""
{{%- if not thinking is defined %}}{{% set thinking = false %}}{{% endif %}}
{{%- set ns = namespace(system='', after_call=false) %}}
{{%- for message in messages %}}
{{%- if message.role == 'system' %}}{{% set ns.system = ns.system + message.content %}}{{% endif %}}
{{%- endfor %}}
{{{{- bos_token }}}}{{{{ ns.system }}}}
{{%- if tools %}}{{{{ '\\n\\n## Tools\\n' }}}}
{{%- for tool in tools %}}
{{{{- '\\n### ' + tool.function.name + '\\nDescription: ' + tool.function.description
    + '\\n\\nParameters: ' + tool.function.parameters | tojson + '\\n' }}}}
{{%- endfor %}}{{% endif %}}
{{%- for message in messages %}}
{{%- if message['role'] == 'user' %}}{{{{ '{token("User")}' + message['content'] }}}}
{{%- elif message['role'] == 'assistant' %}}
{{%- if not ns.after_call %}}{{{{ '{token("Assistant")}</think>' }}}}{{% endif %}}
{{{{- message['content'] or '' }}}}
{{%- if message['tool_calls'] is defined and message['tool_calls'] %}}
{{{{- '{token("tool calls begin")}' }}}}
{{%- for call in message['tool_calls'] %}}
{{{{- '{token("tool call begin")}' + call['function']['name'] + '{token("tool sep")}'
    + call['function']['arguments'] + '{token("tool call end")}' }}}}
{{%- endfor %}}{{{{ '{token("tool calls end")}' }}}}
{{%- endif %}}{{{{ eos_token }}}}{{% set ns.after_call = false %}}
{{%- elif message['role'] == 'tool' %}}
{{{{- '{token("tool output begin")}' + message['content'] + '{token("tool output end")}' }}}}
{{%- set ns.after_call = true %}}
{{%- endif %}}
{{%- endfor %}}
{{%- if add_generation_prompt and not ns.after_call %}}
{{{{- '{token("Assistant")}' }}}}{{{{ '<think>' if thinking else '</think>' }}}}
{{%- endif %}}""",
    ToolFormat.DEEPSEEK,
    bos=token("begin of sentence"),
    eos=token("end of sentence"),
    switch=True,
)

GLM45 = Family(
    "glm-4.5",
    """[gMASK]<sop>
{%- if tools %}
<|system|>
# Tools
<tools>
{% for tool in tools %}{{ tool | tojson(ensure_ascii=False) }}
{% endfor %}</tools>
<tool_call>{function-name}
<arg_key>{arg-key-1}</arg_key>
<arg_value>{arg-value-1}</arg_value>
</tool_call>{% endif %}
{%- macro visible(content) %}
{%- if content is string %}{{ content }}
{%- elif content is iterable and content is not mapping %}
{%- for item in content %}
{%- if item is mapping and item.type == 'text' %}{{ item.text }}{% endif %}
{%- endfor %}
{%- else %}{{ content }}{% endif %}
{%- endmacro %}
{%- set ns = namespace(last_user=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last_user = loop.index0 %}{% endif %}
{%- endfor %}
{%- for m in messages %}
{%- if m.role == 'user' %}<|user|>
{{ visible(m.content) }}
{{- '/nothink' if (enable_thinking is defined and not enable_thinking
    and not visible(m.content).endswith('/nothink')) else '' }}
{%- elif m.role == 'assistant' %}<|assistant|>
{%- if loop.index0 > ns.last_user and m.reasoning_content is string %}
{{- '\\n<think>' + m.reasoning_content.strip() + '</think>' }}
{%- else %}{{ '\\n<think></think>' }}{% endif %}
{%- if visible(m.content).strip() %}{{ '\\n' + visible(m.content).strip() }}{% endif %}
{%- for call in m.tool_calls or [] %}
{%- set call = call.function or call %}
{{- '\\n<tool_call>' + call.name }}
{% for k, v in call.arguments.items() -%}
<arg_key>{{ k }}</arg_key>
<arg_value>{{ v | tojson(ensure_ascii=False) if v is not string else v }}</arg_value>
{% endfor -%}
</tool_call>{% endfor %}
{%- elif m.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{ '<|observation|>' }}{% endif %}
{{- '\\n<tool_response>\\n' }}{{ m.content }}{{ '\\n</tool_response>' }}
{%- elif m.role == 'system' %}<|system|>
{{ visible(m.content) }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>
{{- '\\n<think></think>' if (enable_thinking is defined and not enable_thinking) else '' }}
{%- endif %}""",
    ToolFormat.GLM,
    switch=True,
    rounds_only=True,
)

GPT_OSS = Family(
    "gpt-oss",
    """
{%- if reasoning_effort is not defined %}{% set reasoning_effort = 'medium' %}{% endif %}
{{- '<|start|>system<|message|>Current date: ' + strftime_now('%Y-%m-%d')
    + '\\n\\nReasoning: ' + reasoning_effort + '<|end|>' }}
{%- if messages[0].role == 'developer' or messages[0].role == 'system' %}
{%- set lead = messages[0].content %}{% set rest = messages[1:] %}
{%- else %}{% set lead = '' %}{% set rest = messages %}{% endif %}
{%- if lead or tools %}
{{- '<|start|>developer<|message|># Instructions\\n\\n' + lead }}
{%- if tools %}{{ '\\n\\n# Tools\\n\\n## functions\\n\\nnamespace functions {\\n' }}
{%- for tool in tools %}
{{- '\\n// ' + tool.function.description + '\\ntype ' + tool.function.name + ' = (_: '
    ~ (tool.function.parameters.properties | list | join(', ')) ~ ') => any;\\n' }}
{%- endfor %}{{ '\\n} // namespace functions' }}{% endif %}
{{- '<|end|>' }}
{%- endif %}
{%- set last = namespace(name=none) %}
{%- for message in rest %}
{%- if message.role == 'assistant' %}
{%- if 'tool_calls' in message %}
{%- if message.content and message.thinking %}
{{- raise_exception('Cannot pass both content and thinking with tool calls!') }}
{%- elif message.content or message.thinking %}
{{- '<|start|>assistant<|channel|>analysis<|message|>' + (message.content or message.thinking)
    + '<|end|>' }}
{%- endif %}
{%- set call = message.tool_calls[0].function %}
{{- '<|start|>assistant to=functions.' + call.name + '<|channel|>commentary json<|message|>' }}
{{- call.arguments | tojson }}{{ '<|call|>' }}
{%- set last.name = call.name %}
{%- else %}
{{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}
{%- set last.name = none %}
{%- endif %}
{%- elif message.role == 'tool' %}
{%- if last.name is none %}
{{- raise_exception('Message has tool role, but there was no previous tool call!') }}
{%- endif %}
{{- '<|start|>functions.' + last.name + ' to=assistant<|channel|>commentary<|message|>'
    + message.content | tojson + '<|end|>' }}
{%- elif message.role == 'user' %}{{ '<|start|>user<|message|>' + message.content + '<|end|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}""",
    ToolFormat.GPT_OSS,
    changes=("single_calls",),
    switch=True,
)

COMMAND_R7B = Family(
    "command-r7b",
    """
{{- bos_token }}
{%- set ns = namespace(calls=0) %}
{%- set lead = messages[0].content if messages[0].role == 'system' else '' %}
{{- '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>' }}
{%- if tools %}{{ '## Available Tools\\n[' }}
{%- for tool in tools %}
{{- '\\n    {"name": ' + tool.function.name | tojson + ', "description": '
    + tool.function.description | tojson + ', "parameters": '
    + tool.function.parameters | tojson + ', "responses": null}' }}
{%- if not loop.last %}{{ ',' }}{% endif %}
{%- endfor %}{{ '\\n]\\n' }}{% endif %}
{{- '# Developer Preamble\\n' + lead + '<|END_OF_TURN_TOKEN|>' }}
{%- for message in messages %}
{%- if message.role == 'user' %}
{{- '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' + message.content + '<|END_OF_TURN_TOKEN|>' }}
{%- elif message.role == 'assistant' %}
{{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}
{%- if message.tool_calls %}
{%- if message.tool_plan %}
{{- '<|START_THINKING|>' + message.tool_plan + '<|END_THINKING|>' }}
{%- endif %}
{{- '<|START_ACTION|>[' }}
{%- for call in message.tool_calls %}
{{- '\\n    {"tool_call_id": "' ~ ns.calls ~ '", "tool_name": "' + call.function.name
    + '", "parameters": ' + call.function.arguments | tojson + '}' }}
{%- if not loop.last %}{{ ',' }}{% endif %}{% set ns.calls = ns.calls + 1 %}
{%- endfor %}{{ '\\n]<|END_ACTION|>' }}
{%- else %}{{ '<|START_RESPONSE|>' + message.content + '<|END_RESPONSE|>' }}{% endif %}
{{- '<|END_OF_TURN_TOKEN|>' }}
{%- elif message.role == 'tool' %}
{{- '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><|START_TOOL_RESULT|>' + message.content | tojson
    + '<|END_TOOL_RESULT|><|END_OF_TURN_TOKEN|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}
{%- if enable_thinking is defined and not enable_thinking %}
{{- '<|START_THINKING|><|END_THINKING|>' }}
{%- endif %}
{%- endif %}""",
    ToolFormat.COMMAND_R,
    bos="<BOS_TOKEN>",
    switch=True,
)

GRANITE3 = Family(
    "granite-3",
    """
{%- if messages[0]['role'] == 'system' %}
{%- set lead = messages[0]['content'] %}{% set rest = messages[1:] %}
{%- else %}{% set lead = 'Knowledge Cutoff Date: April 2024.' %}{% set rest = messages %}{% endif %}
{%- if tools and thinking %}{% set lead = lead + '\\nPut your thoughts first.' %}{% endif %}
{%- if tools %}
{%- set lead = lead + '\\nWhen a tool is required, respond with <|tool_call|> and a JSON list.' %}
{%- endif %}
{{- '<|start_of_role|>system<|end_of_role|>' + lead + '<|end_of_text|>\\n' }}
{%- if tools %}
{{- '<|start_of_role|>tools<|end_of_role|>' }}{{ tools | tojson(indent=4) }}
{{- '<|end_of_text|>\\n' }}
{%- endif %}
{%- for message in rest %}
{{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + message['content']
    + '<|end_of_text|>\\n' }}
{%- if loop.last and add_generation_prompt %}
{{- '<|start_of_role|>assistant<|end_of_role|>' }}
{%- endif %}
{%- endfor %}""",
    ToolFormat.GRANITE,
    changes=("calls_in_text",),
    switch=True,
)

KIMI_K2 = Family(
    "kimi-k2",
    """
{%- if tools %}
<|im_system|>tool_declare<|im_middle|>{{ tools | tojson(separators=(',', ':')) }}<|im_end|>
{%- endif %}
{%- for message in messages %}
{%- set name = message.get('name') or message['role'] %}
{%- if message['role'] == 'user' %}<|im_user|>{{ name }}<|im_middle|>
{%- elif message['role'] == 'assistant' %}<|im_assistant|>{{ name }}<|im_middle|>
{%- else %}<|im_system|>{{ name }}<|im_middle|>
{%- endif %}
{%- if message['role'] == 'assistant' and message.get('tool_calls') %}
{{- message['content'] or '' }}<|tool_calls_section_begin|>
{%- for call in message['tool_calls'] %}
{%- generation %}
<|tool_call_begin|>{{ call['id'] }}<|tool_call_argument_begin|>
{%- if call['function']['arguments'] is string %}{{ call['function']['arguments'] }}
{%- else %}{{ call['function']['arguments'] | tojson }}{% endif %}<|tool_call_end|>
{%- endgeneration %}
{%- endfor %}<|tool_calls_section_end|>
{%- elif message['role'] == 'tool' %}## Return of {{ message.tool_call_id }}
{{ message['content'] }}
{%- else %}{{ message['content'] or '' }}
{%- endif %}<|im_end|>
{%- endfor %}
{%- if add_generation_prompt %}<|im_assistant|>assistant<|im_middle|>{% endif %}""",
    ToolFormat.KIMI_K2,
)

NEMOTRON = Family(
    "nemotron-nano-2",
    """
{{- bos_token }}
{%- set ns = namespace(thinking=true) %}
{%- for message in messages %}
{%- if message['role'] in ('user', 'system') %}
{%- if '/no_think' in message['content'] %}{% set ns.thinking = false %}
{%- elif '/think' in message['content'] %}{% set ns.thinking = true %}{% endif %}
{%- endif %}
{%- endfor %}
{{- '<SPECIAL_10>System\\n' }}
{%- if messages[0]['role'] == 'system' %}
{{- messages[0]['content'].replace('/no_think', '').strip() }}
{%- endif %}
{%- if tools %}{{ '\\n\\n<AVAILABLE_TOOLS>[' }}
{%- for tool in tools %}{{ tool.function | tojson }}{{ ', ' if not loop.last }}{% endfor %}
{{- ']</AVAILABLE_TOOLS>\\nCall them with <TOOLCALL>[...]</TOOLCALL>.\\n' }}
{%- endif %}
{{- '\\n' }}
{%- for message in messages %}
{%- if message['role'] == 'user' %}{{ '<SPECIAL_11>User\\n' + message['content'].strip() + '\\n' }}
{%- elif message['role'] == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}
{{- '<SPECIAL_11>User\\n<TOOL_RESPONSE>[' }}
{%- endif %}
{{- message['content'] }}
{%- set more = not loop.last and messages[loop.index0 + 1].role == 'tool' %}
{{- ', ' if more else ']</TOOL_RESPONSE>\\n' }}
{%- elif message['role'] == 'assistant' %}
{{- '<SPECIAL_11>Assistant\\n' + message['content'].split('</think>')[-1].strip() }}
{%- if message.tool_calls %}{{ '<TOOLCALL>[' }}
{%- for call in message.tool_calls %}
{{- '{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson
    + '}' }}{{ ', ' if not loop.last }}
{%- endfor %}{{ ']</TOOLCALL>' }}
{%- endif %}{{ '\\n<SPECIAL_12>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<SPECIAL_11>Assistant\\n' }}
{{- '<think>\\n' if ns.thinking else '<think></think>' }}
{%- endif %}""",
    ToolFormat.NEMOTRON,
    changes=("no_think",),
    bos="<s>",
    switch=True,
)

FUNCTIONARY = Family(
    "functionary-3.1",
    """
{{- bos_token }}
{%- if tools %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nYou have these functions:\\n\\n' }}
{%- for tool in tools %}
{{- "Use the function '" + tool['function']['name'] + "' to '" + tool['function']['description']
    + "'\\n" }}{{ tool['function'] | tojson }}{{ '\\n\\n' }}
{%- endfor %}
{{- '<function=example>{"parameter": "value"}</function><|eot_id|>' }}
{%- endif %}
{%- for message in messages %}
{%- if message['role'] == 'user' or message['role'] == 'system' %}
{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content']
    + '<|eot_id|>' }}
{%- elif message['role'] == 'tool' %}
{{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' + message['content'] + '<|eot_id|>' }}
{%- else %}
{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- if message['content'] %}{{ message['content'] }}{% endif %}
{%- for call in message['tool_calls'] or [] %}
{{- '<function=' + call['function']['name'] + '>' + call['function']['arguments']
    + '</function>' }}
{%- endfor %}
{{- '<|eom_id|>' if message['tool_calls'] else '<|eot_id|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}""",
    ToolFormat.FUNCTIONARY_3_1,
    bos="<|begin_of_text|>",
)

SMOLLM2 = Family(
    "smollm2",
    """
{%- for message in messages %}
{%- if loop.first and messages[0]['role'] != 'system' %}
{{- '<|im_start|>system\\nYou are a helpful AI assistant.<|im_end|>\\n' }}
{%- endif %}
{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}""",
    ToolFormat.GENERIC,
)

FAMILIES: Final = (
    QWEN25,
    QWEN3,
    QWEN35,
    LLAMA31,
    MISTRAL_V3,
    MISTRAL_V7,
    GEMMA2,
    GEMMA3,
    PHI4_MINI,
    DEEPSEEK_V31,
    GLM45,
    GPT_OSS,
    COMMAND_R7B,
    GRANITE3,
    KIMI_K2,
    NEMOTRON,
    FUNCTIONARY,
    SMOLLM2,
)
