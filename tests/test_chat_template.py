"""Chat templates: a model's own, in Jinja's sandbox, and the generic form without tools."""

from __future__ import annotations

import pytest

from edge_agentic.chat.template import ChatTemplate
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import Message

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Run a command",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string"}},
                "required": ["command"],
            },
        },
    }
]

CONVERSATION: list[Message] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "List files <now> & quickly"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "bash", "arguments": '{"command": "ls"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a.txt\n"},
]

# Iterates over arguments with `items`, as templates of several families do.
OWN_TOOLS = (
    "{{ bos_token }}{% for tool in tools or [] %}[{{ tool | tojson }}]{% endfor %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}"
    "{% for k, v in c.function.arguments | items %}{{ k }}={{ v }}{% endfor %}"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


def test_a_template_with_tools_gets_them_and_mapping_arguments() -> None:
    rendered = ChatTemplate(OWN_TOOLS, bos_token="<s>").render(CONVERSATION, TOOLS)
    assert rendered.startswith('<s>[{"type": "function"')
    assert "command=ls" in rendered
    assert rendered.endswith("<tool>a.txt\n<assistant>")


def test_text_is_not_escaped_for_html() -> None:
    assert "List files <now> & quickly" in ChatTemplate(OWN_TOOLS).render(CONVERSATION, TOOLS)


def test_a_template_without_tools_gets_the_generic_form() -> None:
    rendered = ChatTemplate(None).render(CONVERSATION, TOOLS)
    assert rendered == (
        "<|im_start|>system\nBe brief.\n\n"
        "You can call these functions:\n"
        '{"name":"bash","description":"Run a command","parameters":{"type":"object",'
        '"properties":{"command":{"type":"string"}},"required":["command"]}}\n'
        'To call one, answer only with JSON: {"name": "<function>", "arguments": {<arguments>}}\n'
        "To call several, answer with a JSON list of such objects.<|im_end|>\n"
        "<|im_start|>user\nList files <now> & quickly<|im_end|>\n"
        '<|im_start|>assistant\n{"name":"bash","arguments":{"command":"ls"}}<|im_end|>\n'
        "<|im_start|>user\n<tool_response>\na.txt\n\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_the_prompt_of_a_turn_starts_with_the_prompt_before_it() -> None:
    template = ChatTemplate(None)
    before = template.render(CONVERSATION[:2], TOOLS)
    assert template.render(CONVERSATION, TOOLS).startswith(before)


@pytest.mark.parametrize(
    "source",
    [
        "{% for x in %}",
        "{{ raise_exception('no system role') }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append({}) }}",
        "{{ missing.attribute.deeper }}",
        "{{ 1 // 0 }}",
    ],
)
def test_a_broken_or_hostile_template_is_bad_input(source: str) -> None:
    with pytest.raises(BadInputError, match="chat template"):
        ChatTemplate(source).render(CONVERSATION, TOOLS)
