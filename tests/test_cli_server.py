"""The command line measures a server that runs, and starts, lists and stops servers that stay."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bfcl_gate.request import messages
from bfcl_gate.scripted import right_tool_calls
from bfcl_gate.selection import select
from edge_agentic.run.gate_sets import GATE_MINI, open_gate_set
from tests.conftest import REPOSITORY
from tests.model_server import Habits, model_server
from tests.trace_samples import says, user, write

STAND_IN = Path(__file__).with_name("stand_in_server.py")
KEY = "sk-very-secret"


class Shell:
    """Runs the command line with a cache of its own."""

    def __init__(self, cli: list[str], cache: Path) -> None:
        self._cli = cli
        self._environment = {
            **os.environ,
            "EDGE_AGENTIC_CACHE": str(cache),
            "PYTHONPATH": str(REPOSITORY),
            "SERVER_KEY": KEY,
        }

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._cli, *words],
            capture_output=True,
            text=True,
            timeout=120,
            env=self._environment,
        )


@pytest.fixture
def shell(cli: list[str], tmp_path: Path) -> Shell:
    return Shell(cli, tmp_path / "cache")


def gate(shell: Shell, habits: Habits, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    with model_server(habits) as endpoint:
        words = ("gate", "--engine", "openai", "--base-url", endpoint.url, "--limit", "2")
        return shell(*words, "--out", str(out), *more)


def test_a_gate_is_asked_over_http_and_the_key_stays_secret(shell: Shell, tmp_path: Path) -> None:
    habits = Habits(key=KEY, streams_calls=False)
    done = gate(shell, habits, tmp_path / "run", "--api-key-env", "SERVER_KEY")
    assert done.returncode == 0, done.stderr
    assert "note: the server holds calls back" in done.stderr
    manifest: dict[str, Any] = json.loads((tmp_path / "run" / "manifest.json").read_text())
    engine = manifest["engine"]
    assert (engine["kind"], engine["server"], engine["served_model"]) == ("openai", "vllm", "m")
    assert engine["server_is_local"] is True
    assert engine["probes"]["usage"]["found"] is True
    assert manifest["model"] == {"name": "m"}
    written = "".join(path.read_text() for path in (tmp_path / "run").iterdir())
    assert KEY not in written + done.stdout + done.stderr
    assert "127.0.0.1" not in written
    assert all(body["tool_choice"] == "auto" for body in habits.asked if "tools" in body)


@pytest.mark.parametrize(
    ("habits", "returncode", "differs"),
    [
        (Habits(cached_share=0.75), 0, ""),
        (Habits(cached=False), 2, "engine.probes.cached_tokens.found"),
    ],
    ids=["a warmer cache", "another habit"],
)
def test_a_gate_goes_on_on_a_server_that_has_the_same_habits(
    shell: Shell, tmp_path: Path, habits: Habits, returncode: int, differs: str
) -> None:
    out = tmp_path / "run"
    assert gate(shell, Habits(), out).returncode == 0
    (out / "summary.json").unlink()
    journal = out / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:3]))
    done = gate(shell, habits, out)
    assert done.returncode == returncode, done.stderr
    assert differs in done.stderr


@pytest.mark.parametrize(
    ("habits", "more", "said"),
    [
        (Habits(calls=False, counts_tools=False), [], "tools don't reach the model"),
        (Habits(key=KEY), [], "--api-key-env"),
        (Habits(), ["--api-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY is not set"),
    ],
)
def test_a_server_that_would_spoil_the_run_is_refused_in_one_line(
    shell: Shell, tmp_path: Path, habits: Habits, more: list[str], said: str
) -> None:
    done = gate(shell, habits, tmp_path / "run", *more)
    assert done.returncode == 6
    assert said in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert not (tmp_path / "run").exists()


def test_a_run_plays_conversations_at_once_and_tells_their_rates_apart(
    shell: Shell, tmp_path: Path
) -> None:
    rows = [
        row(turn, conversation_id=name)
        for name in "abc"
        for turn, row in enumerate((user, says, user, says), start=1)
    ]
    trace = write(tmp_path / "trace.jsonl", *rows)
    cases = select(open_gate_set(GATE_MINI), None).cases
    answers = {messages(case)[-1]["content"]: right_tool_calls(case) for case in cases}
    out = tmp_path / "run"
    with model_server(Habits(answers=answers)) as endpoint:
        words = ("run", "--engine", "openai", "--base-url", endpoint.url, "--pack", str(trace))
        done = shell(*words, "--concurrency", "2", "--out", str(out))
    assert done.returncode == 0, done.stderr
    replay = json.loads((out / "summary.json").read_text())["replay"]
    assert replay["concurrency"] == 2
    assert replay["turns"]["observed"] == replay["turns"]["expected"] == 6
    assert "2 conversations at once" in done.stdout
    assert "decode tokens/s, each" in done.stdout


def test_a_server_is_started_listed_read_and_stopped(shell: Shell, tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.touch()
    words = ("--server-bin", str(STAND_IN), "--model", str(model))
    started = shell("server", "start", *words)
    assert started.returncode == 0, started.stderr
    name, url = started.stdout.split()
    try:
        assert url.startswith("http://127.0.0.1:")
        assert shell("server", "list").stdout == started.stdout
        (listed,) = json.loads(shell("server", "list", "--json").stdout)
        assert (listed["name"], listed["url"]) == (name, url)
        assert shell("server", "logs").stdout.startswith("loading the model\n")
    finally:
        stopped = shell("server", "stop", name)
    assert stopped.stdout == f"stopped {name}\n"
    assert not Path(listed["log"]).exists()
    assert shell("server", "list").stdout == ""
    again = shell("server", "stop")
    assert again.returncode == 2
    assert again.stderr == "error: no kept server runs\n"


def test_only_a_server_can_be_started(shell: Shell) -> None:
    done = shell("server", "start", "--engine", "scripted")
    assert done.returncode == 2
    assert "starts no server; give one of: llama-server" in done.stderr
