"""Read the calls out of a model's answer, native or text, as the BFCL v4 reference does."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bfcl_gate.call_text import find_calls
from bfcl_gate.nesting import too_deep

_ATTEMPT: Final = re.compile(
    r"""
      <\|?tool_call | <function= | \[TOOL_CALLS\] | <\|python_tag\|>  # marks of chat templates
    | "function"\s*:\s*\{
    | "name"\s*:\s*"[^"]*"\s*,\s*"(?:arguments|parameters)"\s*:
    | (?<!\w)[A-Za-z_]\w*\(\s*[A-Za-z_]\w*\s*=(?!=)                   # name(keyword=
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Answer:
    """What a model answered: native tool calls, or text. Nothing in it is trusted.

    `tool_calls` is the OpenAI-shaped list as the engine gave it: `arguments` may be a JSON string,
    a mapping, or anything else. A list of lists is a stream's chunks of such calls. An answer with
    neither part never came.
    """

    tool_calls: object = None
    text: str | None = None

    @property
    def missing(self) -> bool:
        """Whether no answer came; an empty text or an empty list is an answer."""
        return self.tool_calls is None and self.text is None


@dataclass(frozen=True)
class Call:
    """One call: `arguments` is a dict, or the JSON value that a model gave instead of one.

    `name` is empty where the model gave none, or no string. `arguments` is None where they cannot
    be read at all.
    """

    name: str
    arguments: object


def native_calls(answer: Answer) -> list[Call]:
    """Return the native calls, or those that the text spells as OpenAI-shaped JSON.

    There are none unless every entry has OpenAI's shape: an object with a `function` object.
    Source: BFCL v4 as MLPerf Inference v6.1 runs it.
    """
    return _openai_calls(_entries(answer) or _json(_text(answer)))


def all_calls(answer: Answer) -> list[Call]:
    """Return the native calls, or else those that the text spells in any form.

    The forms are tried in this order: OpenAI-shaped JSON, a JSON array of `{name, arguments}`,
    Python-style calls anywhere in the text. Native calls that lack OpenAI's shape are read as the
    text of their JSON, and the answer's own text then counts for nothing. Source: BFCL v4 as MLPerf
    Inference v6.1 runs it.
    """
    if entries := _entries(answer):
        return _openai_calls(entries) or _text_calls(_written(entries))
    return _text_calls(_text(answer))


def looks_like_call(answer: Answer) -> bool:
    """Whether the answer tries to make a call and makes no native one.

    Calls without OpenAI's shape do, and so does text with a mark of a tool-call format, the JSON of
    a call, or `name(keyword=`, however it goes on. This is ours: the reference has no such notion.
    """
    if native_calls(answer):
        return False
    return bool(_entries(answer) or _ATTEMPT.search(_text(answer)))


def _text(answer: Answer) -> str:
    return answer.text if isinstance(answer.text, str) else ""


def _entries(answer: Answer) -> list[object]:
    """Return the native calls as plain values, joined if they came as a stream's chunks."""
    given = answer.tool_calls
    if not isinstance(given, (list, tuple)):
        return []
    if given and isinstance(given[0], (list, tuple)):
        return _joined(given)
    return [_plain_parts(entry, levels=2) for entry in given]


def _joined(chunks: Iterable[object]) -> list[object]:
    """Join the parts of streamed calls by their index; the texts of the arguments add up."""
    calls: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for part in chunk if isinstance(chunk, Iterable) else [chunk]:
            if not isinstance(part, Mapping):
                return [None]  # No calls, and none in the answer's text either.
            index, function = part.get("index"), part.get("function")
            call = calls.setdefault(index if isinstance(index, int) else 0, {"arguments": ""})
            if isinstance(function, Mapping):
                call["name"] = function.get("name") or call.get("name")
                if isinstance(arguments := function.get("arguments"), str):
                    call["arguments"] += arguments
    return [{"function": calls[index]} for index in sorted(calls)]


def _written(entries: list[object]) -> str:
    """Write JSON as the reference does: compact, and without escapes for other alphabets."""
    return json.dumps(entries, separators=(",", ":"), ensure_ascii=False)


def _openai_calls(entries: object) -> list[Call]:
    if not isinstance(entries, list):
        return []
    functions = [entry.get("function") for entry in entries if isinstance(entry, dict)]
    calls = [_call(function, 2) for function in functions if isinstance(function, dict)]
    return calls if len(calls) == len(entries) else []


def _text_calls(text: str) -> list[Call]:
    text = text.strip()  # Of spaces that JSON doesn't know, too.
    entries = _json(text)
    return (
        _openai_calls(entries)
        or _named_calls(entries)
        or [Call(name, arguments) for name, arguments in find_calls(text)]
    )


def _named_calls(entries: object) -> list[Call]:
    if not isinstance(entries, list):
        return []
    calls = [_call(entry, 1) for entry in entries if isinstance(entry, dict) and "name" in entry]
    return calls if len(calls) == len(entries) else []


def _call(function: Mapping[str, object], readings: int) -> Call:
    """Read a call whose arguments may be JSON text.

    Parity: text that is no JSON counts as no arguments. In OpenAI's shape the text is read twice,
    so that JSON text inside JSON text is arguments too.
    """
    name = function.get("name")
    arguments = function.get("arguments", {})
    for _ in range(readings):
        if isinstance(arguments, str):
            arguments = _json(arguments, otherwise={})
    return Call(name if isinstance(name, str) else "", arguments)


def _json(text: str, otherwise: object = None) -> Any:
    """Read JSON text; `otherwise` where it is none, None where it is nested too deeply."""
    try:
        return None if too_deep(text) else json.loads(text)
    except ValueError:
        return otherwise
    except RecursionError:
        return None


def _plain_parts(entry: object, levels: int) -> object:
    """Make each part plain for itself: one that cannot be must not hide that an entry is a call."""
    if levels and isinstance(entry, Mapping):
        parts = ((key, part) for key, part in entry.items() if isinstance(key, str))
        return {key: _plain_parts(part, levels - 1) for key, part in parts}
    return _plain(entry)


def _plain(value: object) -> Any:
    """Return a copy made of JSON types only, or None where there is none.

    An engine may hand over any Python object; comparisons must meet only plain values. Parity: a
    number that JSON lacks becomes null.
    """
    try:
        text = json.dumps(value, default=_as_dict)
        return None if too_deep(text) else json.loads(text, parse_constant=lambda _: None)
    except (TypeError, ValueError, RecursionError):
        return None


def _as_dict(value: object) -> dict[object, object]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError("not a JSON type")
