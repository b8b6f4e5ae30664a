"""Renders a conversation with a model's own chat template (Jinja, as GGUF files carry it)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NoReturn

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from edge_agentic.chat import generic
from edge_agentic.core.clock import NS_PER_S, Clock, monotonic_ns, utc_now
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import Message, ToolSpec, call_arguments
from edge_agentic.core.text import one_line

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""For a model file without a template of its own."""

MAX_RENDER_S: Final = 10
"""How long one rendering may take; real templates take milliseconds."""
MAX_PROMPT_CHARACTERS: Final = 64 * 2**20
"""The longest text that a template may put together."""
MAX_VALUE_LENGTH: Final = 16 * 2**20
"""The longest text or list that one of a template's operators may make."""

_MAX_INTEGER_BITS: Final = 4096
_MAX_INDENT: Final = 16
_MAX_REASON_CHARACTERS: Final = 200
_SIZED: Final = (str, list, tuple)
# Chat templates need none of these, and each can be made to fill the memory or never to end.
_DROPPED_GLOBALS: Final = ("cycler", "joiner", "lipsum")
_DROPPED_FILTERS: Final = ("center", "round")
_DROPPED_METHODS: Final = frozenset({"center", "expandtabs", "ljust", "rjust", "zfill"})
_WIDE_FIELD: Final = re.compile(r"\d{6}|%[^%a-zA-Z]*\*")


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
        bos_token: str = "",
        eos_token: str = "",
        clock: Clock = monotonic_ns,
    ) -> None:
        """Compile `source`; None takes plain ChatML.

        Raises:
            BadInputError: the template is not valid Jinja.
        """
        self._bos_token, self._eos_token = bos_token, eos_token
        self.source = CHATML if source is None else source
        self.knows_tools = "tools" in self.source
        self._environment = _BoundedEnvironment(clock)
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

        Reasoning is switched off where the template has a switch (`enable_thinking`), as
        MLPerf's edge-agentic settings do.

        Raises:
            BadInputError: the template refuses the conversation, fails on it, or takes more time
                or space than any prompt needs.
        """
        if self.knows_tools:
            prepared = [_with_mapping_arguments(message) for message in messages]
        else:
            prepared = generic.flatten(messages, tools)
        self._environment.start_timing()
        try:
            return self._template.render(
                messages=prepared,
                tools=list(tools) if self.knows_tools and tools else None,
                add_generation_prompt=add_generation_prompt,
                enable_thinking=False,
                bos_token=self._bos_token,
                eos_token=self._eos_token,
            )
        except Exception as error:  # a template's code can raise whatever Python can
            raise BadInputError(f"the model's chat template failed: {_reason(error)}") from None


class _BoundedEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox whose templates come to an end and can't double a text for ever.

    Every pass of a loop and every call of a macro or block looks at the clock; every operator
    and every joining of texts looks at the size first. One filter or method can still do a lot
    of work on long values.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, clock: Clock) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
        self._clock = clock
        self._deadline_ns = 0
        self.binop_table.update({"+": _add, "*": _multiply, "**": _power, "%": _modulo})
        self.filters["tojson"] = _to_json
        self.filters["format"] = lambda text, *values, **named: _modulo(text, named or values)
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_now
        for name in _DROPPED_GLOBALS:
            del self.globals[name]
        for name in _DROPPED_FILTERS:
            del self.filters[name]

    def compiled(self, source: str) -> jinja2.Template:
        # Attributes of the environment: a template can't give these names another meaning.
        tree, in_time = self.parse(source), nodes.EnvironmentAttribute("in_time")
        for joining in tree.find_all(nodes.Concat):
            joined = nodes.EnvironmentAttribute("joined")
            joining.nodes = [nodes.Call(joined, joining.nodes, [], None, None)]
        for macro in tree.find_all(nodes.Macro):
            macro.body.insert(0, nodes.ExprStmt(in_time))
        for block in tree.find_all(nodes.Block):
            block.body.insert(0, nodes.ExprStmt(in_time))
        for loop in tree.find_all(nodes.For):
            loop.body.insert(0, nodes.ExprStmt(in_time))
            if loop.test is not None:
                loop.test = nodes.And(in_time, loop.test)
        tree.set_environment(self)
        tree.set_lineno(1)
        return self.from_string(tree)

    def start_timing(self) -> None:
        self._deadline_ns = self._clock() + MAX_RENDER_S * NS_PER_S

    @property
    def in_time(self) -> bool:
        if self._clock() > self._deadline_ns:
            raise SecurityError(f"it takes more than {MAX_RENDER_S} s")
        return True

    def joined(self, *values: object) -> str:
        return self.concat(map(str, values))

    def concat(self, parts: Iterable[str]) -> str:
        """Jinja's hook for the output of a template, a macro and a block."""
        kept, length = [], 0
        for part in parts:
            length += len(part)
            if length > MAX_PROMPT_CHARACTERS:
                raise SecurityError(f"it writes more than {MAX_PROMPT_CHARACTERS} characters")
            kept.append(part)
        return "".join(kept)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        padding = isinstance(obj, str) and attr in _DROPPED_METHODS
        return not padding and super().is_safe_attribute(obj, attr, value)


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, _SIZED) and isinstance(right, _SIZED):
        _refuse_length(len(left) + len(right))
    return left + right


def _multiply(left: Any, right: Any) -> Any:
    for value, count in ((left, right), (right, left)):
        if isinstance(value, _SIZED) and isinstance(count, int):
            _refuse_length(len(value) * count)
    if isinstance(left, int) and isinstance(right, int):
        _refuse_bits(left.bit_length() + right.bit_length())
    return left * right


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        _refuse_bits(left.bit_length() * right)
    return left**right


def _modulo(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        if _WIDE_FIELD.search(left):
            raise SecurityError("a format with a very wide field")
        values = tuple(right.values()) if isinstance(right, dict) else right
        texts = values if isinstance(values, tuple) else (values,)
        longest = max((len(text) for text in texts if isinstance(text, str)), default=0)
        _refuse_length(len(left) + left.count("%") * longest)
    return left % right


def _refuse_length(length: int) -> None:
    if length > MAX_VALUE_LENGTH:
        raise SecurityError(f"a value of length {length} is too long")


def _refuse_bits(bits: int) -> None:
    if bits > _MAX_INTEGER_BITS:
        raise SecurityError(f"a number of {bits} bits is too large")


def _reason(error: Exception) -> str:
    if isinstance(error, jinja2.TemplateSyntaxError):
        text = f"line {error.lineno}: {error.message}"
    elif isinstance(error, jinja2.TemplateError):
        text = str(error.message)
    else:
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
    line = one_line(text[:_MAX_REASON_CHARACTERS])
    return line if len(text) <= _MAX_REASON_CHARACTERS else f"{line}..."


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
    if indent is not None and indent > _MAX_INDENT:
        raise SecurityError(f"tojson with an indent of {indent}")
    # Jinja's own filter escapes for HTML, which would change the prompt.
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(format_string: str) -> str:
    moment: datetime = utc_now()
    return moment.strftime(format_string)
