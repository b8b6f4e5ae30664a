"""Reads calls whose parameters stand between tags as plain text, typed by their schemas."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from edge_agentic.chat.formats.reading import Reading
from edge_agentic.chat.formats.schema_values import typed

_CUT_TAG: Final = re.compile(r"\s*(?:<[/\w=]*)?\Z")


@dataclass(frozen=True)
class Tags:
    """The tags of one format.

    inside: pattern of every tag that can follow the function's name or a parameter. Group
        `parameter` opens one, and `key` is its name, missing where the tag is broken; group
        `end` ends the call; group `beyond` is no longer part of it.
    value_end: the closing tag of a value.
    endings: pattern of what can end a value. Group `close` is its closing tag, group `next` the
        name in the tag of a parameter, group `call` the name of another call that begins.
    trimmed: one line feed behind the opening tag and one before the closing are no content.
    """

    inside: re.Pattern[str]
    value_end: str
    endings: re.Pattern[str]
    trimmed: bool


def read_tagged_call(reading: Reading, mark: re.Match[str], name: str, tags: Tags) -> int:
    """Read the parameters behind a mark that names the function; return where the text goes on.

    A broken parameter spares the others. Where the text ends within the call, the parameters
    that are whole make a truncated call.
    """
    call = _TaggedCall(reading, name, tags)
    end = call.read(mark.end())
    if not reading.add(name, call.values, truncated=call.truncated):
        reading.keep(mark.start(), end)
    if not call.truncated:
        return end
    # Nothing that is left can be a call: it would have ended this one.
    if not _CUT_TAG.match(reading.text, end):
        reading.keep(end, len(reading.text))
    return len(reading.text)


class _TaggedCall:
    """One call as far as it is read."""

    def __init__(self, reading: Reading, name: str, tags: Tags) -> None:
        self.values: dict[str, Any] = {}
        self.truncated = False
        self._reading, self._tags = reading, tags
        self._schema = reading.functions.get(name, {})
        self._declared = self._schema.get("properties")

    def read(self, position: int) -> int:
        """Read up to the call's end; return where that is."""
        reading, text = self._reading, self._reading.text
        while tag := self._tags.inside.search(text, position):
            reading.malformed |= bool(text[position : tag.start()].strip())
            if tag["end"] is not None:
                return tag.end()
            if tag["beyond"] is not None:
                return tag.start()
            if tag["parameter"] is None:
                reading.malformed = True
                position = tag.end()
                continue
            position = self._read_value((tag["key"] or "").strip(), tag.end())
            if self.truncated:
                return position
        self.truncated = True
        return position

    def _read_value(self, key: str, start: int) -> int:
        """Read the value at `start`; return where the text goes on.

        A tag in a value is content unless the format goes on behind it, so a value may hold
        text that looks like its own closing tag. Where the real one is missing, the value ends
        at the first such text, or else where something else begins.
        """
        text, closing = self._reading.text, self._tags.value_end
        position = start
        while ending := self._tags.endings.search(text, position):
            if ending["close"] is not None:
                self._take(key, start, ending.start())
                return ending.end()
            if self._begins_something(key, ending):
                loose = text.find(closing, start, ending.start())
                self._reading.malformed |= loose >= 0
                self._take(key, start, ending.start() if loose < 0 else loose)
                return ending.start()
            position = ending.end()
        self.truncated = True
        loose = text.find(closing, start)
        if loose < 0:
            return len(text)
        self._take(key, start, loose)
        return loose + len(closing)

    def _begins_something(self, key: str, ending: re.Match[str]) -> bool:
        """Whether a tag in the value of `key` begins another parameter or call, or ends this one.

        It is content where it names what is not offered or is here already.
        """
        if (parameter := ending["next"]) is not None:
            expected = not isinstance(self._declared, dict) or parameter in self._declared
            return expected and parameter != key and parameter not in self.values
        functions = self._reading.functions
        return ending["call"] is None or not functions or ending["call"] in functions

    def _take(self, key: str, start: int, end: int) -> None:
        if not key:
            self._reading.malformed = True
            return
        raw = self._reading.text[start:end]
        if self._tags.trimmed:
            raw = raw.removeprefix("\n").removesuffix("\n")
        self.values[key] = typed(raw, key, self._schema)
