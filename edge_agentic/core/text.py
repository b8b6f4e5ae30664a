"""Makes foreign text safe to show: nothing in it may drive or deceive a terminal."""

from __future__ import annotations

import json
import re
from typing import Final

# Control characters but tab and line feed, C1 controls, direction marks and overrides, invisible
# joiners, line and paragraph separators, lone surrogates.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff]"
)
_BREAKS: Final = re.compile("[\t\n]")
_NOT_ASCII: Final = re.compile("[^\x00-\x7f]")


def printable(text: str) -> str:
    r"""The text with what could drive or deceive a terminal as a visible `\u001b`.

    Inside JSON text the result means the same as before.
    """
    return _UNSAFE.sub(_escaped, text)


def one_line(text: str, *, ascii_only: bool = False) -> str:
    """`printable`, with line feeds and tabs escaped too, and all but ASCII if asked."""
    shown = _BREAKS.sub(_escaped, printable(text))
    return _NOT_ASCII.sub(_escaped, shown) if ascii_only else shown


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]
