"""`edge-agentic inspect calls`, as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edge_agentic.cli import inspect
from edge_agentic.core.errors import BadInputError
from tests.call_texts import LOOK, SAMPLES, TOOLS, json_call, xml_call

LINES = [
    {"text": f"<think>hm</think>Yes. {xml_call('look', path='é', lines='3')}",
     "format": "qwen3_xml", "tools": TOOLS},
    {"text": xml_call("look", lines="3") + "<tool_call>\n<function=look>\n<parameter=path>\na",
     "format": "qwen3_xml", "tools": None},
    {"text": f"<tool_call>{{</tool_call><tool_call>{json_call('look', LOOK)}", "format": "hermes"},
    {"text": "Four.", "format": "mistral", "tools": []},
]  # fmt: skip
PRINTED = [
    {
        "calls": [{"id": "call_1_0", "name": "look", "arguments": {"path": "é", "lines": 3}}],
        "malformed": False,
        "reasoning": "hm",
        "content": "Yes.",
    },
    {
        "calls": [
            {"id": "call_3_0", "name": "look", "arguments": {"lines": "3"}},
            {"id": "call_3_1", "name": "look", "arguments": {}, "truncated": True},
        ],
        "malformed": False,
        "reasoning": None,
        "content": "",
    },
    {
        "calls": [{"id": "call_5_0", "name": "look", "arguments": LOOK}],
        "malformed": True,
        "reasoning": None,
        "content": "<tool_call>{</tool_call>",
    },
    {"calls": [], "malformed": False, "reasoning": None, "content": "Four."},
]


def as_file(lines: Sequence[object]) -> str:
    return "\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines)


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def run(path: Path) -> list[Any]:
    result = CliRunner().invoke(inspect.app, ["calls", str(path)])
    if result.exception is not None:
        raise result.exception
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_each_line_is_taken_apart_in_order(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text(as_file(LINES))
    assert run(path) == PRINTED


@pytest.mark.parametrize("character", ["\x1b", "\x9b", "\u202e"])
def test_nothing_in_a_text_can_drive_the_terminal(character: str, tmp_path: Path) -> None:
    path = write(tmp_path / "texts.jsonl", {"text": f"a{character}[2Jb", "format": "generic"})
    result = CliRunner().invoke(inspect.app, ["calls", str(path)])
    assert character not in result.stdout
    assert json.loads(result.stdout)["content"] == f"a{character}[2Jb"


def test_every_format_can_be_named(tmp_path: Path) -> None:
    lines = [
        {"text": texts[0], "format": tool_format.value, "tools": TOOLS}
        for tool_format, texts in SAMPLES.items()
    ]
    for printed in run(write(tmp_path / "texts.jsonl", *lines)):
        assert [call["name"] for call in printed["calls"]] == ["look", "status"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_text_that_comes_in_pieces_gives_the_same(size: int, cli: list[str]) -> None:
    fed = as_file(LINES).encode()
    with subprocess.Popen(
        [*cli, "inspect", "calls", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for start in range(0, len(fed), size):
            process.stdin.write(fed[start : start + size])
            process.stdin.flush()
        process.stdin.close()
        printed = [json.loads(line) for line in process.stdout]
    assert printed == PRINTED


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"format": "hermes"}, "'text' has to be a string"),
        ({"text": None, "format": "hermes"}, "'text' has to be a string"),
        ({"text": ""}, "'format' is missing; it has to be one of generic, hermes, qwen3_xml"),
        ({"text": "", "format": "xml"}, "'format' is 'xml'; it has to be one of generic"),
        ({"text": "", "format": ["hermes"]}, "'format' is \"\\['hermes'\\]\"; it has to be"),
        ({"text": "", "format": "hermes", "tools": {}}, "'tools' has to be a list of objects"),
        ({"text": "", "format": "hermes", "tools": ["look"]}, "'tools' has to be a list"),
        ([], "expected a JSON object"),
    ],
)
def test_a_wrong_line_is_named(line: object, problem: str, tmp_path: Path) -> None:
    path = write(tmp_path / "texts.jsonl", LINES[3], line)
    with pytest.raises(BadInputError, match=rf"texts\.jsonl:2: {problem}"):
        run(path)


def test_a_wrong_line_is_one_line_and_exit_code_2(tmp_path: Path, cli: list[str]) -> None:
    path = write(tmp_path / "texts.jsonl", {"text": "", "format": "\u001b[31m\n"})
    done = subprocess.run([*cli, "inspect", "calls", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {path}:1: 'format' is ")
    assert len(done.stderr.splitlines()) == 1 and "\u001b" not in done.stderr


def test_help_does_not_wait_for_slow_imports() -> None:
    code = (
        "import sys, edge_agentic.cli.inspect; "
        "print(sorted({'jinja2', 'jsonschema', 'rich.console'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
