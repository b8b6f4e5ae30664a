"""The suite's own cost per turn: CPU time, wall time and memory, with no model behind it.

The scripted engine answers each turn of a trace as recorded, with no delay. Two runs of the real
command line are compared: one over the whole trace, one over its first conversation. The
difference in CPU time (user + system, of the process and its children) over the difference in
turns is the marginal cost of a turn: everything that the
suite does around the model, the fsynced journal and the summary included.

    python benchmarks/harness_overhead.py TRACE.jsonl [--repeats 3] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from edge_agentic.core.errors import BadInputError
from edge_agentic.trace.loader import load_trace


@dataclass(frozen=True)
class Cost:
    """What one run of the command line took."""

    turns: int
    cpu_s: float
    wall_s: float
    peak_rss_mb: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=Path, help="a trace file, such as the official MLPerf one")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        short = _first_conversation(arguments.trace, Path(scratch) / "short.jsonl")
        pairs = [
            (_run(short, Path(scratch) / f"s{n}"), _run(arguments.trace, Path(scratch) / f"f{n}"))
            for n in range(arguments.repeats)
        ]
    result = {
        "turns": pairs[0][1].turns,
        "repeats": arguments.repeats,
        "cpu_ms_per_turn": statistics.median(
            [_per_turn(short, full, "cpu_s") for short, full in pairs]
        ),
        "wall_ms_per_turn": statistics.median(
            [_per_turn(short, full, "wall_s") for short, full in pairs]
        ),
        "short_run_cpu_s": statistics.median([short.cpu_s for short, _ in pairs]),
        "peak_rss_mb": statistics.median([full.peak_rss_mb for _, full in pairs]),
    }
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result.items():
        print(f"{name:<20} {value:.3f}" if isinstance(value, float) else f"{name:<20} {value}")


def _first_conversation(trace: Path, target: Path) -> Path:
    first = load_trace(trace).conversations[0]
    target.write_text("".join(json.dumps(row) + "\n" for row in first.rows))
    return target


def _run(trace: Path, out: Path) -> Cost:
    words = ["run", "--engine", "scripted", "--pack", str(trace), "--out", str(out)]
    program = "from edge_agentic.cli.main import main; main()"
    start_ns = time.monotonic_ns()
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    pid = os.posix_spawn(
        sys.executable, [sys.executable, "-c", program, *words], os.environ, file_actions=quiet
    )
    _, status, usage = os.wait4(pid, 0)
    wall_s = (time.monotonic_ns() - start_ns) / 1e9
    if status != 0:
        sys.exit(f"error: the run over {trace} exited with {os.waitstatus_to_exitcode(status)}")
    turns = json.loads((out / "summary.json").read_text())["replay"]["turns"]["issued"]
    return Cost(turns, usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss / 1024)


def _per_turn(short: Cost, full: Cost, field: str) -> float:
    """Marginal milliseconds per turn of a field in seconds."""
    difference_s: float = getattr(full, field) - getattr(short, field)
    return difference_s * 1e3 / (full.turns - short.turns)


if __name__ == "__main__":
    try:
        main()
    except BadInputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
