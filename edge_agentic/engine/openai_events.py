"""Takes a server's event stream apart, each event with the time its last byte arrived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

LAST_EVENT: Final = b"\ndata: [DONE]"
"""What ends a stream, as it stands in the bytes: JSON can't hold a bare line break."""

MOST_LINES: Final = 1 << 20
"""Of one stream; an event for each token of the largest window takes half of them."""

_DONE: Final = b"[DONE]"


class TooManyLinesError(Exception):
    """The stream holds more lines than an answer can need."""


class Event(NamedTuple):
    """One event: its name, empty for a plain one; its data; ns after the request."""

    name: bytes
    data: bytes
    arrival_ns: int


def read_events(body: bytes, marks: Sequence[tuple[int, int]]) -> list[Event]:
    """The events of a body that may stop anywhere, up to `[DONE]`; comments are left out.

    An event counts as arrived when the line break after its last `data` line did. A last event
    that no blank line ends counts too: not every server sends one.

    Args:
        body: the whole body.
        marks: how many bytes of it had come, and when; ascending.

    Raises:
        TooManyLinesError: more than `MOST_LINES`, which would take many times their size.
    """
    if body.count(b"\n") > MOST_LINES:
        raise TooManyLinesError
    events: list[Event] = []
    name = b""
    data: list[bytes] = []
    end, arrival_ns = 0, 0
    upcoming = iter(marks)
    arrived, at_ns = next(upcoming, (len(body), 0))
    for line in body.split(b"\n"):
        end += len(line) + 1
        if line.endswith(b"\r"):
            line = line[:-1]
        if line.startswith(b"data:"):
            while arrived < end and (following := next(upcoming, None)):
                arrived, at_ns = following
            arrival_ns = at_ns
            data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line.startswith(b"event:"):
            name = line[6:].strip()
        elif not line:
            # Joined here: growing one text line by line takes time by the square of its length.
            whole = b"\n".join(data)
            if whole == _DONE:
                return events
            if whole:
                events.append(Event(name, whole, arrival_ns))
            name, data = b"", []
    whole = b"\n".join(data)
    if whole and whole != _DONE:
        events.append(Event(name, whole, arrival_ns))
    return events
