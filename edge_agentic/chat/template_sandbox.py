"""Jinja as chat templates expect it, in a sandbox whose templates come to an end.

The environment is the one that transformers documents for chat templates: `raise_exception`,
`strftime_now`, `tojson`, loop controls and `{% generation %}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final, NoReturn

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from edge_agentic.chat import template_bounds as bounds
from edge_agentic.core.clock import NS_PER_S, Clock, utc_now

MAX_RENDER_S: Final = 10
"""How long one rendering may take; real templates take milliseconds."""

# Macros and blocks write what they hold once more.
_MAX_WRITTEN_CHARACTERS: Final = 4 * bounds.MAX_PROMPT_CHARACTERS
# Chat templates need none of these, and each can be made to fill the memory or never to end.
_DROPPED_GLOBALS: Final = ("cycler", "joiner", "lipsum")
# fmt: off
_KEPT_FILTERS: Final = (
    "abs", "attr", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first",
    "float", "groupby", "int", "items", "last", "length", "list", "lower", "max", "min", "reject",
    "rejectattr", "reverse", "safe", "select", "selectattr", "sort", "string", "title", "trim",
    "truncate", "unique", "upper", "wordcount",
)
_KEPT_TEXT_METHODS: Final = frozenset({
    "capitalize", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal",
    "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper", "join", "lower", "lstrip",
    "partition", "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rpartition",
    "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper",
})
# fmt: on
_KEPT_MAPPING_METHODS: Final = frozenset({"get", "items", "keys", "values"})


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox whose templates come to an end and can't make a value grow for ever.

    Every pass of a loop and every call of a macro or block looks at the clock; every operator,
    literal, call and joining of texts looks at the size first.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, clock: Clock) -> None:
        """Set up the sandbox; `clock` gives monotonic nanoseconds."""
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[jinja2.ext.loopcontrols, _GenerationTag],
            finalize=self._as_output,
        )
        self._clock = clock
        self._deadline_ns = 0
        self._written = 0
        self.binop_table.update(
            {"+": bounds.add, "*": bounds.multiply, "**": bounds.power, "%": bounds.modulo}
        )
        self.filters = {
            **{name: self.filters[name] for name in _KEPT_FILTERS},
            "format": bounds.format_text,
            "indent": bounds.indent,
            "join": bounds.join_filter,
            "map": bounds.map_filter,
            "replace": bounds.replace,
            "tojson": bounds.to_json,
        }
        self.globals["namespace"] = _Namespace
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_now
        for name in _DROPPED_GLOBALS:
            del self.globals[name]

    def compiled(self, source: str) -> jinja2.Template:
        """The template, with the looks at clock and size built in.

        Raises:
            Exception: whatever Jinja and Python's compiler have against it.
        """
        tree = _BoundedLiterals().visit(self.parse(source))
        # Attributes of the environment: a template can't give these names another meaning.
        in_time = nodes.EnvironmentAttribute("in_time")
        for joining in tree.find_all(nodes.Concat):
            joining.nodes = [_call_of("joined", joining.nodes)]
        for macro in tree.find_all((nodes.Macro, nodes.Block)):
            macro.body.insert(0, nodes.ExprStmt(in_time))
        for loop in tree.find_all(nodes.For):
            loop.body.insert(0, nodes.ExprStmt(in_time))
            if loop.test is not None:
                loop.test = nodes.And(in_time, loop.test)
        tree.set_environment(self)
        tree.set_lineno(1)
        return self.from_string(tree)

    def start_timing(self) -> None:
        """Give what is rendered from now on its time and space."""
        self._deadline_ns = self._clock() + MAX_RENDER_S * NS_PER_S
        self._written = 0

    def check_time(self) -> None:
        """Raise `SecurityError` where the time is over."""
        if self._clock() > self._deadline_ns:
            raise SecurityError(f"it takes more than {MAX_RENDER_S} s")

    @property
    def in_time(self) -> bool:
        """True, after a look at the clock."""
        self.check_time()
        return True

    def joined(self, *values: object) -> str:
        """`~`."""
        return self.concat(map(str, values))

    def checked(self, value: object) -> object:
        """The value of a literal."""
        return bounds.checked(value)

    def concat(self, parts: Iterable[str]) -> str:
        """Jinja's hook for the output of a template, a macro and a block."""
        kept, length = [], 0
        for part in parts:
            length += len(part)
            if length > bounds.MAX_PROMPT_CHARACTERS:
                raise SecurityError(
                    f"it writes more than {bounds.MAX_PROMPT_CHARACTERS} characters"
                )
            kept.append(part)
        return "".join(kept)

    def _as_output(self, value: object) -> str:
        """What an expression writes; macros and blocks keep it until they are done."""
        text = value if isinstance(value, str) else str(value)
        self._written += len(text)
        bounds.refuse_length(self._written, _MAX_WRITTEN_CHARACTERS)
        return text

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Jinja's hook for attributes: only the methods that chat templates use."""
        if isinstance(obj, str):
            return attr in _KEPT_TEXT_METHODS
        if isinstance(obj, dict):
            return attr in _KEPT_MAPPING_METHODS
        return not isinstance(obj, (int, float)) and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Jinja's hook for `format`, which could write a field of any width."""
        fill = super().wrap_str_format(value)
        if fill is None:
            return None

        def bounded(*values: Any, **named: Any) -> str:
            bounds.refuse_fields(value.__self__, (values, named))
            return fill(*values, **named)

        return bounded

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Jinja's hook for calls."""
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if owner is __self:
            return __obj(*args)
        if isinstance(owner, str) and name == "join":
            __obj = partial(bounds.join, owner)
        elif isinstance(owner, str) and name == "replace":
            __obj = partial(bounds.replace, owner)
        bounds.checked((args, kwargs))
        return bounds.checked(super().call(__context, __obj, *args, **kwargs))


class _BoundedLiterals(NodeTransformer):
    """Puts a check around every list, tuple and mapping that a template writes out."""

    def visit_List(self, node: nodes.List) -> nodes.Node:
        return _call_of("checked", [self.generic_visit(node)])

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:
        return _call_of("checked", [self.generic_visit(node)])

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        inner = self.generic_visit(node)
        return _call_of("checked", [inner]) if node.ctx == "load" else inner


class _GenerationTag(jinja2.ext.Extension):
    """`{% generation %}`: training marks what the model wrote with it; a prompt needs its body."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _Namespace(Namespace):
    """A namespace whose text is short: it may hold another one twice, and so on."""

    def __repr__(self) -> str:
        return "<Namespace>"


def _call_of(attribute: str, arguments: list[Any]) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(attribute), arguments, [], None, None)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(format_string: str) -> str:
    moment: datetime = utc_now()
    return moment.strftime(format_string)
