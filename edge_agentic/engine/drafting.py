"""Drafts the next tokens of an answer, for the model to check several in one batch.

Drafting is lossless: a drafted token counts only if the model itself would have picked it there.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.engine.choices import (
    DEFAULT_LOOKUP_TOKENS,
    DEFAULT_MTP_TOKENS,
    MAX_DRAFT_TOKENS,
    DraftKind,
)

_LONGEST_MATCH: Final = 4
_SHORTEST_MATCH: Final = 2
_TOKEN_BYTES: Final = array("i").itemsize


@dataclass(frozen=True)
class DraftSettings:
    """How tokens are drafted, and how many at once."""

    kind: DraftKind = DraftKind.OFF
    tokens: int = DEFAULT_LOOKUP_TOKENS

    def __post_init__(self) -> None:
        """Refuse a number of tokens that no draft can have.

        Raises:
            BadInputError: it comes from an option.
        """
        if not 1 <= self.tokens <= MAX_DRAFT_TOKENS:
            raise BadInputError(
                f"--draft-tokens must be from 1 to {MAX_DRAFT_TOKENS}, got {self.tokens}"
            )

    @property
    def rollback_tokens(self) -> int:
        """How many tokens the context has to be able to forget at any time."""
        return 0 if self.kind is DraftKind.OFF else self.tokens

    def to_json(self) -> JsonObject:
        """The parameters, for the manifest."""
        if self.kind is DraftKind.OFF:
            return {"kind": self.kind.value}
        return {"kind": self.kind.value, "tokens": self.tokens}


class Drafter(Protocol):
    """Drafts the tokens of one answer after another.

    What computes anything raises `DecodeError` where that fails.
    """

    def begin(self, prompt: Sequence[int], cached: int) -> None:
        """Start an answer to this prompt, whose first `cached` tokens are in memory already."""

    def follow(self, tokens: int) -> None:
        """Take note that the model evaluated so many more tokens of the prompt in one batch."""

    def accept(self, tokens: Sequence[int]) -> None:
        """Take note of tokens that the model picked."""

    def propose(self, most: int) -> Sequence[int]:
        """At most `most` tokens that may follow; empty where nothing is likely."""

    def close(self) -> None:
        """Free what it holds. Safe to call twice."""


def draft_settings(kind: DraftKind, tokens: int | None) -> DraftSettings:
    """Settings of a kind, with its own number of tokens where none is given.

    Raises:
        BadInputError: as `DraftSettings`, or a number of tokens for no drafts.
    """
    if kind is DraftKind.OFF and tokens is not None:
        raise BadInputError("--draft-tokens goes with --draft lookup or --draft mtp")
    if tokens is None:
        tokens = DEFAULT_MTP_TOKENS if kind is DraftKind.MTP else DEFAULT_LOOKUP_TOKENS
    return DraftSettings(kind, tokens)


class LookupDrafter:
    """Prompt lookup: what followed the last tokens where they stood before in the conversation.

    Agents repeat file contents, paths and commands, so that much of an answer has stood in the
    prompt. The latest place of the longest match decides, of 4 tokens down to 2.
    """

    def __init__(self) -> None:
        """Start without a text."""
        # Bytes, because their search is done in C.
        self._seen = bytearray()

    def begin(self, prompt: Sequence[int], cached: int) -> None:
        """Start an answer to this prompt."""
        self._seen = bytearray(array("i", prompt).tobytes())

    def follow(self, tokens: int) -> None:
        """Nothing: the whole prompt is known from the start."""

    def accept(self, tokens: Sequence[int]) -> None:
        """Take note of tokens that the model picked."""
        self._seen += array("i", tokens).tobytes()

    def propose(self, most: int) -> Sequence[int]:
        """At most `most` tokens that may follow; empty where the last two never stood before."""
        for length in range(_LONGEST_MATCH, _SHORTEST_MATCH - 1, -1):
            size = length * _TOKEN_BYTES
            if len(self._seen) <= size:
                continue
            place = self._latest(bytes(self._seen[-size:]))
            if place is not None:
                start = place + size
                return array("i", bytes(self._seen[start : start + most * _TOKEN_BYTES]))
        return ()

    def close(self) -> None:
        """Nothing: it holds text only."""

    def _latest(self, wanted: bytes) -> int | None:
        """Where the wanted tokens stood last, before the end itself."""
        end = len(self._seen) - _TOKEN_BYTES
        while (place := self._seen.rfind(wanted, 0, end)) >= 0:
            if place % _TOKEN_BYTES == 0:
                return place
            end = place + len(wanted) - 1
        return None
