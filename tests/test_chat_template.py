"""Chat templates: a model's own, in Jinja's sandbox, and the generic form without tools."""

from __future__ import annotations

import itertools

import pytest

from edge_agentic.chat.template import ChatTemplate
from edge_agentic.chat.template_bounds import MAX_PROMPT_CHARACTERS, MAX_VALUE_LENGTH
from edge_agentic.core.clock import NS_PER_S
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


def _grow(step: str, start: str = "'a'") -> str:
    loop = "{% for _ in range(60) %}{% set ns.x = " + step + " %}{% endfor %}"
    return "{% set ns = namespace(x=" + start + ") %}" + loop


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{% for i in range(2) %}" * 25 + "{% endfor %}" * 25, "compiled: SyntaxError"),
        ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "compiled: RecursionError"),
        ("{{ a" + ".a" * 5000 + " }}", "compiled: RecursionError"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "failed: RecursionError"),
        ("{% block a %}{{ self.a() }}{% endblock %}", "failed: RecursionError"),
        ("{{ 1 | dictsort }}", "failed: AttributeError"),
        ("{% include 'x' %}", "failed: TypeError"),
        ("{{ 2.0 ** 5000 }}", "failed: OverflowError"),
        ("{% if %}", "compiled: line 1: Expected an expression"),
        ("{{ raise_exception('a\nb' * 500) }}", r"failed: a\\nba\\nb.*\.\.\."),
    ],
)
def test_whatever_a_template_raises_is_one_short_line(source: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said) as caught:
        ChatTemplate(source).render(CONVERSATION, TOOLS)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{{ 'a' * 10**11 }}", "length 100000000000 is too long"),
        ("{{ 10**11 * [1] }}", "length 100000000000 is too long"),
        ("{{ '%99999999999d' % 1 }}", "very wide field"),
        ("{{ '%*d' % (10**11, 1) }}", "very wide field"),
        ("{{ '%99999999999d' | format(1) }}", "very wide field"),
        ("{{ '%(a)s' * 100000 % {'a': 'x' * 1000000} }}", r"length 100\d{9} is too long"),
        ("{{ 10 ** (10 ** 10) }}", "a number of .* bits is too large"),
        (_grow("ns.x * ns.x", "10"), "a number of .* bits is too large"),
        (_grow("ns.x + ns.x"), "length 33554432 is too long"),
        (_grow("ns.x ~ ns.x"), "it writes more than 67108864 characters"),
        ("{{ 'a'.ljust(10**10) }}", "'ljust' .* is unsafe"),
        ("{{ 'a' | center(10**10) }}", "No filter named 'center'"),
        ("{{ 1.5 | round(10**10, 'floor') }}", "No filter named 'round'"),
        ("{{ [1] | tojson(indent=10**10) }}", "indent of 10000000000"),
        ("{{ lipsum(n=10**9) }}", "'lipsum' is undefined"),
        ("{{ '{:9999999999}'.format(1) }}", "very wide field"),
        ("{{ '{:>{w}}'.format(1, w=10**10) }}", "very wide field"),
        ("{{ '{a:9999999999}'.format_map({'a': 1}) }}", "very wide field"),
        ("{{ ('{0}' * 100000).format('x' * 1000000) }}", r"length 100\d{9} is too long"),
        ("{{ '%99999d' * 10000 % tuple }}", r"length 100\d{7} is too long"),
        ("{{ ('a' * 10000).replace('a', 'b' * 10000) }}", "length 100000000 is too long"),
        ("{{ ('a' * 9999) | replace('', 'b' * 10000) }}", "length 100009999 is too long"),
        ("{{ ('b' * 100000).join(['a'] * 1000) }}", r"length 16\d{6} is too long"),
        ("{{ (['a'] * 1000) | join('b' * 100000) }}", r"length 16\d{6} is too long"),
        ("{{ ('a\n' * 10**6) | indent(10**6) }}", "indent of 1000000"),
        ("{{ [1] | tojson(indent='a' * 10**6) }}", "indent of 1000000"),
        ("{{ [1] | batch(10**9, 1) | list }}", "No filter named 'batch'"),
        ("{{ [1] | slice(10**9) | list }}", "No filter named 'slice'"),
        ("{{ (10 ** 100).to_bytes(10**10) }}", "'to_bytes' .* is unsafe"),
        ("{{ {}.fromkeys(range(9), 1) }}", "'fromkeys' .* is unsafe"),
        ("{{ range(10**9) | list }}", "Range too big"),
        (_grow("[ns.x, ns.x]") + "{{ ns.x }}", r"length 6\d{7} is too long"),
        (_grow("{'a': ns.x, 'b': ns.x}") + "{{ ns.x | tojson }}", r"length 6\d{7} is too long"),
        (_grow("dict(a=ns.x, b=ns.x)") + "{{ ns.x == ns.x }}", r"length 6\d{7} is too long"),
        (_grow("[ns.x]").replace("60", "300") + "{{ ns.x }}", "more than 200 levels"),
        (
            "{% macro f(x, n) %}{{ f([x, x], n - 1) if n else x }}{% endmacro %}{{ f(1, 60) }}",
            r"length 6\d{7} is too long",
        ),
        (
            "{{ range(99999) | map('string') | map('replace', '', 'x' * 999) | list | length }}",
            r"length 6\d{7} is too long",
        ),
        (
            "{% set x %}{% for _ in range(99999) %}{{ 'a' * 9999 }}{% endfor %}{% endset %}",
            r"length 2684\d+ is too long",
        ),
    ],
)
def test_a_value_that_fills_the_memory_is_refused(source: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        ChatTemplate(source).render(CONVERSATION, TOOLS)


def test_a_namespace_that_holds_others_twice_and_so_on_has_a_short_text() -> None:
    source = _grow("namespace(a=ns.x, b=ns.x)") + "{{ ns.x }}"
    assert ChatTemplate(source).render([], []) == "<Namespace>"


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''['__class__'] }}",
        "{{ '' | attr('__class__') }}",
        "{{ raise_exception.__globals__ }}",
        "{{ namespace.__init__ }}",
        "{{ self.__init__ }}",
        "{{ environment }}{{ joined }}{{ in_time }}",
        "{{ '{0.__class__}'.format('') }}",
    ],
)
def test_nothing_of_python_can_be_seen(source: str) -> None:
    try:
        assert ChatTemplate(source).render(CONVERSATION, []) == ""
    except BadInputError as error:
        assert "unsafe" in str(error)


def test_a_template_that_breaks_a_bound_is_not_tried_out_again_and_again() -> None:
    seconds = itertools.count()
    template = ChatTemplate(
        "{% for m in messages %}{% for _ in range(2) %}{% endfor %}{% endfor %}",
        clock=lambda: next(seconds) * NS_PER_S,
    )
    with pytest.raises(BadInputError, match="it takes more than 10 s"):
        template.render(CONVERSATION, [])
    assert next(seconds) == 12


def test_the_limits_of_size_are_the_documented_ones() -> None:
    longest = ChatTemplate("{{ 'a' * N }}".replace("N", str(MAX_VALUE_LENGTH))).render([], [])
    assert len(longest) == MAX_VALUE_LENGTH == 16 * 2**20
    four = "{% set x = 'a' * N %}{{ x }}{{ x }}{{ x }}{{ x }}".replace("N", str(MAX_VALUE_LENGTH))
    assert len(ChatTemplate(four).render([], [])) == MAX_PROMPT_CHARACTERS == 64 * 2**20
    with pytest.raises(BadInputError, match="writes more than 67108864 characters"):
        ChatTemplate(four + "b").render([], [])


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(99) %}{% endfor %}",
        "{% for a in range(99) if false %}{% endfor %}",
        "{% for a in [1, 2] recursive %}{{ loop([1, 2]) if loop.depth < 60 }}{% endfor %}",
        "{% macro f(n) %}{{ (f(n - 1) ~ f(n - 1)) if n > 0 }}{% endmacro %}{{ f(60) }}",
        "{% block b %}{{ self.b() }}{% endblock %}",
        "{% for a in messages * 20 %}{% endfor %}",
    ],
)
def test_a_rendering_ends_after_ten_seconds_with_or_without_output(source: str) -> None:
    seconds = itertools.count()
    template = ChatTemplate(source, clock=lambda: next(seconds) * NS_PER_S)
    with pytest.raises(BadInputError, match="it takes more than 10 s"):
        template.render(CONVERSATION, [])
    assert next(seconds) == 12


def test_each_rendering_has_its_own_ten_seconds() -> None:
    seconds = itertools.count()
    nine = "{% for a in range(9) %}.{% endfor %}"
    template = ChatTemplate(nine, clock=lambda: next(seconds) * NS_PER_S)
    assert [template.render([], []) for _ in range(3)] == ["." * 9] * 3


def test_the_bounds_leave_an_ordinary_template_as_it_was() -> None:
    source = (
        "{% for m in messages if m.role != 'system' %}{{ loop.index ~ '/' ~ loop.length }}"
        "{{ ' last' if loop.last }} {% endfor %}"
        "{{ '%s is %03d' % ('x', 7) }} {{ '%s' | format(1) }} {{ 2 ** 3 * 2 }} {{ [1] + [2] }}"
    )
    rendered = ChatTemplate(source).render(CONVERSATION, [])
    assert rendered == "1/3 2/3 3/3 last x is 007 1 16 [1, 2]"
