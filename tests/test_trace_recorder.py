"""Recording runs the commands for real, and writes nothing that it did not see."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.trace.pack import load_pack
from edge_agentic.trace.recorder import Execute, record, record_pack
from edge_agentic.trace.tool_output import Executed, render
from tests.trace_samples import calls, make_pack, results, says, user, write
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import open_view
from tools_sandbox.store import Store


@contextmanager
def unisolated(workspace: Path) -> Iterator[Execute]:
    with tempfile.TemporaryDirectory() as directory:
        pristine = Store(Path(directory)).add_directory(workspace)
        with open_view(pristine, tier=Tier.NONE) as sandbox:
            yield lambda command, timeout_s: sandbox.run(command, timeout_s=timeout_s)


def executed(output: str, exit_code: int | None = 0) -> Executed:
    return SimpleNamespace(
        exit_code=exit_code, output=output, timed_out=exit_code is None, duration_ns=5
    )


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (executed("a\nb\n"), "<returncode>0</returncode>\n<output>\na\nb\n</output>"),
        (executed(""), "<returncode>0</returncode>\n<output>\n</output>"),
        (executed("no line end", 3), "<returncode>3</returncode>\n<output>\nno line end</output>"),
        (
            executed("begun\n", None),
            "<exception>The command timed out after 2.5 seconds</exception>\n"
            "<returncode>-1</returncode>\n<output>\nbegun\n</output>",
        ),
        (executed("x" * 9_999), f"<returncode>0</returncode>\n<output>\n{'x' * 9_999}</output>"),
    ],
)
def test_a_result_reads_like_those_of_the_official_file(outcome: Executed, text: str) -> None:
    assert render(outcome, 2.5) == text


def test_a_long_output_is_shown_by_its_two_ends() -> None:
    text = render(executed("a" * 6_000 + "b" * 6_000), 1)
    assert text.startswith("<returncode>0</returncode>\n<warning>\n")
    assert f"</warning><output_head>\n{'a' * 5_000}\n</output_head>\n" in text
    assert "\n<elided_chars>\n2000 characters elided\n</elided_chars>\n" in text
    assert text.endswith(f"<output_tail>\n{'b' * 5_000}\n</output_tail>")


def test_a_draft_gets_tool_rows_and_new_numbers(tmp_path: Path) -> None:
    draft = [
        user(1),
        calls(2, "a", "b", command="echo $((6 * 7)); false"),
        calls(3, "c", command="cat missing 2>/dev/null"),
        says(4),
    ]
    with unisolated(tmp_path) as execute:
        rows = record(draft, execute, 5)
    assert [(row["turn"], row["role"]) for row in rows] == [
        (1, "user"),
        (2, "assistant"),
        (3, "tool"),
        (4, "assistant"),
        (5, "tool"),
        (6, "assistant"),
    ]
    failed = "<returncode>1</returncode>\n<output>\n"
    assert rows[2]["tool_results"] == [
        {"tool_call_id": "a", "content": f"{failed}42\n</output>"},
        {"tool_call_id": "b", "content": f"{failed}42\n</output>"},
    ]
    assert rows[4]["tool_results"] == [{"tool_call_id": "c", "content": f"{failed}</output>"}]
    assert 0 < rows[2]["delay_seconds"] < 5


def test_each_call_meets_the_time_limit(tmp_path: Path) -> None:
    with unisolated(tmp_path) as execute:
        rows = record([user(1), calls(2, "a", command="sleep 60"), says(3)], execute, 0.3)
    assert "timed out after 0.3 seconds" in rows[2]["tool_results"][0]["content"]
    assert 0.3 <= rows[2]["delay_seconds"] < 5


def test_calls_that_end_a_conversation_are_not_run(tmp_path: Path) -> None:
    with unisolated(tmp_path) as execute:
        rows = record([user(1), calls(2, "a", command="touch ran")], execute, 5)
    assert [row["role"] for row in rows] == ["user", "assistant"]


@pytest.mark.parametrize("arguments", ["{", '{"cmd": "ls"}', '{"command": 5}'])
def test_a_call_without_a_command_can_not_be_recorded(arguments: str, tmp_path: Path) -> None:
    row = calls(2, "a")
    row["tool_calls"][0]["function"]["arguments"] = arguments
    with unisolated(tmp_path) as execute, pytest.raises(BadInputError, match="'c': call 'a'"):
        record([user(1), row, says(3)], execute, 5)


def test_a_pack_is_recorded_in_place_and_loads_again(tmp_path: Path) -> None:
    directory = make_pack(tmp_path / "p")
    (directory / "work" / "b.txt").write_text("an author's new file\n")
    write(directory / "t.jsonl", user(1), calls(2, "a", command="cat a.txt; touch done"), says(3))
    record_pack(directory, unisolated)
    (conversation,) = load_pack(directory).conversations
    assert conversation.turns[0].recorded_results[0]["content"] == (
        "<returncode>0</returncode>\n<output>\nhello\n</output>"
    )
    assert not (directory / "work" / "done").exists()


def test_old_results_are_replaced(tmp_path: Path) -> None:
    directory = make_pack(tmp_path / "p")
    assert "ra" in (directory / "t.jsonl").read_text()
    record_pack(directory, unisolated)
    (turn, _) = load_pack(directory).conversations[0].turns
    assert [result["content"] for result in turn.recorded_results] == [
        "<returncode>0</returncode>\n<output>\nhello\n</output>"
    ]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("true", "its check passes before any command"),
        ("false", "its check fails after the commands"),
    ],
)
def test_a_check_must_tell_a_done_job_from_an_open_one(
    check: str, message: str, tmp_path: Path
) -> None:
    directory = make_pack(
        tmp_path / "p", conversations={"c": {"workspace": "work", "check": check}}
    )
    before = {path: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    with pytest.raises(BadInputError, match=message):
        record_pack(directory, unisolated)
    assert {path: path.read_bytes() for path in before} == before


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@contextmanager
def nowhere(workspace: Path) -> Iterator[Execute]:
    raise AssertionError(f"a command would run in {workspace}")
    yield


UNFIT: dict[str, tuple[Callable[[Path], object], str]] = {
    "workspace a link": (
        lambda p: (p / "work").rename(p / "w") and (p / "work").symlink_to("/etc"),
        "p/work: is no plain file",
    ),
    "link in a workspace": (lambda p: (p / "work/l").symlink_to("/etc"), "work/l: is no plain"),
    "link elsewhere": (lambda p: (p / "other").symlink_to("/etc/hostname"), "p/other: is no plain"),
    "link among the bytecode": (
        lambda p: ((p / "__pycache__").mkdir(), (p / "__pycache__/work").symlink_to("/etc")),
        "workspace '__pycache__/work' is no directory of the pack",
    ),
    "trace a link": (
        lambda p: (p / "t.jsonl").rename(p / "u") and (p / "t.jsonl").symlink_to("u"),
        "t.jsonl: is no plain file",
    ),
    "pipe": (lambda p: os.mkfifo(p / "pipe"), "pipe: is no plain file"),
    "name that is not UTF-8": (
        lambda p: Path(os.fsdecode(bytes(p / "work") + b"/\xff")).touch(),
        r"work/\\udcff: its name holds control characters, or bytes that are not UTF-8",
    ),
    "name with a line feed": (lambda p: (p / "a\nb").touch(), r"p/a\\nb: its name holds control"),
    "conversation unlisted": (
        lambda p: write(p / "t.jsonl", user(1), says(2), {**user(1), "conversation_id": "d"}),
        "conversation 'd' is missing in pack.json",
    ),
    "conversation too many": (
        lambda p: write(
            p / "t.jsonl", *({**row, "conversation_id": "d"} for row in (user(1), says(2)))
        ),
        "conversation 'c' is missing in t.jsonl",
    ),
    "metadata NaN": (
        lambda p: write(
            p / "t.jsonl", {"_type": "dataset_metadata", "x": float("nan")}, user(1), says(2)
        ),
        "t.jsonl:1: not usable JSON .NaN",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_an_unfit_pack_is_refused_before_any_command_and_left_as_it_was(
    case: str, tmp_path: Path
) -> None:
    damage, message = UNFIT[case]
    workspace = "__pycache__/work" if "bytecode" in case else "work"
    entry = {"workspace": workspace, "check": "test -e done"}
    directory = make_pack(tmp_path / "p", conversations={"c": entry})
    damage(directory)
    before = contents(directory)
    with pytest.raises(BadInputError, match=message) as error:
        record_pack(directory, nowhere)
    assert str(error.value).isprintable()
    assert contents(directory) == before


@pytest.mark.parametrize(
    ("command", "message"),
    [("echo \0", "holds a NUL character"), ("x" * 131_072, "has 131072 bytes")],
)
def test_a_command_that_no_kernel_takes_is_named_and_nothing_written(
    command: str, message: str, tmp_path: Path
) -> None:
    directory = make_pack(tmp_path / "p")
    write(directory / "t.jsonl", user(1), calls(2, "a", command=command), says(3))
    before = contents(directory)
    with pytest.raises(BadInputError, match=f"conversation 'c': call 'a': its command {message}"):
        record_pack(directory, unisolated)
    assert contents(directory) == before


def test_a_storage_that_gives_out_leaves_the_pack_as_it_was(tmp_path: Path) -> None:
    directory = make_pack(tmp_path / "p", description="x" * 20_000)
    before = contents(directory)
    script = (
        "import resource, sys, pathlib\n"
        "from edge_agentic.core.errors import StorageError\n"
        "from edge_agentic.trace.recorder import record_pack\n"
        "from tests.test_trace_recorder import unisolated\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "try: record_pack(pathlib.Path(sys.argv[1]), unisolated)\n"
        "except StorageError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, directory], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{directory}: the recording can't be kept: ")
    assert "File too large" in done.stdout
    assert contents(directory) == before
    assert sorted(path.name for path in directory.iterdir()) == ["pack.json", "t.jsonl", "work"]


def test_a_conversation_without_a_workspace_can_not_be_recorded(tmp_path: Path) -> None:
    directory = make_pack(tmp_path / "p", conversations={"c": {"workspace": None, "check": None}})
    with pytest.raises(BadInputError, match="conversation 'c' has no workspace"):
        record_pack(directory, unisolated)


def test_a_draft_in_a_wrong_order_is_refused(tmp_path: Path) -> None:
    directory = make_pack(tmp_path / "p", conversations={"c": {"workspace": "work", "check": None}})
    write(directory / "t.jsonl", user(1), says(2), says(3))
    with pytest.raises(BadInputError, match="two assistant rows"):
        record_pack(directory, unisolated)


def test_recorded_rows_keep_the_fields_of_the_draft(tmp_path: Path) -> None:
    with unisolated(tmp_path) as execute:
        rows = record([user(1, note="x"), calls(2, "a"), results(3, "a"), says(4)], execute, 5)
    assert rows[0]["note"] == "x"
    assert [row["turn"] for row in rows] == [1, 2, 3, 4]
