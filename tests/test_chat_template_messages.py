"""The shape in which conversations reach a template, and what templates expect of Jinja."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from edge_agentic.chat.template import ChatTemplate
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import Message
from tests.template_families import (
    COMMAND_R7B,
    GEMMA2,
    GPT_OSS,
    KIMI_K2,
    LLAMA31,
    MISTRAL_V3,
    QWEN35,
)

TOOL = {"type": "function", "function": {"name": "look"}}
USER: Message = {"role": "user", "content": "Go."}

SHOWN = (
    "{% if tools %}{% for t in tools %}{{ t | tojson }}{% endfor %}{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}({{ c.id }} {{ c.function.name }} WHAT)"
    "{{ c.function.arguments | tojson }}{% endfor %}"
    "{% if m.role == 'tool' %}{{ ' of ' ~ m.tool_call_id ~ ' ' ~ m.name }}{% endif %}"
    "{% endfor %}"
)


def calling(arguments: object, *ids: str, content: object = None) -> Message:
    calls = [
        {"id": id_, "type": "function", "function": {"name": "look", "arguments": arguments}}
        for id_ in ids
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(id_: str, content: object = "seen") -> Message:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def render(source: str, messages: list[Message], tools: Any = (), **options: Any) -> str:
    return ChatTemplate(source, **options).render(messages, list(tools))


def shown(what: str, messages: list[Message]) -> str:
    return render(SHOWN.replace("WHAT", what), messages)


@pytest.mark.parametrize("arguments", ['{"a":  "é"}', {"a": "é"}])
@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        ("{% for k, v in c.function.arguments | items %}{{ k }}={{ v }}{% endfor %}", "a=é"),
        ("{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}", "a=é"),
        ("{{ c.function.arguments | tojson }}", '{"a": "é"}'),
        ("{{ c.function.arguments is string }}", "False"),
        ("{{ c.function.arguments is mapping }}", "True"),
        ("{{ c.function | tojson }}", '{"name": "look", "arguments": {"a": "é"}}'),
    ],
)
def test_arguments_are_a_mapping(arguments: object, reading: str, expected: str) -> None:
    assert f" look {expected})" in shown(reading, [USER, calling(arguments, "1")])


@pytest.mark.parametrize(
    "reading",
    [
        "{{ c.function.arguments }}",
        "{{ '' + c.function.arguments }}",
        "{{ c.function.arguments + '' }}",
        "{{ '' ~ c.function.arguments }}",
        "{{ c.function.arguments | string }}",
        "{{ c.function.arguments | trim }}",
        "{{ '%s' | format(c.function.arguments) }}",
        "{{ [c.function.arguments] | join }}",
    ],
)
def test_arguments_read_as_the_recorded_json_where_text_is_wanted(reading: str) -> None:
    text = '{"a":  "é", "b": [1, null]}'
    assert f" look {text})" in shown(reading, [USER, calling(text, "1")])
    assert ' look {"a":null})' in shown(reading, [USER, calling({"a": None}, "1")])


def test_arguments_that_are_no_json_stay_as_they_are() -> None:
    assert " look {broken)" in shown("{{ c.function.arguments }}", [USER, calling("{broken", "1")])


def test_a_missing_text_is_empty_and_nulls_are_left_out() -> None:
    messages = [
        {"role": "user", "content": None, "name": None, "tool_calls": None},
        {"role": "assistant", "reasoning_content": None, "tool_calls": []},
    ]
    source = (
        "{% for m in messages %}{{ '[' + m.content + ']' }}{{ 'tool_calls' in m }}"
        "{{ m.reasoning_content is defined }}{{ 'name' in m }}{% endfor %}"
    )
    assert render(source, messages) == "[]FalseFalseFalse" * 2


def test_parts_of_text_become_one_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert shown("", [{"role": "user", "content": parts}]) == "<user>ab"


def test_a_template_that_reads_only_parts_gets_them() -> None:
    source = (
        "{% for m in messages %}<{{ m.role }}>"
        "{% for part in m.content %}{{ part['text'] }}{% endfor %}{% endfor %}"
    )
    assert ChatTemplate(source).changes == ["content_parts"]
    assert render(source, [USER]) == "<user>Go."


@pytest.mark.parametrize(
    ("source", "role"), [(SHOWN, "system"), (SHOWN + "{# developer #}", "developer")]
)
def test_the_developer_role_is_kept_where_the_template_knows_it(source: str, role: str) -> None:
    messages: list[Message] = [{"role": "developer", "content": "Be kind."}, USER]
    assert render(source, messages) == f"<{role}>Be kind.<user>Go."


def test_leading_system_messages_become_one() -> None:
    texts = ("Be kind.", "Be brief.")
    messages: list[Message] = [*({"role": "system", "content": text} for text in texts), USER]
    assert shown("", messages) == "<system>Be kind.\n\nBe brief.<user>Go."
    assert "Be kind.\n\nBe brief.<|im_end|>" in render(QWEN35.source, messages)


def test_a_role_that_the_template_refuses_is_one_clear_line() -> None:
    late: Message = {"role": "system", "content": "One more thing."}
    with pytest.raises(BadInputError, match="failed: System message must be at the beginning"):
        render(QWEN35.source, [USER, late])


@pytest.mark.parametrize(
    "tool", [TOOL, TOOL["function"], {"name": "look", "description": None, "parameters": None}]
)
def test_tools_have_their_wrapper_a_description_and_parameters(tool: object) -> None:
    assert render(SHOWN, [USER], [tool]) == (
        '{"type": "function", "function": {"name": "look", "description": "", '
        '"parameters": {"type": "object", "properties": {}}}}<user>Go.'
    )


def test_results_are_told_by_their_ids_and_get_the_names_of_their_functions() -> None:
    messages = [USER, calling({}, "a", "b"), result("b", "second"), result("a", "first")]
    assert shown("", messages).endswith("<tool>second of b look<tool>first of a look")


def test_mistral_gets_ids_of_nine_characters_and_keeps_those_that_are() -> None:
    messages = [USER, calling({}, "functions.look:0"), result("functions.look:0")]
    more = [*messages, calling({}, "abcDEF123"), result("abcDEF123")]
    prompt = render(MISTRAL_V3.source, more, [TOOL], eos_token="</s>")
    assert (
        '"id": "000000000"}]</s>[TOOL_RESULTS] {"content": "seen", "call_id": "000000000"' in prompt
    )
    assert (
        '"id": "abcDEF123"}]</s>[TOOL_RESULTS] {"content": "seen", "call_id": "abcDEF123"' in prompt
    )
    assert prompt.startswith(render(MISTRAL_V3.source, messages, [TOOL], eos_token="</s>"))


def test_kimi_finds_the_names_of_functions_in_the_ids() -> None:
    messages = [USER, calling({}, "x", "y"), result("y"), result("x")]
    prompt = render(KIMI_K2.source, messages, [TOOL])
    assert [prompt.count(f"functions.look:{number}") for number in (0, 1, 2)] == [2, 2, 0]
    assert prompt.index("## Return of functions.look:1") < prompt.index(
        "## Return of functions.look:0"
    )


def test_several_calls_are_taken_apart_with_their_results() -> None:
    messages = [USER, calling({}, "a", "b", content="Now."), result("b", "B"), result("a", "A")]
    prompt = render(LLAMA31.source, messages, [TOOL])
    call = '{"name": "look", "parameters": {}}'
    at = [prompt.index(text) for text in (call, '"A"', '"B"')]
    assert at[0] < at[1] < prompt.rindex(call) < at[2]


def test_a_result_of_no_call_stays_where_it_is() -> None:
    messages = [USER, calling({}, "a", "b"), result("a"), result("b"), result("c", "left over")]
    assert (
        render(LLAMA31.source, messages, [TOOL])
        .rstrip()
        .endswith('"left over"<|eot_id|><|start_header_id|>assistant<|end_header_id|>')
    )


def test_results_in_a_row_are_one_message_where_roles_alternate() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        USER,
        calling({}, "a", "b"),
        result("a", "A"),
        result("b", "B"),
    ]
    prompt = render(GEMMA2.source, messages, [TOOL])
    assert prompt.count("<start_of_turn>user") == 2
    assert prompt.startswith("<start_of_turn>user\nBe kind.\n\nYou can call")
    assert "A\n</tool_response>\n\n<tool_response>\nB" in prompt


def test_calls_beside_an_empty_text_are_kept_where_the_template_asks_for_none() -> None:
    source = (
        "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}"
        "{% if m.content is none %}"
        "{% for c in m.tool_calls %}{{ c.function.arguments }}{% endfor %}"
        "{% else %}{{ m.content }}{% endif %}{% endfor %}"
    )
    assert ChatTemplate(source).changes == ["null_content"]
    assert render(source, [USER, calling('{"a": 1}', "1")]) == 'Go.{"a": 1}'


@pytest.mark.parametrize("reasoning", ["", "It leans."])
def test_harmony_gets_reasoning_and_text_before_a_call_as_one(reasoning: str) -> None:
    message = {**calling({}, "1", content="Looking."), "reasoning_content": reasoning}
    prompt = render(GPT_OSS.source, [USER, message], [TOOL])
    said = f"{reasoning}\n\nLooking." if reasoning else "Looking."
    assert f"<|channel|>analysis<|message|>{said}<|end|>" in prompt


def test_command_r_gets_reasoning_as_the_plan_of_its_calls() -> None:
    message = {**calling({}, "1"), "reasoning_content": "It leans."}
    prompt = render(COMMAND_R7B.source, [USER, message], [TOOL])
    assert "<|START_THINKING|>It leans.<|END_THINKING|><|START_ACTION|>" in prompt


@pytest.mark.parametrize(("reasoning", "effort"), [(False, "low"), (True, "medium")])
def test_the_effort_is_low_where_reasoning_cannot_be_turned_off(
    reasoning: bool, effort: str
) -> None:
    prompt = render(GPT_OSS.source, [USER], reasoning=reasoning)
    assert f"Reasoning: {effort}" in prompt


@pytest.mark.parametrize(
    ("source", "off", "on"),
    [
        ("{{ enable_thinking }}", "False", "True"),
        ("{{ thinking }}", "False", "True"),
        ("<|START_THINKING|>{{ reasoning }}", "<|START_THINKING|>False", "<|START_THINKING|>True"),
        ("{{ reasoning }}", "", ""),
        ("{{ reasoning_effort }}", "low", ""),
        ("{{ reasoning_effort == 'none' }}", "True", "False"),
    ],
)
def test_each_documented_switch_is_set(source: str, off: str, on: str) -> None:
    assert render(source, [USER]) == off
    assert render(source, [USER], reasoning=True) == on


def test_offered_tools_that_do_not_reach_the_prompt_are_an_error() -> None:
    source = "{# tools #}{% for m in messages %}{{ m.content }}{% endfor %}"
    with pytest.raises(BadInputError, match="leaves out the offered tools"):
        render(source, [USER], [TOOL])
    assert render(source, [USER]) == "Go."


def test_nothing_of_the_given_messages_and_tools_is_changed() -> None:
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        USER,
        calling('{"a": 1}', "a", "b", content="Now."),
        result("a"),
        result("b"),
    ]
    given = copy.deepcopy((messages, TOOL))
    for family in (GEMMA2, GPT_OSS, KIMI_K2, LLAMA31, MISTRAL_V3):
        render(family.source, messages, [TOOL])
    assert (messages, TOOL) == given


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ {'b': 'é<&', 'a': 1} | tojson }}", '{"b": "é<&", "a": 1}'),
        ("{{ {'b': 'é'} | tojson(ensure_ascii=True) }}", '{"b": "\\u00e9"}'),
        ("{{ {'b': 1, 'a': 2} | tojson(sort_keys=True) }}", '{"a": 2, "b": 1}'),
        ("{{ {'b': [1, 2]} | tojson(separators=(',', ':')) }}", '{"b":[1,2]}'),
        ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
        ("{{ messages | map(attribute='role') | tojson }}", '["user", "user"]'),
        ("{{ {'a': 1}.values() | tojson }}", "[1]"),
        ("a{% generation %}{% if true %}b{% endif %}{% endgeneration %}c", "abc"),
        ("{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}x{% endfor %}", "x"),
        ("{% for m in messages %}{{ loop.index }}{% break %}{% endfor %}", "1"),
        ("{% for m in messages %}{{ loop.previtem is defined }}{% endfor %}", "FalseTrue"),
        ("{% set n = namespace(a=1) %}{% for _ in 'ab' %}{% set n.a = n.a + 1 %}{% endfor %}"
         "{{ n.a }}", "3"),
        ("{{ '{} and {name}'.format('a', name=[1]) }}", "a and [1]"),
        ("{{ 'a-b'.split('-') | last }}{{ 'abca'.replace('a', 'x', 1) }}", "bxbca"),
        ("{{ 'aba' | replace('a', 'x') }}{{ 'ab' | replace('', '-') }}", "xbx-a-b-"),
        ("{{ ['a', 1] | join(', ') }}{{ messages | join('+', attribute='role') }}",
         "a, 1user+user"),
        ("{{ '-'.join(['a', 'b']) }}{{ 'a\nb' | indent(2) }}", "a-ba\n  b"),
        ("{{ documents is none }}{{ tools is none }}", "TrueTrue"),
        ("{{ strftime_now('%Y') | length }}", "4"),
        ("{{ messages[0].get('name', 'none') }}{{ messages[0] | items | list | length }}", "none2"),
    ],
)  # fmt: skip
def test_what_templates_expect_of_jinja_is_there(source: str, expected: str) -> None:
    assert render(source, [USER, USER]) == expected
