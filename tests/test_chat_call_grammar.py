"""What a constrained answer may say, form by form, as llama.cpp itself reads the grammars."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agentic.chat.call_grammar import answer_grammar, calls_grammar, has_grammar
from edge_agentic.chat.grammar import Grammar, Text, after, chain, either, joined
from edge_agentic.chat.tool_calls import call_starts, parse
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.gbnf import to_gbnf
from edge_agentic.engine.llama_grammar import LlamaGrammar
from edge_agentic.engine.llama_model import LlamaModel
from tests.bigram_gguf import Vocabulary, build
from tests.call_texts import LOOK as LOOK_ARGUMENTS
from tests.call_texts import TOOLS, TWO_CALLS, found, json_call, xml_call

CONSTRAINED = [tool_format for tool_format in ToolFormat if has_grammar(tool_format)]

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a file",
        "parameters": {
            "type": "object",
            "description": "what to look at",
            "properties": {
                "path": {"type": "string", "description": "a path", "default": "."},
                "lines": {"type": "array", "items": {"type": "integer"}},
                "mode": {"type": "string", "enum": []},
                "how": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
            },
            "required": ["path", "no_such_parameter"],
        },
    },
}

Accepts = Callable[[Grammar, str], bool]


@pytest.fixture(scope="module")
def accepts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accepts]:
    """Whether a text follows a grammar, byte by byte, and may end."""
    vocabulary = Vocabulary()
    path = tmp_path_factory.mktemp("model") / "bytes.gguf"
    model = LlamaModel(build(path, vocabulary, vocabulary.random_scores(0)), vocabulary_only=True)

    gbnf = cache(to_gbnf)

    def accept(grammar: Grammar, text: str) -> bool:
        tokens = [vocabulary.number(f"<0x{byte:02X}>") for byte in text.encode()]
        started = LlamaGrammar(model, gbnf(grammar))
        try:
            taken = all(started.take_first([token]) is not None for token in tokens)
            return taken and started.take_first(list(model.end_tokens)) is not None
        finally:
            started.close()

    yield accept
    model.close()


def tool(parameters: Any, name: Any = "f") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def one(schema: Any) -> dict[str, Any]:
    """A function with one required parameter."""
    return tool({"type": "object", "properties": {"x": schema}, "required": ["x"]})


def look(**arguments: Any) -> dict[str, Any]:
    return {"name": "look", "arguments": arguments}


@pytest.mark.parametrize(
    "answer",
    [
        look(path="."),
        look(path=".", lines=[1, 2], mode="any", how={"deep": True}),
        [look(path="a"), look(path="b")],
        {"name": "no_suitable_function", "arguments": {}},
    ],
)
def test_one_call_several_calls_and_a_decline_are_answers(answer: Any, accepts: Accepts) -> None:
    assert accepts(answer_grammar(ToolFormat.GENERIC, [LOOK]), json.dumps(answer))


@pytest.mark.parametrize(
    "answer",
    [
        "text",
        look(),
        look(path=3),
        look(path=".", colour="red"),
        look(path=".", how={"deep": True, "wide": True}),
        look(path=".", lines=["1"]),
        {"name": "other", "arguments": {}},
        [look(path="a")],
        [look(path="a"), {"name": "no_suitable_function", "arguments": {}}],
    ],
)
def test_anything_else_is_none(answer: Any, accepts: Accepts) -> None:
    assert not accepts(answer_grammar(ToolFormat.GENERIC, [LOOK]), json.dumps(answer))


def test_without_functions_only_a_decline_is_left(accepts: Accepts) -> None:
    grammar = answer_grammar(ToolFormat.GENERIC, [])
    assert accepts(grammar, json_call("no_suitable_function", {}))
    assert not accepts(grammar, json_call("look", {}))


PAIR = f"[{json_call('look', LOOK_ARGUMENTS)}, {json_call('status', {})}]"
ANSWERS = {
    ToolFormat.GENERIC: [PAIR],
    ToolFormat.HERMES: [
        f"<tool_call>\n{json_call('look', LOOK_ARGUMENTS)}\n</tool_call>\n"
        f"<tool_call>\n{json_call('status', {})}\n</tool_call>"
    ],
    ToolFormat.QWEN3_XML: [
        f"{xml_call('look', path='a b', lines='3')}\n{xml_call('status')}",
        "<function=look><parameter=path>a b</parameter><parameter=lines>3</parameter></function>"
        "<function=status></function>",
    ],
    ToolFormat.LLAMA3_JSON: [
        f"{mark}{json_call('look', LOOK_ARGUMENTS, 'parameters')}; "
        f"{json_call('status', {}, 'parameters')}"
        for mark in ("", "<|python_tag|>")
    ],
    ToolFormat.MISTRAL: [
        f"[TOOL_CALLS]{PAIR}",
        f"[TOOL_CALLS] {PAIR}",
        f"[TOOL_CALLS]look[ARGS]{json.dumps(LOOK_ARGUMENTS)}[TOOL_CALLS]status[ARGS]{{}}",
    ],
    ToolFormat.APRIEL: [f"<tool_calls>{PAIR}</tool_calls>"],
    ToolFormat.FUNCTIONARY_3_1: [
        f"<function=look>{json.dumps(LOOK_ARGUMENTS)}</function><function=status>{{}}</function>"
    ],
    ToolFormat.GRANITE: [f"<|tool_call|>{PAIR}", f"<tool_call>{PAIR}"],
    ToolFormat.NEMOTRON: [f"<TOOLCALL>{PAIR}</TOOLCALL>"],
}


@pytest.mark.parametrize("tool_format", CONSTRAINED)
def test_a_form_allows_calls_as_its_models_write_them(
    tool_format: ToolFormat, accepts: Accepts
) -> None:
    grammar = answer_grammar(tool_format, TOOLS)
    for text in ANSWERS[tool_format]:
        assert accepts(grammar, text), text
        assert found(text, tool_format) == TWO_CALLS
        assert not accepts(grammar, text[:-1])
        assert not accepts(grammar, text.replace("look", "hook", 1))
        assert not accepts(grammar, "Well: " + text)


@pytest.mark.parametrize("tool_format", CONSTRAINED)
def test_a_call_can_start_with_each_mark_of_its_form(tool_format: ToolFormat) -> None:
    grammar = calls_grammar(tool_format, TOOLS)
    for start in call_starts(tool_format):
        assert after(grammar, {"{": '{"', "[": '[{"'}.get(start, start)) is not None
    assert after(grammar, "Well") is None


XML_TOOL = tool(
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "unit": {"type": "string", "enum": ["C", "deg F", "\nraw\n"]},
            "flag": {"type": ["boolean", "null"]},
            "either": {"anyOf": [{"type": "number"}, {"type": "array"}]},
            "loose": {"anyOf": [{"type": "number"}, {"type": "string"}]},
            "item": {"type": "object", "properties": {"a": {"type": "string"}}},
            "any": {},
        },
        "required": ["text"],
    }
)


@pytest.mark.parametrize(
    ("values", "accepted"),
    [
        ({"text": "a"}, True),
        ({"text": ""}, True),
        ({"text": 'if a < b and c > d:\n    print("<x>&amp;")\n'}, True),
        ({"text": "<parameters>\n  <parameter>1</parameter>\n</parameters>"}, True),
        ({"text": "<function>f</function>"}, True),
        ({"text": "caf\u00e9 \U0001f600 \u2014 \u201cx\u201d"}, True),
        ({"text": "a", "count": "-3", "unit": "deg F"}, True),
        ({"text": "a", "unit": "\nraw\n", "flag": "null", "item": '{"a": "</b>"}'}, True),
        ({"text": "a", "either": "[1, 2]", "loose": "free text", "any": "free, too"}, True),
        ({"text": "a", "either": "-1.25"}, True),
        ({}, False),
        ({"count": "3"}, False),
        ({"count": "3", "text": "a"}, False),
        ({"text": "a", "count": "three"}, False),
        ({"text": "a", "count": "3.5"}, False),
        ({"text": "a", "unit": "K"}, False),
        ({"text": "a", "flag": "maybe"}, False),
        ({"text": "a", "either": '"3"'}, False),
        ({"text": "a", "item": '{"b": 1}'}, False),
        ({"text": "a", "other": "b"}, False),
        ({"text": "a <parameter=count> b"}, False),
        ({"text": "a <tool_call> b"}, False),
        ({"text": "a </tool_call> b"}, False),
    ],
)
def test_tagged_parameters_follow_their_schemas(
    values: dict[str, str], accepted: bool, accepts: Accepts
) -> None:
    text = xml_call("f", **values)
    assert accepts(answer_grammar(ToolFormat.QWEN3_XML, [XML_TOOL]), text) is accepted
    if accepted:
        ((_, arguments),) = found(text, ToolFormat.QWEN3_XML, [XML_TOOL])
        written = {key: json.dumps(value) for key, value in arguments.items()}
        assert all(value in (arguments[key], written[key]) for key, value in values.items())


XML_GRAMMAR = answer_grammar(ToolFormat.QWEN3_XML, [XML_TOOL])
FRAGMENTS = (
    "</parameter>",
    "</function>",
    "</tool_call>",
    "<tool_call>",
    "<function=f>",
    "<parameter=count>",
    "<parameter=x>",
    "\n",
    " ",
    "<",
    "7",
    "</param",
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join))
def test_no_text_in_a_tag_is_allowed_that_reads_back_as_something_else(
    accepts: Accepts, value: str
) -> None:
    text = xml_call("f", text=value)
    if accepts(XML_GRAMMAR, text):
        parsed = parse(text, ToolFormat.QWEN3_XML, id_prefix="call", tools=[XML_TOOL])
        assert not parsed.malformed
        assert parsed.content == ""
        assert all(call.name == "f" and "text" in call.arguments for call in parsed.calls)
        if "<parameter=" not in value:
            assert [dict(call.arguments) for call in parsed.calls] == [{"text": value}]
    else:
        marks = ("<tool_call>", "</tool_call>", "<function=", "<parameter=", "</parameter>")
        assert any(mark in value for mark in marks)


@pytest.mark.parametrize(
    ("schema", "value", "accepted"),
    [
        ({"type": "string"}, "\x07 \u00e9 \U0001f600", True),
        ({"type": "integer"}, -12, True),
        ({"type": "integer"}, 1.5, False),
        ({"type": "number"}, -1.5e20, True),
        ({"type": ["integer", "null"]}, None, True),
        ({"type": ["integer", "null"]}, "a", False),
        ({"const": {"a": [1]}}, {"a": [1]}, True),
        ({"enum": ['say "hi"', "back\\slash", "line\nfeed", "\u00b0"]}, 'say "hi"', True),
        ({"enum": ['say "hi"', "back\\slash", "line\nfeed", "\u00b0"]}, "back\\slash", True),
        ({"enum": ['say "hi"', "back\\slash", "line\nfeed", "\u00b0"]}, "line\nfeed", True),
        ({"enum": ['say "hi"', "back\\slash", "line\nfeed", "\u00b0"]}, "\u00b0", True),
        ({"enum": ["a"]}, "b", False),
        ({"type": "array", "items": {}}, [1, "a", {}], True),
        ({"type": "array"}, [[], {"a": None}], True),
        ({"items": {"type": "integer"}}, [1], True),
        ({"items": {"type": "integer"}}, ["a"], False),
        ({"type": "object"}, {"a": {"b": [1]}}, True),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, "a", True),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, True, False),
        ({}, "anything", True),
        (True, {"any": "thing"}, True),
        ({"$ref": "#/properties/x"}, [1], True),
        ({"type": "string", "pattern": "^(a+)+$"}, "b", True),
    ],
)
def test_json_values_follow_their_schemas(
    schema: Any, value: Any, accepted: bool, accepts: Accepts
) -> None:
    grammar = answer_grammar(ToolFormat.HERMES, [one(schema)])
    call = json.dumps({"name": "f", "arguments": {"x": value}}, ensure_ascii=False)
    assert accepts(grammar, f"<tool_call>{call}</tool_call>") is accepted


@pytest.mark.parametrize("escape", [r"\ud83d\ude00", r"\u00e9", r"\uD7FF", r"\n"])
def test_escapes_that_are_whole_characters_are_allowed(escape: str, accepts: Accepts) -> None:
    call = json_call("f", {"x": "?"}).replace("?", escape)
    assert accepts(answer_grammar(ToolFormat.GENERIC, [one({"type": "string"})]), call)


@pytest.mark.parametrize("escape", [r"\ud83d", r"\ude00", r"\ud83dx", r"\x41"])
def test_other_escapes_are_not_since_no_json_could_hold_them(escape: str, accepts: Accepts) -> None:
    call = json_call("f", {"x": "?"}).replace("?", escape)
    assert not accepts(answer_grammar(ToolFormat.GENERIC, [one({"type": "string"})]), call)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize("tool_format", [ToolFormat.GENERIC, ToolFormat.QWEN3_XML])
@pytest.mark.parametrize(
    ("offered", "said"),
    [
        (one({"type": "colour"}), "unknown type 'colour'"),
        (one({"type": 3}), "unknown type '3'"),
        (one("string"), "no schema"),
        (one(nested(100)), "more than 64 levels"),
        (one(nested(5000)), "more than 64 levels"),
        (one({"enum": list(range(5000))}), "5000 entries in 'enum'"),
        (one({"anyOf": [{}] * 5000}), "5000 entries in 'anyOf'"),
        (one({"const": "\ud800"}), "no JSON text"),
        (one({"enum": [float("nan")]}), "no JSON text"),
        (tool({"type": "colour"}), "no schema of an object"),
        (tool({"type": "array"}), "no schema of an object"),
        (tool(["a"]), "no schema of an object"),
        (tool({}, name=None), "no name"),
        (tool({}, name=""), "no name"),
        (tool({"properties": {f"p{number}": {} for number in range(5000)}}), "5000 entries"),
    ],
)
def test_tools_that_no_grammar_can_be_made_from_are_bad_input(
    tool_format: ToolFormat, offered: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInputError, match=said):
        answer_grammar(tool_format, [offered])
    with pytest.raises(BadInputError, match=said):
        calls_grammar(tool_format, [LOOK, offered])


def test_tools_that_make_too_large_a_grammar_are_bad_input() -> None:
    many = [one({"enum": [f"{'v' * 99}{number}" for number in range(2000)]})] * 9
    with pytest.raises(BadInputError, match="too large a grammar"):
        to_gbnf(answer_grammar(ToolFormat.GENERIC, many))


@pytest.mark.parametrize("name", ["a>b", "a<b", "a\nb", " a", "a\x00b"])
def test_a_name_that_would_break_its_tag_is_bad_input(name: str) -> None:
    for offered in (tool({}, name), tool({"properties": {name: {}}})):
        with pytest.raises(BadInputError, match="can't stand in a tag"):
            answer_grammar(ToolFormat.QWEN3_XML, [offered])
    with pytest.raises(BadInputError, match="can't stand in a tag"):
        answer_grammar(ToolFormat.FUNCTIONARY_3_1, [tool({}, name)])
    assert answer_grammar(ToolFormat.HERMES, [tool({}, name)])


@pytest.mark.parametrize(
    ("start", "rest"),
    [
        ("", "<call>look</call>"),
        ("<ca", "ll>look</call>"),
        ("<call>", "hook</call>"),
        ("<call>\n", "hook</call>"),
        ("<call>loo", "k</call><call>\nhook</call>"),
        ("<call>look</call>", ""),
        ("<call>look</call><call>", "look</call>"),
        ("<call>book", None),
        ("call", None),
    ],
)
def test_after_a_start_only_what_goes_on_from_it_is_left(
    start: str, rest: str | None, accepts: Accepts
) -> None:
    line_feed = either([Text("\n"), Text("")])
    call = chain("<call>", line_feed, either([Text("look"), Text("hook")]), "</call>")
    left = after(joined(call, Text("")), start)
    assert (left is None) == (rest is None)
    if left is not None and rest is not None:
        assert accepts(left, rest)
        assert not accepts(left, rest + "<")
