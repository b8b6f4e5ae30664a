"""Find Python-style calls, `name(argument='value')`, in text that a model wrote.

The reader knows literals only. It evaluates nothing, recurses to a fixed depth, and gives up after
a fixed amount of work, so that no text can raise, hang or run.
"""

import re
from collections.abc import Iterator
from typing import Final

# 1,024 new tokens, the most that the gate asks for, stay far below these.
_MAX_CALL_CHARS: Final = 20_000
_MAX_WORK_CHARS: Final = 200_000
_MAX_DEPTH: Final = 32

_CALL: Final = re.compile(r"(?<![\w.])([^\W\d]\w*(?:\.[^\W\d]\w*)*)\(")
_SPACE: Final = re.compile(r"\s*")
_KEYWORD: Final = re.compile(r"([^\W\d]\w*)\s*=(?!=)")
_WORD: Final = re.compile(r"[^\W\d]\w*")
_INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9](?:_?\d)*)(?![\w.])")
_FLOAT: Final = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?(?![\w.])")
_STRING: Final = re.compile(
    r"([rRuU]?)(?:"
    r"'''([^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*)'''|"
    r'"""([^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*)"""|'
    r"'(?!'')([^'\\\n]*(?:\\.[^'\\\n]*)*)'|"
    r'"(?!"")([^"\\\n]*(?:\\.[^"\\\n]*)*)")',
    re.DOTALL,
)
_ESCAPE: Final = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})"
    r"|(.))",
    re.DOTALL,
)
_PLAIN: Final = re.compile(r"[^()\[\]{},'\"]+")

_ESCAPED: Final = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "\n": "",
}  # fmt: skip
_CONSTANTS: Final = {
    "True": True, "true": True, "False": False, "false": False, "None": None, "null": None,
}  # fmt: skip
# What prose and code often put before a parenthesis.
_PYTHON_WORDS: Final = """
False None True and as assert async await break class continue def del elif else except finally for
from global if import in is lambda nonlocal not or pass raise return try while with yield abs all
any bool bytes callable chr complex dict dir enumerate eval exec filter float format getattr hasattr
hash hex id input int isinstance iter len list map max min next object open ord pow print range repr
reversed round set setattr slice sorted str sum super tuple type vars zip
"""
_ENGLISH_WORDS: Final = """
a an and answer example for function functions here however i if in it note or so step that the then
there these they this to use using we when you
"""
_NOT_CALLS: Final = frozenset((_PYTHON_WORDS + _ENGLISH_WORDS + _ENGLISH_WORDS.title()).split())


class _NotLiteral(Exception):
    """What stands here is an expression, not a literal."""


class _NotCall(Exception):
    """What stands here is not a call that can be read."""


def find_calls(text: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield (name, arguments) of each call written with keyword arguments, in text order.

    A call inside an argument of another is part of that argument. An argument that is no literal
    is the text of its expression. Positional arguments make it no call: nothing says which
    parameters they mean, and prose such as "file(s)" looks the same.
    """
    position = work = 0
    while work < _MAX_WORK_CHARS and (start := _CALL.search(text, position)):
        position = start.end()
        if start[1] in _NOT_CALLS:
            continue
        reader = _Reader(text, position)
        try:
            arguments = reader.arguments()
        except _NotCall:
            pass
        else:
            position = reader.position
            yield start[1], arguments
        work += reader.work + reader.position - start.start()


class _Reader:
    """Reads literals from `position` on, and leaves `position` after what it has read."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position
        self.work = 0
        """Characters read as expressions, some of them for the second time."""
        self._end = min(len(text), position + _MAX_CALL_CHARS)

    def arguments(self) -> dict[str, object]:
        """Read `name=value, …)`."""
        found: dict[str, object] = {}
        while not self._take(")"):
            keyword = self._match(_KEYWORD)  # _take has skipped the space before it
            if keyword is None:
                raise _NotCall
            found[keyword[1]] = self._value(0)
            if not self._take(",") and self._peek() != ")":
                raise _NotCall
        return found

    def _value(self, depth: int) -> object:
        self._peek()
        start = self.position
        try:
            value = self._literal(depth)
            if self._peek() not in (",", ")", "]", "}", ":"):
                raise _NotLiteral
            return value
        except _NotLiteral:
            self.position = start
            return self._expression()

    def _literal(self, depth: int) -> object:
        if depth > _MAX_DEPTH:
            raise _NotCall
        if self._take("["):
            return self._items("]", depth)[0]
        if self._take("("):
            items, commas = self._items(")", depth)
            return items[0] if len(items) == 1 and not commas else tuple(items)
        if self._take("{"):
            return self._dict(depth)
        if string := self._match(_STRING):
            parts = [_string(string)]
            while self._peek() and (string := self._match(_STRING)):  # adjacent strings are one
                parts.append(_string(string))
            return "".join(parts)
        return self._scalar()

    def _scalar(self) -> object:
        try:
            if number := self._match(_FLOAT):
                return float(number[0])
            if number := self._match(_INTEGER):
                return int(number[0])
        except ValueError:  # more digits than Python agrees to read
            raise _NotLiteral from None
        word = self._match(_WORD)
        if word is None or word[0] not in _CONSTANTS:
            raise _NotLiteral
        return _CONSTANTS[word[0]]

    def _items(self, closer: str, depth: int) -> tuple[list[object], int]:
        """Read items up to the closing bracket; return them and how many commas there were."""
        items: list[object] = []
        commas = 0
        while not self._take(closer):
            items.append(self._value(depth + 1))
            if self._take(","):
                commas += 1
            elif self._peek() != closer:
                raise _NotCall
        return items, commas

    def _dict(self, depth: int) -> dict[object, object]:
        found: dict[object, object] = {}
        while not self._take("}"):
            key = self._literal(depth + 1)
            if not isinstance(key, (str, int, float, type(None))) or not self._take(":"):
                raise _NotLiteral
            found[key] = self._value(depth + 1)
            if not self._take(",") and self._peek() != "}":
                raise _NotCall
        return found

    def _expression(self) -> str:
        """Read an expression as text, up to the comma or bracket that ends it."""
        start = self.position
        open_brackets = 0
        while self.position < self._end:
            mark = self.text[self.position]
            if mark in ",)]}" and open_brackets == 0:
                break
            if mark in "'\"":
                if not self._match(_STRING):
                    break
            elif not self._match(_PLAIN):
                open_brackets += (mark in "([{") - (mark in ")]}")
                self.position += 1
        self.work += self.position - start
        if self.position == start or self._peek() not in (",", ")", "]", "}"):
            raise _NotCall
        return self.text[start : self.position].strip()

    def _peek(self) -> str:
        """Skip space, and return the character after it, or "" at the end."""
        self._match(_SPACE)
        return self.text[self.position : min(self.position + 1, self._end)]

    def _take(self, mark: str) -> bool:
        found = self._peek() == mark
        self.position += found
        return found

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.position, self._end)
        if found:
            self.position = found.end()
        return found


def _string(match: re.Match[str]) -> str:
    body = next(group for group in match.groups()[1:] if group is not None)
    return body if match[1] in ("r", "R") else _ESCAPE.sub(_unescape, body)


def _unescape(match: re.Match[str]) -> str:
    octal, byte, short, long, other = match.groups()
    if octal:
        return chr(int(octal, 8))
    if other is None:
        return chr(int(byte or short or long, 16))
    return _ESCAPED.get(other, match[0])
