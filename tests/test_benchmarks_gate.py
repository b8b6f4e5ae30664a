"""The scoring benchmark: what it prints, beside a reference and without, and how it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from bfcl_gate.cases import gate_mini
from bfcl_gate.scripted import right_tool_calls
from edge_agentic.run.official_data import FETCH, WHEEL, is_fetched

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "gate_scoring.py"
FIGURES = ["import_s", "load_s", "judge_s", "total_s", "cpu_s", "peak_rss_mb"]
OURS = ["samples", "repeats", *FIGURES, "package_kb"]
COMPARED = ["reference_stood_in", "verdicts_agree", "times_faster", "times_faster_total"]
OFFICIAL_SAMPLES = 995


def bench(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--repeats", "1", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )


def figures(*words: str | Path) -> dict[str, Any]:
    done = bench("--json", *words)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.fixture
def lenient(tmp_path: Path) -> Path:
    """A package with the reference's interface that needs a missing client, and accepts all."""
    root = tmp_path / "lenient"
    checker = root / "bfcl_eval" / "eval_checker" / "ast_eval" / "ast_checker.py"
    enums = root / "bfcl_eval" / "constants" / "enums.py"
    for path in (checker, enums):
        path.parent.mkdir(parents=True)
    enums.write_text(
        "from enum import Enum\nLanguage = Enum('Language', 'PYTHON JAVA JAVASCRIPT')\n"
    )
    checker.write_text(
        "from absent_client.errors import RateLimit\n"
        "from absent_client import Client, retry\n"
        "class Handler(Client):\n"
        "    @retry(RateLimit | OSError)\n"
        "    def ask(self): ...\n"
        "def ast_checker(*_):\n"
        "    return {'valid': True}\n"
    )
    return root


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Two answers, both right; one sample without an answer, and one answered again."""
    called, text, unanswered = gate_mini().cases[:3]
    (call,) = right_tool_calls(text)
    arguments = json.loads(call["function"]["arguments"])
    keywords = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    rows = [
        {"sample_id": called.id, "tool_calls": right_tool_calls(called)},
        {"sample_id": text.id, "text": f"{call['function']['name']}({keywords})"},
        {"sample_id": unanswered.id, "text": None},
        {"sample_id": called.id, "text": "of several the first counts"},
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_without_a_reference_it_prints_our_figures() -> None:
    done = bench("--data", "gate-mini")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == OURS


@pytest.mark.skipif(not is_fetched(), reason=f"the official data is not here; run: {FETCH}")
def test_the_official_samples_take_little_memory_and_room() -> None:
    told = figures()
    assert told["samples"] == OFFICIAL_SAMPLES
    assert told["peak_rss_mb"] < 150
    assert told["package_kb"] < 5000


def test_our_verdicts_agree_with_the_reference(tmp_path: Path) -> None:
    wheel = os.environ.get("EDGE_AGENTIC_BFCL_WHEEL")
    if not wheel:
        pytest.skip(f"set EDGE_AGENTIC_BFCL_WHEEL to the file of {WHEEL.requirement}")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    told = figures("--reference", tmp_path, "--data", tmp_path / "bfcl_eval" / "data")
    assert told["verdicts_agree"] == told["samples"] == OFFICIAL_SAMPLES


def test_the_answers_of_a_file_are_judged_by_both(lenient: Path, answers: Path) -> None:
    told = figures(answers, "--data", "gate-mini", "--reference", lenient)
    assert list(told) == [*OURS, *(f"reference_{name}" for name in FIGURES), *COMPARED]
    assert told["samples"] == told["verdicts_agree"] == 2
    assert told["reference_stood_in"] == 1


def test_verdicts_that_differ_are_named(lenient: Path, answers: Path) -> None:
    rows = [json.loads(line) for line in answers.read_text().splitlines()]
    rows[0]["tool_calls"] = []
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = bench(answers, "--data", "gate-mini", "--reference", lenient)
    assert done.returncode == 1
    assert "verdicts_agree        1\n" in done.stdout
    assert done.stderr == f"error: 1 verdicts differ: {rows[0]['sample_id']}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent.jsonl"], "absent.jsonl: no such file"),
        (["unknown.jsonl"], "unknown.jsonl:1: no sample 'simple_python_x' in gate-mini"),
        (["silent.jsonl"], "silent.jsonl: holds no answer"),
        (["--reference", "absent"], "absent: no such directory"),
        (["--reference", "empty"], "empty: bfcl-eval can't be imported from there (ModuleNotFound"),
        (["--reference", "newer"], "newer: bfcl-eval can't be imported from there (ImportError"),
        (["--reference", "broken"], "reference: broken/bin/python failed (out of order)"),
        (["--repeats", "0"], "--repeats must be at least 1, got 0"),
        (["--data", "bfcl-v4"], f"gate set 'bfcl-v4' is not here yet; run: {FETCH}"),
    ],
)
def test_an_error_is_one_clear_line(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("unknown.jsonl").write_text('{"sample_id": "simple_python_x", "text": "hi"}')
    Path("silent.jsonl").write_text('{"sample_id": "irrelevance_mini-1", "text": null}')
    Path("empty").mkdir()
    Path("newer/bfcl_eval/constants").mkdir(parents=True)
    Path("newer/bfcl_eval/constants/enums.py").write_text("from json import absent")
    Path("broken/bin").mkdir(parents=True)
    Path("broken/bin/python").write_text("#!/bin/sh\necho out of order >&2; exit 3")
    Path("broken/bin/python").chmod(0o755)
    done = bench("--data", "gate-mini", *words, EDGE_AGENTIC_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {message}") and done.stderr.count("\n") == 1
