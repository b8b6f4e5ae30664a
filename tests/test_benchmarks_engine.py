"""The engine's benchmarks print what they promise; ratios of counts are held, times are not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


def run(script: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(BENCHMARKS / script), *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def test_hardly_more_is_computed_than_is_new_over_20_turns() -> None:
    figures = run("prefix_reuse.py")
    most = {"attention": 1.02, "sliding_window": 1.05, "recurrent": 1.05, "hybrid": 1.05}
    for kind, limit in most.items():
        assert 1.0 <= figures[kind]["computed_over_ideal"] <= limit, kind
        assert (figures[kind]["snapshot"] is None) is (kind == "attention")
    # What the suite is for: llama-cpp-python's own API starts anew at each turn here.
    assert figures["hybrid"]["create_completion_over_ours"] > 5
    assert figures["qwen3.6-27b"]["snapshot_bytes"] == 156_893_184


def test_the_decode_rate_stands_beside_that_of_a_loop_in_c(smollm2: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    figures = run(
        "decode_rate.py", str(smollm2), "--rounds", "2", "--prompt", "64", "--output", "8"
    )
    for phase in ("prefill", "decode"):
        low, high = figures[phase]["ratio_range"]
        assert 0 < low <= figures[phase]["ratio"] <= high
    assert figures["output_tokens"] == 8
