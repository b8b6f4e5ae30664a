"""Read the calls out of a model's answer, whatever the answer looks like."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bfcl_gate.call_text import find_calls

# Marks of the tool-call formats of common chat templates.
_CALL_MARKS: Final = ("<tool_call", "<function=", "[TOOL_CALLS]", "<|python_tag|>")


@dataclass(frozen=True)
class Answer:
    """What a model answered: native tool calls, or text. Nothing in it is trusted.

    `tool_calls` is the OpenAI-shaped list as the engine gave it: `arguments` may be a JSON string,
    a mapping, or anything else. An answer with neither part never came.
    """

    tool_calls: object = None
    text: str | None = None

    @property
    def missing(self) -> bool:
        """Whether no answer came; an empty text or an empty list is an answer."""
        return self.tool_calls is None and self.text is None


@dataclass(frozen=True)
class Call:
    """One call: `arguments` is a dict, or the JSON value that a model gave instead of one."""

    name: str
    arguments: object


def native_calls(answer: Answer) -> list[Call]:
    """Return the native calls, or those that the text spells as OpenAI-shaped JSON.

    An entry without a `function` object is no call. Source: BFCL v4 as MLPerf Inference v6.1 runs
    it.
    """
    return _openai_calls(answer.tool_calls) or _openai_calls(_json_list(answer.text))


def all_calls(answer: Answer) -> list[Call]:
    """Return the native calls, or else those that the text spells in any form.

    The forms are tried in this order: OpenAI-shaped JSON, a JSON array of `{name, arguments}`,
    Python-style calls anywhere in the text. Source: BFCL v4 as MLPerf Inference v6.1 runs it.
    """
    return native_calls(answer) or _text_calls(answer.text)


def looks_like_call(answer: Answer) -> bool:
    """Whether the text tries to make a call that is not a native one."""
    if not isinstance(answer.text, str) or native_calls(answer):
        return False
    return any(mark in answer.text for mark in _CALL_MARKS) or bool(_text_calls(answer.text))


def _text_calls(text: str | None) -> list[Call]:
    if not isinstance(text, str):
        return []
    return _named_calls(_json_list(text)) or [Call(*found) for found in find_calls(text)]


def _openai_calls(entries: object) -> list[Call]:
    if not isinstance(entries, (list, tuple)):
        return []
    functions = [entry.get("function") for entry in entries if isinstance(entry, Mapping)]
    return [_call(function) for function in functions if isinstance(function, Mapping)]


def _named_calls(entries: list[object]) -> list[Call]:
    return [_call(entry) for entry in entries if isinstance(entry, Mapping) and "name" in entry]


def _call(function: Mapping[str, object]) -> Call:
    name = function.get("name")
    arguments = function.get("arguments", {})
    # Parity: text that does not hold JSON counts as no arguments, and so does JSON text inside a
    # JSON text; any other JSON value stays, and fails where the checker needs an object.
    if isinstance(arguments, str):
        arguments = _json_or(arguments, {})
        if isinstance(arguments, str):
            arguments = _json_or(arguments, {})
    else:
        arguments = _as_json(arguments)
    return Call(name if isinstance(name, str) else "", arguments)


def _json_list(text: object) -> list[object]:
    if not isinstance(text, str) or not text.lstrip().startswith("["):
        return []
    found = _json_or(text, [])
    return found if isinstance(found, list) else []


def _json_or(text: str, default: object) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def _as_json(value: object) -> object:
    """Return a copy made of JSON types only, or None where there is none.

    An engine may hand over any Python object; comparisons must meet only plain values.
    """
    try:
        return json.loads(json.dumps(value, default=_as_dict))
    except (TypeError, ValueError, RecursionError):
        return None


def _as_dict(value: object) -> dict[object, object]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError("not a JSON type")
