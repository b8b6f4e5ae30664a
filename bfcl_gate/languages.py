"""List the languages whose functions can be checked: a new language is one module and one entry."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bfcl_gate import java, javascript, python, values
from bfcl_gate.subsets import LanguageName
from bfcl_gate.values import NotJudgedError, Problem, show

# A literal in 1,024 new tokens, the most that the gate asks for, stays far below this.
_MAX_LITERAL_CHARS: Final = 10_000


@dataclass(frozen=True)
class Language:
    """How arguments of one language's functions are read, judged and written."""

    types: Mapping[str, type]
    """The type names that a function description may use, and the type that each is read as."""
    array_types: frozenset[str]
    """Those of them that also declare the type of their items."""
    read: Callable[[Any, str, str | None], object]
    """(argument, declared type, item type) -> the value to compare."""
    write: Callable[[object, str, str | None], object]
    """(value, declared type, item type) -> an argument that is read as the value."""
    text_error: str | None = None
    """Where arguments are literals in a text: the error type of one that is no text."""

    def value_problem(
        self, schema: Mapping[str, Any], accepted: Sequence[object], argument: object
    ) -> Problem | None:
        """Say what is wrong with `argument` for a parameter of `schema`, or None.

        Raises:
            NotJudgedError: The reference raises on such an argument.
        """
        declared, item_type = schema["type"], self._item_type(schema)
        if self.text_error and not isinstance(argument, str):
            return Problem(self.text_error, f"{show(argument)} is not a literal in a text")
        try:
            too_long = isinstance(argument, str) and len(argument) > _MAX_LITERAL_CHARS
            value = argument if too_long else self.read(argument, declared, item_type)
            return values.value_problem(
                value, accepted, self.types[declared], self.types[item_type] if item_type else None
            )
        except (ValueError, OverflowError) as error:
            raise NotJudgedError("unreadable_value", f"{show(argument)}: {error}") from None

    def argument(self, schema: Mapping[str, Any], value: object) -> object:
        """Return an argument for a parameter of `schema` that is read as `value`."""
        return self.write(value, schema["type"], self._item_type(schema))

    def _item_type(self, schema: Mapping[str, Any]) -> str | None:
        return schema["items"]["type"] if schema["type"] in self.array_types else None


LANGUAGES: Final[Mapping[LanguageName, Language]] = {
    "python": Language(python.TYPES, python.ARRAY_TYPES, python.read, python.write),
    "java": Language(java.TYPES, java.ARRAY_TYPES, java.read, java.write, "type_error:java"),
    "javascript": Language(
        javascript.TYPES,
        javascript.ARRAY_TYPES,
        javascript.read,
        javascript.write,
        "type_error:js",
    ),
}
