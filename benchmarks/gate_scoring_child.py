"""Judges recorded answers in a process of its own, and notes what that took.

`gate_scoring.py` starts it, for the reference with another interpreter if need be: nothing but the
standard library and the judge itself may be imported here.

    python gate_scoring_child.py JOB.json
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

# MLPerf's scorer passes this name: with it the checker expects "_" for each "." of a function name.
MODEL_NAME = "gpt-4o-2024-11-20-FC"
LANGUAGES = {"simple_java": "JAVA", "simple_javascript": "JAVASCRIPT"}


class Anything(type):
    """Classes that stand for whatever a module takes from a package that is not installed."""

    def __getattr__(cls, name: str) -> Anything:
        """Every attribute is the class itself, so that a chain of them is fine too."""
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __call__(cls, *_: object, **__: object) -> Anything:
        """A call, as a decorator or a factory, gives the class itself."""
        return cls

    def __or__(cls, other: object) -> Any:
        """Types and retry policies are joined so."""
        return cls


class StandIn(ModuleType):
    """An empty package that has whatever name is asked of it."""

    def __getattr__(self, name: str) -> Anything:
        """Special names stay absent: the import system asks for them and must get the truth."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {})


class StandIns(MetaPathFinder, Loader):
    """Finds a stand-in for the named packages and everything below them."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Find a stand-in; None lets the import fail as it would."""
        mine = any(fullname == name or fullname.startswith(f"{name}.") for name in self.names)
        return ModuleSpec(fullname, self, is_package=True) if mine else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the stand-in."""
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


def main() -> None:
    """Do the job and write down the result."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    judge = judge_with_reference if job["side"] == "reference" else judge_with_ours
    Path(job["result"]).write_text(json.dumps(judge(job)), "utf-8")


def judge_with_ours(job: dict[str, Any]) -> dict[str, Any]:
    """Judge lines of `{sample_id, tool_calls | text}` with `bfcl_gate`."""
    start = time.perf_counter()
    from bfcl_gate.answers import Answer
    from bfcl_gate.cases import load_dataset
    from bfcl_gate.checker import check

    imported = time.perf_counter()
    cases = {case.id: case for case in load_dataset(Path(job["data"])).cases}
    loaded = time.perf_counter()
    verdicts = {}
    for row in _rows(Path(job["answers"])):
        answer = Answer(row.get("tool_calls"), row.get("text"))
        verdicts[row["sample_id"]] = check(cases[row["sample_id"]], answer).valid
    return _result(start, imported, loaded, verdicts)


def judge_with_reference(job: dict[str, Any]) -> dict[str, Any]:
    """Judge lines of `{sample_id, subset, calls}` with `bfcl_eval`; a call is `{name: arguments}`.

    The result says what stood in for missing packages, or why the import failed. To find them out
    takes time: a run that counts is given all their names.
    """
    if job["path"]:
        sys.path.insert(0, job["path"])
    stand_in: list[str] = job["stand_in"]
    sys.meta_path.append(StandIns(stand_in))
    start = time.perf_counter()
    try:
        language_of = _import("bfcl_eval.constants.enums", stand_in).Language
        check = _import("bfcl_eval.eval_checker.ast_eval.ast_checker", stand_in).ast_checker
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    imported = time.perf_counter()
    rows = _rows(Path(job["answers"]))
    cases: dict[str, tuple[Any, Any]] = {}
    for subset in {row["subset"] for row in rows}:
        cases.update(_reference_cases(Path(job["data"]), subset))
    loaded = time.perf_counter()
    verdicts = {}
    for row in rows:
        subset = row["subset"]
        functions, expected = cases[row["sample_id"]]
        if expected is None:
            valid = bool(row["calls"]) == (subset == "live_relevance")
        else:
            language = language_of[LANGUAGES.get(subset, "PYTHON")]
            try:
                told = check(functions, row["calls"], expected, language, subset, MODEL_NAME)
                valid = told["valid"]
            except Exception:  # It raises on some malformed arguments.
                valid = False
        verdicts[row["sample_id"]] = valid
    return {**_result(start, imported, loaded, verdicts), "stand_in": stand_in}


def _import(name: str, stand_in: list[str]) -> Any:
    """Import a module of the reference; adds what it lacks to `stand_in`."""
    while True:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            missing = error.name
            if missing is None or missing in stand_in or missing.split(".")[0] == "bfcl_eval":
                raise
            stand_in.append(missing)


def _reference_cases(root: Path, subset: str) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield (id, (functions, expected calls)); None where a call, or none, is what is expected."""
    name = f"BFCL_v4_{subset}.json"
    answers = root / "possible_answer" / name
    expected = {}
    if answers.is_file():
        expected = {row["id"]: row["ground_truth"] for row in _rows(answers)}
    for row in _rows(root / name):
        yield row["id"], (row["function"], expected.get(row["id"]))


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def _result(
    start: float, imported: float, loaded: float, verdicts: dict[str, bool]
) -> dict[str, Any]:
    judged = time.perf_counter()
    return {
        "import_s": imported - start,
        "load_s": loaded - imported,
        "judge_s": judged - loaded,
        "cpu_s": time.process_time(),
        "peak_rss_mb": _peak_rss_mb(),
        "verdicts": verdicts,
    }


def _peak_rss_mb() -> float:
    # getrusage would count what the starting process held, too.
    (line,) = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
