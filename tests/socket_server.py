"""A server on a real socket that plays exactly the bytes, pauses and breaks that a test wrote."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from edge_agentic.engine.openai_endpoint import Endpoint


class Act(Enum):
    """What a server can do besides sending bytes."""

    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


Step = bytes | float | Act
"""Bytes are sent, a number is a pause in seconds."""


class SocketServer:
    """Plays one script for each request, in order; a context manager."""

    def __init__(
        self, *scripts: Sequence[Step], host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> None:
        self.requests: list[tuple[str, bytes]] = []
        """Head and body of each request."""
        self.connections = 0
        self._scripts = list(scripts)
        self._stop = threading.Event()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._listener.settimeout(0.05)
        self._tls = tls
        scheme, port = "https" if tls else "http", self._listener.getsockname()[1]
        self.endpoint = Endpoint(scheme, host, port, "/v1")
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> SocketServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            self.connections += 1
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection.settimeout(5)
                try:
                    connection = self._tls.wrap_socket(connection, server_side=True)
                except OSError:
                    # The client trusts no certificate of this server's.
                    connection.close()
                    continue
            with connection:
                connection.settimeout(0.05)
                self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        while (request := self._read_request(connection)) is not None:
            self.requests.append(request)
            for step in self._scripts.pop(0):
                if not self._play(connection, step):
                    return

    def _play(self, connection: socket.socket, step: Step) -> bool:
        if isinstance(step, bytes):
            try:
                connection.settimeout(5)
                connection.sendall(step)
                connection.settimeout(0.05)
            except OSError:
                return False
        elif isinstance(step, float):
            self._stop.wait(step)
        elif step is Act.HANG:
            self._stop.wait()
        else:
            if step is Act.RESET:
                lingering = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, lingering)
            return False
        return True

    def _read_request(self, connection: socket.socket) -> tuple[str, bytes] | None:
        received = b""
        while True:
            head, found, body = received.partition(b"\r\n\r\n")
            if found and len(body) >= _content_length(head):
                return head.decode("latin-1"), body
            try:
                piece = connection.recv(1 << 20)
            except TimeoutError:
                if self._stop.is_set():
                    return None
                continue
            except OSError:
                return None
            if not piece:
                return None
            received += piece


def response(
    body: bytes, *, status: str = "200 OK", content_type: str = "application/json", more: str = ""
) -> bytes:
    """A whole response with a length."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + more.encode() + b"\r\n" + body


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
STREAM_END = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def chunked(data: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(value: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(fields: Any, finish: str | None = None, **more: Any) -> bytes:
    """The event of one delta."""
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}], **more})


def stream(events: Iterable[bytes], *, end: bytes = DONE) -> bytes:
    """A whole streamed response, one HTTP chunk for each event."""
    return STREAM_HEAD + b"".join(map(chunked, [*events, *([end] if end else [])])) + STREAM_END


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
