"""List the languages whose functions can be checked: a new language is one module and one entry."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bfcl_gate import values
from bfcl_gate.subsets import LanguageName

ValueRule = Callable[[Mapping[str, Any], Sequence[object], object], values.Problem | None]


@dataclass(frozen=True)
class Language:
    """How arguments of one language's functions are judged."""

    declared_types: frozenset[str]
    """The type names that a function description may use for a parameter."""
    array_types: frozenset[str]
    """Those of them that also declare the type of their items."""
    value_problem: ValueRule
    """(schema, accepted values, value) -> what is wrong, or None."""


LANGUAGES: Final[Mapping[LanguageName, Language]] = {
    "python": Language(frozenset(values.PYTHON_TYPES), values.ARRAY_TYPES, values.value_problem),
}
