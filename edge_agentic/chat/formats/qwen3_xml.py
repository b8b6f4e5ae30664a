"""The calls of Qwen3-Coder, Qwen3.5 and Qwen3.6: `<function=NAME>`, a tag for each parameter."""

from __future__ import annotations

import re
from typing import Final

from edge_agentic.chat.formats.json_calls import read_block
from edge_agentic.chat.formats.reading import Form, Reading
from edge_agentic.chat.formats.tagged_values import Tags, read_tagged_call

_CALLS: Final = (
    r"<tool_call>\s*<function=(?P<name>[^<>\n]+)>"
    r"|<function=(?P<unopened>[^<>\n]+)>(?=\s*(?:<parameter=|</function>|\Z))"
    r"|(?P<broken><function=(?=[^<>\n]*>?\s*<parameter=))"
    r"|(?P<open><tool_call>)|(?P<close></tool_call>)"
)
_FUNCTION: Final = r"<function=[\w.\-]+>\s*(?:<parameter=|</function>)"
_TAGS: Final = Tags(
    inside=re.compile(
        r"(?P<parameter><parameter=(?:(?P<key>[^<>\n]*)>)?)|</parameter>"
        r"|(?P<end></function>(?:\s*</tool_call>)?)"
        r"|(?P<beyond></?tool_call>|<function=)"
    ),
    value_end="</parameter>",
    endings=re.compile(
        rf"(?P<close></parameter>)(?=\s*(?:<parameter=|</function>|</?tool_call>|{_FUNCTION}|\Z))"
        rf"|<parameter=(?P<next>[\w.\-]+)>"
        rf"|</function>(?=\s*(?:</?tool_call>|{_FUNCTION}|\Z))"
        rf"|</tool_call>(?=\s*(?:<tool_call>|\Z))"
        rf"|(?:<tool_call>\s*)?<function=(?P<call>[\w.\-]+)>(?=\s*(?:<parameter=|</function>))"
    ),
    trimmed=True,
)
_STOP: Final = re.compile(r"(?P<open><tool_call>|<function=)|(?P<close></tool_call>)")
_JSON: Final = re.compile(r"\s*[\[{]")


def _read(reading: Reading, mark: re.Match[str]) -> int:
    if mark["close"] is not None:
        return mark.end()
    if mark["broken"] is not None:
        return reading.fail(mark, mark.end())
    if mark["open"] is None:
        name = mark["name"] or mark["unopened"]
        return read_tagged_call(reading, mark, name.strip(), _TAGS)
    if _JSON.match(reading.text, mark.end()):
        return read_block(reading, mark, _STOP)
    return reading.fail_block(mark, _STOP)


QWEN3_XML: Final = Form(starts=("<tool_call>", "<function="), calls=_CALLS, read=_read)
