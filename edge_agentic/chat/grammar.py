"""A grammar of texts as data: literals, JSON values, free text, and what composes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias


class JsonKind(str, Enum):
    """The kinds of JSON values that need no schema."""

    VALUE = "value"
    OBJECT = "object"
    ARRAY = "array"
    STRING = "string"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    NULL = "null"


@dataclass(frozen=True)
class Text:
    """Exactly this text."""

    text: str


@dataclass(frozen=True)
class Json:
    """Any JSON value of a kind, and one space behind it or none."""

    kind: JsonKind


@dataclass(frozen=True)
class FreeText:
    """Any text, also none, in which none of the patterns occurs.

    A pattern is a row of texts with nothing but white space, or nothing, between them.
    """

    avoided: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Chain:
    """One part after the other."""

    parts: tuple[Grammar, ...]


@dataclass(frozen=True)
class Either:
    """One of the options."""

    options: tuple[Grammar, ...]


@dataclass(frozen=True)
class Maybe:
    """The part, or nothing."""

    part: Grammar


@dataclass(frozen=True)
class Many:
    """The part any number of times, also none. It is never empty."""

    part: Grammar


Grammar: TypeAlias = Text | Json | FreeText | Chain | Either | Maybe | Many

SPACE: Final = Maybe(Text(" "))
LINE_FEED: Final = Maybe(Text("\n"))


def chain(*parts: Grammar | str) -> Chain:
    """One part after the other; strings stand for themselves."""
    return Chain(tuple(Text(part) if isinstance(part, str) else part for part in parts))


def either(options: Sequence[Grammar]) -> Grammar:
    """One of the options."""
    return options[0] if len(options) == 1 else Either(tuple(options))


def joined(part: Grammar, separator: Grammar) -> Grammar:
    """The part at least once, with the separator between any two."""
    return chain(part, Many(chain(separator, part)))


def after(grammar: Grammar, start: str) -> Grammar | None:
    """The grammar of what can follow `start`; None where nothing can.

    Only literals are followed: a start that reaches into a JSON value or free text counts as
    one that nothing can follow.
    """
    rests = [rest for rest, left in _advance(grammar, start) if not left]
    return either(rests) if rests else None


_NOTHING: Final = Text("")


def _advance(grammar: Grammar, text: str) -> Iterator[tuple[Grammar, str]]:
    """Each way to read the text: what is left of the grammar, and what is left of the text.

    One of the two is always nothing.
    """
    if not text:
        yield grammar, ""
    elif isinstance(grammar, Text):
        if grammar.text.startswith(text):
            yield Text(grammar.text[len(text) :]), ""
        elif text.startswith(grammar.text):
            yield _NOTHING, text[len(grammar.text) :]
    elif isinstance(grammar, Chain):
        yield from _advance_chain(grammar.parts, text)
    elif isinstance(grammar, Either):
        for option in grammar.options:
            yield from _advance(option, text)
    elif isinstance(grammar, Maybe):
        yield _NOTHING, text
        yield from _advance(grammar.part, text)
    elif isinstance(grammar, Many):
        yield _NOTHING, text
        yield from _advance_chain((grammar.part, grammar), text)
    elif isinstance(grammar, FreeText):
        yield _NOTHING, text


def _advance_chain(parts: tuple[Grammar, ...], text: str) -> Iterator[tuple[Grammar, str]]:
    if not parts:
        yield _NOTHING, text
        return
    for rest, left in _advance(parts[0], text):
        if left:
            yield from _advance_chain(parts[1:], left)
        else:
            yield Chain((rest, *parts[1:])), ""
