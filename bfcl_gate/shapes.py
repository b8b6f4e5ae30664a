"""Validate the rows of BFCL files: what a question, a function and an expected call look like."""

from collections.abc import Mapping, Sequence
from typing import Any

from bfcl_gate.languages import Language

JsonObject = Mapping[str, Any]


def read_messages(question: object) -> tuple[JsonObject, ...]:
    """Return the messages of the only turn of a `question` field.

    Raises:
        ValueError: It is not a list of one turn of chat messages.
    """
    if not isinstance(question, list) or len(question) != 1 or not isinstance(question[0], list):
        raise ValueError("'question' must be a list of exactly one turn, itself a list of messages")
    for message in question[0]:
        if not (
            isinstance(message, dict)
            and isinstance(message.get("role"), str)
            and isinstance(message.get("content"), (str, type(None)))
        ):
            raise ValueError("each message needs a 'role' string and a 'content' string or null")
    return tuple(question[0])


def read_functions(functions: object, language: Language) -> tuple[JsonObject, ...]:
    """Return the function descriptions of a `function` field.

    Raises:
        ValueError: A description lacks a part that the checker reads, or has an unknown type.
    """
    if not isinstance(functions, list):
        raise ValueError("'function' must be a list of function descriptions")
    names: set[str] = set()
    for function in functions:
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ValueError("each function description needs a 'name' string")
        name = function["name"]
        if name in names:
            raise ValueError(f"function {name!r} is described twice")
        names.add(name)
        try:
            _check_parameters(function.get("parameters"), language)
        except ValueError as error:
            raise ValueError(f"function {name!r}: {error}") from None
    return tuple(functions)


def read_ground_truth(
    ground_truth: object, functions: Sequence[JsonObject]
) -> tuple[JsonObject, ...]:
    """Return the expected calls of a `ground_truth` field, each `{name: {parameter: [values]}}`.

    Raises:
        ValueError: It is not such a list, or names a function that the question does not describe.
    """
    if not isinstance(ground_truth, list) or not ground_truth:
        raise ValueError("'ground_truth' must be a list of at least one expected call")
    names = {function["name"] for function in functions}
    for call in ground_truth:
        if not isinstance(call, dict) or len(call) != 1:
            raise ValueError("each expected call must be an object with one function name")
        ((name, parameters),) = call.items()
        if name not in names:
            raise ValueError(f"the expected function {name!r} is not described in the question")
        if not isinstance(parameters, dict):
            raise ValueError(f"function {name!r}: the expected parameters must be an object")
        for parameter, accepted in parameters.items():
            if not isinstance(accepted, list) or not _dicts_hold_choices(accepted):
                raise ValueError(
                    f"function {name!r}: parameter {parameter!r}: accepted values must be a list, "
                    "and so must those of each key of an accepted object"
                )
    return tuple(ground_truth)


def _check_parameters(parameters: object, language: Language) -> None:
    if not isinstance(parameters, dict) or not isinstance(parameters.get("properties"), dict):
        raise ValueError("'parameters' must be an object with an object 'properties'")
    required = parameters.get("required")
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise ValueError("'required' must be a list of parameter names; use [] where there is none")
    for name, schema in parameters["properties"].items():
        declared = schema.get("type") if isinstance(schema, dict) else None
        if not _is_type(declared, language):
            raise ValueError(
                f"parameter {name!r}: type {declared!r} is not one of {_types(language)}"
            )
        if declared in language.array_types:
            items = schema.get("items")
            if not isinstance(items, dict) or not _is_type(items.get("type"), language):
                raise ValueError(
                    f"parameter {name!r}: 'items' must have a 'type' of {_types(language)}"
                )


def _is_type(declared: object, language: Language) -> bool:
    return isinstance(declared, str) and declared in language.types


def _types(language: Language) -> str:
    return ", ".join(sorted(language.types))


def _dicts_hold_choices(accepted: list[object]) -> bool:
    """Whether each accepted dict, alone or in a list, maps every key to a list of values.

    A string in place of the list passes: official data has one, and the reference takes each of its
    characters as a value.
    """
    entries = [
        item for entry in accepted for item in (entry if isinstance(entry, list) else [entry])
    ]
    return all(
        isinstance(choices, (list, str))
        for entry in entries
        if isinstance(entry, dict)
        for choices in entry.values()
    )
