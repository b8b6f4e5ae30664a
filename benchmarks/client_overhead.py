"""What the suite costs as a client: CPU, added latency, start-up and memory, beside a mock server.

A mock server answers each turn of a trace as recorded, at chosen delays. Two runs of the real
command line are compared: one over the whole trace, one over its first conversation. The
difference in CPU time (user + system, of the process and its children) over the difference in
turns is the marginal cost of a turn. Added latency is the wall time of a turn beyond the delays
that the mock was told to keep. Start-up is the wall time from the start of the process to the first
request of the gate: imports, the trace, the probes. Memory is the peak of the largest process.

    python benchmarks/client_overhead.py MOCK.py TRACE.jsonl [--repeats 3] [--json]
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

from mock_backend import mock_server, write_answers

from edge_agentic.core.errors import BadInputError
from edge_agentic.trace.loader import load_trace

DELAYS_MS = ((0.0, 0.0), (0.0, 1.0))


@dataclass(frozen=True)
class Cost:
    """What one run of the command line took."""

    turns: int
    tokens: int
    cpu_s: float
    replay_s: float
    to_first_request_s: float
    peak_rss_mb: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mock", type=Path, help="the mock server's program")
    parser.add_argument("trace", type=Path, help="a trace file, such as the official MLPerf one")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        write_answers(scratch / "answers.jsonl")
        short = _first_conversation(arguments.trace, scratch / "short.jsonl")
        for first_token_ms, token_ms in DELAYS_MS:
            options = ["--trace", str(arguments.trace), "--answers", str(scratch / "answers.jsonl")]
            with mock_server(
                arguments.mock, first_token_ms=first_token_ms, token_ms=token_ms, options=options
            ) as url:
                pairs = [
                    (
                        _run(short, url, scratch / f"s{token_ms}-{n}"),
                        _run(arguments.trace, url, scratch / f"f{token_ms}-{n}"),
                    )
                    for n in range(arguments.repeats)
                ]
            results.append(_result(pairs, first_token_ms, token_ms))
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    for result in results:
        for name, value in result.items():
            print(f"{name:<28} {value:.3f}" if isinstance(value, float) else f"{name:<28} {value}")
        print()


def _result(
    pairs: list[tuple[Cost, Cost]], first_token_ms: float, token_ms: float
) -> dict[str, float]:
    full = [pair[1] for pair in pairs]
    programmed_s = [
        (first_token_ms * cost.turns + token_ms * (cost.tokens - cost.turns)) / 1e3 for cost in full
    ]
    return {
        "token_ms": token_ms,
        "turns": full[0].turns,
        "repeats": len(pairs),
        "cpu_ms_per_turn": statistics.median(
            (long.cpu_s - short.cpu_s) * 1e3 / (long.turns - short.turns) for short, long in pairs
        ),
        "added_latency_ms_per_turn": statistics.median(
            (cost.replay_s - programmed) * 1e3 / cost.turns
            for cost, programmed in zip(full, programmed_s, strict=True)
        ),
        "start_up_s": statistics.median(cost.to_first_request_s for cost in full),
        "peak_rss_mb": statistics.median(cost.peak_rss_mb for cost in full),
    }


def _first_conversation(trace: Path, target: Path) -> Path:
    first = load_trace(trace).conversations[0]
    target.write_text("".join(json.dumps(row) + "\n" for row in first.rows))
    return target


def _run(trace: Path, url: str, out: Path) -> Cost:
    words = ["run", "--engine", "openai", "--base-url", url, "--pack", str(trace)]
    program = "from edge_agentic.cli.main import main; main()"
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    start_ns = time.monotonic_ns()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-c", program, *words, "--out", str(out)],
        # Installed packages have their bytecode beside them; the first short run writes it.
        {**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
        file_actions=quiet,
    )
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"error: the run over {trace} exited with {os.waitstatus_to_exitcode(status)}")
    replay = json.loads((out / "summary.json").read_text())["replay"]
    events = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    started = next(event["t_ns"] for event in events if event["event"] == "run_started")
    return Cost(
        turns=replay["turns"]["issued"],
        tokens=replay["output_tokens"],
        cpu_s=usage.ru_utime + usage.ru_stime,
        replay_s=replay["duration_s"],
        to_first_request_s=(started - start_ns) / 1e9,
        peak_rss_mb=usage.ru_maxrss / 1024,
    )


if __name__ == "__main__":
    try:
        main()
    except BadInputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
