"""Watches an answer, piece by piece, for the place where a call begins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from edge_agentic.chat.tool_calls import call_starts, reasoning_tags
from edge_agentic.chat.tool_format import ToolFormat


class CallWatch:
    """Finds where the first call of an answer begins.

    What reasoning holds are drafts, no calls. In the forms of bare JSON a call begins where the
    first thing of the answer, behind any reasoning, is an object's first key or a list of such
    objects.
    """

    def __init__(self, tool_format: ToolFormat, prompt: str = "") -> None:
        """Start at the start of the answer.

        Args:
            tool_format: how the model writes calls.
            prompt: what the answer goes on from; where reasoning is opened at its end, the
                answer starts with reasoning.
        """
        starts, thoughts = call_starts(tool_format), reasoning_tags(tool_format)
        marks = [mark for mark in starts if mark not in _BRACKETS]
        self._marks = re.compile(
            rb"(?P<think>%s)|(?P<thought>%s)|(?P<call>%s)"
            % (_any_of(thoughts), _any_of(thoughts.values()), _any_of(marks))
        )
        self._tags = [tag.encode() for tag in (*thoughts, *thoughts.values(), *marks)]
        self._longest = max(map(len, self._tags))
        self._ends = {tag.encode(): end.encode() for tag, end in thoughts.items()}
        opened = [tag for tag in self._ends if prompt.rstrip().endswith(tag.decode())]
        self._thought_end = self._ends[opened[0]] if opened else None
        self._is_bare = "{" in starts
        self._at_start = True
        self._seen = b""

    def feed(self, piece: bytes) -> bytes | None:
        """Take what the answer goes on with.

        Returns:
            If the piece completes the start of a call: that start, without white space, and what
            the piece has behind it. The next piece then counts as the answer's next.
        """
        text, self._seen = self._seen + piece, b""
        while True:
            if self._thought_end is not None:
                _, ended, behind = text.partition(self._thought_end)
                if not ended:
                    self._seen = text[1 - self._longest :]
                    return None
                text, self._thought_end = behind, None
            if self._at_start:
                text = text.lstrip()
                if self._is_bare and (bare := _BARE.match(text)):
                    self._at_start = False
                    return bare[1] + b'{"' + text[bare.end() :]
                if self._is_undecided(text):
                    self._seen = b"".join(text.split())
                    return None
            mark = self._marks.search(text)
            self._at_start &= mark is not None and mark.start() == 0
            if mark is None:
                self._seen = text[1 - self._longest :]
                return None
            text = text[mark.end() :]
            if mark["call"] is not None:
                self._at_start = False
                return mark["call"] + text
            if mark["think"] is not None:
                self._thought_end = self._ends[mark["think"]]
            else:
                # Everything before it was reasoning that the prompt had opened.
                self._at_start = True

    def _is_undecided(self, text: bytes) -> bool:
        """Whether the answer's first bytes can still become the start of a call or a tag."""
        bare = self._is_bare and _BARE_START.fullmatch(text)
        return bool(bare) or any(tag != text and tag.startswith(text) for tag in self._tags)


_BRACKETS: Final = ("{", "[")
_BARE: Final = re.compile(rb'(\[?)\s*\{\s*"')
_BARE_START: Final = re.compile(rb"\[?\s*(?:\{\s*)?")


def _any_of(tags: Iterable[str]) -> bytes:
    return b"|".join(re.escape(tag.encode()) for tag in tags) or rb"(?!)"
