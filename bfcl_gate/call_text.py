"""Find Python-style calls, `name(argument='value')`, in text that a model wrote.

Nothing is evaluated. Only text within bounds is parsed, so that none can raise, hang, or overflow
the stack of a parser.
"""

import ast
import json
import re
import warnings
from typing import Final

# 1,024 new tokens, the most that the gate asks for, stay far below these.
_MAX_TEXT_CHARS: Final = 50_000
_MAX_SEARCHED_CHARS: Final = 1_000_000
_MAX_DEPTH: Final = 100

# A quotation that nobody closes goes on to the end of the text or line: no pattern ever backtracks.
_START: Final = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s*\(")
_PARENTHESIS: Final = re.compile(
    r"""[()]|'[^'\\]*(?:\\.?[^'\\]*)*'?|"[^"\\]*(?:\\.?[^"\\]*)*"?""", re.DOTALL
)
_DECLARED: Final = re.compile(r"(?:[A-Za-z_]\w*(?:\s*:\s*\w+)?)?")
# Strings and comments as Python sees them, formatted strings left out.
_QUOTED: Final = re.compile(
    r"(?<!\w)[bBrRuU]{0,2}(?:"
    r"'''[^'\\]*(?:(?:\\.?|'(?!''))[^'\\]*)*(?:''')?|"
    r'"""[^"\\]*(?:(?:\\.?|"(?!""))[^"\\]*)*(?:""")?|'
    r"'[^'\\\n]*(?:\\.?[^'\\\n]*)*'?|"
    r'"[^"\\\n]*(?:\\.?[^"\\\n]*)*"?)|'
    r"#[^\r\n]*",
    re.DOTALL,
)
_WORD: Final = re.compile(r"\w+|\S")

# What prose and code often put before a parenthesis. Parity: no other word is passed over.
_PASSED_OVER: Final = """
assert class def except for from if import raise return try while with
dict enumerate filter float int isinstance len list map print range set str tuple type zip
Example For Here Note The This
"""
_NOT_CALLS: Final = frozenset(_PASSED_OVER.split())


def find_calls(text: str) -> list[tuple[str, dict[str, object]]]:
    """Return (name, arguments) of each call, in text order; none where the text is too long.

    A call inside the parentheses of another is part of that one. What stands in the parentheses is
    read as Python: each keyword argument counts, and positional ones do not. A value that is no
    literal is the text of its expression. Parentheses that cannot be read give one argument,
    `_raw`, which no function takes. Names alone in the parentheses, as in `area(width, height)`,
    are a mention and no call. Source: BFCL v4 as MLPerf Inference v6.1 runs it.
    """
    calls: list[tuple[str, dict[str, object]]] = []
    if len(text) > _MAX_TEXT_CHARS:
        return calls
    position = searched = 0
    while start := _START.search(text, position):
        position = start.end()
        if start[1] in _NOT_CALLS:
            continue
        end = _closing(text, position)
        searched += (len(text) if end is None else end) - position
        if searched > _MAX_SEARCHED_CHARS:
            return []
        if end is None:
            continue
        written = text[position:end].strip()
        if not written or not _is_mention(written):
            calls.append((start[1], _arguments(written)))
        position = end
    return calls


def _closing(text: str, position: int) -> int | None:
    """Return where the parenthesis that is open at `position` closes; those in quotes don't count.

    Parity: any quote opens a quotation, an apostrophe in prose too.
    """
    depth = 1
    for mark in _PARENTHESIS.finditer(text, position):
        depth += (mark[0] == "(") - (mark[0] == ")")
        if depth == 0:
            return mark.start()
    return None


def _is_mention(written: str) -> bool:
    """Whether there are but names, with or without a type, as in `width: int, height`."""
    return all(_DECLARED.fullmatch(part.strip()) for part in written.split(","))


def _arguments(written: str) -> dict[str, object]:
    unreadable: dict[str, object] = {"_raw": written}
    if not _is_shallow(written):
        return unreadable
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # An escape that Python doesn't know is no concern.
            call = ast.parse(f"f({written})", mode="eval").body
        keywords = call.keywords if isinstance(call, ast.Call) else []
        found = {word.arg: _value(word.value) for word in keywords if word.arg is not None}
        # Through JSON, as in the reference: tuples become lists, keys become strings. Where the
        # reference raises, on a set for one, nothing is read.
        plain: dict[str, object] = json.loads(json.dumps(found))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return unreadable
    return plain


def _value(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (SyntaxError, ValueError):
        return ast.unparse(node)


def _is_shallow(written: str) -> bool:
    """Whether a syntax tree of the text is at most about `_MAX_DEPTH` levels deep.

    Every word and mark may add a level (`-` in `--1`, `.a` in `x.a.a`, a bracket), up to the comma
    or bracket that ends the expression around it. Quotes left after strings and comments are gone
    belong to formatted strings, whose expressions nobody has counted, or to no Python at all.
    """
    code = _QUOTED.sub(" _ ", written)
    if "'" in code or '"' in code:
        return False
    outer = [0]  # The level at which the parts of each open bracket start.
    level = 0
    for word in _WORD.findall(code):
        level += 1
        if level > _MAX_DEPTH:
            return False
        if word in "([{":
            outer.append(level)
        elif word in ")]}" and len(outer) > 1:
            level = outer.pop()
        elif word == ",":
            level = outer[-1]
        elif word == "lambda":
            outer[-1] = level  # The commas between its parameters end nothing.
    return True
