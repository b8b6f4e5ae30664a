"""The calls of DeepSeek V3, V3.1 and R1: name and arguments between tokens of its own."""

from __future__ import annotations

import re
from typing import Final

from edge_agentic.chat.formats.named_calls import named_form
from edge_agentic.chat.formats.reading import Form


def _token(name: str) -> str:
    """A token as it is spelled: full-width bars, and low blocks for spaces."""
    return f"<\uff5c{name.replace(' ', chr(0x2581))}\uff5c>"


CALL_BEGIN: Final = _token("tool call begin")
_CALLS_BEGIN, _CALLS_END = _token("tool calls begin"), _token("tool calls end")
_SEPARATOR: Final = _token("tool sep")

# R1 and V3 write the type, the separator, the name and a code fence; V3.1 only the name and the
# separator.
DEEPSEEK: Final[Form] = named_form(
    (_CALLS_BEGIN, CALL_BEGIN),
    rf"{CALL_BEGIN}\s*(?:function{_SEPARATOR})?(?P<name>[^\s<]+)\s*(?:{_SEPARATOR}\s*)?"
    r"(?:```(?:json)?\s*)?",
    rf"\s*(?:```)?\s*{re.escape(_token('tool call end'))}",
    silent=f"{_CALLS_BEGIN}|{_CALLS_END}",
)
