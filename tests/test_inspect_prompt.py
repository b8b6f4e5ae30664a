"""`edge-agentic inspect prompt`: what a model is given at one turn."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import pytest
from typer.testing import CliRunner

from edge_agentic.cli import inspect
from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.prompt_report import prompt_report
from edge_agentic.trace.pack import load_pack
from tests.template_families import QWEN3
from tests.tiny_gguf import build
from tests.trace_samples import calls, results, says, user, write

KEYS = [
    *("schema", "model", "pack", "conversation", "turn", "text", "stable_characters"),
    *("prompt_tokens", "stable_tokens", "new_tokens", "tool_format", "template"),
    "template_changes",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose tokens are bytes, and four that stand for a text of their own."""
    return build(tmp_path_factory.mktemp("model") / "tiny.gguf", "attention")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write(
        tmp_path / "yard.jsonl",
        user(1, "Look.", system="Be kind."),
        calls(2, "a"),
        results(3, "a"),
        calls(4, "b"),
        results(5, "b"),
        says(6),
    )


def run(*words: object) -> str:
    result = CliRunner().invoke(inspect.app, ["prompt", *map(str, words)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def report(model: Path, trace: Path, turn: int) -> dict[str, Any]:
    words = ("--model", model, "--pack", trace, "--conversation", "c", "--turn", turn, "--json")
    loaded: dict[str, Any] = json.loads(run(*words))
    return loaded


def test_the_json_has_all_of_its_keys_in_order(model: Path, trace: Path) -> None:
    told = report(model, trace, 1)
    assert list(told) == KEYS
    told.pop("text")
    assert told == {
        "schema": "edge-agentic/prompt/1",
        "model": "tiny.gguf",
        "pack": "yard",
        "conversation": "c",
        "turn": 1,
        "stable_characters": told["stable_characters"],
        "prompt_tokens": told["prompt_tokens"],
        "stable_tokens": told["stable_tokens"],
        "new_tokens": told["prompt_tokens"],
        "tool_format": "generic",
        "template": "chatml",
        "template_changes": [],
    }


def test_the_next_prompt_starts_with_the_stable_prefix(model: Path, trace: Path) -> None:
    first, second, third = (report(model, trace, turn) for turn in (1, 2, 3))
    for before, after in ((first, second), (second, third)):
        stable = before["text"][: before["stable_characters"]]
        assert before["text"] == f"{stable}<|im_start|>assistant\n"
        assert after["text"].startswith(stable)
        assert 0 < before["stable_tokens"] < before["prompt_tokens"] < after["prompt_tokens"]


def test_new_tokens_are_those_beyond_the_prompt_before(model: Path, trace: Path) -> None:
    first, second = report(model, trace, 1), report(model, trace, 2)
    # The first prompt is all in the second: what was answered follows the prompt to answer.
    assert second["text"].startswith(first["text"])
    assert second["new_tokens"] == second["prompt_tokens"] - first["prompt_tokens"]


def test_the_marks_stand_between_the_parts_of_the_text(model: Path, trace: Path) -> None:
    printed = run("-m", model, "--pack", trace, "--conversation", "c", "--turn", 2)
    told = report(model, trace, 2)
    lines = printed.splitlines()
    marks = [at for at, line in enumerate(lines) if line.startswith("---- ")]
    assert lines[0] == "c, turn 2, of yard for tiny.gguf"
    assert [lines[at].strip("- ") for at in marks] == [
        "stable prefix: the next prompt starts with it",
        "end of the stable prefix",
        "end of the prompt",
    ]
    stable, rest = ("\n".join(lines[a + 1 : b]) + "\n" for a, b in itertools.pairwise(marks))
    assert stable + rest == told["text"]
    assert len(stable) == told["stable_characters"]
    counts = [line.split()[:2] for line in lines[marks[2] + 1 : marks[2] + 4]]
    assert counts == [
        ["prompt", f"{told['prompt_tokens']:,}"],
        ["stable", f"{told['stable_tokens']:,}"],
        ["new", f"{told['new_tokens']:,}"],
    ]


def test_a_stable_prefix_that_ends_within_a_line_says_so(trace: Path, tmp_path: Path) -> None:
    source = (
        "{% for m in messages %}{{ raise_exception('no') if m.role == 'system' }}"
        "[{{ m.role }} {{ m.content }}]{% endfor %}{{ '<' if add_generation_prompt }}"
    )
    path = with_template(tmp_path / "bare.gguf", source)
    printed = run("-m", path, "--pack", trace, "--conversation", "c")
    assert "\n---- end of the stable prefix, within a line ---" in printed
    assert "\nchanged for the template: system_in_user\n" in printed


def test_reasoning_is_off_unless_asked_for(trace: Path, tmp_path: Path) -> None:
    path = with_template(tmp_path / "qwen3.gguf", QWEN3.source)
    told = report(path, trace, 2)
    assert told["text"].endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert (told["tool_format"], told["template"]) == ("hermes", "own")
    asked = prompt_report(path, load_pack(trace), "c", 2, reasoning=True)
    assert asked["text"].endswith("<|im_start|>assistant\n")


@pytest.mark.parametrize("character", ["\x1b", "\x9b", "\x07", "\u202e", "\u2028"])
def test_nothing_in_a_prompt_can_drive_the_terminal(
    character: str, model: Path, tmp_path: Path
) -> None:
    hostile = f"a{character}[2Jb"
    trace = write(tmp_path / "t.jsonl", user(1, hostile, system=hostile), says(2))
    printed = run("-m", model, "--pack", trace, "--conversation", "c")
    assert character not in printed
    assert printed.count(f"a\\u{ord(character):04x}[2Jb") == 2
    in_json = run("-m", model, "--pack", trace, "--conversation", "c", "--json")
    assert character not in in_json
    assert hostile in json.loads(in_json)["text"]


def test_the_conversations_that_are_closest_are_named_first(model: Path, tmp_path: Path) -> None:
    names = ["far", "yard-one", *(f"yard-{number}" for number in range(6))]
    rows = [{**row, "conversation_id": name} for name in names for row in (user(1), says(2))]
    trace = write(tmp_path / "t.jsonl", *rows)
    with pytest.raises(BadInputError, match=r"'yard-on'; there are 'yard-one', .* and 3 more$"):
        run("-m", model, "--pack", trace, "--conversation", "yard-on")


@pytest.mark.parametrize("turn", [-1, 0, 4])
def test_a_turn_that_is_not_there_is_named(turn: int, model: Path, trace: Path) -> None:
    with pytest.raises(BadInputError, match=f"'c' has turns 1 to 3, got --turn {turn}"):
        run("-m", model, "--pack", trace, "--conversation", "c", "--turn", turn)


def test_a_file_without_a_tokenizer_is_one_line_and_exit_code_2(
    trace: Path, tmp_path: Path, cli: list[str]
) -> None:
    path = tmp_path / "part.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    words = ["inspect", "prompt", "-m", path, "--pack", trace, "--conversation", "c"]
    done = subprocess.run([*cli, *map(str, words)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {path}: the file has no tokenizer; take one that has it\n"


@pytest.mark.parametrize("package", ["llama_cpp", "jinja2"])
def test_without_the_engines_packages_it_says_what_to_install(
    package: str, model: Path, trace: Path
) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None; "
        "from edge_agentic.cli.main import main; main()"
    )
    words = ["inspect", "prompt", "-m", model, "--pack", trace, "--conversation", "c"]
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (6, "")
    assert len(done.stderr.splitlines()) == 1
    assert "run: pip install 'edge-agentic[llamacpp]'" in done.stderr


def with_template(path: Path, source: str) -> Path:
    """A model that carries this chat template."""
    plain = gguf.GGUFReader(build(path.with_suffix(".plain"), "attention"))
    writer = gguf.GGUFWriter(path, "llama")
    for field in plain.fields.values():
        if not field.name.startswith(("GGUF.", "general.architecture")):
            kind, *inner = field.types
            writer.add_key_value(field.name, field.contents(), kind, *inner)
    writer.add_chat_template(source)
    for tensor in plain.tensors:
        writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
