"""Runs a mock server that answers a trace and the gate as recorded, for measuring the client.

The mock is a program of the user's: it takes `--trace`, `--answers`, `--port`, `--first-token-ms`
and `--token-ms`, and prints one JSON line as soon as it listens. An answers file has one line for
each request, found by the SHA-1 of its messages and tools in canonical JSON.
"""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bfcl_gate.request import messages, tools
from bfcl_gate.scripted import right_tool_calls
from bfcl_gate.selection import select
from edge_agentic.engine.openai_probes import CALL_QUESTION, NOTE_TOOL
from edge_agentic.run.gate_sets import GATE_MINI, open_gate_set

_PROBE_CALL = {
    "id": "probe_1",
    "type": "function",
    "function": {"name": "write_note", "arguments": '{"text": "one two three"}'},
}


def write_answers(path: Path) -> None:
    """Write right answers to the bundled gate set, and a call for the probe of tools."""
    rows = [_row([{"role": "user", "content": CALL_QUESTION}], [NOTE_TOOL], [_PROBE_CALL])]
    for case in select(open_gate_set(GATE_MINI), None).cases:
        if calls := list(right_tool_calls(case)):
            rows.append(_row(messages(case), tools(case), calls))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@contextmanager
def mock_server(
    program: Path, *, first_token_ms: float, token_ms: float, options: Sequence[str] = ()
) -> Iterator[str]:
    """A mock that listens on a loopback port; gives its base URL."""
    port = _free_port()
    words = [sys.executable, str(program), "--port", str(port)]
    words += ["--first-token-ms", str(first_token_ms), "--token-ms", str(token_ms), *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            if not server.stdout.readline():
                sys.exit(f"error: {program} ended before it listened")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            # It prints once more; a closed pipe would make it complain.
            server.stdout.read()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _row(asked: Sequence[Any], offered: Sequence[Any], calls: list[Any]) -> dict[str, Any]:
    plain = [{k: v for k, v in message.items() if v is not None} for message in asked]
    canonical = json.dumps(
        [plain, list(offered)], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    key = hashlib.sha1(canonical.encode("utf-8", "surrogatepass")).hexdigest()
    return {"key": key, "tool_calls": calls, "content": None}
