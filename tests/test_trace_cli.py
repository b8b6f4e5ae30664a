"""`edge-agentic traces` and `edge-agentic score`, as a person types them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from edge_agentic.cli import score, traces
from edge_agentic.core.errors import BadInputError
from tests.trace_samples import calls, make_pack, results, says, user, write


def run(app: typer.Typer, *words: object, stdin: str | None = None) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_validate_counts_what_a_trace_holds(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        {"_type": "dataset_metadata"},
        user(1),
        calls(2, "a", "b"),
        results(3, "a", "b"),
        calls(4, "a", command="pwd"),
        results(5, "a"),
        says(6),
    )
    assert json.loads(run(traces.app, "validate", path, "--json")) == {
        "rows": 6,
        "conversations": 1,
        "turns": 3,
        "scorable_turns": 1,
        "tool_results": 3,
    }
    assert run(traces.app, "validate", path) == (
        f"{path}: valid; 6 rows, 1 conversations, 3 turns, 1 scorable turns, 3 tool results\n"
    )


def test_validate_names_the_line_that_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", user(1), says(3))
    with pytest.raises(BadInputError, match=r"t\.jsonl:2: conversation 'c': turn 3 where 2"):
        run(traces.app, "validate", path)


def test_validate_checks_a_pack_too(tmp_path: Path) -> None:
    directory = make_pack(tmp_path / "p")
    assert "4 rows" in run(traces.app, "validate", directory)
    (directory / "work" / "a.txt").write_text("changed")
    with pytest.raises(BadInputError, match=r"a\.txt: differs"):
        run(traces.app, "validate", directory)


def test_list_names_the_bundled_packs() -> None:
    assert "edge-mini" in run(traces.app, "list").splitlines()
    assert "edge-mini" in json.loads(run(traces.app, "list", "--json"))


def test_show_gives_an_overview_and_each_conversation() -> None:
    overview = json.loads(run(traces.app, "show", "edge-mini", "--json"))
    table = run(traces.app, "show", "edge-mini")
    for entry in overview["conversations"]:
        assert entry["id"] in table
        shown = run(traces.app, "show", "edge-mini", entry["id"])
        assert f"[turn {entry['turns']}, " in shown
        rows = json.loads(run(traces.app, "show", "edge-mini", entry["id"], "--json"))["rows"]
        assert len(rows) == entry["rows"]


def test_show_names_a_conversation_that_is_not_there() -> None:
    with pytest.raises(BadInputError, match="no conversation 'nope'; 'traces show edge-mini'"):
        run(traces.app, "show", "edge-mini", "nope")


def test_show_shortens_long_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", user(1, "line\n" * 1_000), says(2))
    shown = run(traces.app, "show", path, "c")
    assert shown.count("line") == 12
    assert "characters more]" in shown


@pytest.mark.parametrize("character", ["\x1b", "\x9b", "\x07", "\r", "\u202e", "\u2028", "\x7f"])
def test_nothing_in_a_trace_can_drive_the_terminal(character: str, tmp_path: Path) -> None:
    hostile = f"a{character}[2Jb"
    row = calls(2, "a", command=hostile, reasoning_content=hostile)
    told = results(3, "a")
    told["tool_results"][0]["content"] = hostile
    path = write(tmp_path / "t.jsonl", user(1, hostile, system=hostile), row, told, says(4))
    shown = run(traces.app, "show", path, "c")
    assert character not in shown
    assert f"a\\u{ord(character):04x}[2Jb" in shown or "a\\r[2Jb" in shown
    in_json = run(traces.app, "show", path, "c", "--json")
    assert character not in in_json
    assert json.loads(in_json)["rows"][0]["content"] == hostile


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", '"\\ud800"', "[" * 5_000])
def test_arguments_that_are_no_json_are_shown_as_they_are(number: str, tmp_path: Path) -> None:
    row = calls(2, "a")
    arguments = f'{{"command": "ls", "timeout": {number}}}'
    row["tool_calls"][0]["function"]["arguments"] = arguments
    path = write(tmp_path / "t.jsonl", user(1), row, results(3, "a"), says(4))
    assert json.loads(run(traces.app, "validate", path, "--json"))["scorable_turns"] == 0
    assert "  $ bash " in run(traces.app, "show", path, "c")
    rows = json.loads(run(traces.app, "show", path, "c", "--json"))["rows"]
    assert rows[1]["tool_calls"][0]["function"]["arguments"] == arguments


def test_score_inline_reads_pairs_and_prints_scores_in_order(tmp_path: Path) -> None:
    pairs = [
        {
            "expected_tool_calls": calls(2, "a", command="ls | head")["tool_calls"],
            "model_tool_calls": calls(2, "a", command="ls")["tool_calls"],
        },
        {"expected_tool_calls": None, "model_tool_calls": "junk"},
    ]
    wanted = [
        {"expected_actions": ["ls", "head"], "model_actions": ["ls"], "score": 0.5},
        {"expected_actions": [], "model_actions": [], "score": None},
    ]
    path = write(tmp_path / "pairs.jsonl", *pairs)
    printed = run(score.app, "inline", path)
    assert [json.loads(line) for line in printed.splitlines()] == wanted


def test_score_inline_reads_standard_input() -> None:
    code = "from edge_agentic.cli.score import app; app()"
    done = subprocess.run(
        [sys.executable, "-c", code, "inline", "-"],
        input='{"expected_tool_calls": [], "model_tool_calls": []}\n',
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["score"] is None


def test_score_inline_names_a_line_without_a_side(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.jsonl", {"expected_tool_calls": []})
    with pytest.raises(BadInputError, match=r"pairs\.jsonl:1: 'model_tool_calls' is missing"):
        run(score.app, "inline", path)


def test_help_does_not_wait_for_slow_imports() -> None:
    code = (
        "import sys, edge_agentic.cli.traces, edge_agentic.cli.score; "
        "print(sorted({'jsonschema', 'rich.console', 'tools_sandbox'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
