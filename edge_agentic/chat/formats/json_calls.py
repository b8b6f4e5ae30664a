"""Reads calls that are JSON objects with a name and arguments, between marks or bare."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from edge_agentic.chat.formats.reading import THINK, Form, FoundCall, Reading, as_call, decode

_NOTHING: Final = r"(?!)"
_BARE: Final = r'(?P<fence>```\w*[ \t]*\n\s*)?(?P<bare>(?:\[\s*)?\{\s*")'
_OPENING: Final = re.compile(r"\s*(?:```\w*[ \t]*\n\s*)?(?:\[\s*)?")
_SEPARATOR: Final = re.compile(r"[\s,;]*")
_CLOSING: Final = re.compile(r"[\s,;\]}]*(?:```)?\s*")
_EMPTY_LIST: Final = re.compile(r"\s*\[\s*\]")
_END_OF_LIST: Final = re.compile(r"(?:\s*\])?")
_END_OF_FENCE: Final = re.compile(r"\s*```")
_TO_END: Final = re.compile(r"\s*\Z")
_HEAD: Final = re.compile(r'\{\s*"(?:tool_)?name"\s*:\s*"(?P<name>[^"\\]*)')
_UP_TO_ARGUMENTS: Final = re.compile(
    r'\{\s*(?:"(?:id|type)"\s*:\s*"[^"\\]*"\s*,\s*)*"(?:tool_)?name"\s*:\s*"(?P<name>[^"\\]+)"'
    r'\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)'
)


class _Run(NamedTuple):
    """JSON objects in a row. `stuck`: where decoding of the one at `end` gave up, if it did."""

    calls: list[FoundCall]
    others: list[Any]
    end: int
    stuck: int | None


def json_form(
    opens: Sequence[str] = (),
    closes: Sequence[str] = (),
    *,
    bare: bool = False,
    thoughts: Mapping[str, str] = THINK,
    silent: str = _NOTHING,
) -> Form:
    """The form of calls in JSON: one object, several in a row, or a list of them.

    Args:
        opens: marks that calls stand behind.
        closes: marks that may end them.
        bare: calls without a mark count too: those that start the answer, that name an offered
            function, or whose opening mark is missing before a closing one.
        thoughts: the tags of reasoning.
        silent: pattern of further marks that are no content.
    """
    opening = "|".join(map(re.escape, opens)) or _NOTHING
    closing = "|".join(map(re.escape, closes)) or _NOTHING
    stop = re.compile(f"(?P<open>{opening})|(?P<close>{closing})")
    closed = re.compile(rf"\s*(?:{closing})")

    def read(reading: Reading, mark: re.Match[str]) -> int:
        if mark["open"] is not None:
            return read_block(reading, mark, stop)
        if mark["close"] is not None:
            return mark.end()
        return _read_bare(reading, mark, stop, closed)

    return Form(
        starts=(*opens, *(("{", "[") if bare else ())),
        calls=f"{stop.pattern}|{_BARE if bare else _NOTHING}",
        read=read,
        thoughts=thoughts,
        silent=silent,
    )


def read_block(reading: Reading, mark: re.Match[str], stop: re.Pattern[str]) -> int:
    """Read the calls behind an opening mark; return where the text goes on.

    A broken object spares the others. A block without a call stays in the content.

    Args:
        reading: takes what is found.
        mark: the opening mark.
        stop: what a block can't go beyond; its group `close` is what closes one.
    """
    text, found = reading.text, len(reading.calls)
    if empty := _EMPTY_LIST.match(text, mark.end()):
        return empty.end()
    end = _match_end(_CLOSING, text, _read_objects(reading, mark.end(), stop))
    if len(reading.calls) == found:
        return reading.fail_block(mark, stop)
    following = stop.search(text, end)
    if following is None or following["close"] is None:
        return end
    if following.start() > end:
        reading.malformed = True
        reading.keep(end, following.start())
    return following.end()


def _read_objects(reading: Reading, position: int, stop: re.Pattern[str]) -> int:
    text, limit = reading.text, -1
    position = _match_end(_OPENING, text, position)
    while True:
        run = _read_run(text, position)
        reading.calls += run.calls
        reading.malformed |= bool(run.others)
        if run.stuck is None:
            return run.end
        reading.malformed = True
        if limit <= run.end:
            following = stop.search(text, run.end + 1)
            limit = len(text) if following is None else following.start()
        # Beyond the point where decoding gave up: what it has passed is the broken object's own.
        head = _HEAD.search(text, run.stuck, limit)
        if head is None:
            return limit
        position = head.start()


def _read_bare(
    reading: Reading, mark: re.Match[str], stop: re.Pattern[str], closed: re.Pattern[str]
) -> int:
    text = reading.text
    run = _read_run(text, _match_end(_OPENING, text, mark.start("bare")))
    end = _match_end(_END_OF_LIST, text, run.end)
    closing = closed.match(text, end)
    if run.calls and (
        reading.at_start
        or closing is not None
        or all(_is_offered(call, reading.functions) for call in run.calls)
    ):
        reading.calls += run.calls
        reading.malformed |= bool(run.others) or run.stuck is not None
        if mark["fence"] is not None:
            closing = _END_OF_FENCE.match(text, end)
        return end if closing is None else closing.end()
    if run.stuck is None:
        reading.malformed |= any(_tries(value, reading.functions) for value in run.others)
        reading.keep(mark.start(), run.end)
        return run.end
    head = _HEAD.match(text, run.end)
    if head and (reading.at_start or head["name"] in reading.functions):
        reading.malformed = True
    following = stop.search(text, mark.end(), max(run.stuck, mark.end()))
    end = max(run.stuck, mark.end()) if following is None else following.start()
    reading.keep(mark.start(), end)
    return end


def _read_run(text: str, position: int) -> _Run:
    run = _Run([], [], position, None)
    while text.startswith("{", position):
        decoded = decode(text, position)
        call, end = as_call(decoded.value), decoded.end
        if not decoded.whole:
            call, end = _unclosed(text, position)
            if call is None:
                return run._replace(end=position, stuck=decoded.end)
        if call is None:
            run.others.append(decoded.value)
        else:
            run.calls.append(call)
        run = run._replace(end=end)
        position = _match_end(_SEPARATOR, text, end)
    return run


def _unclosed(text: str, position: int) -> tuple[FoundCall | None, int]:
    """A call whose arguments are whole, in an object that is not: a brace is missing, say."""
    if head := _UP_TO_ARGUMENTS.match(text, position):
        decoded = decode(text, head.end())
        if decoded.whole:
            call = as_call({"name": head["name"], "arguments": decoded.value})
            cut = _TO_END.match(text, decoded.end) is not None
            if call is not None:
                return FoundCall(call.name, call.arguments, truncated=cut), decoded.end
    return None, position


def _is_offered(call: FoundCall, functions: Mapping[str, Any]) -> bool:
    return call.name in functions if functions else bool(call.arguments)


def _tries(value: Any, functions: Mapping[str, Any]) -> bool:
    """Whether an object that is no call was meant as one."""
    name = value.get("name")
    if not isinstance(name, str):
        return False
    return "arguments" in value or "parameters" in value or name in functions


def _match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    """The end of a match that may be empty; `position` where there is none."""
    match = pattern.match(text, position)
    return position if match is None else match.end()
