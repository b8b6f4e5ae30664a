"""Whether measured times are true: TTFT and TPOT beside a mock server's programmed delays.

The mock sends each token on an absolute schedule, as exactly as its timers allow. So a bare socket
that only stamps its first read is measured in turns with the engine: what it sees too is the mock's
own lateness. Each setting is measured as the machine is, and with another process that keeps a core
busy. A median TTFT is true if it is off by no more than 1 ms from the bare socket's, and by no more
than 1 ms or 2 % (whichever is more) from what was programmed; a median TPOT if it is off from what
was programmed by no more than 1 ms and no more than 2 %.

    python benchmarks/clock_truth.py MOCK.py [--repeats 7] [--tokens 40] [--json]
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import time
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
                f"{FIRST_TOKEN_MS:.0f} (bare socket {row['bare_ttft_ms']:.3f})  "
                f"TPOT {row['tpot_ms']:8.3f} ms  "
                f"{'true' if row['is_true'] else 'NOT TRUE'}"
            )
    sys.exit(not all(row["is_true"] for row in rows))


def _measure(
    url: str, token_ms: float, is_loaded: bool, repeats: int, tokens: int
) -> dict[str, float]:
    engine = OpenAIEngine(ServedModel(parse_base_url(url), "mock"))
    firsts, rates, bare = [], [], []
    for _ in range(repeats):
        bare.append(_bare_ttft_ms(url))
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
    bare_ms = statistics.median(bare)
    return {
        "token_ms": token_ms,
        "is_loaded": is_loaded,
        "ttft_ms": ttft_ms,
        "bare_ttft_ms": bare_ms,
        "tpot_ms": tpot_ms,
        "is_true": abs(ttft_ms - bare_ms) <= MOST_OFF_MS
        and abs(ttft_ms - FIRST_TOKEN_MS) <= max(MOST_OFF_MS, MOST_OFF_SHARE * FIRST_TOKEN_MS)
        and abs(tpot_ms - token_ms) <= min(MOST_OFF_MS, MOST_OFF_SHARE * token_ms),
    }


def _bare_ttft_ms(url: str) -> float:
    """From before the request is written until the first token's bytes, with nothing around it."""
    at = parse_base_url(url)
    body = json.dumps(
        {
            "model": "mock",
            "messages": [{"role": "user", "content": "count"}],
            "max_tokens": 2,
            "ignore_eos": True,
            "stream": True,
        }
    ).encode()
    head = (
        f"POST {at.api_path}/chat/completions HTTP/1.1\r\nHost: {at.authority}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((at.host, at.port), 60.0) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = b""
        start_ns = time.monotonic_ns()
        connection.sendall(head.encode() + body)
        while b'"content":"' not in data.replace(b" ", b""):
            piece = connection.recv(65536)
            now_ns = time.monotonic_ns()
            if not piece:
                sys.exit("error: the mock closed the connection before its first token")
            data += piece
    return (now_ns - start_ns) / 1e6


@contextmanager
def _busy_core() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as burner:
        try:
            yield
        finally:
            burner.kill()


if __name__ == "__main__":
    main()
