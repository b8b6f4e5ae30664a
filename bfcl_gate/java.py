"""Read and write the Java literals that arguments of Java functions are given in.

The rules are those of the BFCL v4 reference, oddities included: items are split at every comma, and
what stands around a collection is ignored.
"""

import re
from collections.abc import Iterator, Mapping
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
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "boolean": bool,
    "char": str,
    "String": str,
    "any": str,
    "Array": list,
    "ArrayList": list,
    "Queue": list,
    "Stack": list,
    "Set": set,
    "HashMap": dict,
    "Hashtable": dict,
}
ARRAY_TYPES: Final = frozenset({"Array", "ArrayList"})

# Parity: a newline may follow a number.
_integer: Final = number_reader(int, r"(-?\d+)\n?")
_long: Final = number_reader(int, r"(-?\d+)[lL]\n?")
_float: Final = number_reader(float, r"(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)[fF]\n?")
_double: Final = number_reader(float, r"(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\n?")
_string: Final = string_reader('"')  # where no type is declared
_SCALARS: Final[Mapping[str, Reader]] = {
    "byte": _integer,
    "short": _integer,
    "integer": _integer,
    "long": _long,
    "float": _float,
    "double": _double,
    "boolean": boolean,
}
_WITHOUT_LITERALS: Final = frozenset({"Queue", "Stack", "Set", "Hashtable"})
# The items that lose their quotes when a list is read.
_QUOTED: Final = frozenset({"String", "char"})
_SUFFIXES: Final[Mapping[str, str]] = {"long": "L", "float": "f"}

_NEW_ARRAY: Final = re.compile(r"new\s+\w+\[\]\s*\{")
_NEW_LIST: Final = re.compile(r"new\s+ArrayList<\w*>\(\)")
_NEW_LIST_OF: Final = re.compile(r"new\s+ArrayList<\w*>\(Arrays\.asList\(")
_NEW_LIST_WITH: Final = re.compile(r"new\s+ArrayList<\w*>\(\)\s*\{\{\s*")
_ADD: Final = re.compile(r"add\(")
_NEW_MAP: Final = re.compile(r"new\s+HashMap<")
_MAP_END: Final = re.compile(r">\s*\(\)")
_MAP_WITH: Final = re.compile(r">\s*\(\)\s*\{\s*\{?")
_PUT: Final = 'put("'


def read(text: str, declared: str, item_type: str | None = None) -> object:
    """Read a literal of the declared type; what is no such literal stays text.

    Raises:
        ValueError: The reference cannot judge such a value: it reads no literals of the type, or an
            integer has more digits than Python agrees to read.
    """
    if declared in _SCALARS:
        return _SCALARS[declared](text)
    if declared == "Array":
        return _read_array(text, item_type)
    if declared == "ArrayList":
        return _read_list(text, item_type)
    if declared == "HashMap":
        return _read_map(text)
    if declared in _WITHOUT_LITERALS:
        raise ValueError(f"no literal of type {declared} is read")
    return text


def write(value: object, declared: str, item_type: str | None = None) -> str:
    """Write a literal of the declared type that `read` reads as `value`.

    A string with a comma, a bracket or a quote may be read as something else.
    """
    if isinstance(value, dict):
        puts = " ".join(f'put("{key}", {_write_item(item)});' for key, item in value.items())
        return f"new HashMap<>() {{{{ {puts} }}}}"
    if isinstance(value, list):
        quoted = declared == "ArrayList" and item_type in _QUOTED
        write_item = _write_item if quoted else write
        items = ", ".join(write_item(item, item_type or "any") for item in value)
        if declared == "Array":
            return f"new Object[]{{{items}}}"
        return f"new ArrayList<>(Arrays.asList({items}))" if items else "new ArrayList<>()"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) + ("" if isinstance(value, str) else _SUFFIXES.get(declared, ""))


def _write_item(item: object, declared: str = "any") -> str:
    return f'"{item}"' if isinstance(item, str) else write(item, declared)


def _read_array(text: str, item_type: str | None) -> object:
    inner = next(_insides(text, _NEW_ARRAY, "}"), None)
    if inner is None:
        return text
    return [_read_item(item, item_type) for item in split_items(inner) if item]


def _read_list(text: str, item_type: str | None) -> object:
    items = _list_items(text)
    if items is None:
        return text
    if item_type in _QUOTED:
        # Parity: the first and the last character go, whatever they are.
        return [item[1:-1] for item in items]
    return [_read_item(item, item_type) for item in items]


def _list_items(text: str) -> list[str] | None:
    inner = next(_insides(text, _NEW_LIST_OF, "))", least=1), None)
    if inner is not None:
        return split_items(inner)
    start = _NEW_LIST_WITH.search(text)
    end = text.find("}}", start.end() + 1) if start else -1
    if start and end >= 0:
        return [item.strip() for item in _insides(text[start.end() : end], _ADD, ")", least=1)]
    return [] if _NEW_LIST.search(text) else None


def _read_map(text: str) -> object:
    start = _NEW_MAP.search(text)
    body = _MAP_WITH.search(text, start.end()) if start else None
    end = text.find("}", body.end()) if body else -1
    if body and end >= 0:
        return _entries(text[body.end() : end])
    for start in _NEW_MAP.finditer(text):
        end_of_type = _MAP_END.search(text, start.end())
        if end_of_type and "\n" not in text[start.end() : end_of_type.start()]:
            return {}
    return text


def _entries(body: str) -> dict[str, object]:
    """Read each `put("key", value)`."""
    found: dict[str, object] = {}
    position = 0
    while (start := body.find(_PUT, position)) >= 0:
        position = start + 1
        key_at = start + len(_PUT)
        line = _line_end(body, key_at)
        # Parity: a key ends at the first quote and comma from which a value can be read. If it is
        # not the first on the line, it can only be the last, whose value may be on the next line.
        for comma in (body.find('",', key_at, line), body.rfind('",', key_at, line)):
            value_at = skip_space(body, comma + 2)
            end = body.find(")", value_at, _line_end(body, value_at))
            if comma >= 0 and end >= 0:
                found[body[key_at:comma]] = _read_untyped(body[value_at:end].strip())
                position = end + 1
                break
    return found


def _read_item(item: str, item_type: str | None) -> object:
    return read(item, item_type) if item_type else _read_untyped(item)


def _read_untyped(text: str) -> object:
    return first_reading(text, boolean, _string, _long, _float, plain_number)


def _insides(text: str, opening: re.Pattern[str], closing: str, least: int = 0) -> Iterator[str]:
    """Yield what stands between an opening and the next closing mark, if that is on its line.

    The inner text has at least `least` characters, even if they are a closing mark.
    """
    position = 0
    while start := opening.search(text, position):
        position = start.end()
        end = text.find(closing, position + least)
        if end >= 0 and "\n" not in text[position:end]:
            yield text[position:end]
            position = end + len(closing)


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return end if end >= 0 else len(text)
