"""The model's own calls are tried on the workspace as it stood, and judged by what they did."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agentic.core.messages import ToolCall
from edge_agentic.replay.trials import Trial, same_effect, try_calls
from edge_agentic.trace.pack import TracePack, load_pack
from tests.trace_samples import call, calls, make_pack, repack, results, says, user, write
from tests.workspaces import unsandboxed

Commands = tuple[str, ...]


def bash(*commands: str) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(str(number), "bash", {"command": command})
        for number, command in enumerate(commands)
    )


def pack_of(directory: Path, *turns: Commands) -> TracePack:
    """A pack whose conversation makes these calls, turn by turn."""
    make_pack(directory)
    rows = [user(1)]
    for number, commands in enumerate(turns):
        ids = [f"{number}-{place}" for place in range(len(commands))]
        made = [call(id, command) for id, command in zip(ids, commands, strict=True)]
        rows.append({**calls(len(rows) + 1), "tool_calls": made})
        rows.append(results(len(rows) + 1, *ids))
    write(directory / "t.jsonl", *rows, says(len(rows) + 1))
    return load_pack(repack(directory))


def tried(directory: Path, recorded: list[Commands], model: list[Commands]) -> list[Trial]:
    pack = pack_of(directory / "pack", *recorded)
    answers = {("c", number): bash(*commands) for number, commands in enumerate(model, start=1)}
    with unsandboxed(pack, directory).open("c") as sandbox:
        assert sandbox is not None
        return list(try_calls(pack.conversations[0], answers, sandbox, 5.0))


@pytest.mark.parametrize(
    ("recorded", "model", "same"),
    [
        (("cat a.txt",), ("head a.txt",), True),
        (("cat a.txt",), ("cat *.txt; true",), True),
        (("cat a.txt",), ("cat a.txt; exit 1",), False),
        (("cat a.txt",), ("ls",), False),
        (("ls", "cat a.txt"), ("ls && cat a.txt",), True),
        (("ls && cat a.txt",), ("ls", "cat a.txt"), True),
        (("echo x > b",), ("printf 'x\\n' > b && echo done",), True),
        (("echo x > b",), ("echo y > b",), False),
        (("echo x > b",), ("echo x > c",), False),
        (("echo x > b",), ("echo x > b; exit 1",), False),
        (("echo x > b", "rm b"), ("true",), True),
        (("echo x > b; cat b",), (), False),
        (("false", "true"), ("exit 1",), True),
        (("no-such-program",), ("./no-such-program",), False),
        (("mktemp -u",), ("mktemp -u",), True),
        (("sleep 20",), ("sleep 21",), True),
        (("sleep 20",), ("exit 124",), False),
    ],
)
def test_the_same_effect_is_status_files_and_for_readers_output(
    tmp_path: Path, recorded: Commands, model: Commands, same: bool
) -> None:
    (trial,) = tried(tmp_path, [recorded], [model])
    assert same_effect(trial.recorded, trial.model) is same
    assert trial.to_json()["same_effect"] is same


def test_each_turn_starts_from_what_the_recorded_calls_left_not_the_models(tmp_path: Path) -> None:
    recorded = [("echo 1 > n",), ("echo 2 >> n",), ("cat n",)]
    model = [("rm -rf a.txt; echo 9 > n",), ("cat n",), ("cat n",)]
    first, second, third = tried(tmp_path, recorded, model)
    assert first.model is not None and first.model.changed_files == 2
    assert second.model is not None and second.model.output == "1\n"
    assert third.model is not None and third.model.output == "1\n2\n"


def test_a_turn_without_recorded_calls_is_judged_by_whether_the_models_ran(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "pack", ("ls",))
    answers = {("c", 2): bash("ls", "no-such-program")}
    with unsandboxed(pack, tmp_path).open("c") as sandbox:
        assert sandbox is not None
        (trial,) = try_calls(pack.conversations[0], answers, sandbox, 5.0)
    assert trial.model is not None
    assert [call.ran for call in trial.model.calls] == [True, False]
    assert same_effect(trial.recorded, trial.model) is None


def test_a_call_that_no_tool_takes_is_refused_and_the_next_one_tried(tmp_path: Path) -> None:
    pack = pack_of(tmp_path / "pack", ("ls",))
    odd = ToolCall("x", "launch_rocket", {})
    with unsandboxed(pack, tmp_path).open("c") as sandbox:
        assert sandbox is not None
        trials = list(
            try_calls(pack.conversations[0], {("c", 1): (odd, *bash("ls"))}, sandbox, 5.0)
        )
    (trial,) = trials
    assert trial.model is not None
    assert [(call.status, call.ran) for call in trial.model.calls] == [
        ("refused", False), (0, True),
    ]  # fmt: skip
    assert same_effect(trial.recorded, trial.model) is False
