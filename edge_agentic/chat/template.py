"""Renders a conversation with a model's own chat template (Jinja, as GGUF files carry it)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from edge_agentic.chat import generic
from edge_agentic.core.clock import utc_now
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import Message, ToolSpec, call_arguments

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""For a model file without a template of its own."""


class ChatTemplate:
    """A compiled chat template.

    A template that never mentions `tools` gets the conversation in the generic form of
    `chat.generic`. Templates are hostile input: they run in Jinja's immutable sandbox.
    """

    def __init__(self, source: str | None, *, bos_token: str = "", eos_token: str = "") -> None:
        """Compile `source`; None takes plain ChatML.

        Raises:
            BadInputError: the template is not valid Jinja.
        """
        self._bos_token, self._eos_token = bos_token, eos_token
        self.source = CHATML if source is None else source
        self.knows_tools = "tools" in self.source
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = _strftime_now
        try:
            self._template = environment.from_string(self.source)
        except jinja2.TemplateError as error:
            raise BadInputError(f"the model's chat template can't be compiled: {error}") from None

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        add_generation_prompt: bool = True,
    ) -> str:
        """The prompt text.

        Reasoning is switched off where the template has a switch (`enable_thinking`), as
        MLPerf's edge-agentic settings do.

        Raises:
            BadInputError: the template refuses the conversation or fails on it.
        """
        if self.knows_tools:
            prepared = [_with_mapping_arguments(message) for message in messages]
        else:
            prepared = generic.flatten(messages, tools)
        try:
            return self._template.render(
                messages=prepared,
                tools=list(tools) if self.knows_tools and tools else None,
                add_generation_prompt=add_generation_prompt,
                enable_thinking=False,
                bos_token=self._bos_token,
                eos_token=self._eos_token,
            )
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise BadInputError(f"the model's chat template failed: {error}") from None


def _with_mapping_arguments(message: Message) -> Message:
    """Templates iterate over call arguments, so JSON strings become mappings."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    parsed = []
    for call in calls:
        function = dict(call.get("function") or {})
        arguments = call_arguments(function)
        if arguments is not None:
            function["arguments"] = dict(arguments)
        parsed.append({**call, "function": function})
    return {**message, "tool_calls": parsed}


def _to_json(value: Any, indent: int | None = None, **_: Any) -> str:
    # Jinja's own filter escapes for HTML, which would change the prompt.
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(format_string: str) -> str:
    moment: datetime = utc_now()
    return moment.strftime(format_string)
