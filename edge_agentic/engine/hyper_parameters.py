"""A model's sizes out of its GGUF header, one for the model or one for each layer."""

from __future__ import annotations

from typing import Any

from edge_agentic.engine.gguf import GgufInfo


class UnknownSizeError(Exception):
    """The header lacks a size, or no rule is known for what follows from it."""


class HyperParameters:
    """The values under the architecture's name.

    Every method raises `UnknownSizeError` at a value that is missing, without a default, or
    that is no size.
    """

    def __init__(self, info: GgufInfo) -> None:
        """Read from this header."""
        self._info = info
        self.layers = self.number("block_count")

    def number(self, name: str, default: int | None = None) -> int:
        """One value; `default` where the header has none."""
        value = self._info.hyper_parameter(name)
        return self._checked(name, default if value is None else value)

    def per_layer(self, name: str, default: int | list[int]) -> list[int]:
        """The value of each layer; a single value in the header is every layer's."""
        found = self._info.hyper_parameter(name)
        values = default if found is None else found
        if not isinstance(values, list):
            return [self._checked(name, values)] * self.layers
        if len(values) != self.layers:
            raise UnknownSizeError(
                f"{self._key(name)} has {len(values)} values for {self.layers} layers"
            )
        return [self._checked(name, value) for value in values]

    def is_per_layer(self, name: str) -> bool:
        """Whether the header has a list under this name."""
        return isinstance(self._info.hyper_parameter(name), list)

    def _key(self, name: str) -> str:
        return f"{self._info.architecture}.{name}"

    def _checked(self, name: str, value: Any) -> int:
        if value is None:
            raise UnknownSizeError(f"{self._key(name)} is missing")
        if not isinstance(value, int) or not 0 <= value < 2**31:
            raise UnknownSizeError(f"{self._key(name)} is {repr(value)[:40]}")
        return int(value)
