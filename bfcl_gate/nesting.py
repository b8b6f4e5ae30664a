"""Tell how deeply JSON text is nested, without reading it."""

import re
from itertools import accumulate
from typing import Final

MAX_DEPTH: Final = 200
"""Python's own limit depends on its version and on the caller; this one is far below."""

_STRING: Final = re.compile(r'"[^"\\]*(?:\\.?[^"\\]*)*"?', re.DOTALL)
_BRACKET: Final = re.compile(r"[\[\]{}]")


def too_deep(text: str) -> bool:
    """Return whether brackets outside strings are nested more than `MAX_DEPTH` levels deep."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    brackets = _BRACKET.findall(_STRING.sub("", text))
    return any(
        depth > MAX_DEPTH
        for depth in accumulate(1 if bracket in "[{" else -1 for bracket in brackets)
    )
