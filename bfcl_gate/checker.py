"""Judge the answer to a case as the BFCL v4 reference does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bfcl_gate.answers import Answer, Call, all_calls, looks_like_call, native_calls
from bfcl_gate.cases import Case
from bfcl_gate.languages import LANGUAGES, Language
from bfcl_gate.request import tool_name
from bfcl_gate.shapes import JsonObject
from bfcl_gate.subsets import SUBSETS, Rule
from bfcl_gate.values import NotJudgedError, Problem, show


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right; if not, the reference's error type and a line for people.

    Error types that start with `answer:` are ours, for answers that the reference never judges.
    `disputed` marks an answer that is right only because its attempt at a call is no native call.
    """

    valid: bool
    error_type: str | None = None
    detail: str = ""
    disputed: bool = False

    def __post_init__(self) -> None:
        if self.valid != (self.error_type is None) or (self.disputed and not self.valid):
            raise ValueError("a wrong verdict has an error type, a right one has none")


def check(case: Case, answer: Answer) -> Verdict:
    """Judge `answer`. No answer raises: what cannot be read is wrong.

    Verdicts and error types are those of the BFCL v4 reference, called with dots in names replaced
    by underscores.
    """
    if answer.missing:
        return Verdict(False, "answer:missing", "no answer came")
    subset = SUBSETS[case.subset]
    if subset.rule is Rule.NO_CALL:
        if native_calls(answer):
            return Verdict(False, "hallucination:made_tool_call", "a call where none can help")
        return Verdict(True, disputed=looks_like_call(answer))
    if subset.rule is Rule.ANY_CALL:
        if native_calls(answer):
            return Verdict(True)
        return Verdict(False, "relevance:no_tool_call", "no call where one is needed")
    try:
        problem = _calls_problem(case, all_calls(answer), subset.rule, LANGUAGES[subset.language])
    except NotJudgedError as error:
        problem = error.problem
    except RecursionError:
        problem = Problem("answer:too_deep", "an argument is nested too deeply to be compared")
    return Verdict(True) if problem is None else Verdict(False, problem.error_type, problem.detail)


def _calls_problem(case: Case, calls: list[Call], rule: Rule, language: Language) -> Problem | None:
    assert case.ground_truth is not None
    checker = {
        Rule.SIMPLE: "simple_function_checker",
        Rule.MULTIPLE: "multiple_function_checker",
        Rule.PARALLEL: "parallel_function_checker_no_order",
    }[rule]
    if len(calls) != len(case.ground_truth):
        detail = f"{len(calls)} calls where {len(case.ground_truth)} are expected"
        return Problem(f"{checker}:wrong_count", detail)
    functions = {function["name"]: function for function in case.functions}
    if rule is not Rule.PARALLEL:
        return _call_problem(functions, case.ground_truth[0], calls[0], language)

    # Parity: each expected call takes the first call that fits and keeps it, even where another
    # choice would let every call find a partner.
    left = list(calls)
    for expected in case.ground_truth:
        problems = []
        for index, call in enumerate(left):
            problem = _call_problem(functions, expected, call, language)
            if problem is None:
                del left[index]
                break
            problems.append(f"{show(call.name)}: {problem.detail}")
        else:
            (name,) = expected
            detail = f"no call fits an expected {name!r}: {'; '.join(problems)}"
            return Problem(f"{checker}:cannot_find_match", detail)
    return None


def _call_problem(
    functions: Mapping[str, JsonObject], expected: JsonObject, call: Call, language: Language
) -> Problem | None:
    ((name, accepted),) = expected.items()
    if call.name != tool_name(name):
        detail = f"{show(call.name)} is called where {tool_name(name)!r} is expected"
        return Problem("simple_function_checker:wrong_func_name", detail)
    parameters = functions[name]["parameters"]
    given = call.arguments
    # Parity: in place of an object, an array of names, or a text that holds them, passes for having
    # those parameters.
    if isinstance(given, (dict, list, str)):
        for parameter in parameters["required"]:
            if parameter not in given:
                return _missing(parameter, "missing_required")
    if not isinstance(given, dict):
        raise NotJudgedError(
            "arguments_not_an_object", f"the arguments are not an object: {show(given)}"
        )
    return _arguments_problem(parameters["properties"], accepted, given, language)


def _arguments_problem(
    schemas: Mapping[str, JsonObject],
    accepted: Mapping[str, list[object]],
    given: Mapping[str, Any],
    language: Language,
) -> Problem | None:
    for parameter, value in given.items():
        if parameter not in schemas or parameter not in accepted:
            detail = f"parameter {show(parameter)} is not expected"
            return Problem("simple_function_checker:unexpected_param", detail)
        problem = language.value_problem(schemas[parameter], accepted[parameter], value)
        if problem is not None:
            return Problem(problem.error_type, f"parameter {show(parameter)}: {problem.detail}")
    for parameter, choices in accepted.items():
        # "" among the accepted values is how the data says that a parameter may be left out.
        if parameter not in given and "" not in choices:
            return _missing(parameter, "missing_optional")
    return None


def _missing(parameter: str, kind: str) -> Problem:
    return Problem(f"simple_function_checker:{kind}", f"parameter {show(parameter)} is missing")
