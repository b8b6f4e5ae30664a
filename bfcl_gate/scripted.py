"""Write answers that are right, or wrong, by construction, for an engine that follows a script."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bfcl_gate.cases import Case
from bfcl_gate.languages import LANGUAGES, Language
from bfcl_gate.request import tool_name
from bfcl_gate.shapes import JsonObject
from bfcl_gate.subsets import SUBSETS, Rule


def right_tool_calls(case: Case) -> list[dict[str, Any]]:
    """Return OpenAI-shaped tool calls that answer the case rightly; an empty list is no call.

    Each parameter takes its first accepted value, written in the language of the function; one that
    may be left out is left out. Some official cases accept no answer at all; these calls are then
    wrong too.
    """
    if case.ground_truth is None:
        needs_call = SUBSETS[case.subset].rule is Rule.ANY_CALL
        return [_tool_call(0, _any_name(case), {})] if needs_call else []
    language = LANGUAGES[SUBSETS[case.subset].language]
    parameters = {function["name"]: function["parameters"] for function in case.functions}
    calls = [next(iter(expected.items())) for expected in case.ground_truth]
    return [
        _tool_call(index, tool_name(name), _arguments(accepted, parameters[name], language))
        for index, (name, accepted) in enumerate(calls)
    ]


def wrong_tool_calls(case: Case) -> list[dict[str, Any]]:
    """Return OpenAI-shaped tool calls that answer the case wrongly.

    A call of a function that is not offered where one is due, a call where none is, none where any
    call would do.
    """
    rule = SUBSETS[case.subset].rule
    if rule is Rule.ANY_CALL:
        return []
    if rule is Rule.NO_CALL:
        return [_tool_call(0, _any_name(case), {})]
    offered = {tool_name(function["name"]) for function in case.functions}
    calls = right_tool_calls(case)
    name = f"not_{calls[0]['function']['name']}"
    while name in offered:
        name = f"not_{name}"
    calls[0]["function"]["name"] = name
    return calls


def _any_name(case: Case) -> str:
    return tool_name(case.functions[0]["name"]) if case.functions else "anything"


def _tool_call(index: int, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
    return {
        "id": f"call_{index}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def _arguments(
    accepted: Mapping[str, Sequence[object]], parameters: JsonObject, language: Language
) -> dict[str, object]:
    chosen = {
        parameter: _plain(_first(choices))
        for parameter, choices in accepted.items()
        if parameter in parameters["required"] or "" not in choices
    }
    schemas = parameters["properties"]
    return {
        # Official data expects some parameters that it does not describe.
        parameter: language.argument(schemas[parameter], value) if parameter in schemas else value
        for parameter, value in chosen.items()
    }


def _plain(value: object) -> object:
    """Take the first choice of each key of an accepted dict, in a list of them too."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _first(choices) for key, choices in value.items() if "" not in choices}
    return value


def _first(choices: Sequence[object]) -> object:
    return next((choice for choice in choices if choice != ""), "")
