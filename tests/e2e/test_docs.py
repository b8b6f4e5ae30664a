"""README and docs are true: every command in them runs, every JSON example has its shape."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY, DemoRun

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
README = REPOSITORY / "README.md"
DOCS = sorted((REPOSITORY / "docs").glob("*.md"))

MAKE = ("make demo", "make test")
"""Continuous integration runs these two; the second runs this test."""


@dataclass(frozen=True)
class Block:
    language: str
    body: str

    @property
    def commands(self) -> list[str]:
        return [line for line in self.body.splitlines() if line]


def blocks(path: Path) -> list[Block]:
    return [Block(*found) for found in FENCE.findall(path.read_text("utf-8"))]


def shown_after(command: str) -> str:
    """What README shows below the block that holds a command."""
    found = blocks(README)
    (at,) = [n for n, block in enumerate(found) if command in block.body and block.language == "sh"]
    return found[at + 1].body


def without_figures(output: str) -> list[list[str]]:
    """Each line with its numbers, and what follows from them, left out."""
    return [
        re.sub(r"[-\d.]+|(NOT TRUE|true)$", "", line).split()
        for line in output.strip().splitlines()
    ]


def shape(value: Any) -> Any:
    """Keys and types of a JSON value, without its figures."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value).__name__


def shell(command: str, start: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line with `edge-agentic` and `python` of this environment first on the path."""
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=600, cwd=start, env=env
    )


def test_every_console_command_of_the_readme_works(demo_run: DemoRun) -> None:
    outputs: list[str] = []
    ran: list[str] = []
    for block in blocks(README):
        if block.language == "json":
            assert shape(json.loads(outputs[-1])) == shape(json.loads(block.body)), ran[-1]
        if block.language != "console":
            continue
        for command in block.commands:
            if command in MAKE:
                continue
            if command == f"edge-agentic {' '.join(demo_run.command)}":
                done = demo_run.done
            else:
                done = shell(command, demo_run.start)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            ran.append(command)
            outputs.append(done.stdout)
    assert len(ran) >= 12


def test_make_runs_what_the_readme_says() -> None:
    (first,) = [block for block in blocks(README) if "make demo" in block.body]
    assert first.commands == list(MAKE)
    for command in MAKE:
        dry = subprocess.run(
            [*command.split(), "--dry-run"], capture_output=True, text=True, cwd=REPOSITORY
        )
        assert dry.returncode == 0, dry.stderr
    ci = (REPOSITORY / ".ci" / "run").read_text()
    assert all(re.search(rf"^{command}$", ci, re.MULTILINE) for command in MAKE)


def test_the_readme_shows_the_table_that_the_demo_prints(demo_run: DemoRun) -> None:
    (shown,) = [
        block.body
        for block in blocks(README)
        if block.language == "text" and "Function-calling gate" in block.body
    ]
    printed = {label(line) for line in demo_run.done.stdout.splitlines()}
    for line in shown.splitlines():
        assert label(line) in printed, line


def label(line: str) -> str:
    """The start of a line, up to its first figure or its second column."""
    return re.split(r"\d|\s{2,}(?=\S)|runs/.*", line.strip())[0].strip()


def test_a_big_model_is_named_as_the_readme_names_it(tmp_path: Path) -> None:
    shown = [block for block in blocks(README) if "Qwen3.6-27B-Q4_K_M.gguf" in block.body]
    assert len(shown) == 2
    for block in shown:
        done = shell(block.body, tmp_path)
        assert done.returncode == 2
        assert "Qwen3.6-27B-Q4_K_M.gguf: no such model file" in done.stderr


def test_the_overhead_benchmark_prints_what_the_readme_shows(
    official_trace: Path, tmp_path: Path
) -> None:
    (tmp_path / official_trace.name).symlink_to(official_trace)
    (tmp_path / "benchmarks").symlink_to(REPOSITORY / "benchmarks")
    (command,) = [block.body for block in blocks(README) if "harness_overhead" in block.body]
    shown = shown_after("harness_overhead")
    done = shell(f"{command.strip()} --repeats 1", tmp_path)
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == [line.split()[0] for line in shown.splitlines()]


@pytest.mark.parametrize("script", ["client_overhead", "clock_truth"])
def test_the_server_benchmarks_print_what_the_readme_shows(
    script: str, official_trace: Path, tmp_path: Path
) -> None:
    with official_trace.open() as whole:
        conversations = groupby(map(json.loads, whole), key=lambda row: row["conversation_id"])
        rows = [row for _, turns in islice(conversations, 2) for row in turns]
    trace = tmp_path / "agentic_coding_2.5h.jsonl"
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "MOCK.py").symlink_to(official_trace.parent.parent / "tools" / "mock_server.py")
    (tmp_path / "benchmarks").symlink_to(REPOSITORY / "benchmarks")
    (command,) = [block.body for block in blocks(README) if f"{script}.py" in block.body]
    done = shell(f"{command.strip()} --repeats 1", tmp_path)
    # On a busy machine a clock's error may be past its limit, which is exit code 1.
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    assert without_figures(done.stdout) == without_figures(shown_after(script))


def test_the_scoring_benchmark_names_the_reference_that_the_readme_leaves_open(
    official_bfcl: Path, tmp_path: Path
) -> None:
    (tmp_path / "benchmarks").symlink_to(REPOSITORY / "benchmarks")
    (command,) = [block.body for block in blocks(README) if "gate_scoring" in block.body]
    done = shell(command, tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: VENV_WITH_BFCL_EVAL: no such directory\n"


@pytest.mark.parametrize("script", ["gate_reference.py", "harness_overhead.py"])
def test_a_benchmark_names_a_missing_file_in_one_line(script: str, tmp_path: Path) -> None:
    done = shell(f"python {REPOSITORY / 'benchmarks' / script} absent", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: absent: no such") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_other_docs_show_commands_only_where_a_test_runs_them(path: Path) -> None:
    assert not [block for block in blocks(path) if block.language in ("console", "sh", "json")]


@pytest.mark.parametrize("path", [README, *DOCS], ids=lambda path: path.name)
def test_links_lead_to_files(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target
