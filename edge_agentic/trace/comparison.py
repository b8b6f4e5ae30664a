"""Compares a tool's result with the recorded one, past what no two runs can have in common.

The rules are all in `_RULES`, in the order of use. Each replaces the text it names by a mark, in
both results; whatever else differs is a difference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import Final

_UNIT: Final = r"(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?)"
_NUMBER: Final = r"\d{1,12}(?:[.,]\d{1,12})?"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_RULES: Final = tuple(
    (re.compile(pattern, re.MULTILINE), mark)
    for pattern, mark in (
        # Temporary names of mktemp, Python, pytest and pip, with the directories above them.
        (
            r"(?:/[\w.-]{1,40}){0,8}/(?:tmp\.[A-Za-z0-9]{6,12}|tmp[a-z0-9_]{8}"
            r"|pytest-of-\w{1,32}/pytest-\d{1,6}|pip-[a-z-]{1,40}-[a-z0-9_]{8})(?!\w)",
            "<temporary>",
        ),
        # Where objects lie in memory.
        (r"\bat 0x[0-9a-fA-F]{4,16}\b", "at <address>"),
        (r"\b0x[0-9a-fA-F]{12,16}\b", "<address>"),
        # Dates with a time of day: ISO 8601 to the second, and those of `date`.
        (
            r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|(?: ?[+-]\d\d:?\d\d))?",
            "<time>",
        ),
        (
            rf"\b(?:[A-Z][a-z]{{2}},? )?{_MONTH} {{1,2}}\d{{1,2}} \d\d:\d\d:\d\d"
            r"(?: [A-Z]{3,4})?(?: \d{4})?\b",
            "<time>",
        ),
        # Durations: of time(1), of test runners, and after words that announce one.
        (r"^(real|user|sys)([ \t]+)\d+m\d+[.,]\d+s$", r"\1\2<duration>"),
        (rf"(?<=\bin ){_NUMBER} ?{_UNIT}\b", "<duration>"),
        (rf"\({_NUMBER} ?{_UNIT}\)", "(<duration>)"),
        (rf"\b{_NUMBER}s(?= {{1,8}}(?:call|setup|teardown)\b)", "<duration>"),
        (
            rf"\b([Tt]ook|[Ee]lapsed|[Dd]uration|[Tt]ime)([ :=]{{1,3}}){_NUMBER} ?{_UNIT}\b",
            r"\1\2<duration>",
        ),
        # A long listing: blocks, owner, group and date; of directories the size too.
        (r"^total \d+$(?=\n[-dlcbps][-rwxsStT]{9})", "total <blocks>"),
        (
            r"^(d[-rwxsStT]{9})[.+]? +\d+ +\S{1,64} +\S{1,64} +\d+ +"
            rf"{_MONTH} +\d{{1,2}} +(?:\d\d:\d\d|\d{{4}}) ",
            r"\1 <owner> <date> ",
        ),
        (
            r"^([-lcbps][-rwxsStT]{9})[.+]? +\d+ +\S{1,64} +\S{1,64} +(\d+) +"
            rf"{_MONTH} +\d{{1,2}} +(?:\d\d:\d\d|\d{{4}}) ",
            r"\1 <owner> \2 <date> ",
        ),
        # Process ids, after the word. Not those of background jobs: a shell that runs one command
        # line shows none, and R shows its results as "[1] 42".
        (r"\b([Pp][Ii][Dd])([ :=]{1,3})\d+\b", r"\1\2<pid>"),
    )
)
_MOST_CHARACTERS: Final = 160


class Match(str, Enum):
    """How a result agrees with the recorded one."""

    EXACT = "exact"
    NORMALISED = "normalised"
    """The same but for what can't repeat."""
    DIFFERENT = "different"


@dataclass(frozen=True)
class Difference:
    """The first line in which two results differ; None where one has ended before it."""

    line: int
    recorded: str | None
    now: str | None


def normalise(text: str) -> str:
    """The text with a mark in the place of whatever can't repeat; line ends stay."""
    for pattern, mark in _RULES:
        text = pattern.sub(mark, text)
    return text


def compare(recorded: str, now: str) -> Match:
    """How a result agrees with the recorded one."""
    if recorded == now:
        return Match.EXACT
    return Match.NORMALISED if normalise(recorded) == normalise(now) else Match.DIFFERENT


def first_difference(recorded: str, now: str) -> Difference | None:
    """The first line that differs by more than what can't repeat, as it was, cut if it is long."""
    lines = zip_longest(recorded.split("\n"), now.split("\n"))
    marked = zip_longest(normalise(recorded).split("\n"), normalise(now).split("\n"))
    for number, (line, (one, other)) in enumerate(zip(lines, marked, strict=True), start=1):
        if one != other:
            return Difference(number, *(None if text is None else _short(text) for text in line))
    return None


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
