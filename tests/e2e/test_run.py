"""The whole job from the command line: real processes, a real model, a real sandbox."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DemoRun
from tests.trace_samples import make_pack

SPEED_WORDS = ("per_s", "tokens/s", "ttft", "tpot", "latency", "duration", "arrivals", "issued_ns")


def edge(cli: list[str], *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*cli, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def summary_of(run_dir: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((run_dir / "summary.json").read_text())
    return summary


def one_line_error(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in done.stderr
    assert len(lines) == 1, done.stderr
    return lines[0]


class TestDemo:
    def test_it_ends_valid(self, demo_run: DemoRun) -> None:
        assert demo_run.done.returncode == 0, demo_run.done.stderr
        summary = summary_of(demo_run.directory)
        assert summary["valid"] and summary["gate"]["passed"] and summary["engine"]["is_model"]

    def test_the_gate_is_held_to_the_models_own_reference(self, demo_run: DemoRun) -> None:
        gate = summary_of(demo_run.directory)["gate"]
        assert gate["reference"]["id"] == "smollm2-135m"
        assert gate["issued_samples"] >= 120

    def test_every_prompt_token_is_computed_once(self, demo_run: DemoRun) -> None:
        prefill = summary_of(demo_run.directory)["replay"]["prefill"]
        assert prefill["computed_tokens"] / prefill["ideal_tokens"] <= 1.02

    def test_each_recorded_command_gives_its_recorded_result(self, demo_run: DemoRun) -> None:
        tools = summary_of(demo_run.directory)["replay"]["tools"]
        assert tools["executed"] == 14
        assert tools["fidelity"] == 1.0
        assert tools["checks_passed"] == tools["checks_total"] == 2

    def test_prompts_stay_under_4000_tokens(self, demo_run: DemoRun) -> None:
        lines = (demo_run.directory / "journal.jsonl").read_text().splitlines()
        turns = [event for line in lines if (event := json.loads(line))["event"] == "turn"]
        assert len(turns) == 16
        assert max(turn["prompt_tokens"] for turn in turns) < 4000

    def test_memory_stays_under_1500_mb(self, demo_run: DemoRun) -> None:
        assert summary_of(demo_run.directory)["memory"]["peak_rss_mb"] < 1500

    def test_the_summary_verifies(self, cli: list[str], demo_run: DemoRun) -> None:
        done = edge(cli, "results", "verify", demo_run.directory)
        assert done.returncode == 0, done.stderr

    def test_the_table_says_what_matters(self, demo_run: DemoRun) -> None:
        for words in (
            "Function-calling gate: passed", "output tokens/s", "time to first token",
            "turn latency", "prefill efficiency", "tool fidelity", "inline score", "runs/first",
        ):  # fmt: skip
            assert words in demo_run.done.stdout

    def test_the_manifest_names_the_model_and_the_machine_but_no_path(
        self, smollm2: Path, demo_run: DemoRun
    ) -> None:
        text = (demo_run.directory / "manifest.json").read_text()
        manifest = json.loads(text)
        assert manifest["model"]["sha256"].startswith("b179c952")
        assert manifest["engine"]["tool_grammar"] == "on"
        assert manifest["sandbox"]["tier"] == "bubblewrap"
        assert str(smollm2.parent) not in text


def test_the_official_trace_answered_as_recorded_scores_1(
    cli: list[str], official_trace: Path, tmp_path: Path
) -> None:
    done = edge(
        cli, "run", "--engine", "scripted", "--answers", "recorded", "--pack", official_trace,
        "--out", tmp_path / "run", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    turns = summary["replay"]["turns"]
    assert summary["replay"]["inline_score"] == 1.0
    assert (turns["issued"], turns["scored"], turns["missing"]) == (1007, 1006, 0)
    assert not summary["engine"]["is_model"]
    assert summary["run_dir"] == str(tmp_path / "run")


def test_a_failed_gate_exits_3_and_leaves_no_speed_figure(cli: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = edge(cli, "run", "--engine", "scripted", "--answers", "wrong", "--out", out)
    assert done.returncode == 3
    everything = done.stdout + done.stderr + "".join(p.read_text() for p in out.iterdir())
    for word in SPEED_WORDS:
        assert word not in everything, word
    assert summary_of(out)["replay"] is None


@pytest.fixture(scope="module")
def gate_answers(cli: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Right answers to every gate case, read back from the journal of a run."""
    out = tmp_path_factory.mktemp("recorded") / "run"
    assert edge(cli, "run", "--engine", "scripted", "--out", out).returncode == 0
    events = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    return [
        {
            "request_id": f"gate/{event['sample_id']}",
            "tool_calls": event["tool_calls"],
            "text": event["text"],
        }
        for event in events
        if event["event"] == "gate_case"
    ]


def run_with_answers(
    cli: list[str], folder: Path, rows: list[dict[str, Any]]
) -> tuple[int, dict[str, Any]]:
    answers = folder / "answers.jsonl"
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = folder / "run"
    done = edge(cli, "run", "--engine", "scripted", "--answers", answers, "--out", out)
    return done.returncode, summary_of(out)


def test_wrong_answers_in_the_replay_score_0(
    cli: list[str], gate_answers: list[dict[str, Any]], tmp_path: Path
) -> None:
    turns = [
        {"request_id": f"replay/{conversation}/{turn}", "text": "I don't know."}
        for conversation in ("fix-duration", "greenhouse-report")
        for turn in range(1, 9)
    ]
    code, summary = run_with_answers(cli, tmp_path, [*gate_answers, *turns])
    assert (code, summary["replay"]["inline_score"]) == (0, 0.0)


def test_turns_without_an_answer_make_the_run_invalid_with_exit_4(
    cli: list[str], gate_answers: list[dict[str, Any]], tmp_path: Path
) -> None:
    code, summary = run_with_answers(cli, tmp_path, gate_answers)
    assert code == 4
    assert not summary["valid"]
    turns = summary["replay"]["turns"]
    assert (turns["issued"], turns["failed"], turns["missing"]) == (16, 16, 16)


def test_a_gate_set_of_ones_own_is_held_to_the_floor(cli: list[str], tmp_path: Path) -> None:
    own = tmp_path / "my-gate"
    (own / "possible_answer").mkdir(parents=True)
    function = {
        "name": "look",
        "description": "Look at a file",
        "parameters": {
            "type": "dict",
            "properties": {"path": {"type": "string", "description": "its path"}},
            "required": ["path"],
        },
    }
    question = [[{"role": "user", "content": "Look at a.txt"}]]
    row = {"id": "simple_python_my-1", "question": question, "function": [function]}
    answer = {"id": row["id"], "ground_truth": [{"look": {"path": ["a.txt"]}}]}
    (own / "BFCL_v4_simple_python.json").write_text(json.dumps(row))
    (own / "possible_answer" / "BFCL_v4_simple_python.json").write_text(json.dumps(answer))
    out = tmp_path / "run"
    words = ("run", "--engine", "scripted", "--gate-set", own, "--out", out)
    assert edge(cli, *words).returncode == 0
    gate = summary_of(out)["gate"]
    assert (gate["dataset"], gate["overall_accuracy"]) == ("my-gate", 100.0)
    assert gate["thresholds"] == {"overall_accuracy": 50.0}
    verified = edge(cli, "results", "verify", out)
    assert verified.returncode == 0 and "not checked: the gate's verdicts" in verified.stdout


def test_answers_that_come_too_late_are_no_answers(cli: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    slow = ("--first-token-ms", 300, "--turn-timeout", 0.05)
    assert edge(cli, "run", "--engine", "scripted", "--out", out, *slow).returncode == 3
    assert summary_of(out)["gate"]["total_samples"] == 0


@pytest.mark.parametrize("arguments", ['{"width": NaN}', '{"width": -Infinity}', '{"w": 1e999}'])
def test_numbers_that_json_has_no_form_for_are_a_malformed_call(
    cli: list[str], gate_answers: list[dict[str, Any]], tmp_path: Path, arguments: str
) -> None:
    function = {"name": gate_answers[0]["tool_calls"][0]["function"]["name"]}
    broken = {**gate_answers[0], "tool_calls": [{"function": {**function, "arguments": arguments}}]}
    _, summary = run_with_answers(cli, tmp_path, [broken, *gate_answers[1:]])
    assert summary["gate"]["malformed"] == 1
    assert summary["gate"]["total_samples"] == len(gate_answers)


def test_a_reader_that_goes_away_does_not_end_the_run(cli: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = [*cli, "run", "--engine", "scripted", "--json", "--out", str(out)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=full, timeout=120)
    assert done.returncode == 0
    assert json.loads(done.stdout)["valid"]


@pytest.mark.parametrize("limit", [500, 3000])
def test_a_disk_full_from_the_start_is_one_line(cli: list[str], tmp_path: Path, limit: int) -> None:
    out = tmp_path / "run"
    words = ("run", "--engine", "scripted", "--out", out)
    done = edge(["prlimit", f"--fsize={limit}", *cli], *words)
    assert done.returncode == 4
    assert "can't be written" in one_line_error(done) or "no space" in one_line_error(done)
    assert not list(out.glob("*.partial"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_a_directory_that_shows_as_incomplete(
    cli: list[str], tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(
        [*cli, "run", "--engine", "scripted", "--token-ms", "2", "--out", str(out)],
        stderr=subprocess.PIPE,
        text=True,
    )
    journal = out / "journal.jsonl"
    deadline = time.monotonic() + 120
    while not (journal.is_file() and '"event":"turn"' in journal.read_text()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    # A second signal, as an impatient user sends it, changes nothing.
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in said and f"interrupted by {number.name}" in said
    assert not (out / "summary.json").exists()
    shown = edge(cli, "results", "show", out)
    assert shown.returncode == 0
    assert "INCOMPLETE" in shown.stdout and number.name in shown.stdout
    verified = edge(cli, "results", "verify", out)
    assert verified.returncode == 2 and "unfinished" in one_line_error(verified)


def test_a_full_disk_keeps_what_was_measured(cli: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    # A file-size limit ends the journal as a full disk does: in the middle of an event.
    done = edge(["prlimit", "--fsize=30000", *cli], "run", "--engine", "scripted", "--out", out)
    assert done.returncode == 4
    assert "journal.jsonl: " in one_line_error(done)
    assert "INCOMPLETE" in edge(cli, "results", "show", out).stdout


@pytest.mark.parametrize(
    "words",
    [
        ("traces", "validate"),
        ("score", "inline"),
        ("run", "--model"),
        ("run", "--engine", "scripted", "--pack"),
        ("run", "--engine", "scripted", "--answers"),
        ("results", "verify"),
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "device", "long name", "directory without permission"])
def test_what_is_no_file_is_refused_at_once(
    cli: list[str], tmp_path: Path, words: tuple[str, ...], kind: str
) -> None:
    path = tmp_path / "pipe"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "long name":
        path = tmp_path / ("a" * 300)
    else:
        path = tmp_path / "closed" / "file"
        path.parent.mkdir(mode=0)
    done = edge(cli, *words, path)
    assert done.returncode == 2, done.stderr
    assert one_line_error(done)


class TestBadInput:
    @pytest.mark.parametrize("words", [("--context", 1024)])
    def test_a_context_too_small_is_known_before_the_run(
        self, cli: list[str], smollm2: Path, tmp_path: Path, words: tuple[object, ...]
    ) -> None:
        out = tmp_path / "run"
        done = edge(cli, "run", "--model", smollm2, "--out", out, *words)
        assert done.returncode == 2
        error = one_line_error(done)
        assert "conversation '" in error and "the context holds 1024" in error
        assert not out.exists()

    def test_half_a_model(self, cli: list[str], smollm2: Path, tmp_path: Path) -> None:
        half = tmp_path / "half.gguf"
        raw = smollm2.read_bytes()
        half.write_bytes(raw[: len(raw) // 2])
        done = edge(cli, "run", "--model", half)
        assert done.returncode == 2
        assert "cut short" in one_line_error(done)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--model", "absent.gguf"), "no such model file"),
            (("--model", "."), "is a directory"),
            (("--engine", "scripted", "--pack", "absent"), "absent: no such trace"),
            (("--engine", "scripted", "--gate-set", "absent"), "absent"),
            (("--engine", "scripted", "--answers", "absent.jsonl"), "absent.jsonl: no such file"),
            (("--engine", "scripted", "--out", "/proc/run"), "/proc/run: can't be written"),
            ((), "give a model"),
        ],
    )
    def test_what_is_not_there(
        self, cli: list[str], tmp_path: Path, words: tuple[str, ...], said: str
    ) -> None:
        done = edge(cli, "run", *words, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert said in one_line_error(done)

    def test_a_directory_that_is_not_empty(self, cli: list[str], tmp_path: Path) -> None:
        (tmp_path / "precious").touch()
        done = edge(cli, "run", "--engine", "scripted", "--out", tmp_path)
        assert done.returncode == 2
        assert "is not empty" in one_line_error(done)

    def test_a_tool_that_the_pack_needs_is_missing(self, cli: list[str], tmp_path: Path) -> None:
        pack = make_pack(tmp_path / "pack", tools=["bash", "no-such-tool"])
        done = edge(cli, "run", "--engine", "scripted", "--pack", pack, "--out", tmp_path / "run")
        assert done.returncode == 6
        assert "no-such-tool" in one_line_error(done)


def test_help_loads_no_engine_and_no_tables(cli: list[str]) -> None:
    program = (
        "import sys; sys.argv = ['edge-agentic', '--help']\n"
        "from edge_agentic.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'llama_cpp', 'numpy', 'jsonschema', 'jinja2', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([cli[0], "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_an_unsandboxed_run_says_so(cli: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = edge(cli, "run", "--engine", "scripted", "--allow-unsandboxed", "--out", out)
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "manifest.json").read_text())["sandbox"]["tier"] == "none"


def test_sandbox_exec_prints_one_result(cli: list[str], tmp_path: Path) -> None:
    done = edge(
        cli, "sandbox", "exec", "--workspace", tmp_path, "--json", "--timeout", 20, "--",
        "echo hello; pwd; exit 7",
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert result.pop("duration_ns") > 0
    assert result == {
        "exit_code": 7,
        "output": "hello\n/workspace\n",
        "truncated": False,
        "timed_out": False,
        "over_limit": None,
        "tier": "bubblewrap",
    }


def test_sandbox_exec_takes_words_as_they_are(cli: list[str], tmp_path: Path) -> None:
    done = edge(cli, "sandbox", "exec", "--workspace", tmp_path, "--", "echo", "$HOME;", "a  b")
    assert done.stdout == "$HOME; a  b\n"


def test_sandbox_check_reports_each_attack(cli: list[str]) -> None:
    done = edge(cli, "sandbox", "check", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["tier"] == "bubblewrap"
    assert len(report["attacks"]) >= 40
    assert all(attack["stopped"] for attack in report["attacks"] if attack["promised"])


def test_a_machine_that_forbids_user_namespaces_is_exit_6(cli: list[str], tmp_path: Path) -> None:
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    within = ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"]
    for words in (
        ("sandbox", "exec", "--workspace", tmp_path, "--", "true"),
        ("run", "--engine", "scripted", "--out", tmp_path / "run"),
    ):
        done = edge([*within, *cli], *words)
        assert done.returncode == 6, done.stderr
        assert "docs/sandbox.md" in one_line_error(done)
    assert not (tmp_path / "run").exists()
