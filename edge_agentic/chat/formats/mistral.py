"""Mistral's calls: `[TOOL_CALLS][{…}]`, or `[TOOL_CALLS]name[ARGS]{…}` in newer models."""

from __future__ import annotations

import re
from typing import Final

from edge_agentic.chat.formats.json_calls import read_block
from edge_agentic.chat.formats.named_calls import read_named
from edge_agentic.chat.formats.reading import THINK, Form, Reading

_MARK: Final = "[TOOL_CALLS]"
_STOP: Final = re.compile(rf"(?P<open>{re.escape(_MARK)})|(?P<close>(?!))")
_HEAD: Final = re.compile(
    r"\s*(?P<name>[^\s\[\]{}\"]+)\s*(?:\[CALL_ID\][^\[\]\s{]*)?\s*(?:\[ARGS\]\s*|(?=\{))"
)
_ENDING: Final = re.compile("")


def _read(reading: Reading, mark: re.Match[str]) -> int:
    if head := _HEAD.match(reading.text, mark.end()):
        return read_named(reading, mark, head["name"], head.end(), _ENDING)
    return read_block(reading, mark, _STOP)


MISTRAL: Final = Form(
    starts=(_MARK,),
    calls=re.escape(_MARK),
    read=_read,
    thoughts={**THINK, "[THINK]": "[/THINK]"},
)
