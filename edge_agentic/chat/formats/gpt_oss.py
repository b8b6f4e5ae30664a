"""The calls of gpt-oss: messages on channels, of which those to a function hold its arguments."""

from __future__ import annotations

import re
from typing import Final

from edge_agentic.chat.formats.named_calls import read_named
from edge_agentic.chat.formats.reading import Form, Reading

# Lengths are bounded, or the parts that overlap would be tried in every combination.
_TO: Final = r"\s{0,8}to=(?:functions\.)?"
_HEADER: Final = (
    rf"(?:<\|start\|>assistant)?(?:{_TO}(?P<early>[^\s<]{{1,200}}))?"
    rf"<\|channel\|>(?P<channel>\w{{1,20}})(?:{_TO}(?P<late>[^\s<]{{1,200}}))?"
    r"[\w\s]{0,20}(?:<\|constrain\|>[\w\s]{0,20})?<\|message\|>"
)
_MESSAGE_END: Final = re.compile(r"<\|(?:end|call|return|start)\|>")
_CALL_END: Final = re.compile(r"\s*<\|(?:call|end)\|>")


def _read(reading: Reading, mark: re.Match[str]) -> int:
    if name := mark["early"] or mark["late"]:
        return read_named(reading, mark, name, mark.end(), _CALL_END)
    if mark["channel"] != "analysis":
        return mark.end()
    ending = _MESSAGE_END.search(reading.text, mark.end())
    end = len(reading.text) if ending is None else ending.start()
    reading.think(reading.text[mark.end() : end])
    return end


GPT_OSS: Final = Form(
    starts=(" to=functions.",),
    calls=_HEADER,
    read=_read,
    thoughts={},
    silent=r"<\|(?:start\|>(?:assistant)?|(?:end|call|return)\|>)",
    lead_in="<|start|>assistant",
)
