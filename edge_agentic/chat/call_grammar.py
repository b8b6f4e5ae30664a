"""The grammar of an answer that calls the offered functions, in the form of the model's template.

A call names an offered function, with arguments that follow its schema. What each form allows is
what `chat.tool_calls.parse` reads back as the same calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from edge_agentic.chat.generic import DECLINE_NAME
from edge_agentic.chat.grammar import (
    LINE_FEED,
    SPACE,
    Chain,
    FreeText,
    Grammar,
    Json,
    JsonKind,
    Many,
    Maybe,
    Text,
    chain,
    either,
    joined,
)
from edge_agentic.chat.schema_grammar import (
    alternatives,
    json_text,
    literals,
    object_grammar,
    properties_of,
    schema_grammar,
)
from edge_agentic.chat.tool_calls import call_starts
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import ToolSpec


def has_grammar(tool_format: ToolFormat) -> bool:
    """Whether calls of this form can be constrained."""
    return tool_format in _ANSWERS


def formats_with_grammar() -> str:
    """Their names, for messages."""
    return ", ".join(tool_format.value for tool_format in _ANSWERS)


def answer_grammar(tool_format: ToolFormat, tools: Sequence[ToolSpec]) -> Grammar:
    """The grammar of a whole answer: one call, several calls, or a decline.

    The decline is a call of the reserved declining function. Without one every irrelevance case
    would be lost.

    Raises:
        BadInputError: a function can't be offered in this form, or its schema is no schema.
    """
    answer, functions = _ANSWERS[tool_format], [_function(tool) for tool in tools]
    decline = answer([_DECLINE], False)
    return either([answer(functions, True), decline]) if functions else decline


def calls_grammar(tool_format: ToolFormat, tools: Sequence[ToolSpec]) -> Grammar:
    """The grammar of a text from the start of a call on: that call and any that follow it.

    It allows each start that `chat.tool_calls.call_starts` names.

    Raises:
        BadInputError: a function can't be offered in this form, or its schema is no schema.
    """
    functions = [_function(tool) for tool in tools]
    calls = _ANSWERS[tool_format](functions, True)
    if "{" not in call_starts(tool_format):
        return calls
    key = "parameters" if tool_format is ToolFormat.LLAMA3_JSON else "arguments"
    bare = either([_json_call(function, key) for function in functions])
    return either([calls, joined(bare, chain(",", SPACE)), _list(bare)])


class _Function(NamedTuple):
    """A function, and the schema of the object that its arguments are."""

    name: str
    parameters: JsonObject


_Answer = Callable[[Sequence[_Function], bool], Grammar]
"""The grammar of one call of these functions, or, if the flag is set, of any number."""

_DECLINE: Final = _Function(DECLINE_NAME, {"type": "object", "properties": {}})


def _function(tool: ToolSpec) -> _Function:
    function = tool.get("function", tool)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not name:
        raise BadInputError("an offered function has no name; constrained calls need one")
    parameters = function.get("parameters") or {}
    if not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object":
        raise BadInputError(f"the parameters of function {name[:40]!r} are no schema of an object")
    return _Function(name, {**parameters, "type": "object"})


def _json_call(function: _Function, arguments_key: str = "arguments") -> Grammar:
    name, arguments = Text(json_text(function.name)), schema_grammar(function.parameters)
    return object_grammar([("name", name), (arguments_key, arguments)])


def _list(call: Grammar, *, least: int = 1) -> Grammar:
    comma = chain(",", SPACE)
    first = [call, *[chain(comma, call)] * (least - 1)]
    return chain("[", SPACE, *first, Many(chain(comma, call)), "]", SPACE)


def _generic(functions: Sequence[_Function], several: bool) -> Grammar:
    call = either([_json_call(function) for function in functions])
    return either([call, _list(call, least=2)]) if several else call


def _each(call: Callable[[_Function], Grammar], between: Grammar, opening: Grammar) -> _Answer:
    """Calls behind an opening, with something between any two."""

    def answer(functions: Sequence[_Function], several: bool) -> Grammar:
        calls = either([call(function) for function in functions])
        return chain(opening, joined(calls, between) if several else calls)

    return answer


def _listed(tool_format: ToolFormat, close: str = "") -> _Answer:
    """Calls in a JSON list behind one of the marks that calls of a form start with."""

    def answer(functions: Sequence[_Function], several: bool) -> Grammar:
        call = either([_json_call(function) for function in functions])
        calls = _list(call) if several else chain("[", SPACE, call, "]", SPACE)
        return chain(either([Text(mark) for mark in call_starts(tool_format)]), SPACE, calls, close)

    return answer


def _hermes_call(function: _Function) -> Grammar:
    return chain("<tool_call>", LINE_FEED, _json_call(function), LINE_FEED, "</tool_call>")


def _llama3_call(function: _Function) -> Grammar:
    return _json_call(function, "parameters")


def _functionary_call(function: _Function) -> Grammar:
    head = f"<function={_tag_name(function.name, _NO_SPACE)}>"
    return chain(head, schema_grammar(function.parameters), "</function>")


_MISTRAL_NAME: Final = re.compile(r'[^\s\[\]{}"]+')
_MISTRAL_LIST: Final = _listed(ToolFormat.MISTRAL)


def _mistral(functions: Sequence[_Function], several: bool) -> Grammar:
    """Both of Mistral's forms; newer models name the function before the arguments."""
    listed = _MISTRAL_LIST(functions, several)
    named = [function for function in functions if _MISTRAL_NAME.fullmatch(function.name)]
    if not named:
        return listed
    heads = [
        chain(f"[TOOL_CALLS]{name}[ARGS]", schema_grammar(parameters)) for name, parameters in named
    ]
    calls = either(heads)
    return either([listed, chain(calls, Many(calls)) if several else calls])


_NO_SPACE: Final = re.compile(r"[^<>\s]+")
_NO_LINE_FEED: Final = re.compile(r"(?!\s)[^<>\n]+(?<!\s)")


def _tag_name(name: str, pattern: re.Pattern[str]) -> str:
    if not pattern.fullmatch(name) or not name.isprintable():
        raise BadInputError(
            f"the name {name[:40]!r} can't stand in a tag of the model's tool-call form; "
            "use --tool-grammar off"
        )
    return name


_MAY_BE_TEXT: Final = (Json(JsonKind.STRING), Json(JsonKind.VALUE))
_VALUE_END: Final = "</parameter>"
_RAW_TEXT: Final = FreeText(
    (
        (_VALUE_END, "</function>"),
        ("<parameter=",),
        ("<function=",),
        ("<tool_call>",),
        ("</tool_call>",),
    )
)
"""What a string may hold: nothing that the parser would take for the end of the value.

The closing tag of a value is one only where the call goes on behind it.
"""


def _qwen3_xml_call(function: _Function) -> Grammar:
    properties, required = properties_of(function.parameters) or ({}, frozenset())
    tags = [(key in required, _parameter_tag(key, schema)) for key, schema in properties.items()]
    parameters = Chain(tuple(tag if needed else Maybe(tag) for needed, tag in tags))
    head = f"<function={_tag_name(function.name, _NO_LINE_FEED)}>"
    call = chain(head, LINE_FEED, parameters, "</function>")
    wrapped = chain("<tool_call>", LINE_FEED, call, LINE_FEED, "</tool_call>")
    return either([wrapped, call])


def _parameter_tag(key: str, schema: object) -> Grammar:
    opening = f"<parameter={_tag_name(key, _NO_LINE_FEED)}>"
    # Checks the schema as a whole, too.
    value = schema_grammar(schema)
    return chain(opening, _tag_value(schema, value), _VALUE_END, LINE_FEED)


def _tag_value(schema: object, as_json: Grammar) -> Grammar:
    """The value of a parameter: a string as it is, everything else as JSON."""
    if as_json in _MAY_BE_TEXT or not isinstance(schema, Mapping):
        return _RAW_TEXT
    if (branches := alternatives(schema)) is not None:
        values = [_tag_value(branch, schema_grammar(branch)) for branch in branches]
        return _RAW_TEXT if _RAW_TEXT in values else either(values)
    if (listed := literals(schema)) is not None:
        # The line feeds of the tags: without them, a value's own would be taken for theirs.
        texts = [value if isinstance(value, str) else json_text(value) for value in listed]
        return either([Text(f"\n{text}\n") for text in texts])
    return chain(LINE_FEED, as_json, LINE_FEED)


_ANSWERS: Final[Mapping[ToolFormat, _Answer]] = {
    ToolFormat.GENERIC: _generic,
    ToolFormat.HERMES: _each(_hermes_call, LINE_FEED, Text("")),
    ToolFormat.QWEN3_XML: _each(_qwen3_xml_call, LINE_FEED, Text("")),
    ToolFormat.LLAMA3_JSON: _each(_llama3_call, chain(";", SPACE), Maybe(Text("<|python_tag|>"))),
    ToolFormat.MISTRAL: _mistral,
    ToolFormat.APRIEL: _listed(ToolFormat.APRIEL, "</tool_calls>"),
    ToolFormat.FUNCTIONARY_3_1: _each(_functionary_call, LINE_FEED, Text("")),
    ToolFormat.GRANITE: _listed(ToolFormat.GRANITE),
    ToolFormat.NEMOTRON: _listed(ToolFormat.NEMOTRON, "</TOOLCALL>"),
}
