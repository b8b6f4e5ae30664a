"""Compare one argument with its declared type and accepted values.

The rules are those of the BFCL v4 reference, oddities included: scores are comparable only if
every verdict is the same. A comment marked "parity" explains each rule that looks like a mistake.
"""

import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_IGNORED_IN_STRINGS: Final = re.compile(r"[ ,./\-_*^]")
_SHOWN_CHARS: Final = 80


@dataclass(frozen=True)
class Problem:
    """Why an answer is wrong: the reference's error type, and a line for people."""

    error_type: str
    detail: str


class NotJudgedError(Exception):
    """The reference raises on such an answer, so that it counts as wrong."""

    def __init__(self, error_type: str, detail: str) -> None:
        super().__init__(detail)
        self.problem = Problem(f"answer:{error_type}", detail)


def value_problem(
    value: object, accepted: Sequence[object], expected_type: type, item_type: type | None
) -> Problem | None:
    """Say what is wrong with `value`, or None where it is accepted.

    A bool is never an integer. A value of the type that the accepted values have is compared as it
    is, even if the declared type is another. Source: BFCL v4.

    Args:
        value: The argument, as it was read.
        accepted: The accepted values; "" says that the parameter may be missing.
        expected_type: The declared type.
        item_type: The declared type of the items, for a list that declares one.

    Raises:
        ValueError: The reference raises on such a value.
    """
    accepted_type = _first_type(accepted)
    if type(value) is expected_type:
        if isinstance(value, list) and item_type and not _items_fit(value, accepted, item_type):
            # Parity: without accepted values, the whole list has a wrong type.
            kind = "nested" if accepted else "simple"
            return Problem(f"type_error:{kind}", f"{show(value)} has items of a wrong type")
        as_declared = accepted_type is None or accepted_type is expected_type
    elif accepted_type is not None and type(value) is accepted_type:
        as_declared = False
    else:
        return Problem("type_error:simple", f"{show(value)} is no {expected_type.__name__}")

    if as_declared:
        if type(value) is dict:
            return _dict_problem(value, accepted)
        if type(value) is list:
            compare = _dicts_problem if item_type is dict else _list_problem
            return compare(value, accepted)
        if type(value) is str:
            return _string_problem(value, accepted)
    if value in accepted:
        return None
    return Problem("value_error:others", _not_among(value, accepted))


def fold(text: str) -> str:
    """Drop what string comparison ignores: case, spaces, `,./-_*^`, and the kind of quote."""
    return _IGNORED_IN_STRINGS.sub("", text).lower().replace("'", '"')


def show(value: object) -> str:
    """Write a value for an error line: short, on one line, whatever the value is."""
    try:
        return reprlib.repr(value)[:_SHOWN_CHARS]
    except ValueError:  # an integer with more digits than Python agrees to print
        return f"a huge {type(value).__name__}"


def _first_type(accepted: Sequence[object]) -> type | None:
    """Return the type of the accepted values, which is that of the first that is not ""."""
    return next((type(entry) for entry in accepted if entry != ""), None)


def _items_fit(value: Sequence[object], accepted: Sequence[object], item_type: type) -> bool:
    """Whether every item has the declared type, or that of the items of one accepted list.

    Parity: one level only; an integer is no float here; an accepted value that is not a list (the
    "" of an optional parameter) lets any item pass; no accepted value lets none pass.
    """
    for entry in accepted:
        if type(entry) is not list:
            return True
        types = (item_type, _first_type(entry))
        if all(type(item) in types for item in value):
            return True
    return False


def _string_problem(value: str, accepted: Sequence[object]) -> Problem | None:
    if fold(value) in _folded(accepted):
        return None
    return Problem("value_error:string", _not_among(value, accepted))


def _list_problem(value: Sequence[object], accepted: Sequence[object]) -> Problem | None:
    # Parity: an accepted string counts as the list of its characters, so "" accepts [].
    lists = (_folded(entry) for entry in accepted if isinstance(entry, (list, str)))
    if _folded(value) in lists:
        return None
    return Problem("value_error:list/tuple", _not_among(value, accepted))


def _dict_problem(value: Mapping[str, object], accepted: Sequence[object]) -> Problem | None:
    problem = Problem("dict_checker:unclear", f"no dict is accepted, got {show(value)}")
    for entry in accepted:
        if isinstance(entry, dict):
            found = _entry_problem(value, entry)
            if found is None:
                return None
            problem = found  # Parity: the last accepted value tells the reason.
    return problem


def _entry_problem(
    value: Mapping[str, object], entry: Mapping[str, Sequence[object]]
) -> Problem | None:
    # Parity: a missing key is reported before any other fault.
    for key, choices in entry.items():
        if key not in value and "" not in choices:
            return Problem("value_error:dict_key", f"key {show(key)} is missing")
    for key, item in value.items():
        if key not in entry:
            return Problem("value_error:dict_key", f"key {show(key)} is not expected")
        # Parity: values inside a dict have no type check, so true is accepted for 1.
        if _folded_item(item) not in _folded(entry[key]):
            return Problem(
                "value_error:dict_value", f"key {show(key)}: {_not_among(item, entry[key])}"
            )
    return None


def _dicts_problem(value: Sequence[object], accepted: Sequence[object]) -> Problem | None:
    problem = Problem("list_dict_checker:unclear", "no list of dicts is accepted")
    for entry in accepted:
        found = _dicts_entry_problem(value, entry)
        if found is None:
            return None
        problem = found  # Parity: the last accepted value tells the reason.
    return problem


def _dicts_entry_problem(value: Sequence[object], entry: object) -> Problem | None:
    # Parity: the "" of an optional parameter counts as a list of no dicts, so it accepts [].
    expected = entry if isinstance(entry, list) else []
    if len(value) != len(expected):
        return Problem("value_error:list_dict_count", f"{len(value)} dicts for {len(expected)}")
    for item, choice in zip(value, expected, strict=True):
        if not isinstance(item, dict):
            raise ValueError(f"{show(item)} is not a dict")
        problem = _dict_problem(item, [choice])
        if problem is not None:
            return problem
    return None


def _folded_item(item: object) -> object:
    return fold(item) if isinstance(item, str) else item


def _folded(items: Sequence[object]) -> list[object]:
    return [_folded_item(item) for item in items]


def _not_among(value: object, accepted: Sequence[object]) -> str:
    return f"{show(value)} is not among {show(list(accepted))}"
