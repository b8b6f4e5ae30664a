"""Gemma 4's calls: `call:NAME{key:value}`, with `<|"|>` for the quotes of strings."""

from __future__ import annotations

import json
import re
from typing import Final

from edge_agentic.chat.formats.reading import Form, Reading, decode

_STOP: Final = re.compile(r"(?P<open><\|tool_call>)|(?P<close><tool_call\|>)")
_TOKEN: Final = re.compile(rf'(?P<quote><\|"\|>)|{_STOP.pattern}')
_HEAD: Final = re.compile(r"\s*call:(?P<name>[^\s{}<>]+)(?=\{)")
_KEY: Final = re.compile(r"(?<=[{,])\s*([A-Za-z_][\w.\-]*)\s*:")


def _read(reading: Reading, mark: re.Match[str]) -> int:
    if mark["close"] is not None:
        return mark.end()
    head = _HEAD.match(reading.text, mark.end())
    if head is None:
        return reading.fail_block(mark, _STOP)
    written, end = _as_json(reading.text, head.end())
    decoded = decode(written, 0)
    if decoded.end == len(written) and decoded.whole and reading.add(head["name"], decoded.value):
        return end
    return reading.fail(mark, end)


def _as_json(text: str, start: int) -> tuple[str, int]:
    """The arguments at `start` as JSON, up to the call's end, and where the text goes on."""
    pieces: list[str] = []
    position, in_string = start, False
    for token in _TOKEN.finditer(text, start):
        piece = text[position : token.start()]
        if token["quote"] is not None:
            pieces.append(json.dumps(piece) if in_string else _with_quoted_keys(piece))
            position, in_string = token.end(), not in_string
        elif not in_string:
            pieces.append(_with_quoted_keys(piece))
            end = token.start() if token["close"] is None else token.end()
            return "".join(pieces).strip(), end
    pieces.append(_with_quoted_keys(text[position:]))
    return "".join(pieces).strip(), len(text)


def _with_quoted_keys(piece: str) -> str:
    return _KEY.sub(r'"\1":', piece)


GEMMA4: Final = Form(
    starts=("<|tool_call>",),
    calls=_STOP.pattern,
    read=_read,
    thoughts={"<|channel>thought": "<channel|>"},
)
