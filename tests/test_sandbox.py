"""Commands run in their workspace, end at their deadline, and leave nothing behind."""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tools_sandbox.binaries import Bwrap, find_bwraps
from tools_sandbox.errors import (
    InvalidRequest,
    SandboxError,
    SandboxStopped,
    SandboxUnavailable,
)
from tools_sandbox.limits import Limits
from tools_sandbox.processes import descendants
from tools_sandbox.result import Result, Tier
from tools_sandbox.sandbox import Sandbox, open_sandbox

ROOT = Path(__file__).parent.parent


HARNESS = """
import pathlib, sys
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import open_sandbox
with open_sandbox(pathlib.Path(sys.argv[1]), tier=Tier(sys.argv[2])) as sandbox:
    print(sandbox.run(sys.argv[3], timeout_s=60).output, end="")
"""


LAUNCHER = HARNESS.replace("    print(", "    print('now', flush=True)\n    print(")


def kinds() -> list[object]:
    """Tiers none and landlock, and each bubblewrap of this machine."""
    found = find_bwraps()
    cases: list[object] = [
        pytest.param((tier, None), id=tier.value) for tier in (Tier.NONE, Tier.LANDLOCK)
    ]
    cases += [
        pytest.param((Tier.BUBBLEWRAP, bwrap), id=f"bubblewrap-{bwrap.origin}-{bwrap.version}")
        for bwrap in found
    ]
    if not found:
        skip = pytest.mark.skip(reason="this machine has no bubblewrap")
        cases.append(pytest.param((Tier.BUBBLEWRAP, None), id="bubblewrap", marks=skip))
    return cases


Opener = Callable[..., Sandbox]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory that every user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="test-sandbox-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture(params=kinds())
def opened(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Opens sandboxes of one kind."""
    tier, bwrap = request.param
    boxes: list[Sandbox] = []

    def make(workspace: Path, limits: Limits | None = None) -> Sandbox:
        programs: list[Bwrap] = [bwrap] if bwrap else []
        try:
            box = open_sandbox(workspace, tier=tier, limits=limits, bwraps=programs)
        except SandboxUnavailable as reason:
            pytest.skip(str(reason))
        boxes.append(box)
        return box

    yield make
    for box in boxes:
        box.close()


@pytest.fixture
def sandbox(opened: Opener, tmp_path: Path) -> Sandbox:
    return opened(tmp_path)


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def is_running(mark: str) -> bool:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in entry.read_bytes():
                return True
        except OSError:
            continue
    return False


def _is_command(process: Path, mark: str) -> bool:
    try:
        return (process / "cmdline").read_bytes().startswith(mark.encode())
    except OSError:
        return False


# What a command sees and says


@pytest.mark.parametrize(
    ("command", "exit_code", "output"),
    [
        ("echo out; echo err >&2; echo out", 0, "out\nerr\nout\n"),
        ("exit 3", 3, ""),
        ("kill -TERM $$", 143, ""),
        ("kill -KILL $$", 137, ""),
        ("trap 'kill 0' EXIT; echo out", 143, "out\n"),
        ("kill -KILL 0", 137, ""),
        ("kill -TERM $PPID 2>/dev/null; sleep 0.1; echo out", 0, "out\n"),
        ("no-such-program 2>/dev/null", 127, ""),
        ("cat", 0, ""),
        ("umask", 0, "0022\n"),
        ("echo a; exec >&- 2>&-; sleep 0.1; exit 4", 4, "a\n"),
        ("printf 'a\\377b'", 0, "a�b"),
        ("printf '%s\\n' b A a B | sort", 0, "A\nB\na\nb\n"),
        ("yes | head -n 1", 0, "y\n"),
        (["printf", "[%s]", "a b", "$HOME", "'\"", "-x"], 0, "[a b][$HOME]['\"][-x]"),
    ],
)
def test_a_command_has_its_exit_code_and_output(
    sandbox: Sandbox, command: str | list[str], exit_code: int, output: str
) -> None:
    result = sandbox.run(command, timeout_s=30)
    assert (result.exit_code, result.output) == (exit_code, output)
    assert not result.truncated
    assert not result.timed_out
    assert result.tier is sandbox.info.tier


def test_files_in_the_workspace_last_and_belong_to_the_caller_in_the_end(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "before").touch()
    assert sandbox.run("echo one > file; mkdir sub", timeout_s=30).exit_code == 0
    assert (tmp_path / "file").read_text() == "one\n"
    assert sandbox.run("cat file", timeout_s=30).output == "one\n"
    sandbox.close()
    assert {path.stat().st_uid for path in tmp_path.iterdir()} == {os.getuid()}


def test_nothing_but_the_workspace_lasts(sandbox: Sandbox) -> None:
    sandbox.run('touch "$HOME/kept" "$TMPDIR/kept"; export KEPT=1; cd /', timeout_s=30)
    after = sandbox.run('ls -A "$HOME" "$TMPDIR" | grep kept; echo "[$KEPT]"', timeout_s=30)
    assert after.output == "[]\n"


def test_the_environment_is_fixed_and_holds_nothing_of_the_callers(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    words = [sys.executable, "-c", HARNESS, str(tmp_path), sandbox.info.tier.value, "env"]
    env = {**os.environ, "CALLERS_SECRET": "x", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    shown = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    lines = shown.stdout.splitlines()
    assert "CALLERS_SECRET=x" not in lines
    assert {"TZ=UTC", "LC_ALL=C.UTF-8", "PYTHONHASHSEED=0"} <= set(lines)
    assert any(line.startswith("PATH=") and ":/usr/local/bin:" in line for line in lines)


def test_startup_files_planted_in_the_workspace_have_no_effect(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    for name in (".bash_profile", ".bashrc", ".profile"):
        (tmp_path / name).write_text("cd /; echo planted\n")
    plain = sandbox.run("pwd", timeout_s=30).output
    assert plain in (f"{tmp_path}\n", "/workspace\n")


def test_a_command_cannot_forge_its_own_status(sandbox: Sandbox) -> None:
    forge = """for fd in {3..40}; do echo '{"exit-code": 0}' >&$fd; done 2>/dev/null; exit 7"""
    assert sandbox.run(forge, timeout_s=30).exit_code == 7


@pytest.mark.parametrize(
    "name", ["two words", 'it\'s "quoted"', "new\nline", "-rf", "$HOME", "ünïcode", "b\udcffd", ","]
)
def test_a_workspace_may_have_any_name(opened: Opener, tmp_path: Path, name: str) -> None:
    workspace = tmp_path / name
    workspace.mkdir()
    assert opened(workspace).run("touch made", timeout_s=30).exit_code == 0
    assert (workspace / "made").exists()


def test_a_workspace_may_be_reached_through_a_link(opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    opened(tmp_path / "link").run("touch made", timeout_s=30)
    assert (tmp_path / "real" / "made").exists()


# The bounds of output and time


def test_a_flood_is_cut_in_the_middle_and_says_so(opened: Opener, tmp_path: Path) -> None:
    box = opened(tmp_path, Limits(output_head_bytes=10, output_tail_bytes=6))
    result = box.run("seq 1 100000", timeout_s=30)
    assert result.exit_code == 0
    assert result.truncated
    assert result.output_bytes == 588895
    assert result.output == "1\n2\n3\n4\n5\n[... 588879 bytes dropped ...]\n00000\n"


def punctual(sandbox: Sandbox, command: str, begins: Callable[[str], bool]) -> Result:
    """A run that was ended within a second of its deadline, after it had really begun.

    A busy machine gets two more tries with more time: a sandbox that waits for the command, or
    leaves it out, is late or silent each time.
    """
    for timeout_s in (1.0, 4.0, 16.0):
        result = sandbox.run(command, timeout_s=timeout_s)
        late_s = result.duration_ns / 1e9 - timeout_s
        assert result.timed_out and late_s >= 0
        if late_s < 1 and begins(result.output):
            return result
    pytest.fail(f"{late_s} s late, output {result.output[:80]!r}")


def test_a_deadline_holds_in_a_flood(sandbox: Sandbox) -> None:
    result = punctual(sandbox, "timeout 60 yes", lambda output: len(output) > 60_000)
    assert result.truncated
    assert len(result.output) < 70_000


@pytest.mark.parametrize(
    "command",
    [
        "echo first; sleep 60 | cat",
        "trap '' TERM INT HUP; echo first; while :; do sleep 1; done",
        "echo first; exec >&- 2>&-; sleep 60",
        "echo first; kill -STOP $$",
    ],
)
def test_a_deadline_ends_a_command_and_keeps_its_output(sandbox: Sandbox, command: str) -> None:
    result = punctual(sandbox, command, bool)
    assert (result.exit_code, result.output) == (None, "first\n")


@pytest.mark.parametrize("timeout_s", [1e-9, 0.001, 0.005, 0.01])
def test_a_deadline_may_come_before_the_command_has_started(
    sandbox: Sandbox, timeout_s: float
) -> None:
    mark = f"early-{os.getpid()}-{time.monotonic_ns()}"
    result = sandbox.run(f"exec -a {mark} sleep 60", timeout_s=timeout_s)
    assert result.timed_out
    assert not is_running(mark)


@pytest.mark.parametrize(
    "launch",
    [
        "exec -a MARK sleep 60 &",
        "(setsid bash -c 'exec -a MARK sleep 60' &);",
        "nohup bash -c 'exec -a MARK sleep 60' >/dev/null 2>&1 &",
    ],
)
def test_a_command_returns_at_once_without_its_children(sandbox: Sandbox, launch: str) -> None:
    mark = f"child-{os.getpid()}-{time.monotonic_ns()}"
    result = sandbox.run(f"{launch.replace('MARK', mark)} echo done", timeout_s=30)
    assert (result.exit_code, result.output) == (0, "done\n")
    assert result.duration_ns < 10_000_000_000
    assert not is_running(mark)


def test_a_double_forked_daemon_ends_with_the_deadline(sandbox: Sandbox, tmp_path: Path) -> None:
    mark = f"daemon-{os.getpid()}-{time.monotonic_ns()}"
    daemon = f"(setsid bash -c '(touch up; exec -a {mark} sleep 60) & disown' &)"
    for timeout_s in (1.0, 20.0):  # a busy machine may need more time to start it
        sandbox.run(f"{daemon}; sleep 60", timeout_s=timeout_s)
        assert not is_running(mark)
        if (tmp_path / "up").exists():
            break
    assert (tmp_path / "up").exists()


def test_a_command_does_not_survive_a_killed_caller(sandbox: Sandbox, tmp_path: Path) -> None:
    mark = f"orphan-{os.getpid()}-{time.monotonic_ns()}"
    words = [str(tmp_path), sandbox.info.tier.value, f"touch up; exec -a {mark} sleep 60"]
    # A killed process can't remove its temporary directory.
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", HARNESS, *words], cwd=ROOT, env=env) as harness:
        assert wait_until((tmp_path / "up").exists)
        harness.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not is_running(mark))


def test_a_caller_may_be_killed_at_any_moment_of_a_launch(sandbox: Sandbox, tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    command = f"exec -a {mark} sleep 600"
    for delay_s in (each / 1000 for each in range(0, 100, 20)):
        caller = subprocess.Popen(
            [
                sys.executable,
                "-c",
                LAUNCHER,
                str(sandbox.workspace),
                sandbox.info.tier.value,
                command,
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        assert caller.stdout
        with caller.stdout as said:
            said.readline()
            time.sleep(delay_s)
            caller.kill()
            caller.wait()
    # Bubblewrap may be left waiting, with the command line among its words, for what never comes.
    assert wait_until(
        lambda: not any(_is_command(each, mark) for each in Path("/proc").glob("[0-9]*"))
    )


def test_an_interrupt_ends_the_command(sandbox: Sandbox, tmp_path: Path) -> None:
    mark = f"interrupt-{os.getpid()}-{time.monotonic_ns()}"
    words = [str(tmp_path), sandbox.info.tier.value, f"touch up; exec -a {mark} sleep 60"]
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, *words], cwd=ROOT, stderr=subprocess.DEVNULL
    ) as harness:
        assert wait_until((tmp_path / "up").exists)
        harness.send_signal(signal.SIGINT)
    assert not is_running(mark)


def test_another_thread_can_stop_what_runs_and_what_would_run(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    mark = f"stopped-{os.getpid()}-{time.monotonic_ns()}"
    ends: list[type[BaseException]] = []

    def work() -> None:
        try:
            sandbox.run(f"touch up; (setsid sleep 60 &); exec -a {mark} sleep 60", timeout_s=60)
        except SandboxStopped as end:
            ends.append(type(end))

    thread = threading.Thread(target=work)
    thread.start()
    assert wait_until((tmp_path / "up").exists)
    sandbox.stop()
    thread.join(10)
    assert ends == [SandboxStopped]
    assert not is_running(mark)
    with pytest.raises(SandboxStopped):
        sandbox.run("touch later", timeout_s=30)
    assert not (tmp_path / "later").exists()
    sandbox.close()
    sandbox.stop()


def test_commands_of_several_threads_do_not_meet(sandbox: Sandbox) -> None:
    outputs: dict[int, str] = {}

    def work(number: int) -> None:
        outputs[number] = sandbox.run(f"sleep 0.2; echo {number}", timeout_s=30).output

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {number: f"{number}\n" for number in range(4)}


def test_no_descriptor_or_child_is_left_open(sandbox: Sandbox) -> None:
    before = sorted(p.name for p in Path("/proc/self/fd").iterdir())
    children = descendants(os.getpid())
    for command, timeout_s in [("true", 30.0), ("sleep 60", 0.2), ("exit 1", 30.0)]:
        sandbox.run(command, timeout_s=timeout_s)
    assert sorted(p.name for p in Path("/proc/self/fd").iterdir()) == before
    assert descendants(os.getpid()) == children


# What is refused, and what is not the command's fault


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo a\0b", "NUL"),
        ("echo \ud800", "not valid Unicode"),
        ("x" * 200_000, "200000 bytes"),
        ([], "no program"),
        ([""], "no program"),
        (["echo"] + ["x" * 100_000] * 100, "too long together"),
    ],
)
def test_a_command_that_no_kernel_takes_is_refused(
    sandbox: Sandbox, command: str | list[str], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        sandbox.run(command, timeout_s=30)


def test_a_deadline_may_be_seven_days_away(sandbox: Sandbox) -> None:
    assert sandbox.run("echo hi", timeout_s=7 * 24 * 3600).output == "hi\n"


@pytest.mark.parametrize("timeout_s", [0, -1, math.nan, math.inf, 604_800.1, 1e300, 10**400])
def test_a_deadline_that_is_none_is_refused(sandbox: Sandbox, timeout_s: float) -> None:
    with pytest.raises(InvalidRequest, match=r"time-out .* at most 604800 \(7 days\)"):
        sandbox.run("true", timeout_s=timeout_s)


def test_a_failure_of_the_sandbox_is_not_a_result(opened: Opener, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    box = opened(workspace)
    workspace.rmdir()
    with pytest.raises(SandboxError, match="No such file or directory"):
        box.run("true", timeout_s=30)


# Limits and what is recorded


def test_a_file_stops_growing_at_its_limit(opened: Opener, tmp_path: Path) -> None:
    box = opened(tmp_path, Limits(file_size_bytes=100_000))
    result = box.run("head -c 200000 /dev/zero > large", timeout_s=30)
    assert result.exit_code != 0
    assert (tmp_path / "large").stat().st_size == 100_000


def test_cpu_time_is_limited(opened: Opener, tmp_path: Path) -> None:
    box = opened(tmp_path, Limits(cpu_s=1))
    result = box.run("while :; do :; done", timeout_s=30)
    assert result.exit_code == 128 + signal.SIGKILL


def test_a_limit_above_the_callers_own_is_lowered_to_it(sandbox: Sandbox, tmp_path: Path) -> None:
    words = [sys.executable, "-c", HARNESS, str(tmp_path), sandbox.info.tier.value, "ulimit -n"]
    done = subprocess.run(
        ["bash", "-c", 'ulimit -n 100 && exec "$@"', "-", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "100\n"


def test_the_record_for_the_manifest_is_plain_json(sandbox: Sandbox) -> None:
    record = json.loads(json.dumps(sandbox.info.to_json()))
    assert record["tier"] == record["tier_asked"] == sandbox.info.tier.value
    assert record["kernel"] == os.uname().release
    assert record["limits"]["output_head_bytes"] == {"value": 32768, "enforcement": "enforced"}
    if sandbox.info.tier is Tier.BUBBLEWRAP:
        assert Path(record["bwrap_path"]).exists()
        assert record["nested_namespaces_blocked"]
        assert record["bwrap_origin"] in ("system", "wheel")
    else:
        assert record["bwrap_path"] is None


def test_root_runs_commands_as_somebody_whose_processes_can_be_limited(sandbox: Sandbox) -> None:
    if os.getuid() != 0:
        pytest.skip("only root runs commands as somebody else")
    [status] = [each for each in sandbox.info.limits if each.name == "processes"]
    if sandbox.info.tier is Tier.NONE:
        assert (sandbox.info.command_uid, status.enforcement) == (0, "none")
    else:
        assert (sandbox.info.command_uid, status.enforcement) == (60800, "enforced")


def test_the_documentation_gives_the_defaults_of_the_limits() -> None:
    text = (ROOT / "docs" / "sandbox.md").read_text()
    limits = Limits()
    for name in Limits.__dataclass_fields__:
        assert f"| `{name}` | {getattr(limits, name)} |" in text


@pytest.mark.parametrize(
    "change",
    [
        {"exit_code": None},
        {"timed_out": True},
        {"exit_code": -9},
        {"duration_ns": -1},
        {"output_bytes": -1},
    ],
)
def test_a_result_refuses_what_cannot_be(change: dict[str, object]) -> None:
    good = Result(0, "", False, False, 1, Tier.NONE, 0)
    with pytest.raises(ValueError):
        replace(good, **change)
