"""Reads typed fields out of one JSON object of a run's files; anything else is bad input."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeGuard, TypeVar

from edge_agentic.core.errors import BadInputError

_LARGEST_COUNT: Final = 2**63 - 1
"""Counts and nanoseconds fit 64 bits; a larger one would overflow a float later."""

_T = TypeVar("_T")


class Fields:
    """The fields of one object; every complaint starts with `where` and names the field."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values = values
        self._where = where

    def error(self, message: str) -> BadInputError:
        """A `BadInputError` that says where."""
        return BadInputError(f"{self._where}: {message}")

    def text(self, name: str) -> str:
        """A string."""
        return self._required(name, self.optional_text(name))

    def optional_text(self, name: str) -> str | None:
        """A string or null."""
        return self._optional(name, "a string", _is_text)

    def flag(self, name: str) -> bool:
        """True or false."""
        return self._required(name, self.optional_flag(name))

    def optional_flag(self, name: str) -> bool | None:
        """True, false or null."""
        return self._optional(name, "true or false", _is_flag)

    def count(self, name: str) -> int:
        """A whole number from 0."""
        return self._required(name, self.optional_count(name))

    def optional_count(self, name: str) -> int | None:
        """A whole number from 0, or null."""
        return self._optional(name, "a whole number from 0", _is_count)

    def number(self, name: str) -> float:
        """A finite number from 0."""
        return self._required(name, self.optional_number(name))

    def optional_number(self, name: str) -> float | None:
        """A finite number from 0, or null."""
        return self._optional(name, "a finite number from 0", _is_number)

    def mapping(self, name: str) -> Fields:
        """An object, ready to be read."""
        return self._required(name, self.optional_mapping(name))

    def optional_mapping(self, name: str) -> Fields | None:
        """An object, ready to be read, or null."""
        value = self._optional(name, "an object", _is_mapping)
        return None if value is None else Fields(value, f"{self._where}, '{name}'")

    def counts(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers from 0."""
        return self._list(name, "whole numbers from 0", _is_count)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        return self._list(name, "strings", _is_text)

    def optional_texts(self, name: str) -> tuple[str, ...] | None:
        """A list of strings, or null."""
        return None if self.values.get(name) is None else self.texts(name)

    def mappings(self, name: str) -> tuple[Fields, ...]:
        """A list of objects, each ready to be read; complaints name its place in the list."""
        items = self._list(name, "objects", _is_mapping)
        return tuple(
            Fields(item, f"{self._where}, '{name}[{index}]'") for index, item in enumerate(items)
        )

    def _list(
        self, name: str, kind: str, accepts: Callable[[object], TypeGuard[_T]]
    ) -> tuple[_T, ...]:
        items = self._required(name, self._optional(name, "a list", _is_list))
        verdicts = [accepts(item) for item in items]
        if not all(verdicts):
            raise self.error(
                f"'{name}' must be a list of {kind}; item {verdicts.index(False)} is not"
            )
        return tuple(items)

    def _optional(
        self, name: str, kind: str, accepts: Callable[[object], TypeGuard[_T]]
    ) -> _T | None:
        value = self.values.get(name)
        if value is None or accepts(value):
            return value
        raise self.error(f"'{name}' must be {kind}, found {_shown(value)}")

    def _required(self, name: str, value: _T | None) -> _T:
        if value is None:
            raise self.error(f"'{name}' is missing")
        return value


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def _is_flag(value: object) -> TypeGuard[bool]:
    return isinstance(value, bool)


def _is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, (list, tuple))


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, float):
        return math.isfinite(value) and 0 <= value <= _LARGEST_COUNT
    return _is_count(value)


def _shown(value: object) -> str:
    """A short form of a wrong value for one line of an error; numbers in full, the rest by type."""
    if isinstance(value, (bool, float)):
        return repr(value)
    if isinstance(value, int) and abs(value) <= _LARGEST_COUNT:
        return repr(value)
    return "a huge number" if isinstance(value, int) else type(value).__name__
