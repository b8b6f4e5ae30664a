"""Checks documents against the suite's own JSON schemas, quickly where nothing is wrong.

Nearly every document is right, and `jsonschema` takes half a millisecond to say so, after a
quarter of a second to be imported. So each schema is made into plain functions that say yes or
no; only a no is explained by `jsonschema`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from edge_agentic.core.jsonio import JsonObject, read_object

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_Check = Callable[[Any], bool]


class Schema:
    """A JSON schema (draft 2020-12) in the words that the suite's schemas use."""

    def __init__(self, schema: JsonObject) -> None:
        """Make the schema ready.

        Raises:
            ValueError: it uses a word, or a form of one, that this module does not know.
        """
        self._schema = schema
        self._check = _compile(schema, schema)

    @classmethod
    def read(cls, path: Path) -> Schema:
        """The schema in a file."""
        return cls(read_object(path))

    def accepts(self, document: object) -> bool:
        """Whether the document, parsed from JSON or TOML, follows the schema."""
        return self._check(document)

    def errors(self, document: object) -> Iterator[ValidationError]:
        """All that is wrong with a document."""
        from jsonschema import Draft202012Validator

        yield from Draft202012Validator(self._schema).iter_errors(document)


def _compile(schema: JsonObject, root: JsonObject) -> _Check:
    checks = tuple(
        _WORDS[word](value, schema, root) if word in _WORDS else _unknown(word)
        for word, value in schema.items()
        if word not in _SILENT
    )

    def check(value: Any) -> bool:
        for part in checks:  # noqa: SIM110 - a generator takes twice the time
            if not part(value):
                return False
        return True

    return checks[0] if len(checks) == 1 else check


def _unknown(word: str) -> _Check:
    raise ValueError(f"the word {word!r} of a JSON schema is not known here")


def _type(names: str | Sequence[str], schema: JsonObject, root: JsonObject) -> _Check:
    listed = [names] if isinstance(names, str) else names
    types = {kind for name in listed for kind in _TYPES[name]}
    whole_floats = "integer" in listed

    def check(value: Any) -> bool:
        kind = type(value)
        return kind in types or (whole_floats and kind is float and value.is_integer())

    return check


def _properties(parts: Mapping[str, JsonObject], schema: JsonObject, root: JsonObject) -> _Check:
    checks = [(name, _compile(part, root)) for name, part in parts.items()]

    def check(value: Any) -> bool:
        if type(value) is dict:
            for name, part in checks:
                if name in value and not part(value[name]):
                    return False
        return True

    return check


def _additional(part: bool | JsonObject, schema: JsonObject, root: JsonObject) -> _Check:
    named = frozenset(schema.get("properties", ()))
    if isinstance(part, bool):
        return lambda value: part or type(value) is not dict or named >= value.keys()
    follows = _compile(part, root)
    return lambda value: (
        type(value) is not dict
        or all(name in named or follows(item) for name, item in value.items())
    )


def _required(names: Sequence[str], schema: JsonObject, root: JsonObject) -> _Check:
    wanted = frozenset(names)
    return lambda value: type(value) is not dict or wanted <= value.keys()


def _items(part: JsonObject, schema: JsonObject, root: JsonObject) -> _Check:
    follows = _compile(part, root)
    return lambda value: type(value) is not list or all(map(follows, value))


def _enum(texts: Sequence[str], schema: JsonObject, root: JsonObject) -> _Check:
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("only texts can be listed or required in a JSON schema here")
    return lambda value: type(value) is str and value in texts


def _const(text: str, schema: JsonObject, root: JsonObject) -> _Check:
    return _enum([text], schema, root)


def _pattern(pattern: str, schema: JsonObject, root: JsonObject) -> _Check:
    search = re.compile(pattern).search
    return lambda value: type(value) is not str or search(value) is not None


def _least_length(least: int, schema: JsonObject, root: JsonObject) -> _Check:
    return lambda value: type(value) is not str or len(value) >= least


def _most_length(most: int, schema: JsonObject, root: JsonObject) -> _Check:
    return lambda value: type(value) is not str or len(value) <= most


def _least_items(least: int, schema: JsonObject, root: JsonObject) -> _Check:
    return lambda value: type(value) is not list or len(value) >= least


def _most_items(most: int, schema: JsonObject, root: JsonObject) -> _Check:
    return lambda value: type(value) is not list or len(value) <= most


def _minimum(least: float, schema: JsonObject, root: JsonObject) -> _Check:
    return lambda value: type(value) not in (int, float) or value >= least


def _maximum(most: float, schema: JsonObject, root: JsonObject) -> _Check:
    return lambda value: type(value) not in (int, float) or value <= most


def _not(part: JsonObject, schema: JsonObject, root: JsonObject) -> _Check:
    follows = _compile(part, root)
    return lambda value: not follows(value)


def _any_of(parts: Sequence[JsonObject], schema: JsonObject, root: JsonObject) -> _Check:
    checks = [_compile(part, root) for part in parts]
    return lambda value: any(check(value) for check in checks)


def _all_of(parts: Sequence[JsonObject], schema: JsonObject, root: JsonObject) -> _Check:
    checks = [_compile(part, root) for part in parts]
    return lambda value: all(check(value) for check in checks)


def _if(part: JsonObject, schema: JsonObject, root: JsonObject) -> _Check:
    applies, follows = _compile(part, root), _compile(schema["then"], root)
    return lambda value: not applies(value) or follows(value)


def _ref(target: str, schema: JsonObject, root: JsonObject) -> _Check:
    return _compile(root["$defs"][target.removeprefix("#/$defs/")], root)


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}
_SILENT: Final = frozenset({"$schema", "$defs", "title", "description", "then"})
"""Words that say nothing about a document by themselves."""
_WORDS: Final[Mapping[str, Callable[[Any, JsonObject, JsonObject], _Check]]] = {
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "required": _required,
    "items": _items,
    "enum": _enum,
    "const": _const,
    "pattern": _pattern,
    "minLength": _least_length,
    "maxLength": _most_length,
    "minItems": _least_items,
    "maxItems": _most_items,
    "minimum": _minimum,
    "maximum": _maximum,
    "not": _not,
    "anyOf": _any_of,
    "allOf": _all_of,
    "if": _if,
    "$ref": _ref,
}
