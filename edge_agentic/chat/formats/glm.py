"""The calls of GLM-4.5 and later: `<tool_call>NAME`, a pair of tags for each parameter."""

from __future__ import annotations

import re
from typing import Final

from edge_agentic.chat.formats.reading import Form, Reading
from edge_agentic.chat.formats.tagged_values import Tags, read_tagged_call

_TAGS: Final = Tags(
    inside=re.compile(
        r"(?P<parameter><arg_key>(?:(?P<key>[^<>]*)</arg_key>\s*<arg_value>)?)"
        r"|(?P<end></tool_call>)|(?P<beyond><tool_call>)|</?arg_(?:key|value)>"
    ),
    value_end="</arg_value>",
    endings=re.compile(
        r"(?P<close></arg_value>)(?=\s*(?:<arg_key>|</?tool_call>|\Z))"
        r"|<arg_key>(?P<next>[^<>]*)</arg_key>(?=\s*<arg_value>)"
        r"|</tool_call>(?=\s*(?:<tool_call>|\Z))"
        r"|<tool_call>(?=\s*(?P<call>[\w.\-]+)\s*<arg_key>)"
    ),
    trimmed=False,
)
_STOP: Final = re.compile(r"(?P<open><tool_call>)|(?P<close></tool_call>)")


def _read(reading: Reading, mark: re.Match[str]) -> int:
    if mark["close"] is not None:
        return mark.end()
    if mark["name"] is None:
        return reading.fail_block(mark, _STOP)
    return read_tagged_call(reading, mark, mark["name"], _TAGS)


GLM: Final = Form(
    starts=("<tool_call>",),
    calls=(
        r"<tool_call>\s*(?P<name>[\w.\-]+)\s*(?=<arg_key>|</tool_call>)"
        r"|(?P<open><tool_call>)|(?P<close></tool_call>)"
    ),
    read=_read,
)
