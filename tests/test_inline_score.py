"""The inline score: which executables a command counts for, and how two sides compare."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agentic.replay.inline_score import actions, score_turn


def bash(*commands: str) -> list[dict[str, Any]]:
    return [
        {"function": {"name": "bash", "arguments": json.dumps({"command": command})}}
        for command in commands
    ]


def test_every_golden_pair_agrees_with_the_reference(shared_data: Path) -> None:
    golden = shared_data / "golden_iou_public.jsonl"
    pairs = [json.loads(line) for line in golden.read_text("utf-8").splitlines()]
    differing = [
        pair["id"]
        for pair in pairs
        if (
            actions(pair["expected_tool_calls"]),
            actions(pair["model_tool_calls"]),
            score_turn(pair["expected_tool_calls"], pair["model_tool_calls"]),
        )
        != (pair["expected_actions"], pair["model_actions"], pair["score"])
    ]
    assert pairs
    assert differing == []


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("ls -l | head", ["ls", "head"]),
        ("ls || cat a && wc b; tr c\nsort d", ["ls", "cat", "wc", "tr", "sort"]),
        ("sleep 1 & ls", []),
        ("ls |& head", ["ls"]),
        ("echo 'ls | cat' \"a; rm b\" `git log` | wc", ["wc"]),
        ('grep "a \\" | cat" f | head', ["grep", "head"]),
        ('echo "never closed | cat', ["cat"]),
        ("echo 'a\nls\nb' | wc", ["wc"]),
        ('echo "a\\\nls " x | head', ["ls", "head"]),
        ("A=1 B= env nice time sudo exec command ls", ["ls"]),
        ("nice -n 5 ls", []),
        ("/usr/bin/time ls", []),
        ("1A=2 ls", []),
        ("/opt/bin/Python3.11 x; python3.9.7 y; python2.7.1.3 z", ["python", "python"]),
        ("./run.sh; ../bin/pytest; ls/", ["pytest"]),
        (". venv/bin/activate", ["source"]),
        ("egrep a; rg b; less c; wget d; apt-get e; locate f; gawk g; py h; sphinx-build i", None),
        ("cat <<EOF > x\nfind me\nEOF", ["cat", "find"]),
        ("# ls; cat x", ["cat"]),
        ("(ls) && x=$(find . | head -1)", ["source", "head"]),
        ("\tls\u00a0x && \u200bcat f", ["ls"]),
        ("", []),
    ],
)
def test_a_command_counts_for_the_executables_of_its_stages(
    command: str, wanted: list[str] | None
) -> None:
    aliases = ["grep", "grep", "cat", "curl", "apt", "find", "awk", "python", "sphinx"]
    assert actions(bash(command)) == (aliases if wanted is None else wanted)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ('{"command": "ls"}', ["ls"]),
        ({"command": "ls"}, ["ls"]),
        ('{"cmd": "ls"}', ["ls"]),
        ('{"command": "", "cmd": "ls"}', ["ls"]),
        ('{"command": "cat x", "cmd": "ls"}', ["cat"]),
        ('{"script": "ls"}', []),
        ('{"command": 5}', []),
        ('{"command": ["ls"]}', []),
        ('{"command": "ls"', []),
        ('"{\\"command\\": \\"ls\\"}"', []),
        ("[" * 100_000, []),
        ("", []),
        ('["ls"]', []),
        (["ls"], []),
        (None, []),
        (7, []),
    ],
)
def test_the_command_is_a_string_in_a_mapping_or_there_is_none(
    arguments: object, wanted: list[str]
) -> None:
    assert actions([{"function": {"name": "bash", "arguments": arguments}}]) == wanted


@pytest.mark.parametrize(
    "calls",
    [
        None,
        "ls",
        5,
        {"function": {"name": "bash", "arguments": '{"command": "ls"}'}},
        ["ls", None, 3, {}, {"function": None}, {"function": "bash"}, {"type": "function"}],
        [{"function": {"name": "execute_bash", "arguments": '{"command": "ls"}'}}],
        [{"function": {"name": ["bash"], "arguments": '{"command": "ls"}'}}],
    ],
)
def test_what_is_no_list_of_bash_calls_counts_for_nothing(calls: object) -> None:
    assert actions(calls) == []


def test_junk_beside_a_good_call_costs_nothing() -> None:
    assert actions(["ls", None, *bash("grep a b")]) == ["grep"]


@pytest.mark.parametrize(
    ("expected", "got", "score"),
    [
        (["ls | head"], ["ls | head"], 1.0),
        (["ls | head"], ["head; ls"], 1.0),
        (["ls"], ["ls", "ls"], 0.5),
        (["ls; ls; cat a"], ["ls; wc"], 0.25),
        (["ls"], ["cat a"], 0.0),
        (["ls"], [], 0.0),
        (["pwd"], ["pwd"], None),
        ([], ["ls"], None),
    ],
)
def test_the_score_is_shared_over_joint_counts(
    expected: list[str], got: list[str], score: float | None
) -> None:
    assert score_turn(bash(*expected), bash(*got)) == score


@pytest.mark.parametrize(
    "piece",
    ['\\"', "'", "`", '"', "\"'", '"\\\n', "a", "env ", "A=1 ", "/", ".1", "|", "\\"],
)
@pytest.mark.parametrize("opening", ["", '"'])
def test_no_command_takes_more_than_linear_time(opening: str, piece: str) -> None:
    calls = bash(opening + piece * (300_000 // len(piece)))
    begin = time.process_time()
    actions(calls)
    # Quadratic time would be hours; linear time is a fraction of a second.
    assert time.process_time() - begin < 10


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("function"), inner),
    max_leaves=6,
)
call_values = st.lists(
    st.fixed_dictionaries(
        {"function": st.fixed_dictionaries({"name": st.just("bash"), "arguments": json_values})}
    )
    | json_values
)


@settings(deadline=None)
@given(json_values | call_values, json_values | call_values)
def test_no_input_raises(expected: object, got: object) -> None:
    score = score_turn(expected, got)
    assert score is None or 0 <= score <= 1


@settings(deadline=None)
@given(st.text("ls |;&\n\"'`\\"), st.text("ls |;&\n\"'`\\"))
def test_a_turn_compared_with_itself_is_perfect(first: str, second: str) -> None:
    calls = bash(first, second)
    assert score_turn(calls, calls) in (1.0, None)
