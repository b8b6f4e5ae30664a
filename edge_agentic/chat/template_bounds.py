"""The operations of a chat template that could make huge values, with their size checked first.

Texts and lists have an upper length, and so has the text of a value with all that it holds: a
list that holds another one twice, and so on, would be small itself and endless as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from types import GeneratorType
from typing import Any, Final

from jinja2 import pass_context, pass_environment
from jinja2.environment import Environment
from jinja2.exceptions import SecurityError
from jinja2.filters import do_indent, make_attrgetter, sync_do_map
from jinja2.runtime import Context

MAX_VALUE_LENGTH: Final = 16 * 2**20
"""The longest text or list that one of a template's operations may make."""
MAX_PROMPT_CHARACTERS: Final = 64 * 2**20
"""The longest text that a template may put together, and about that of a value with all in it."""

_MAX_INTEGER_BITS: Final = 4096
_MAX_INDENT: Final = 16
_LEAST_LENGTH: Final = 256
_MAX_NESTING: Final = 200
_SIZED: Final = (str, list, tuple)
_VIEWS: Final = (KeysView, ValuesView, ItemsView)
_HOLDING: Final = (list, tuple, set, frozenset, *_VIEWS)
_WIDE_FIELD: Final = re.compile(r"\d{6}|%[^%a-zA-Z]*\*")
_FIELD_IN_FIELD: Final = re.compile(r"\{[^{}]*\{")
_NUMBER: Final = re.compile(r"\d+")


def checked(value: Any) -> Any:
    """The value, unless it is too large as text or nested too deeply.

    Raises:
        SecurityError: it is.
    """
    if not isinstance(value, str):
        _text_length(value)
    return value


def add(left: Any, right: Any) -> Any:
    """`+`."""
    if isinstance(left, _SIZED) and isinstance(right, _SIZED):
        refuse_length(len(left) + len(right))
    return checked(left + right)


def multiply(left: Any, right: Any) -> Any:
    """`*`."""
    for value, count in ((left, right), (right, left)):
        if isinstance(value, _SIZED) and isinstance(count, int):
            refuse_length(len(value) * count)
    if isinstance(left, int) and isinstance(right, int):
        _refuse_bits(left.bit_length() + right.bit_length())
    return checked(left * right)


def power(left: Any, right: Any) -> Any:
    """`**`."""
    if isinstance(left, int) and isinstance(right, int):
        _refuse_bits(left.bit_length() * right)
    return left**right


def modulo(left: Any, right: Any) -> Any:
    """`%`, which also fills in the fields of a text."""
    if isinstance(left, str):
        if _WIDE_FIELD.search(left):
            raise SecurityError("a format with a very wide field")
        widths = sum(map(int, _NUMBER.findall(left)))
        refuse_length(len(left) + widths + left.count("%") * _text_length(right))
    return left % right


def refuse_fields(text: str, values: object) -> None:
    """Refuse a call of `str.format` that could write more than a value may hold.

    Raises:
        SecurityError: it could.
    """
    if _WIDE_FIELD.search(text) or _FIELD_IN_FIELD.search(text):
        raise SecurityError("a format with a very wide field")
    widths = sum(map(int, _NUMBER.findall(text)))
    refuse_length(len(text) + widths + text.count("{") * _text_length(values))


def format_text(text: Any, *values: Any, **named: Any) -> Any:
    """The filter `format`."""
    return modulo(text, named or values)


def replace(text: Any, old: str, new: str, count: int | None = None) -> str:
    """The filter and the method `replace`."""
    text = str(text)
    found = len(text) + 1 if old == "" else text.count(old)
    times = found if count is None or count < 0 else min(found, count)
    refuse_length(len(text) + times * (len(new) - len(old)))
    return str.replace(text, old, new, -1 if count is None else count)


def join(separator: str, values: Iterable[Any]) -> str:
    """The method `join`."""
    pieces, length = [], 0
    for value in values:
        pieces.append(str(value))
        length += len(separator) + len(pieces[-1])
        refuse_length(length)
    return separator.join(pieces)


@pass_environment
def join_filter(
    environment: Environment,
    values: Iterable[Any],
    d: str = "",
    attribute: str | int | None = None,
) -> str:
    """The filter `join`."""
    if attribute is not None:
        values = map(make_attrgetter(environment, attribute), values)
    return join(str(d), values)


@pass_context
def map_filter(context: Context, values: Iterable[Any], *how: Any, **more: Any) -> Iterator[Any]:
    """The filter `map`; what it makes is not looked at again before it is in a list."""
    length = 0
    for value in sync_do_map(context, values, *how, **more):
        length += _own_length(value)
        refuse_length(length, MAX_PROMPT_CHARACTERS)
        yield value


def indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """The filter `indent`."""
    _refuse_indent(width, "indent")
    refuse_length(len(text) + _MAX_INDENT * text.count("\n"))
    return do_indent(text, width, first, blank)


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """The filter `tojson` as transformers gives it to chat templates.

    Jinja's own escapes for HTML, which would change the prompt.
    """
    _refuse_indent(indent, "tojson")
    for separator in separators or ():
        _refuse_indent(separator, "tojson")
    return json.dumps(
        checked(value),
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
        default=_as_list,
    )


def refuse_length(length: int, most: int = MAX_VALUE_LENGTH) -> None:
    """Refuse a text or list of this length if it is too long.

    Raises:
        SecurityError: it is.
    """
    if length > most:
        raise SecurityError(f"a value of length {length} is too long")


def _text_length(value: Any) -> int:
    """About the length of the value's text; goes through all that it holds."""
    length = 0
    open_values: list[Iterator[Any]] = [iter((value,))]
    while open_values:
        if len(open_values) > _MAX_NESTING:
            raise SecurityError(f"a value with more than {_MAX_NESTING} levels")
        for inner in open_values[-1]:
            length += _own_length(inner)
            refuse_length(length, MAX_PROMPT_CHARACTERS)
            if isinstance(inner, _HOLDING):
                open_values.append(iter(inner))
                break
            if isinstance(inner, Mapping):
                open_values.append(chain.from_iterable(inner.items()))
                break
        else:
            open_values.pop()
    return length


def _own_length(value: object) -> int:
    """About the length of its text, without that of the values in it."""
    if isinstance(value, str):
        return len(value) + _LEAST_LENGTH
    return value.bit_length() // 3 + _LEAST_LENGTH if isinstance(value, int) else _LEAST_LENGTH


def _refuse_bits(bits: int) -> None:
    if bits > _MAX_INTEGER_BITS:
        raise SecurityError(f"a number of {bits} bits is too large")


def _refuse_indent(width: int | str | None, name: str) -> None:
    columns = len(width) if isinstance(width, str) else width
    if columns is not None and columns > _MAX_INDENT:
        raise SecurityError(f"{name} with an indent of {columns}")


def _as_list(value: object) -> list[Any]:
    """What JSON has no form for, and templates take for lists: results of `map`, views of keys."""
    if isinstance(value, (GeneratorType, *_VIEWS)):
        return list(checked(list(value)))
    raise TypeError(f"{type(value).__name__} can't be JSON")
