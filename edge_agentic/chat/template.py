"""Renders a conversation with a model's own chat template (Jinja, as GGUF files carry it)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, Final

import jinja2

from edge_agentic.chat import generic
from edge_agentic.chat.template_changes import Change, Offer, apply_changes, possible_changes
from edge_agentic.chat.template_messages import dialect_of, prepare_messages, prepare_tools
from edge_agentic.chat.template_sandbox import BoundedEnvironment
from edge_agentic.chat.template_trial import TRIAL, TRIAL_TOOLS, needed_changes
from edge_agentic.core.clock import Clock, monotonic_ns
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import Message, ToolSpec
from edge_agentic.core.text import one_line

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""For a model file without a template of its own."""

_MAX_REASON_CHARACTERS: Final = 200


class ChatTemplate:
    """A compiled chat template.

    A template that never mentions `tools` gets the conversation in the generic form of
    `chat.generic`. Templates are hostile input: they run in Jinja's immutable sandbox, within
    bounds of time and size, and whatever they raise is the one error of this module.
    """

    def __init__(
        self,
        source: str | None,
        *,
        reasoning: bool = False,
        bos_token: str = "",
        eos_token: str = "",
        clock: Clock = monotonic_ns,
    ) -> None:
        """Compile `source`; None takes plain ChatML.

        Args:
            source: the template.
            reasoning: ask for reasoning, or for none, where the template has a switch. Off is
                what MLPerf's edge-agentic settings say.
            bos_token: the text of the token that starts a sequence.
            eos_token: the text of the token that ends one.
            clock: monotonic nanoseconds.

        Raises:
            BadInputError: the template is not valid Jinja.
        """
        self.source = CHATML if source is None else source
        self.knows_tools = "tools" in self.source
        self._dialect = dialect_of(self.source)
        self._reasoning = reasoning
        self._values = {
            "bos_token": bos_token,
            "eos_token": eos_token,
            "documents": None,
            **_reasoning_values(self.source, reasoning),
        }
        self._environment = BoundedEnvironment(clock)
        try:
            self._template = self._environment.compiled(self.source)
        except Exception as error:  # Python's compiler too refuses what a template can ask for
            raise BadInputError(
                f"the model's chat template can't be compiled: {_reason(error)}"
            ) from None

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        add_generation_prompt: bool = True,
    ) -> str:
        """The prompt text.

        Raises:
            BadInputError: the template refuses the conversation, fails on it, leaves out the
                offered tools, or takes more time or space than any prompt needs.
        """
        try:
            changes = self._needed_changes
            self._environment.start_timing()
            text = self._render(messages, tools, changes, add_generation_prompt)
        except Exception as error:  # a template's code can raise whatever Python can
            raise BadInputError(f"the model's chat template failed: {_reason(error)}") from None
        if tools and not any(_name(tool) in text for tool in tools):
            raise BadInputError("the model's chat template leaves out the offered tools")
        return text

    @property
    def changes(self) -> list[str]:
        """What conversations are put into another form for, because the template can't take it.

        Raises:
            BadInputError: the template takes more time or space than any prompt needs.
        """
        try:
            return sorted(change.value for change in self._needed_changes)
        except Exception as error:
            raise BadInputError(f"the model's chat template failed: {_reason(error)}") from None

    @cached_property
    def _needed_changes(self) -> frozenset[Change]:
        """Tried out once, so that a conversation's turns are all put into the same form."""
        possible = possible_changes(
            self.source, knows_tools=self.knows_tools, reasoning=self._reasoning
        )
        self._environment.start_timing()

        def render(changes: Collection[Change]) -> str:
            # One time for all: a template need not have a loop that looks at the clock.
            self._environment.check_time()
            return self._render(TRIAL, TRIAL_TOOLS, changes, True)

        return needed_changes(render, possible)

    def _render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        changes: Collection[Change],
        add_generation_prompt: bool,
    ) -> str:
        prepared = prepare_messages(messages, self._dialect)
        offered = prepare_tools(tools)
        if not self.knows_tools:
            prepared, offered = generic.flatten(prepared, offered), []
        return self._template.render(
            messages=apply_changes(prepared, changes, Offer(self.source, offered)),
            tools=offered or None,
            add_generation_prompt=add_generation_prompt,
            **self._values,
        )


def _reasoning_values(source: str, reasoning: bool) -> dict[str, Any]:
    """What the documented switches of the families are set to.

    `enable_thinking`: Qwen3 and later, GLM 4.5 and later, SmolLM3, Nemotron 3, Gemma 4.
    `thinking`: DeepSeek V3.1, Granite 3.2, Kimi K2.5. `reasoning`: Command A Reasoning.
    `reasoning_effort`: gpt-oss, which can't turn it off, so `low`; others know `none`. With
    reasoning on it is left to the template.
    """
    values: dict[str, Any] = {"enable_thinking": reasoning, "thinking": reasoning}
    if "<|START_THINKING|>" in source:
        values["reasoning"] = reasoning
    if "reasoning_effort" in source and not reasoning:
        knows_none = any(f"{quote}none{quote}" in source for quote in "'\"")
        values["reasoning_effort"] = "none" if knows_none else "low"
    return values


def _name(tool: ToolSpec) -> str:
    return str(tool.get("function", tool).get("name"))


def _reason(error: Exception) -> str:
    if isinstance(error, jinja2.TemplateSyntaxError):
        text = f"line {error.lineno}: {error.message}"
    elif isinstance(error, jinja2.TemplateError):
        text = str(error.message)
    else:
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
    line = one_line(text[:_MAX_REASON_CHARACTERS])
    return line if len(text) <= _MAX_REASON_CHARACTERS else f"{line}..."
