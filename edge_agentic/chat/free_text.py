"""The automaton of the texts that avoid some patterns; see `chat.grammar.FreeText`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from edge_agentic.chat.grammar import FreeText


@dataclass(frozen=True)
class State:
    """Where each character leads. The text may end in every state.

    moves: the state behind a character, None for one that completes a pattern. others: the
    state behind every other character.
    """

    moves: Mapping[str, int | None]
    others: int


@cache
def automaton(free: FreeText) -> tuple[State, ...]:
    """The states of the texts that avoid the patterns; the first is where a text starts."""
    patterns = [_elements(pattern) for pattern in free.avoided]
    letters = sorted({char for pattern in patterns for element in pattern for char in element})
    start = frozenset((number, 0) for number in range(len(patterns)))
    numbers = {start: 0}
    states: list[State] = []
    pending = list(numbers)
    for places in pending:
        moves: dict[str, int | None] = {}
        for letter in (*letters, ""):
            behind = _step(patterns, places, letter)
            if behind is not None and behind not in numbers:
                numbers[behind] = len(pending)
                pending.append(behind)
            moves[letter] = None if behind is None else numbers[behind]
        others = moves.pop("")
        states.append(State({at: to for at, to in moves.items() if to != others}, others or 0))
    return tuple(states)


_Places: TypeAlias = frozenset[tuple[int, int]]
"""How far into which patterns the text before has come."""
_WHITE_SPACE: Final = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


def _elements(pattern: tuple[str, ...]) -> list[str]:
    """The pattern's characters, and all white space where any run of it may stand."""
    first, *further = pattern
    return [*first, *(element for text in further for element in (_WHITE_SPACE, *text))]


def _step(patterns: list[list[str]], places: _Places, letter: str) -> _Places | None:
    """The places behind a letter; "" is one that no pattern has. None: a pattern is complete."""
    behind = {(number, 0) for number in range(len(patterns))}
    for number, at in places:
        element = patterns[number][at]
        if not letter or letter not in element:
            continue
        if element == _WHITE_SPACE:
            behind.update(_reach(patterns[number], number, at))
        elif at + 1 == len(patterns[number]):
            return None
        else:
            behind.update(_reach(patterns[number], number, at + 1))
    return frozenset(behind)


def _reach(pattern: list[str], number: int, at: int) -> Iterator[tuple[int, int]]:
    yield number, at
    if pattern[at] == _WHITE_SPACE:
        yield number, at + 1
