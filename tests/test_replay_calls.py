"""A model's calls are carried out if they fit a tool that was offered; else the model is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edge_agentic.core.messages import ToolCall
from edge_agentic.replay.calls import offered_tools, perform
from tools_sandbox.limits import MIB, Limits
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import Sandbox, open_sandbox

ALL = ("bash", "read_file", "write_file", "str_replace", "list_dir", "grep")


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\ntwo\n")
    limits = Limits(memory_bytes=256 * MIB)
    with open_sandbox(tmp_path / "work", tier=Tier.NONE, limits=limits) as opened:
        yield opened


def spec(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {}}}


@pytest.mark.parametrize(
    ("tools", "offered"),
    [
        ([spec("bash")], {"bash"}),
        ([spec("bash"), spec("read_file"), spec("launch_rocket")], {"bash", "read_file"}),
        ([], {"bash"}),
        ([spec("launch_rocket"), {"type": "odd"}], set()),
    ],
)
def test_known_tools_count_as_offered(tools: list[dict[str, Any]], offered: set[str]) -> None:
    assert offered_tools(tools) == offered


@pytest.mark.parametrize(
    ("command", "status", "ran"),
    [
        ("cat a.txt", 0, True),
        ("exit 3", 3, True),
        ("no-such-program", 127, False),
        ("./a.txt", 126, False),
        ("sleep 30", "timeout", False),
        ("echo a\0b", "refused", False),
        ("x" * 200_000, "refused", False),
    ],
)
def test_a_command_ran_if_its_program_was_found_and_came_to_an_end(
    sandbox: Sandbox, command: str, status: object, ran: bool
) -> None:
    performed = perform(ToolCall("1", "bash", {"command": command}), {"bash"}, sandbox, 5.0)
    assert (performed.status, performed.ran) == (status, ran)


def test_a_command_that_went_over_a_limit_did_not_run(sandbox: Sandbox) -> None:
    hog = "for i in 1 2 3 4; do head -c 200M /dev/zero | tail -c 200M | sleep 20 & done; wait"
    performed = perform(ToolCall("1", "bash", {"command": hog}), {"bash"}, sandbox, 60.0)
    assert (performed.status, performed.ran) == (137, False)


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("read_file", {"path": "a.txt"}, "one\ntwo\n"),
        ("read_file", {"path": "a.txt", "first_line": 2}, "two\n"),
        ("write_file", {"path": "b/c.txt", "content": "x"}, "wrote 1 bytes"),
        ("str_replace", {"path": "a.txt", "old": "two", "new": "2"}, "replaced one occurrence"),
        ("list_dir", {}, "a.txt\n"),
        ("grep", {"pattern": "^t"}, "./a.txt:2:two\n"),
        ("grep", {"pattern": "absent", "path": "a.txt"}, "no line matches"),
        ("read_file", {"path": "../../etc/passwd"}, "error: the path leads out of the workspace"),
    ],
)
def test_file_tools_answer_with_what_a_model_can_read(
    sandbox: Sandbox, name: str, arguments: dict[str, Any], told: str
) -> None:
    performed = perform(ToolCall("1", name, arguments), ALL, sandbox, 20.0)
    assert performed.text == told
    assert performed.ran
    assert performed.status == (1 if told.startswith("error") else 0)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (ToolCall("1", "rm_rf", {}), "error: there is no tool 'rm_rf'; there is: bash, grep"),
        (ToolCall("1", "read_file", {"path": "a"}), "error: there is no tool 'read_file'"),
        (ToolCall("1", "bash", {"command": 3}), "error: 'bash' needs 'command', a string"),
        (ToolCall("1", "bash", {}), "error: 'bash' needs 'command', a string"),
        (ToolCall("1", "bash", {"command": "ls"}, truncated=True), "was cut short"),
        (ToolCall("1", "grep", {"path": "."}), "error: 'grep' needs 'pattern'"),
        (ToolCall("1", "grep", {"pattern": 1}), "error: 'pattern' of 'grep' must be a string"),
        (ToolCall("1", "grep", {"pattern": "a", "z": 1}), "error: 'grep' has no parameter 'z'"),
        (ToolCall("1", "grep", {"pattern": "a\0"}), "error: the command holds a NUL"),
    ],
)
def test_a_call_that_cannot_be_carried_out_is_answered_not_raised(
    sandbox: Sandbox, call: ToolCall, told: str
) -> None:
    performed = perform(call, ("bash", "grep"), sandbox, 20.0)
    assert told in performed.text
    assert (performed.status, performed.ran, performed.result) == ("refused", False, None)
