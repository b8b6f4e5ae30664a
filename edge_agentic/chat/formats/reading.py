"""Walks through a model's text from mark to mark; what all call formats share."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from edge_agentic.core.jsonio import JsonObject, is_json
from edge_agentic.core.messages import call_arguments

THINK: Final[Mapping[str, str]] = {"<think>": "</think>"}
MAX_NESTING: Final = 64
"""Levels of objects and arrays in a call's arguments, themselves included."""
MAX_DIGITS: Final = 4000
"""Python refuses to convert integers of more than 4,300 digits."""


@dataclass(frozen=True)
class FoundCall:
    """A call as the model wrote it. `truncated`: the text ends before the call does."""

    name: str
    arguments: Mapping[str, Any]
    truncated: bool = False


class Reading:
    """A text, the offered functions' parameters by name, and what was found so far."""

    def __init__(self, text: str, functions: Mapping[str, JsonObject]) -> None:
        """Start at the beginning of `text`."""
        self.text: str = _Document(text)
        self.functions = functions
        self.calls: list[FoundCall] = []
        self.malformed = False
        self._content: list[str] = []
        self._thoughts: list[str] = []
        self._reasoned_to = 0
        self._has_content = False

    @property
    def at_start(self) -> bool:
        """Whether the answer has neither text nor calls yet."""
        return not self._has_content and not self.calls

    @property
    def content(self) -> str:
        """What is neither reasoning nor a call."""
        return "".join(self._content).strip()

    def add(self, name: str, arguments: Mapping[str, Any], *, truncated: bool = False) -> bool:
        """Take a call, unless it has no name or arguments that can't be written: then False."""
        sound = _is_sound(name, arguments)
        if sound:
            self.calls.append(FoundCall(name, arguments, truncated))
        else:
            self.malformed = True
        return sound

    def fail(self, mark: re.Match[str], end: int) -> int:
        """Take a failed attempt, from its mark to `end`, as content; return `end`."""
        self.malformed = True
        self.keep(mark.start(), end)
        return end

    def fail_block(self, mark: re.Match[str], stop: re.Pattern[str]) -> int:
        """`fail` up to the next match of `stop`, with that where it is its group `close`."""
        following = stop.search(self.text, mark.end())
        if following is None:
            return self.fail(mark, len(self.text))
        closed = following["close"] is not None
        return self.fail(mark, following.end() if closed else following.start())

    def keep(self, start: int, end: int) -> None:
        """Take this part of the text as content."""
        piece = self.text[start:end]
        self._content.append(piece)
        self._has_content = self._has_content or bool(piece.strip())

    def think(self, thought: str) -> None:
        """Take this as reasoning."""
        self._thoughts.append(thought)

    def think_all(self, end: int) -> None:
        """Take everything before `end` as reasoning, calls included: they were drafts."""
        self.calls.clear()
        self._content.clear()
        self._thoughts.clear()
        self.malformed = self._has_content = False
        self._reasoned_to = end

    def reasoning(self, tags: Mapping[str, str]) -> str | None:
        """The reasoning without its tags; None where there is none."""
        before = self.text[: self._reasoned_to]
        for tag in (*tags, *tags.values()):
            before = before.replace(tag, "")
        return "\n".join(filter(None, map(str.strip, (before, *self._thoughts)))) or None


@dataclass(frozen=True)
class Form:
    """How one family writes calls.

    read: takes the reading and a match of `calls`; returns where the text goes on, which is
        never before the match's end.
    """

    starts: tuple[str, ...]
    """The texts that a call can start with."""
    calls: str
    """Pattern of what `read` reads: starts of calls, and what is left of broken ones."""
    read: Callable[[Reading, re.Match[str]], int]
    thoughts: Mapping[str, str] = field(default_factory=lambda: THINK)
    """Opening and closing tags of reasoning."""
    silent: str = r"(?!)"
    """Pattern of marks that are part of no content."""
    lead_in: str = ""
    """What the prompt has already written of the answer."""

    @property
    def marks(self) -> re.Pattern[str]:
        """The pattern of everything that is not plain content; `re` caches it compiled."""
        opens = "|".join(map(re.escape, self.thoughts)) or r"(?!)"
        closes = "|".join(map(re.escape, self.thoughts.values())) or r"(?!)"
        return re.compile(
            f"(?P<think_>{opens})|(?P<thought_>{closes})|{self.calls}|(?P<silent_>{self.silent})"
        )


class Decoded(NamedTuple):
    """A JSON value and its end; where it isn't `whole`, the end is where decoding gave up."""

    value: Any
    end: int
    whole: bool


def read_text(text: str, form: Form, functions: Mapping[str, JsonObject]) -> Reading:
    """Take a text apart. No text raises; the time is linear in its length.

    What stands between the tags of reasoning is reasoning, and so is what follows a tag that
    is never closed. A closing tag without an opening one makes everything before it reasoning:
    the prompt may have opened it. Tags within a call are the call's content.
    """
    reading = Reading(form.lead_in + text, functions)
    marks, position = form.marks, 0
    while mark := marks.search(reading.text, position):
        reading.keep(position, mark.start())
        if (opened := mark["think_"]) is not None:
            position = _read_thought(reading, mark.end(), form.thoughts[opened])
        elif mark["thought_"] is not None:
            reading.think_all(mark.start())
            position = mark.end()
        elif mark["silent_"] is not None:
            position = mark.end()
        else:
            position = form.read(reading, mark)
    reading.keep(position, len(reading.text))
    return reading


def decode(text: str, start: int) -> Decoded:
    """The JSON value at `start`, line feeds in its strings allowed; no text raises."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return Decoded(None, max(error.pos, start + 1), False)
    except RecursionError:
        return Decoded(None, len(text), False)
    return Decoded(value, end, True)


def as_call(value: object) -> FoundCall | None:
    """The call that a JSON value is, in its plain form or in that of the OpenAI chat API.

    Arguments are a mapping or a JSON string of one; null and "" stand for none. Without
    arguments there must be nothing but the name.
    """
    if not isinstance(value, Mapping):
        return None
    inner = value.get("function")
    function = inner if isinstance(inner, Mapping) else value
    name = function.get("name", function.get("tool_name"))
    given = [function[key] for key in ("arguments", "parameters") if key in function]
    if not isinstance(name, str) or not (given or function.keys() <= _NAME_ONLY):
        return None
    nothing = not given or given[0] in (None, "")
    arguments = {} if nothing else call_arguments({"arguments": given[0]})
    if arguments is None or not _is_sound(name, arguments):
        return None
    return FoundCall(name, arguments)


class _Document(str):
    """A text in which JSON errors are cheap: each would count all the lines before it."""

    __slots__ = ()

    def count(self, *_: object) -> int:
        return 0

    def rfind(self, *_: object) -> int:
        return -1


def _is_sound(name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the call has a name, and JSON can hold it at a depth that any reader can take."""
    level: list[Any] = [arguments]
    for _ in range(MAX_NESTING):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, Mapping) else value)
            if isinstance(inner, (Mapping, list))
        ]
        if not level:
            return bool(name) and is_json({name: arguments})
    return False


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= MAX_DIGITS else math.inf


_DECODER: Final = json.JSONDecoder(strict=False, parse_int=_integer)
_NAME_ONLY: Final = frozenset({"name", "tool_name", "type", "id", "tool_call_id"})


def _read_thought(reading: Reading, start: int, closing: str) -> int:
    end = reading.text.find(closing, start)
    if end < 0:
        reading.think(reading.text[start:])
        return len(reading.text)
    reading.think(reading.text[start:end])
    return end + len(closing)
