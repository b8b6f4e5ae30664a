"""A chat server on a real socket whose habits a test chooses."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from edge_agentic.engine.openai_endpoint import Endpoint

WORDS = [f"w{number}" for number in range(14)]


@dataclass
class Habits:
    """What the server does; by default all that a run needs."""

    models: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "m", "owned_by": "vllm"}])
    pages: dict[str, Any] = field(default_factory=dict)
    """What other paths answer."""
    key: str | None = None
    counts_tools: bool = True
    calls: bool = True
    streams_calls: bool = True
    ignores_eos: bool = True
    usage: bool = True
    cached: bool = True
    cached_share: float = 0.5
    repeats: bool = True
    reasons: bool = False
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The calls that answer a last message."""
    asked: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def model_server(habits: Habits) -> Iterator[Endpoint]:
    """The server, listening."""

    class Handler(_Handler):
        pass

    Handler.habits = habits
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield Endpoint("http", "127.0.0.1", server.server_address[1], "/v1")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    habits: Habits

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/v1/models" and self._is_allowed():
            self._send(200, {"object": "list", "data": self.habits.models})
        elif self.path in self.habits.pages:
            self._send(200, self.habits.pages[self.path])
        else:
            self._send(404 if self._is_allowed() else 401, {"error": {"message": "not here"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path in self.habits.pages:
            self._send(200, self.habits.pages[self.path])
            return
        self.habits.asked.append(body)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in self._events(body):
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _is_allowed(self) -> bool:
        key = self.habits.key
        return key is None or self.headers.get("Authorization") == f"Bearer {key}"

    def _events(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        habits = self.habits
        limit = body.get("max_tokens") or body["max_completion_tokens"]
        is_call = habits.calls and "write_note" in body["messages"][-1]["content"]
        finish = "stop"
        if habits.reasons:
            yield _delta({"reasoning_content": "hm"})
        if known := habits.answers.get(body["messages"][-1]["content"]):
            numbered = [{"index": index, **call} for index, call in enumerate(known)]
            deltas, output, finish = [{"tool_calls": numbered}], 14, "tool_calls"
        elif is_call:
            deltas, output, finish = self._call(), 14, "tool_calls"
        else:
            is_forced = bool(body.get("ignore_eos")) and habits.ignores_eos
            words = WORDS * 3 if is_forced else ["yes"]
            if not habits.repeats:
                words = [f"{word}{len(habits.asked)}" for word in words]
            words = words[:limit]
            finish = "length" if len(words) == limit else "stop"
            deltas, output = [{"content": word + " "} for word in words], len(words)
        for delta in deltas:
            yield _delta(delta)
        yield _delta({}, finish)
        if habits.usage:
            prompt = sum(len(str(message["content"])) // 4 for message in body["messages"])
            if habits.counts_tools and body.get("tools"):
                prompt += 50
            usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": output}
            if habits.cached:
                usage["prompt_tokens_details"] = {
                    "cached_tokens": int(prompt * habits.cached_share)
                }
            yield {"choices": [], "usage": usage}

    def _call(self) -> list[dict[str, Any]]:
        text = json.dumps({"text": " ".join(WORDS)})
        pieces = [text[:20], text[20:]] if self.habits.streams_calls else [text]
        head = {"index": 0, "id": "a", "function": {"name": "write_note", "arguments": ""}}
        rest = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
        return [{"tool_calls": [fragment]} for fragment in (head, *rest)]

    def _send(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _delta(fields: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}
