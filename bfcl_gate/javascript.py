"""Read and write the JavaScript literals that arguments of JavaScript functions are given in.

The rules are those of the BFCL v4 reference, oddities included: items are split at every comma, an
object ends at its first closing brace, and what follows a literal is ignored.
"""

import re
from collections.abc import Mapping
from typing import Final

from bfcl_gate.literals import (
    Reader,
    boolean,
    first_reading,
    number_reader,
    plain_number,
    skip_space,
    split_items,
    string_reader,
)

TYPES: Final[Mapping[str, type]] = {
    "String": str,
    "integer": int,
    "float": float,
    "Bigint": int,
    "Boolean": bool,
    "dict": dict,
    "array": list,
    "any": str,
}
ARRAY_TYPES: Final = frozenset({"array"})

_string: Final = string_reader('"', "'")
_SCALARS: Final[Mapping[str, Reader]] = {
    # Parity: a newline may follow a number, and a float has no exponent.
    "integer": number_reader(int, r"(-?\d+)\n?"),
    "float": number_reader(float, r"(-?\d+(?:\.\d+)?)\n?"),
    # Parity: a newline after a Bigint is refused.
    "Bigint": number_reader(lambda text: int(text[:-1]), r"(-?\d+n\n?)"),
    "Boolean": boolean,
    "String": _string,
}

_ROWS: Final = re.compile(r"(?:\[|new\s+Array\()\s*\[")
_NEXT_ROW: Final = re.compile(r"\s*,\s*\[")
_ROW: Final = re.compile(r"\[([^\]\n]*)\]")
_ITEMS: Final = re.compile(r"\[([^\]\n]*)\]|new\s+Array\(([^)\n]*)\)")
_OBJECT: Final = re.compile(r"\{([^}\n]*)\}")
_KEY: Final = re.compile(r":*([^:]+):\s*")
# A comma ends a value only where a key follows before the next comma. To look for it before the
# space is skipped keeps the search linear.
_VALUE_END: Final = re.compile(r",(?=[^,]+:)\s*(?=[^,]+:)")


def read(text: str, declared: str, item_type: str | None = None) -> object:
    """Read a literal of the declared type; what is no such literal stays text.

    Raises:
        ValueError: An integer has more digits than Python agrees to read; the reference cannot
            judge it either.
    """
    if declared in _SCALARS:
        return _SCALARS[declared](text)
    if declared == "array":
        return _read_array(text.strip(), item_type)
    if declared == "dict":
        return _read_object(text.strip())
    return text


def write(value: object, declared: str, item_type: str | None = None) -> str:
    """Write a literal of the declared type that `read` reads as `value`.

    A string with a comma, a bracket or a quote may be read as something else.
    """
    if isinstance(value, dict):
        entries = (f'"{key}": {_write_item(item)}' for key, item in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list):
        # Where items are of any type, strings keep their quotes when they are read.
        write_item = write if item_type == "any" else _write_item
        return "[" + ", ".join(write_item(item, item_type or "any") for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value}n" if declared == "Bigint" and isinstance(value, int) else str(value)


def _write_item(item: object, declared: str = "any") -> str:
    return f'"{item}"' if isinstance(item, str) else write(item, declared)


def _read_array(text: str, item_type: str | None) -> object:
    rows = _rows(text)
    if rows is not None:
        return [[_read_untyped(item) for item in split_items(row)] for row in rows]
    found = _ITEMS.match(text)
    if found is None:
        return text
    inner = (found[1] or found[2] or "").strip()
    items = split_items(inner) if inner else []
    if item_type is None:
        return [_read_untyped(item) for item in items]
    try:
        return [read(item, item_type) for item in items]
    except ValueError:
        return text


def _rows(text: str) -> list[str] | None:
    """Return what stands in each row of a list of lists, or None where the text is no such list.

    A bracket closes a row only where the end of the outer list, or another row, comes after it.
    """
    opening = _ROWS.match(text)
    if opening is None:
        return None
    closing = "]" if text[0] == "[" else ")"
    position = opening.end()
    while (end := text.find("]", position)) >= 0 and "\n" not in text[position:end]:
        after = skip_space(text, end + 1)
        if text[after : after + 1] == closing:
            first, *others = _ROW.findall(text, 0, after + 1)
            # The first match may start at the bracket of the outer list.
            return [first.strip().removeprefix("["), *others]
        next_row = _NEXT_ROW.match(text, end + 1)
        position = next_row.end() if next_row else end + 1
    return None


def _read_object(text: str) -> object:
    """Read `{key: value, …}`; arrays are the only collections that are read in it."""
    found = _OBJECT.match(text)
    if found is None:
        return text
    body = found[1]
    entries: dict[str, object] = {}
    position = 0
    while key := _KEY.match(body, position):
        separator = _VALUE_END.search(body, key.end())
        value = body[key.end() : separator.start() if separator else len(body)].strip()
        if value.startswith("[") and value.endswith("]"):
            entries[_bare(key[1])] = _read_array(value, None)
        else:
            entries[_bare(key[1])] = _read_untyped(value.strip("'\""))
        if separator is None:
            break
        position = separator.end()
    return entries


def _bare(key: str) -> str:
    return key.strip().strip("'\"")


def _read_untyped(text: str) -> object:
    return first_reading(text.strip(), boolean, _string, plain_number)
