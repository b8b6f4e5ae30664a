"""Calls whose parameters stand between tags: Qwen3-Coder, Qwen3.5, Qwen3.6, and GLM."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agentic.chat.tool_calls import parse
from edge_agentic.chat.tool_format import ToolFormat
from tests.call_texts import found, xml_call

XML, GLM = ToolFormat.QWEN3_XML, ToolFormat.GLM


def tool(**properties: Any) -> list[dict[str, Any]]:
    """A function `f` with parameters of these types or schemas."""
    schemas = {
        key: value if isinstance(value, dict) else {"type": value}
        for key, value in properties.items()
    }
    parameters = {"type": "object", "properties": schemas}
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


STRINGS = tool(a="string", b="string")


def glm_call(name: str, **values: str) -> str:
    pairs = (
        f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"
        for key, value in values.items()
    )
    return f"<tool_call>{name}\n{''.join(pairs)}</tool_call>"


@pytest.mark.parametrize(
    ("between_tags", "value"),
    [
        ("\nx\n", "x"),
        ("x", "x"),
        ("\n  x\t\n", "  x\t"),
        ("\n\nx\n\n\n", "\nx\n\n"),
        ("\n\n", ""),
        ("\n", ""),
        ("", ""),
        (" x ", " x "),
        ("\nif x:\n\n\treturn 1 \n", "if x:\n\n\treturn 1 "),
    ],
)
def test_one_line_feed_at_each_end_is_stripped_and_no_other_space(
    between_tags: str, value: str
) -> None:
    text = f"<tool_call>\n<function=f>\n<parameter=a>{between_tags}</parameter>\n</function>"
    assert found(text, XML, STRINGS) == [("f", {"a": value})]


CODE = [
    "a & b < c > d \"e\" 'f'",
    "&amp;&lt;",
    "<div class='x'></div>",
    "print('</parameter>')",
    "the </tool_call> tag, the <tool_call> tag",
    "a </function> b",
    're.findall("<parameter=(.*?)>", text)',
    "<parameter=other>\n1",
    "<think>x</think>",
    '<function=f> is {"name": "f"}',
    "<tool_call>\n<function=no_such_function>\n<parameter=a>",
    "<arg_key>x</arg_key>",
]


@pytest.mark.parametrize("value", CODE)
@pytest.mark.parametrize("write", [xml_call, glm_call])
def test_code_that_looks_like_a_tag_is_content(write: Any, value: str) -> None:
    tool_format = XML if write is xml_call else GLM
    text = write("f", a=value, b="1")
    assert found(text, tool_format, STRINGS) == [("f", {"a": value, "b": "1"})]
    assert not parse(text, tool_format, id_prefix="call", tools=STRINGS).malformed


plain = st.text(st.characters(codec="utf-8", exclude_characters="<>"))
values = st.lists(plain | st.sampled_from(CODE).map(lambda code: f"x{code}x"), max_size=3)


@settings(deadline=None)
@given(values.map("".join), values.map("".join))
def test_any_strings_come_back(first: str, second: str) -> None:
    assert found(xml_call("f", a=first, b=second), XML, STRINGS) == [
        ("f", {"a": first, "b": second})
    ]


GOOD = xml_call("f", a="1")
FUNCTION = "<function=f>\n<parameter=a>\n1\n</parameter>\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<function=f></function>", [{}]),
        ("<tool_call><function=f></function></tool_call>", [{}]),
        # An opening or a closing tag of the block is missing.
        (f"{FUNCTION}</function>\n</tool_call>", [{"a": "1"}]),
        (f"{FUNCTION}</function>", [{"a": "1"}]),
        (f"<tool_call>\n{FUNCTION}</function>\n{GOOD}", [{"a": "1"}, {"a": "1"}]),
        # Two calls in one block.
        (f"<tool_call>\n{FUNCTION}</function>\n{FUNCTION}</function>\n</tool_call>",
         [{"a": "1"}, {"a": "1"}]),
        # The closing tag of a function or of a parameter is missing.
        (f"<tool_call>\n{FUNCTION}</tool_call>", [{"a": "1"}]),
        (f"<tool_call>\n{FUNCTION}{GOOD}", [{"a": "1"}, {"a": "1"}]),
        ("<function=f>\n<parameter=a>\n1\n<parameter=b>\n2\n</parameter>\n</function>",
         [{"a": "1", "b": "2"}]),
        ("<function=f><parameter=a>1<parameter=b>2</function>", [{"a": "1", "b": "2"}]),
        ("<function=f>\n<parameter=a>\n1\n</function>\n</tool_call>", [{"a": "1"}]),
        ("<function=f>\n<parameter=a>\n1\n</tool_call>", [{"a": "1"}]),
        (f"<function=f>\n<parameter=a>\n1\n{GOOD}", [{"a": "1"}, {"a": "1"}]),
    ],
)  # fmt: skip
def test_missing_tags_are_made_up_for(text: str, expected: list[dict[str, str]]) -> None:
    for tools in (STRINGS, []):
        parsed = parse(text, XML, id_prefix="call", tools=tools)
        assert [dict(call.arguments) for call in parsed.calls] == expected
        assert not parsed.malformed
        assert not any(call.truncated for call in parsed.calls)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"<tool_call>\n{FUNCTION}<parameter=b>\n2", {"a": "1"}),
        (f"<tool_call>\n{FUNCTION}<parameter=b", {"a": "1"}),
        (f"<tool_call>\n{FUNCTION}</func", {"a": "1"}),
        (f"<tool_call>\n{FUNCTION}", {"a": "1"}),
        ("<tool_call>\n<function=f>\n", {}),
        ("<tool_call>\n<function=f>\n<parameter=a>\n1\n</para", {}),
    ],
)
def test_a_call_that_the_limit_cut_keeps_what_is_whole(text: str, expected: object) -> None:
    parsed = parse(f"{GOOD}\n{text}", XML, id_prefix="call", tools=STRINGS)
    assert [call.truncated for call in parsed.calls] == [False, True]
    assert dict(parsed.calls[1].arguments) == expected
    assert (parsed.content, parsed.malformed) == ("", False)


@pytest.mark.parametrize("text", ["<tool_call>", "<tool_call>\n<function=", "<tool_call>\n<funct"])
def test_without_a_whole_name_there_is_no_call(text: str) -> None:
    parsed = parse(f"{GOOD}\n{text}", XML, id_prefix="call", tools=STRINGS)
    assert len(parsed.calls) == 1
    assert (parsed.content, parsed.malformed) == (text, True)


def test_text_behind_a_function_that_is_never_closed_is_content() -> None:
    parsed = parse(f"<tool_call>\n{FUNCTION}\nThat's it.", XML, id_prefix="call", tools=STRINGS)
    assert [(dict(call.arguments), call.truncated) for call in parsed.calls] == [({"a": "1"}, True)]
    assert parsed.content == "That's it."


@pytest.mark.parametrize(
    ("parameters", "left"),
    [
        ("<parameter=path\na.txt\n</parameter>\n<parameter=b>\n2\n</parameter>\n", {"b": "2"}),
        ("<parameter=b>\n2\n</parameter>\n<parameter=path\na.txt\n</parameter>\n", {"b": "2"}),
        ("<parameter=>\na.txt\n</parameter>\n<parameter=b>\n2\n</parameter>\n", {"b": "2"}),
        ("</parameter>\n<parameter=b>\n2\n</parameter>\n", {"b": "2"}),
        ("and\n<parameter=b>\n2\n</parameter>\n", {"b": "2"}),
        ("<parameter=a>\n1\n</parameter> and\n<parameter=b>\n2\n</parameter>\n",
         {"a": "1", "b": "2"}),
    ],
)  # fmt: skip
def test_a_broken_parameter_spares_its_neighbours(parameters: str, left: object) -> None:
    broken = f"<tool_call>\n<function=f>\n{parameters}</function>\n</tool_call>"
    parsed = parse(f"{GOOD}\n{broken}\n{GOOD}", XML, id_prefix="call", tools=STRINGS)
    assert [dict(call.arguments) for call in parsed.calls] == [{"a": "1"}, left, {"a": "1"}]
    assert parsed.malformed


@pytest.mark.parametrize("name", ["", "f\n", "f "])
def test_a_broken_function_tag_spares_the_other_calls(name: str) -> None:
    broken = (
        f"<tool_call>\n<function={name}<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"
    )
    parsed = parse(f"{broken}\n{GOOD}", XML, id_prefix="call", tools=STRINGS)
    assert [call.name for call in parsed.calls] == ["f"]
    assert parsed.malformed


def test_prose_that_names_a_tag_is_no_call() -> None:
    text = "Write <function=f> and then the parameters."
    parsed = parse(text, XML, id_prefix="call", tools=STRINGS)
    assert (parsed.calls, parsed.content, parsed.malformed) == ((), text, False)


def test_half_a_surrogate_pair_makes_no_call() -> None:
    parsed = parse(xml_call("f", a="\ud800"), XML, id_prefix="call", tools=STRINGS)
    assert (parsed.calls, parsed.malformed) == ((), True)


UNSET = object()


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ("string", "5", "5"),
        ("string", "null", "null"),
        ("string", '"x"', '"x"'),
        ("integer", "5", 5),
        ("integer", " -12\n", -12),
        ("integer", "5.0", UNSET),
        ("integer", "1_000", UNSET),
        ("integer", "\u0665", UNSET),
        ("integer", "five", UNSET),
        ("integer", "9" * 5000, UNSET),
        ("number", "5", 5),
        ("number", "-5.50", -5.5),
        ("number", "1e3", 1000.0),
        ("number", "1e999", UNSET),
        ("number", "NaN", UNSET),
        ("boolean", "true", True),
        ("boolean", "True", True),
        ("boolean", "False", False),
        ("boolean", "yes", UNSET),
        ("boolean", "1", UNSET),
        ("null", "null", None),
        ("null", "None", None),
        ("array", '[{"a":false,"b":null}]', [{"a": False, "b": None}]),
        ("array", "[1, 2", UNSET),
        ("array", "['a']", UNSET),
        ("array", '{"a": 1}', UNSET),
        ("array", "[NaN]", UNSET),
        ("object", '{\n "a": [1]\n}', {"a": [1]}),
        ("object", "[1]", UNSET),
        ({"type": ["boolean", "null"]}, "false", False),
        ({"type": ["boolean", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "x", "x"),
        ({"type": ["string", "integer"]}, "5", 5),
        ({"type": ["string", "integer"]}, "007", "007"),
        ({"anyOf": [{"type": "integer"}, {"type": "array"}]}, "[5]", [5]),
        ({"oneOf": [{"type": "number"}, {"type": "boolean"}]}, "true", True),
        ({"anyOf": [{"$ref": "#/$defs/Count"}, {"type": "null"}]}, "5", 5),
        ({"$ref": "#/$defs/Circle"}, "5", UNSET),
        ({"$ref": "#/$defs/Missing"}, "5", UNSET),
        ({"$ref": "https://example.com/schema"}, "5", UNSET),
        ({"type": "integer", "nullable": True}, "null", None),
        ({"enum": [1, 2]}, "2", 2),
        ({"enum": ["1", "2"]}, "2", "2"),
        ({"const": True}, "true", True),
        ({"description": "anything"}, "5", UNSET),
        ({"type": 3, "enum": 3, "anyOf": 3, "$ref": 3}, "5", UNSET),
    ],
)
@pytest.mark.parametrize("write", [xml_call, glm_call])
def test_a_value_has_the_type_of_its_schema_if_it_fits(
    write: Any, schema: object, text: str, value: object
) -> None:
    tools = tool(a=schema)
    parameters = tools[0]["function"]["parameters"]
    parameters["$defs"] = {"Count": {"type": "integer"}, "Circle": {"$ref": "#/$defs/Circle"}}
    ((_, arguments),) = found(write("f", a=text), XML if write is xml_call else GLM, tools)
    expected = text if value is UNSET else value
    if write is xml_call and isinstance(expected, str):
        expected = expected.removesuffix("\n")
    assert json.dumps(arguments["a"]) == json.dumps(expected)


@pytest.mark.parametrize(
    "tools",
    [
        [],
        [{}],
        [{"function": 3}],
        [{"function": {"name": "f", "parameters": []}}],
        [{"function": {"name": "f", "parameters": {"properties": 3}}}],
        [{"function": {"name": "other", "parameters": {"properties": {"a": {"type": "integer"}}}}}],
    ],
)
def test_without_a_schema_a_value_is_a_string(tools: list[dict[str, Any]]) -> None:
    assert found(xml_call("f", a="5"), XML, tools) == [("f", {"a": "5"})]


def test_tools_may_come_without_their_wrapper() -> None:
    assert found(xml_call("f", a="5"), XML, [tool(a="integer")[0]["function"]]) == [("f", {"a": 5})]
