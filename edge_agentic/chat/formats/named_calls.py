"""Reads calls whose head names the function, with the arguments as one JSON object behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from edge_agentic.chat.formats.reading import Form, Reading, as_call, decode


def named_form(
    starts: Sequence[str], head: str, tail: str, *, silent: str = r"(?!)", lead_in: str = ""
) -> Form:
    """The form of calls such as `<function=NAME>{…}</function>`.

    Args:
        starts: what `head` can start with, as text.
        head: pattern of all that stands before the arguments; its group `name` is the name.
        tail: pattern of what ends a call, if it is there.
        silent: pattern of further marks that are no content.
        lead_in: what the prompt has already written of the answer.
    """
    ending = re.compile(tail)
    return Form(
        starts=tuple(starts),
        calls=head,
        read=lambda reading, mark: read_named(reading, mark, mark["name"], mark.end(), ending),
        silent=silent,
        lead_in=lead_in,
    )


def read_named(
    reading: Reading, mark: re.Match[str], name: str, position: int, ending: re.Pattern[str]
) -> int:
    """Read the arguments at `position`; return where the text goes on.

    Where the ending stands in their place, the call has none. A call with neither is a failed
    attempt.
    """
    text = reading.text
    decoded = decode(text, position)
    tail = ending.match(text, decoded.end if decoded.whole else position)
    if not decoded.whole and (tail is None or tail.end() == position):
        return reading.fail(mark, position)
    call = as_call({"name": name, "arguments": decoded.value})
    end = decoded.end if tail is None else tail.end()
    if call is None:
        return reading.fail(mark, end)
    reading.calls.append(call)
    return end
