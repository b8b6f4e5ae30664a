import json
from pathlib import Path
from typing import Any

import pytest

from bfcl_gate.answers import Answer
from bfcl_gate.cases import Case, load_dataset
from bfcl_gate.checker import check
from bfcl_gate.scripted import right_tool_calls, wrong_tool_calls

# The directory of the official BFCL v4 data files.

MESSAGES = ({"role": "user", "content": "hi"},)
# Official cases that no answer satisfies, and why.
UNSATISFIABLE = {
    "simple_java_36",  # items of type any are read as text, but numbers and booleans are expected
    "simple_java_65",  # likewise
    "live_simple_106-63-0",  # a required parameter has no accepted value
    "live_simple_112-68-0",  # likewise
    "live_multiple_862-181-3",  # a parameter is expected that the function does not have
    "live_multiple_964-207-0",  # likewise
}


def scripted(subset: str, accepted: dict[str, list[Any]], **schemas: dict[str, Any]) -> Case:
    parameters = {"type": "dict", "properties": schemas, "required": list(schemas)[:1]}
    offered = ({"name": "m.f", "parameters": parameters},)
    return Case(f"{subset}_0", subset, MESSAGES, offered, ({"m.f": accepted},))


def test_a_right_call_takes_the_first_accepted_values_and_leaves_out_what_it_may() -> None:
    integer = {"type": "integer"}
    case = scripted(
        "simple_python", {"x": ["", 1, 2], "y": [3, ""], "z": [4]}, x=integer, y=integer, z=integer
    )
    (call,) = right_tool_calls(case)
    assert call["function"]["name"] == "m_f"
    assert json.loads(call["function"]["arguments"]) == {"x": 1, "z": 4}
    assert check(case, Answer([call])).valid


@pytest.mark.parametrize(
    ("subset", "schema", "accepted", "argument"),
    [
        ("simple_java", {"type": "long"}, [5], "5L"),
        ("simple_java", {"type": "any"}, [2.5, "2.5"], "2.5"),
        ("simple_java", {"type": "HashMap"}, ["settings"], "settings"),
        (
            "simple_java",
            {"type": "HashMap"},
            [{"a": ["x", "y"], "b": ["", 1]}],
            'new HashMap<>() {{ put("a", "x"); }}',
        ),
        (
            "simple_java",
            {"type": "ArrayList", "items": {"type": "String"}},
            [["a"]],
            'new ArrayList<>(Arrays.asList("a"))',
        ),
        ("simple_javascript", {"type": "Boolean"}, [True], "true"),
        ("simple_javascript", {"type": "Bigint"}, [5], "5n"),
        ("simple_javascript", {"type": "dict"}, [{"a": [[1, "x"]]}], '{"a": [1, "x"]}'),
        ("simple_javascript", {"type": "array", "items": {"type": "float"}}, [[2.5]], "[2.5]"),
    ],
)
def test_a_right_call_is_written_in_the_language_of_the_function(
    subset: str, schema: dict[str, Any], accepted: list[Any], argument: str
) -> None:
    case = scripted(subset, {"x": accepted}, x=schema)
    calls = right_tool_calls(case)
    assert json.loads(calls[0]["function"]["arguments"]) == {"x": argument}
    assert check(case, Answer(calls)).valid
    assert not check(case, Answer(wrong_tool_calls(case))).valid


def test_every_official_case_that_can_be_satisfied_is_scripted(official_bfcl: Path) -> None:
    cases = load_dataset(official_bfcl).cases
    assert len({case.subset for case in cases}) == 13
    wrong = {case.id for case in cases if not check(case, Answer(right_tool_calls(case))).valid}
    assert wrong == UNSATISFIABLE
    right = {case.id for case in cases if check(case, Answer(wrong_tool_calls(case))).valid}
    assert right == set()
