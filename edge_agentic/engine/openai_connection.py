"""One kept-alive HTTP/1.1 connection that stamps every read before it looks at it.

Plain sockets, because the stamp and the client's own cost are what is measured: a general HTTP
client parses the framing of each piece before it hands it on. No proxy is used, no redirect
followed, nothing sent twice.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from edge_agentic.core.clock import NS_PER_S, Clock, monotonic_ns
from edge_agentic.engine.openai_body import (
    Body,
    Head,
    NotHttpError,
    body_bytes,
    body_marks,
    open_body,
    read_head,
)
from edge_agentic.engine.openai_endpoint import ApiKey, Endpoint
from edge_agentic.engine.openai_faults import Failure, Fault

MOST_BYTES: Final = 32 << 20
"""Of one response. The longest answers, event by event, take a few MB."""
MOST_PIECES: Final = 1 << 18
"""Chunks of one response: more than any model's window has tokens."""

_CONNECT_S: Final = 10.0
_MOST_IDLE_NS: Final = NS_PER_S
"""A connection that rested longer is opened anew: a server may be about to close it, and a
request that meets the closing would fail without a fault of the server's."""
_CLOSES_WITHIN_S: Final = 0.05
"""llama.cpp's server closes a connection a moment after a streamed answer, though it announces to
keep it. The next request would meet the closing, so a server is watched that long once."""
_GRACE_NS: Final = NS_PER_S
"""How long the end of a response may lag behind its `[DONE]`."""
_READ_BYTES: Final = 256 * 1024


@dataclass(frozen=True)
class Exchange:
    """One request and what came back. `failure` is None if the whole response came."""

    issued_ns: int
    """Just before the first byte of the request was written; connecting comes earlier."""
    head: Head | None = None
    body: bytes = b""
    marks: Sequence[tuple[int, int]] = ()
    """How many bytes of the body had come, and when, ns after `issued_ns`."""
    failure: Failure | None = None
    """Never names the server's address: it goes into the journal."""


@dataclass
class _Received:
    """What has come so far; filled in the measured loop, taken apart after it."""

    data: bytearray = field(default_factory=bytearray)
    reads: list[tuple[int, int]] = field(default_factory=list)
    head: Head | None = None
    body: Body | None = None


class OpenAIConnection:
    """Sends requests to one server, one at a time. Not shared between threads."""

    def __init__(
        self, endpoint: Endpoint, key: ApiKey | None = None, clock: Clock = monotonic_ns
    ) -> None:
        """Prepare a connection; it opens with the first request."""
        self._endpoint, self._clock = endpoint, clock
        self._socket: socket.socket | None = None
        self._tls: ssl.SSLContext | None = None
        self._used_ns = 0
        self._keeps: bool | None = None
        """Whether the server keeps a connection after a streamed answer; None if not seen yet."""
        secret = f"Authorization: Bearer {key.value}\r\n" if key else ""
        self._common_headers = (
            f"Host: {endpoint.authority}\r\n"
            "User-Agent: edge-agentic\r\n"
            "Accept: text/event-stream, application/json\r\n"
            "Accept-Encoding: identity\r\n"
            f"{secret}"
        )

    def exchange(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        deadline_s: float | None,
        last_event: bytes | None = None,
    ) -> Exchange:
        """Send one request and read its response to the end; every failure is in the result.

        Args:
            method: GET or POST.
            path: path on the server, from its root.
            body: JSON.
            deadline_s: from the issue to the last byte; None waits for ever.
            last_event: bytes after which only the end of the response may follow; the
                response counts as whole with them.
        """
        request = self._request(method, path, body)
        connection = self._make_ready(deadline_s)
        if isinstance(connection, Failure):
            return Exchange(self._clock(), failure=connection)
        try:
            return self._exchange(connection, request, deadline_s, last_event)
        except BaseException:
            # What remains of the response would be taken for the answer to the next request.
            self.close()
            raise

    def get(self, path: str, *, deadline_s: float) -> Exchange:
        """A GET of a path from the server's root."""
        return self.exchange("GET", path, deadline_s=deadline_s)

    def close(self) -> None:
        """Close the connection. Safe to call twice, and from a thread that does not wait on it."""
        connection, self._socket = self._socket, None
        if connection is not None:
            # Closing alone would not wake a thread that reads.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _request(self, method: str, path: str, body: bytes | None) -> bytes:
        head = f"{method} {path} HTTP/1.1\r\n{self._common_headers}"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return head.encode("ascii") + b"\r\n" + (body or b"")

    def _make_ready(self, deadline_s: float | None) -> socket.socket | Failure:
        """An open connection with nothing unread in it."""
        connection = self._socket
        if connection is not None:
            rested_ns = self._clock() - self._used_ns
            if rested_ns <= _MOST_IDLE_NS and not select.select([connection], [], [], 0)[0]:
                return connection
            self.close()
        timeout_s = min(_CONNECT_S, deadline_s or _CONNECT_S)
        try:
            connection = self._connect(timeout_s)
        except TimeoutError:
            return Failure(Fault.REFUSED, f"no connection within {timeout_s:g} s")
        except ssl.SSLCertVerificationError as error:
            return Failure(
                Fault.REFUSED,
                f"the server's certificate is not trusted ({_reason(error)}); "
                "the environment variable SSL_CERT_FILE can name another authority's",
            )
        except ssl.SSLError as error:
            return Failure(Fault.REFUSED, f"TLS failed ({error.reason or error})")
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            return Failure(Fault.REFUSED, f"{reason}; is the server running?")
        self._socket = connection
        return connection

    def _connect(self, timeout_s: float) -> socket.socket:
        address = (self._endpoint.host, self._endpoint.port)
        opened = socket.create_connection(address, timeout_s)
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self._endpoint.is_tls:
                return opened
            self._tls = self._tls or ssl.create_default_context()
            return self._tls.wrap_socket(opened, server_hostname=self._endpoint.host)
        except BaseException:
            opened.close()
            raise

    def _exchange(
        self,
        connection: socket.socket,
        request: bytes,
        deadline_s: float | None,
        last_event: bytes | None,
    ) -> Exchange:
        received = _Received()
        issued_ns = self._clock()
        deadline_ns = None if deadline_s is None else issued_ns + int(deadline_s * NS_PER_S)
        failure = self._send(connection, request, deadline_ns)
        if failure is None or failure.fault is Fault.RESET:
            # A server may refuse a request before it has read it all.
            failure = self._receive(connection, received, deadline_ns, last_event)
        exchange = self._settle(issued_ns, received, failure)
        if last_event is not None:
            self._keep_or_close(exchange)
        return exchange

    def _send(
        self, connection: socket.socket, request: bytes, deadline_ns: int | None
    ) -> Failure | None:
        try:
            connection.settimeout(self._left_s(deadline_ns))
            connection.sendall(request)
        except TimeoutError:
            return Failure(Fault.NO_ANSWER, "the server did not take the request in time")
        except OSError as error:
            return Failure(Fault.RESET, f"while the request was sent: {error.strerror or error}")
        return None

    def _receive(
        self,
        connection: socket.socket,
        received: _Received,
        deadline_ns: int | None,
        last_event: bytes | None,
    ) -> Failure | None:
        """The measured loop: read, stamp, and only then look for the end."""
        clock, data, reads = self._clock, received.data, received.reads
        is_done = False
        try:
            while True:
                connection.settimeout(self._left_s(deadline_ns))
                piece = connection.recv(_READ_BYTES)
                now_ns = clock()
                if not piece:
                    return self._closed(received, is_done)
                if deadline_ns is not None and now_ns >= deadline_ns:
                    raise TimeoutError
                data += piece
                reads.append((len(data), now_ns))
                if self._is_whole(received):
                    return None
                if len(data) > MOST_BYTES:
                    return Failure(Fault.TOO_LARGE, f"more than {MOST_BYTES >> 20} MiB came")
                if received.body is not None and len(received.body.pieces) > MOST_PIECES:
                    return Failure(Fault.TOO_LARGE, f"more than {MOST_PIECES} chunks came")
                if last_event is not None and not is_done:
                    from_where = max(0, len(data) - len(piece) - len(last_event))
                    if data.find(last_event, from_where) >= 0:
                        is_done = True
                        deadline_ns = now_ns + _GRACE_NS
        except TimeoutError:
            return None if is_done else _late(reads)
        except NotHttpError as error:
            return Failure(Fault.NOT_HTTP, str(error))
        except OSError as error:
            return None if is_done else Failure(Fault.RESET, str(error.strerror or error))

    def _is_whole(self, received: _Received) -> bool:
        if received.body is None:
            received.head = read_head(received.data, 0)
            if received.head is None:
                return False
            received.body = open_body(received.head)
        return received.body.is_whole(received.data)

    def _closed(self, received: _Received, is_done: bool) -> Failure | None:
        if received.body is None:
            return Failure(Fault.RESET, "the server closed the connection without an answer")
        if received.body.settle(received.data, closed=True) or is_done:
            return None
        return Failure(Fault.CUT_SHORT, "the server closed the connection within its answer")

    def _settle(self, issued_ns: int, received: _Received, failure: Failure | None) -> Exchange:
        head, body = received.head, received.body
        is_clean = (
            failure is None
            and head is not None
            and head.keeps_alive
            and body is not None
            and body.end == len(received.data)
        )
        self._used_ns = self._clock()
        if not is_clean:
            self.close()
        if head is None or body is None:
            return Exchange(issued_ns, head, failure=failure)
        if body.end is None:
            with contextlib.suppress(NotHttpError):
                body.settle(received.data, closed=False)
        pieces = body.pieces
        marks = [(count, at_ns - issued_ns) for count, at_ns in body_marks(received.reads, pieces)]
        return Exchange(issued_ns, head, body_bytes(received.data, pieces), marks, failure)

    def _keep_or_close(self, exchange: Exchange) -> None:
        """After a streamed answer: close what the server is about to close itself."""
        if self._socket is None:
            return
        # A refusal is not streamed, and tells nothing of what happens after an answer.
        if self._keeps is None and exchange.head is not None and exchange.head.status == 200:
            self._keeps = not select.select([self._socket], [], [], _CLOSES_WITHIN_S)[0]
        if self._keeps is False:
            self.close()

    def _left_s(self, deadline_ns: int | None) -> float | None:
        if deadline_ns is None:
            return None
        left_ns = deadline_ns - self._clock()
        if left_ns <= 0:
            raise TimeoutError
        return left_ns / NS_PER_S


def _reason(error: ssl.SSLCertVerificationError) -> str:
    """Why a certificate is not trusted, without the address that may follow a comma."""
    return error.verify_message.partition(",")[0]


def _late(reads: Sequence[tuple[int, int]]) -> Failure:
    if reads:
        return Failure(Fault.STALLED, "the answer did not end before the turn's deadline")
    return Failure(Fault.NO_ANSWER, "no byte of an answer came before the turn's deadline")
