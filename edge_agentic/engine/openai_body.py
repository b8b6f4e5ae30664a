"""Takes an HTTP/1.1 response apart: its head, and where its body ends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: [^\r\n]*)?\r?\n")
_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
_MOST_HEAD_BYTES: Final = 64 * 1024
_MOST_SIZE_LINE_BYTES: Final = 1024
_MOST_SHOWN: Final = 1024
"""More than a message holds: a key in it must be found before the message is cut."""


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
    limit = start + _MOST_HEAD_BYTES
    while True:
        end = received.find(b"\r\n\r\n", start, limit)
        if end < 0:
            if len(received) >= limit:
                raise NotHttpError("the response's head does not end")
            if len(received) - start >= 9 and not received.startswith(b"HTTP/1.", start):
                raise NotHttpError(
                    f"not HTTP/1.1: {bytes(received[start : start + _MOST_SHOWN])!r}"
                )
            return None
        line = _STATUS_LINE.match(received, start)
        if line is None:
            raise NotHttpError(f"not HTTP/1.1: {bytes(received[start : start + _MOST_SHOWN])!r}")
        status = int(line[2])
        if status >= 200:
            break
        if status == 101:
            raise NotHttpError("the server switches to another protocol")
        start = end + 4
    headers = _read_headers(bytes(received[line.end() : end]))
    connection = headers.get("connection", "").lower()
    keeps_alive = "close" not in connection if line[1] == b"1" else "keep-alive" in connection
    if "transfer-encoding" in headers and "content-length" in headers:
        # Two lengths: what comes behind such an answer can't be trusted to be the next one.
        keeps_alive = False
    return Head(status, headers, end + 4, keeps_alive)


def open_body(head: Head) -> Body:
    """What finds the end of the body that this head announces.

    Raises:
        NotHttpError: a length that is none, several lengths, or a body that is compressed or
            coded, which nobody asked for.
    """
    if head.status in (204, 304):
        return _SizedBody(head.end, 0)
    if head.headers.get("content-encoding", "identity").lower() != "identity":
        raise NotHttpError(f"the body is compressed ({head.headers['content-encoding'][:40]})")
    coding = head.headers.get("transfer-encoding", "identity").lower()
    if coding == "chunked":
        return _ChunkedBody(head.end)
    if coding != "identity":
        raise NotHttpError(f"a transfer-encoding of {coding[:40]!r}")
    if "content-length" not in head.headers:
        return _OpenBody(head.end)
    # A header that came twice is a list; a length may come twice if it is the same.
    length, *others = {part.strip() for part in head.headers["content-length"].split(",")}
    if others:
        raise NotHttpError("two different content-lengths")
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


def _read_headers(lines: bytes) -> dict[str, str]:
    """The headers by lower-case name; the values of one that came again are joined by commas."""
    headers: dict[str, str] = {}
    for raw in lines.split(b"\r\n"):
        name, _, value = raw.decode("latin-1").partition(":")
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


class _ChunkedBody:
    """A body in chunks; ends with an empty one."""

    def __init__(self, start: int) -> None:
        self.pieces: list[tuple[int, int]] = []
        self.end: int | None = None
        self._position = start

    def is_whole(self, received: bytearray) -> bool:
        while self.end is None:
            line = _SIZE_LINE.match(received, self._position)
            if line is None:
                self._check_start(received)
                return False
            start, end = line.end(), line.end() + int(line[1], 16)
            if start == end:
                return self._pass_trailers(received, start)
            if len(received) < end + 2:
                return False
            if not received.startswith(b"\r\n", end):
                raise NotHttpError("a chunk longer than its size")
            self.pieces.append((start, end))
            self._position = end + 2
        return True

    def settle(self, received: bytearray, *, closed: bool) -> bool:
        line = _SIZE_LINE.match(received, self._position)
        if self.end is None and line is not None:
            end = min(len(received), line.end() + int(line[1], 16))
            if end > line.end():
                self.pieces.append((line.end(), end))
            self._position = len(received)
        return self.end is not None

    def _check_start(self, received: bytearray) -> None:
        """Refuse what can't become the first line of a chunk, whatever follows."""
        limit = self._position + _MOST_SIZE_LINE_BYTES
        if received.find(b"\n", self._position, limit) >= 0 or len(received) >= limit:
            shown = bytes(received[self._position : self._position + _MOST_SHOWN])
            raise NotHttpError(f"a chunk whose size is no number: {shown!r}")

    def _pass_trailers(self, received: bytearray, start: int) -> bool:
        # Trailers may be none: then the line break before them is that of the size.
        end = received.find(b"\r\n\r\n", start - 2)
        if end < 0:
            if len(received) - start > _MOST_HEAD_BYTES:
                raise NotHttpError("the trailers do not end")
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
