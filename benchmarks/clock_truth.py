"""Whether measured times are true: TTFT and TPOT beside a mock server's programmed delays.

The mock sends each token on an absolute schedule. Each setting is measured as the machine is,
and with another process that keeps a core busy. A median is true if it is off by no more than
1 ms and 2 % of what was programmed, whichever is more.

    python benchmarks/clock_truth.py MOCK.py [--repeats 7] [--tokens 40] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from mock_backend import mock_server

from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest
from edge_agentic.engine.openai import OpenAIEngine, ServedModel
from edge_agentic.engine.openai_endpoint import parse_base_url
from edge_agentic.measure.definitions import tpot_loadgen_s, ttft_s

FIRST_TOKEN_MS = 200.0
TOKEN_MS = (5.0, 20.0, 100.0)
MOST_OFF_MS = 1.0
MOST_OFF_SHARE = 0.02


def main() -> None:
    """Measure and print; the exit code is 1 if a median is not true."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mock", type=Path, help="the mock server's program")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for is_loaded in (False, True):
        for token_ms in TOKEN_MS:
            load = _busy_core() if is_loaded else nullcontext()
            mock = mock_server(arguments.mock, first_token_ms=FIRST_TOKEN_MS, token_ms=token_ms)
            with mock as url, load:
                rows.append(_measure(url, token_ms, is_loaded, arguments.repeats, arguments.tokens))
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            load = "busy" if row["is_loaded"] else "idle"
            print(
                f"{load} {row['token_ms']:5.0f} ms/token  TTFT {row['ttft_ms']:8.3f} ms of "
                f"{FIRST_TOKEN_MS:.0f}  TPOT {row['tpot_ms']:8.3f} ms  "
                f"{'true' if row['is_true'] else 'NOT TRUE'}"
            )
    sys.exit(not all(row["is_true"] for row in rows))


def _measure(
    url: str, token_ms: float, is_loaded: bool, repeats: int, tokens: int
) -> dict[str, float]:
    engine = OpenAIEngine(ServedModel(parse_base_url(url), "mock"))
    firsts, rates = [], []
    for _ in range(repeats):
        done = engine.generate(
            ChatRequest(
                request_id="clock",
                conversation_id="clock",
                messages=[{"role": "user", "content": "count"}],
                tools=(),
                max_output_tokens=tokens,
                deadline_s=60.0,
                force_length=True,
            )
        )
        if done.outcome is not Outcome.OK:
            sys.exit(f"error: {done.error}")
        first_s, rate_s = ttft_s(done.times), tpot_loadgen_s(done.times, done.tokens)
        assert first_s is not None
        assert rate_s is not None
        firsts.append(first_s * 1e3)
        rates.append(rate_s * 1e3)
    engine.close()
    ttft_ms, tpot_ms = statistics.median(firsts), statistics.median(rates)
    return {
        "token_ms": token_ms,
        "is_loaded": is_loaded,
        "ttft_ms": ttft_ms,
        "tpot_ms": tpot_ms,
        "is_true": _is_true(ttft_ms, FIRST_TOKEN_MS) and _is_true(tpot_ms, token_ms),
    }


def _is_true(measured_ms: float, programmed_ms: float) -> bool:
    off_ms = abs(measured_ms - programmed_ms)
    return off_ms <= max(MOST_OFF_MS, MOST_OFF_SHARE * programmed_ms)


@contextmanager
def _busy_core() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as burner:
        try:
            yield
        finally:
            burner.kill()


if __name__ == "__main__":
    main()
