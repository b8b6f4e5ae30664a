"""Takes an HTTP/1.1 response apart: its head, and where its body ends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: [^\r\n]*)?\r?\n")
_MOST_HEAD_BYTES: Final = 64 * 1024
_MOST_SIZE_LINE_BYTES: Final = 1024


class NotHttpError(Exception):
    """What came is no HTTP/1.1 response; the message says why."""


@dataclass(frozen=True)
class Head:
    """Status and headers; `end` is where the body starts in the bytes received."""

    status: int
    headers: Mapping[str, str]
    end: int
    keeps_alive: bool


class Body(Protocol):
    """Finds the end of a body while its bytes come in."""

    pieces: list[tuple[int, int]]
    """The stretches of the received bytes that belong to the body, in order."""
    end: int | None
    """Where the response ends in the received bytes, once it is whole."""

    def is_whole(self, received: bytearray) -> bool:
        """Whether the body has ended within the bytes received so far.

        Raises:
            NotHttpError: the framing is broken.
        """

    def settle(self, received: bytearray, *, closed: bool) -> bool:
        """Take what has come of a body, as no more will come; return whether it is whole.

        Args:
            received: all bytes of the response.
            closed: the server closed the connection in good order.
        """


def read_head(received: bytearray, start: int) -> Head | None:
    """The head of the final response; None while it is incomplete.

    Interim responses (100, 103) are passed over.

    Raises:
        NotHttpError: not HTTP/1.x, or an endless head.
    """
    while True:
        end = received.find(b"\r\n\r\n", start)
        if end < 0:
            if len(received) - start > _MOST_HEAD_BYTES:
                raise NotHttpError("the response's head does not end")
            if len(received) - start >= 9 and not received.startswith(b"HTTP/1.", start):
                raise NotHttpError(f"not HTTP/1.1: {bytes(received[start : start + 40])!r}")
            return None
        line = _STATUS_LINE.match(received, start)
        if line is None:
            raise NotHttpError(f"not HTTP/1.1: {bytes(received[start : start + 40])!r}")
        status = int(line[2])
        if status >= 200:
            break
        start = end + 4
    headers: dict[str, str] = {}
    for raw in bytes(received[line.end() : end]).split(b"\r\n"):
        name, _, value = raw.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    connection = headers.get("connection", "").lower()
    keeps_alive = "close" not in connection if line[1] == b"1" else "keep-alive" in connection
    return Head(status, headers, end + 4, keeps_alive)


def open_body(head: Head) -> Body:
    """What finds the end of the body that this head announces.

    Raises:
        NotHttpError: a length that is none, or a compressed body, which nobody asked for.
    """
    if head.headers.get("content-encoding", "identity").lower() != "identity":
        raise NotHttpError(f"the body is compressed ({head.headers['content-encoding'][:40]})")
    if "chunked" in head.headers.get("transfer-encoding", "").lower():
        return _ChunkedBody(head.end)
    length = head.headers.get("content-length")
    if head.status in (204, 304):
        length = "0"
    if length is None:
        return _OpenBody(head.end)
    if not (length.isascii() and length.isdigit() and len(length) < 16):
        raise NotHttpError(f"a content-length of {length[:40]!r}")
    return _SizedBody(head.end, int(length))


def body_bytes(received: bytearray, pieces: Sequence[tuple[int, int]]) -> bytes:
    """The body without its framing."""
    return b"".join([received[start:end] for start, end in pieces])


def body_marks(
    reads: Sequence[tuple[int, int]], pieces: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """How much of the body had arrived by each read: `(body bytes, time of the read)`.

    Args:
        reads: after each read, the count of all received bytes and the time.
        pieces: the stretches of the received bytes that belong to the body.
    """
    marks: list[tuple[int, int]] = []
    done, index = 0, 0
    for received, at_ns in reads:
        while index < len(pieces) and pieces[index][1] <= received:
            done += pieces[index][1] - pieces[index][0]
            index += 1
        begun = max(0, received - pieces[index][0]) if index < len(pieces) else 0
        marks.append((done + begun, at_ns))
    return marks


class _ChunkedBody:
    """A body in chunks; ends with an empty one."""

    def __init__(self, start: int) -> None:
        self.pieces: list[tuple[int, int]] = []
        self.end: int | None = None
        self._position = start

    def is_whole(self, received: bytearray) -> bool:
        while self.end is None:
            limit = self._position + _MOST_SIZE_LINE_BYTES
            line_end = received.find(b"\r\n", self._position, limit)
            if line_end < 0:
                if len(received) >= limit:
                    raise NotHttpError("a chunk without a size")
                return False
            line = received[self._position : line_end]
            size = _chunk_size(line)
            if size is None:
                raise NotHttpError(f"a chunk of size {bytes(line[:40])!r}")
            if size == 0:
                return self._pass_trailers(received, line_end)
            start, end = line_end + 2, line_end + 2 + size
            if len(received) < end + 2:
                return False
            if received[end : end + 2] != b"\r\n":
                raise NotHttpError("a chunk longer than its size")
            self.pieces.append((start, end))
            self._position = end + 2
        return True

    def settle(self, received: bytearray, *, closed: bool) -> bool:
        line_end = received.find(b"\r\n", self._position, self._position + _MOST_SIZE_LINE_BYTES)
        if self.end is None and line_end >= 0:
            size = _chunk_size(received[self._position : line_end]) or 0
            end = min(len(received), line_end + 2 + size)
            if end > line_end + 2:
                self.pieces.append((line_end + 2, end))
            self._position = len(received)
        return self.end is not None

    def _pass_trailers(self, received: bytearray, line_end: int) -> bool:
        end = received.find(b"\r\n\r\n", line_end)
        if end < 0:
            return False
        self.end = end + 4
        return True


class _SizedBody:
    """A body of an announced length."""

    def __init__(self, start: int, length: int) -> None:
        self.pieces = [(start, start + length)]
        self.end: int | None = None

    def is_whole(self, received: bytearray) -> bool:
        if len(received) >= self.pieces[0][1]:
            self.end = self.pieces[0][1]
        return self.end is not None

    def settle(self, received: bytearray, *, closed: bool) -> bool:
        start, end = self.pieces[0]
        self.pieces = [(start, min(end, len(received)))]
        return self.end is not None


class _OpenBody:
    """A body that lasts until the server closes the connection."""

    def __init__(self, start: int) -> None:
        self.pieces = [(start, start)]
        self.end: int | None = None

    def is_whole(self, received: bytearray) -> bool:
        return False

    def settle(self, received: bytearray, *, closed: bool) -> bool:
        self.pieces = [(self.pieces[0][0], len(received))]
        return closed


def _chunk_size(line: bytearray) -> int | None:
    """The size that a chunk's first line gives; None if it gives none."""
    if b";" in line:
        line = line.partition(b";")[0]
    try:
        # Signs and underscores, which Python would take, are not alphanumeric.
        return int(line, 16) if len(line) < 16 and line.isalnum() else None
    except ValueError:
        return None
