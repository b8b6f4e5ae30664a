"""Read the parts of literals that Java and JavaScript share."""

import re
from collections.abc import Callable, Mapping
from typing import Final

Reader = Callable[[str], object]
"""Reads a text as a value; what it cannot read stays text."""

_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "false": False}
_SPACE: Final = re.compile(r"\s*")


def number_reader(kind: Callable[[str], object], pattern: str) -> Reader:
    """Return a reader of numbers: `kind` of the first group where the whole text matches.

    The reader raises ValueError for an integer with more digits than Python agrees to read.
    """
    whole = re.compile(pattern)

    def read(text: str) -> object:
        found = whole.fullmatch(text)
        return kind(found[1]) if found else text

    return read


def string_reader(*quotes: str) -> Reader:
    """Return a reader of strings: the same quote at both ends goes, escapes stay as they are.

    Parity: a single quote is both ends.
    """

    def read(text: str) -> object:
        return text[1:-1] if text.startswith(quotes) and text[0] == text[-1] else text

    return read


def boolean(text: str) -> object:
    """Read `true` and `false`."""
    return _BOOLEANS.get(text, text)


def plain_number(text: str) -> object:
    """Read a number whose type is not declared."""
    # Parity: Python's own numbers count, such as 1_000 and nan.
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def first_reading(text: str, *readers: Reader) -> object:
    """Return what the first reader makes of the text that does not leave it as it is."""
    readings = (reader(text) for reader in readers)
    return next((value for value in readings if value is not text), text)


def split_items(text: str) -> list[str]:
    """Split at each comma, inside quotes too (parity), and strip the items."""
    return [item.strip() for item in text.split(",")]


def skip_space(text: str, position: int) -> int:
    """Return where the space from `position` on ends."""
    found = _SPACE.match(text, position)
    assert found is not None
    return found.end()
