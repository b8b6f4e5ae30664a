"""One agent conversation in the chat templates of eighteen model families."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import re
from typing import Any

import pytest

from edge_agentic.chat.template import ChatTemplate
from edge_agentic.chat.tool_calls import detect_format
from edge_agentic.core.messages import Message
from tests.call_texts import LOOK, TOOLS, found
from tests.template_families import FAMILIES, Family

FIX = {"path": 'src/"odd" names/ü.py', "lines": 12}


def call(id_: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": id_, "type": "function", "function": function}


CONVERSATION: list[Message] = [
    {"role": "system", "content": "Be a careful engineer."},
    {"role": "user", "content": "What is in the yard?"},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "First the yard.",
        "tool_calls": [call("functions.look:0", "look", LOOK), call("call-2", "status", {})],
    },
    {"role": "tool", "tool_call_id": "functions.look:0", "content": "two sheds\n& a <well>"},
    {"role": "tool", "tool_call_id": "call-2", "content": "all quiet"},
    {"role": "assistant", "content": "Two sheds.", "reasoning_content": "That was it."},
    {"role": "user", "content": "Now fix the first one."},
    {
        "role": "assistant",
        "content": "Looking at it.",
        "reasoning_content": "It leans.",
        "tool_calls": [call("call-3", "look", FIX)],
    },
    {"role": "tool", "tool_call_id": "call-3", "content": "a leaning shed"},
]
REQUESTS = (2, 5, 7, 9)
"""How many messages the request of each turn has."""
TEXTS = (
    *("Be a careful engineer.", "What is in the yard?", "two sheds", "all quiet", "Two sheds."),
    *("Now fix the first one.", "a leaning shed"),
)

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


@functools.cache
def template(family: Family, *, reasoning: bool = False) -> ChatTemplate:
    return ChatTemplate(
        family.source, reasoning=reasoning, bos_token=family.bos, eos_token=family.eos
    )


def history(family: Family, count: int) -> str:
    """The first messages without a prompt to answer."""
    text = template(family).render(CONVERSATION[:count], TOOLS, add_generation_prompt=False)
    return text.removesuffix("<|endoftext|>")


def test_there_are_enough_families_and_each_has_a_name_of_its_own() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES) >= 12


@each_family
def test_all_that_was_said_and_offered_is_in_the_prompt(family: Family) -> None:
    given = copy.deepcopy(CONVERSATION)
    prompt = template(family).render(given, TOOLS)
    assert [text for text in TEXTS if text not in prompt] == []
    assert ("Looking at it." in prompt) == family.keeps_text
    before = prompt.partition("What is in the yard?")[0]
    offered = prompt if family.rounds_only or family.name == "llama3.1" else before
    assert all(tool["function"]["name"] in offered for tool in TOOLS)
    assert not re.search(r"\bNone\b|Undefined", prompt)
    assert given == CONVERSATION


@each_family
def test_only_what_the_template_cannot_take_is_changed(family: Family) -> None:
    assert template(family).changes == list(family.changes)


@each_family
def test_the_calls_of_the_history_read_back_as_they_were(family: Family) -> None:
    detected = detect_format(family.source)
    assert detected is family.tool_format
    for count, calls in ((2, [("look", LOOK), ("status", {})]), (7, [("look", FIX)])):
        written = history(family, count + 1)[len(history(family, count)) :]
        assert found(written, family.tool_format) == calls, written


@each_family
def test_the_prompt_to_answer_is_only_there_where_it_was_asked_for(family: Family) -> None:
    for count in REQUESTS:
        prompt = template(family).render(CONVERSATION[:count], TOOLS)
        assert prompt.startswith(history(family, count))
        if family.asks and not (family.name == "deepseek-v3.1" and count in (5, 9)):
            assert prompt != history(family, count)


@each_family
def test_the_switch_of_reasoning_reaches_the_prompt(family: Family) -> None:
    off = template(family).render(CONVERSATION[:2], TOOLS)
    on = template(family, reasoning=True).render(CONVERSATION[:2], TOOLS)
    assert (on != off) == family.switch
    assert off.rfind("<think>") <= off.rfind("</think>")


@each_family
def test_the_start_token_stands_once_and_first(family: Family) -> None:
    prompt = template(family).render(CONVERSATION, TOOLS)
    assert not family.bos or (prompt.startswith(family.bos) and prompt.count(family.bos) == 1)


@each_family
def test_a_prompt_starts_with_all_of_the_one_before_it(family: Family) -> None:
    for before, after in itertools.pairwise((2, 5, 6, 7, 9)):
        if not (family.rounds_only and after == 7):
            assert history(family, after).startswith(history(family, before)), (before, after)


@each_family
def test_a_conversation_without_tools_or_system_text_is_taken(family: Family) -> None:
    plain = [CONVERSATION[1], *CONVERSATION[5:7]]
    prompt = template(family).render(plain, [])
    assert all(text in prompt for text in (TEXTS[1], TEXTS[4], TEXTS[5]))
    assert "look" not in prompt
