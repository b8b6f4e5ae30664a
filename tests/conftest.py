"""Fixtures that several test modules share."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from edge_agentic.engine.model_store import fetch_model, model_path
from edge_agentic.run.official_data import is_fetched, official_path

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The reference data that the project measures itself against; skips where it is absent."""
    root = Path(os.environ.get("EDGE_AGENTIC_SHARED", REPOSITORY.parent / "shared"))
    if not (root / "data").is_dir():
        pytest.skip(f"no reference data: set EDGE_AGENTIC_SHARED (looked in {root})")
    return root / "data"


@pytest.fixture(scope="session")
def official_trace(shared_data: Path) -> Path:
    """The official MLPerf performance set."""
    return shared_data / "agentic_coding_2.5h.jsonl"


@pytest.fixture(scope="session")
def official_bfcl() -> Path:
    """The official gate data, if it was fetched; skips where it is not."""
    if not is_fetched():
        pytest.skip("no official gate data: run edge-agentic data fetch bfcl-v4")
    return official_path()


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """A real Q4 model, fetched once into the user's cache."""
    path = model_path("smollm2-135m")
    return path if path.is_file() else fetch_model("smollm2-135m")


@pytest.fixture(scope="session")
def cli() -> list[str]:
    """The words that start the command line of this checkout."""
    return [sys.executable, "-c", "from edge_agentic.cli.main import main; main()"]


@dataclass(frozen=True)
class DemoRun:
    """A finished demo: where it was started, its run directory, and what it printed."""

    command = ("demo", "--out", "runs/first")
    start: Path
    done: subprocess.CompletedProcess[str]

    @property
    def directory(self) -> Path:
        return self.start / "runs" / "first"


@pytest.fixture(scope="session")
def demo_run(cli: list[str], smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """What `make demo` runs, once for all tests: a real model, a real sandbox."""
    start = tmp_path_factory.mktemp("demo")
    words = [*cli, *DemoRun.command]
    return DemoRun(
        start, subprocess.run(words, capture_output=True, text=True, timeout=1200, cwd=start)
    )
