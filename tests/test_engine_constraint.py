"""Constrained answers of real llama.cpp models: tables of random scores, picked greedily."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from edge_agentic.chat.call_grammar import has_grammar
from edge_agentic.chat.generic import DECLINE_NAME
from edge_agentic.chat.tool_calls import ParsedText, parse
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.clock import monotonic_ns
from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.api import FinishReason
from edge_agentic.engine.call_constraint import CallConstraint
from edge_agentic.engine.decoding import DecodeLimits, DecodeLoop
from edge_agentic.engine.drafting import LookupDrafter
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import LlamaRuntime, RuntimeSettings
from edge_agentic.engine.llama_sampler import NO_TOKEN, Sampler
from tests.bigram_gguf import END, Vocabulary, build

CONSTRAINED = [tool_format for tool_format in ToolFormat if has_grammar(tool_format)]
START = 1
SETTINGS = RuntimeSettings(context_tokens=512, batch_tokens=64, micro_batch_tokens=64, threads=1)


def tool(name: str, parameters: dict[str, Any] | None) -> dict[str, Any]:
    known = {} if parameters is None else {"parameters": parameters}
    return {"type": "function", "function": {"name": name, **known}}


def parameters(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


POINT = parameters("z", y={"type": "boolean"}, z={"type": "null"})
ODD_KEYS = {
    "a b": {"type": "integer"},
    "stra\u00dfe": {"type": "string"},
    'q"uote': {"type": "boolean"},
    "x/y.z": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
}
TOOLS = [
    tool("look", parameters("at", at=parameters("p", p=POINT, x={"type": "number"}))),
    tool("a.b/c", parameters("u", u={"enum": ["C", "\u00b0", "a\\b", '"q"', 2.5, None]})),
    tool('say-"hi"', parameters(**{key: {"type": "string"} for key in "abcdef"})),
    tool("gr\u00fc\u00df", parameters('q"uote', "x/y.z", **ODD_KEYS)),
    tool("back\\slash", parameters()),
    tool("status", None),
    tool("mix", parameters("m", m={"anyOf": [{"type": "integer"}, {"type": "null"}]}, any={})),
]
MANY = [tool(f"{t['function']['name']}_{n}", POINT) for n in range(5) for t in TOOLS]


@contextmanager
def opened(path: Path) -> Iterator[tuple[LlamaModel, LlamaRuntime]]:
    model = LlamaModel(path)
    runtime = LlamaRuntime(model, SETTINGS)
    try:
        yield model, runtime
    finally:
        runtime.close()
        model.close()


def answer(
    runtime: LlamaRuntime, sampler: Sampler, model: LlamaModel, most: int = 100
) -> DecodeLoop:
    runtime.clear()
    runtime.evaluate([START], lambda: True)
    with sampler:
        limits = DecodeLimits(model.end_tokens, most, None)
        loop = DecodeLoop(runtime, sampler, limits, monotonic_ns, 0)
        loop.run()
    return loop


def check_calls(parsed: ParsedText, tools: Sequence[dict[str, Any]]) -> None:
    """The calls are whole, are of offered functions, and follow their schemas."""
    offered = {t["function"]["name"]: t["function"].get("parameters", {}) for t in tools}
    assert not parsed.malformed
    for call in parsed.calls:
        jsonschema.validate(call.arguments, offered[call.name])
        known = offered[call.name].get("properties")
        assert not call.truncated
        assert known is None or call.arguments.keys() <= known.keys()


@pytest.fixture(scope="module")
def random_models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Models that would say anything, and are a little more likely to close what is open."""
    vocabulary, folder = Vocabulary(["<tool_call>", "</tool_call>"]), tmp_path_factory.mktemp("m")
    paths = []
    for seed in range(4):
        scores = vocabulary.random_scores(seed, '<>/"]}', 2)
        scores[:, vocabulary.number("n")] -= 3  # or every second answer would decline
        scores[:, vocabulary.number(END)] += 4  # or many would call and call
        paths.append(build(folder / f"{seed}.gguf", vocabulary, scores))
    return paths


@pytest.mark.parametrize("tool_format", CONSTRAINED)
def test_every_whole_answer_is_calls_that_follow_the_schemas(
    tool_format: ToolFormat, random_models: list[Path]
) -> None:
    called = 0
    for path in random_models:
        with opened(path) as (model, runtime):
            for tools in ([TOOLS[0]], [TOOLS[1]], [TOOLS[2]], [TOOLS[3]], TOOLS, MANY):
                constraint = CallConstraint(tool_format, whole=True)
                sampler = constraint.sampler(model, runtime, tools, "")
                loop = answer(runtime, sampler, model)
                text = model.text(loop.tokens)
                parsed = parse(text, tool_format, id_prefix="call", tools=tools)
                # An answer that its length cut may be anything that does not raise.
                if loop.finish is FinishReason.STOP:
                    check_calls(parsed, tools)
                    assert (parsed.content, parsed.reasoning) == ("", None)
                    assert parsed.calls or DECLINE_NAME in text
                    called += len(parsed.calls)
    assert called, "no answer called a function"


WORDS = ["Let", " me", " see.", "<think>", "hm", "</think>"]
MARKS = [
    (ToolFormat.HERMES, "<tool_call>"),
    (ToolFormat.HERMES, '<tool_call>\n{"na'),
    (ToolFormat.QWEN3_XML, "<tool_call>"),
    (ToolFormat.QWEN3_XML, "<function="),
    (ToolFormat.LLAMA3_JSON, "<|python_tag|>"),
    (ToolFormat.MISTRAL, "[TOOL_CALLS]"),
    (ToolFormat.APRIEL, "<tool_calls>"),
    (ToolFormat.FUNCTIONARY_3_1, "<function="),
    (ToolFormat.GRANITE, "<|tool_call|>"),
    (ToolFormat.GRANITE, "<tool_call>"),
    (ToolFormat.NEMOTRON, "<TOOLCALL>"),
]
BARE = [
    (ToolFormat.GENERIC, '{"'),
    (ToolFormat.GENERIC, '[ {"name'),
    (ToolFormat.LLAMA3_JSON, '\n{\n "'),
    (ToolFormat.HERMES, '{"'),
]


def speak(folder: Path, said: Sequence[str], prompt: str = "", **how: Any) -> tuple[str, str]:
    """What a model says that wants to say this and then anything: constrained in auto, and free."""
    tool_format, tools = how["tool_format"], how.get("tools", TOOLS)
    vocabulary = Vocabulary([token for token in dict.fromkeys([*WORDS, *said]) if len(token) > 1])
    scores = vocabulary.random_scores(how.get("seed", 3), '<>/"]}', 2)
    scores[:, vocabulary.number(END)] += 4
    vocabulary.follow(scores, said)
    with opened(build(folder / "speaks.gguf", vocabulary, scores)) as (model, runtime):
        constraint = CallConstraint(tool_format, whole=False)
        sampler = constraint.sampler(model, runtime, tools, prompt)
        held = answer(runtime, sampler, model)
        free = answer(runtime, Sampler(model, runtime, ()), model)
        return model.text(held.tokens), model.text(free.tokens)


@pytest.mark.parametrize(
    ("tool_format", "said"),
    [
        *[(tool_format, [*WORDS, mark]) for tool_format, mark in MARKS],
        *[(tool_format, [mark]) for tool_format, mark in BARE],
        (ToolFormat.GENERIC, ["<think>", "hm", "</think>", '{"']),
    ],
)
def test_auto_leaves_the_text_before_a_call_free_and_holds_the_call(
    tool_format: ToolFormat, said: list[str], tmp_path: Path
) -> None:
    wholes = 0
    for seed in (1, 2):
        held, free = speak(tmp_path, said, tool_format=tool_format, seed=seed)
        assert held.startswith("".join(said)) and free.startswith("".join(said))
        parsed = parse(held, tool_format, id_prefix="call", tools=TOOLS)
        if parsed.calls and not parsed.malformed and not parsed.calls[-1].truncated:
            check_calls(parsed, TOOLS)
            wholes += 1
        assert not parse(free, tool_format, id_prefix="call", tools=TOOLS).calls
    assert wholes, "no answer was whole"


@pytest.mark.parametrize(
    ("tool_format", "said", "prompt"),
    [
        (ToolFormat.HERMES, WORDS, ""),
        (ToolFormat.HERMES, ["<tool_call>oops"], ""),
        (ToolFormat.HERMES, ["<tool_call>\N{MICRO SIGN}"], ""),
        (ToolFormat.HERMES, ["<think>", "<tool_call>"], ""),
        (ToolFormat.HERMES, ["<tool_call>"], "<|im_start|>assistant\n<think>\n"),
        (ToolFormat.GENERIC, ["Let", '{"'], ""),
        (ToolFormat.LLAMA3_JSON, ["[1", "] ", '{"'], ""),
    ],
)
def test_auto_leaves_an_answer_free_in_which_no_call_begins(
    tool_format: ToolFormat, said: list[str], prompt: str, tmp_path: Path
) -> None:
    held, free = speak(tmp_path, said, prompt, tool_format=tool_format)
    assert held == free
    assert held.startswith("".join(said))


def test_an_answer_that_no_token_can_go_on_ends(tmp_path: Path) -> None:
    # No token has a zero byte in its text.
    stuck = tool("f", parameters("x", x={"enum": ["a\0b"]}))
    held, _ = speak(tmp_path, ["<tool_call>"], tool_format=ToolFormat.QWEN3_XML, tools=[stuck])
    assert held.endswith("<parameter=x>\na")


def test_an_answer_ends_where_a_vocabulary_has_no_end(tmp_path: Path) -> None:
    vocabulary = Vocabulary()
    scores = vocabulary.random_scores(1, '"}', 2)
    scores[:, [vocabulary.number(char) for char in "[,"]] -= 9
    path = build(tmp_path / "endless.gguf", vocabulary, scores, has_end=False)
    constraint = CallConstraint(ToolFormat.GENERIC, whole=True)
    tools = [tool("f", parameters("x", x={"enum": [1, 2]}))]
    tokens: list[int] = []
    with opened(path) as (model, runtime):
        assert not model.end_tokens
        runtime.evaluate([START], lambda: True)
        with constraint.sampler(model, runtime, tools, "") as sampler:
            while (token := sampler.sample()) != NO_TOKEN:
                tokens.append(token)
                runtime.evaluate_one(token)
                assert len(tokens) < 400
            assert sampler.sample() == NO_TOKEN
        text = model.text(tokens)
    check_calls(parse(text, ToolFormat.GENERIC, id_prefix="call", tools=tools), tools)
    assert text.rstrip().endswith(("}", "]"))


@pytest.mark.parametrize("whole", [True, False])
def test_drafting_changes_no_constrained_answer(whole: bool, tmp_path: Path) -> None:
    vocabulary = Vocabulary(["<tool_call>"])
    scores = vocabulary.random_scores(5, '<>/"]}', 2)
    vocabulary.follow(scores, ["<tool_call>"])
    tools = [tool("f", parameters("x", x={"type": "array", "items": {"type": "integer"}}))]
    constraint = CallConstraint(ToolFormat.HERMES, whole=whole)
    with opened(build(tmp_path / "m.gguf", vocabulary, scores)) as (model, runtime):
        plain = answer(runtime, constraint.sampler(model, runtime, tools, ""), model)
        runtime.clear()
        runtime.evaluate([START], lambda: True)
        with constraint.sampler(model, runtime, tools, "") as sampler:
            limits = DecodeLimits(model.end_tokens, 100, None)
            loop = DecodeLoop(runtime, sampler, limits, monotonic_ns, 0)
            loop.run_drafted([START], LookupDrafter(), 4)
    assert loop.tokens == plain.tokens
    assert loop.accepted > 0


def test_tools_that_fail_do_not_spoil_those_that_follow(random_models: list[Path]) -> None:
    constraint = CallConstraint(ToolFormat.GENERIC, whole=True)
    bad = [tool("f", parameters(x={"type": "colour"}))]
    with opened(random_models[1]) as (model, runtime):
        texts = []
        for tools in (TOOLS[:1], TOOLS[1:2], bad, TOOLS[:1], bad):
            if tools is bad:
                with pytest.raises(BadInputError, match="colour"):
                    constraint.sampler(model, runtime, tools, "")
                continue
            sampler = constraint.sampler(model, runtime, tools, "")
            texts.append(model.text(answer(runtime, sampler, model, 20).tokens))
    assert texts[0] == texts[2]
    assert tuple("look" in text for text in texts) == (True, False, True)


@pytest.mark.parametrize(
    "tool_format", [tool_format for tool_format in ToolFormat if not has_grammar(tool_format)]
)
def test_a_form_without_a_grammar_is_refused_with_those_that_have_one(
    tool_format: ToolFormat,
) -> None:
    with pytest.raises(BadInputError, match=f"'{tool_format.value}' .*generic, hermes, qwen3_xml"):
        CallConstraint(tool_format, whole=False)
