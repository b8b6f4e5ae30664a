"""What scoring the gate's answers takes, without a model; beside it the reference's own checker.

Each measurement is a process of its own that imports a judge, loads the data set and judges the
same answers: those of a file, or right and wrong ones by turns. The figures are medians; `total_s`
and `cpu_s` are of the whole process, the interpreter's start included. `times_faster` compares
import and judging, `times_faster_total` the whole processes.

    python benchmarks/gate_scoring.py [ANSWERS.jsonl] [--reference DIR] [--repeats 3] [--json]

DIR is an unpacked wheel of `bfcl-eval`, or a virtual environment that has it. Its checker imports
the client libraries of all model vendors. An empty module stands in for each that is missing, and
the reference is then faster than it really is. Its checker takes calls that are read already:
reading them out of the answers is in our time only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import bfcl_gate
from bfcl_gate import official
from bfcl_gate.answers import Answer, all_calls, native_calls
from bfcl_gate.cases import Dataset
from bfcl_gate.errors import GateDataError
from bfcl_gate.scripted import right_tool_calls, wrong_tool_calls
from bfcl_gate.selection import select
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject, dump_line, parse_lines, read_bytes, read_object
from edge_agentic.run.gate_score import judge_answers
from edge_agentic.run.gate_sets import list_gate_sets, open_gate_set

CHILD = Path(__file__).with_name("gate_scoring_child.py")
FIGURES = ("import_s", "load_s", "judge_s", "total_s", "cpu_s", "peak_rss_mb")
TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Judge:
    """Who judges which answers to which data, and how its process is started."""

    side: str
    data: str
    answers: str
    python: str = sys.executable
    path: str = ""
    stand_in: tuple[str, ...] = ()


def main() -> None:
    """Measure and print; exit with 1 where a verdict differs from the reference's."""
    arguments = _arguments()
    if arguments.repeats < 1:
        raise BadInputError(f"--repeats must be at least 1, got {arguments.repeats}")
    dataset = open_gate_set(arguments.data)
    named = {facts.name: facts.path for facts in list_gate_sets()}
    data = str(named.get(arguments.data) or arguments.data)
    answers = _read(arguments.answers, dataset) if arguments.answers else _script(dataset)
    result: dict[str, Any] = {"samples": len(answers), "repeats": arguments.repeats}
    differ: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        reference = None
        if arguments.reference:
            read = _write(Path(scratch) / "read.jsonl", _as_read(answers, dataset))
            reference = _warm_up(_reference(arguments.reference, data, read))
        given = _write(Path(scratch) / "given.jsonl", _as_given(answers))
        ours, verdicts = _measure(_warm_up(Judge("ours", data, given)), arguments.repeats)
        result |= {**ours, "package_kb": _package_bytes() / 1e3}
        if reference is not None:
            theirs, expected = _measure(reference, arguments.repeats)
            differ = [sample for sample in answers if verdicts[sample] != expected[sample]]
            result |= {f"reference_{name}": value for name, value in theirs.items()}
            result |= {
                "reference_stood_in": len(reference.stand_in),
                "verdicts_agree": len(answers) - len(differ),
                "times_faster": _without_loading_s(theirs) / _without_loading_s(ours),
                "times_faster_total": theirs["total_s"] / ours["total_s"],
            }
    _print(result, as_json=arguments.json)
    if differ:
        sys.exit(f"error: {len(differ)} verdicts differ: {', '.join(differ[:10])}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "answers", type=Path, nargs="?", help="JSONL lines with sample_id and tool_calls or text"
    )
    parser.add_argument(
        "--data", default=official.NAME, help="'bfcl-v4', 'gate-mini', or a directory"
    )
    parser.add_argument("--reference", type=Path, help="where bfcl-eval is")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _read(path: Path, dataset: Dataset) -> dict[str, Answer]:
    """Read the answers of a file, the first to each sample; lines that hold none are left out."""
    raw = read_bytes(path)
    list(judge_answers(raw, path, dataset))  # Names a line that can't be used.
    answers: dict[str, Answer] = {}
    for _, row in parse_lines(raw, path):
        answer = Answer(row.get("tool_calls"), row.get("text"))
        if not answer.missing:
            answers.setdefault(row["sample_id"], answer)
    if not answers:
        raise BadInputError(f"{path}: holds no answer")
    return answers


def _script(dataset: Dataset) -> dict[str, Answer]:
    """Answer the cases that are asked of the data set, rightly and wrongly by turns."""
    by_turns = zip(select(dataset).cases, cycle((right_tool_calls, wrong_tool_calls)))
    return {case.id: Answer(script(case)) for case, script in by_turns}


def _as_given(answers: Mapping[str, Answer]) -> Iterable[JsonObject]:
    for sample, answer in answers.items():
        yield {"sample_id": sample, "tool_calls": answer.tool_calls, "text": answer.text}


def _as_read(answers: Mapping[str, Answer], dataset: Dataset) -> Iterable[JsonObject]:
    cases = {case.id: case for case in dataset.cases}
    for sample, answer in answers.items():
        case = cases[sample]
        calls = native_calls(answer) if case.ground_truth is None else all_calls(answer)
        read = [{call.name: call.arguments} for call in calls]
        yield {"sample_id": sample, "subset": case.subset, "calls": read}


def _write(path: Path, rows: Iterable[JsonObject]) -> str:
    path.write_text("".join(f"{dump_line(row)}\n" for row in rows), "utf-8")
    return str(path)


def _reference(where: Path, data: str, answers: str) -> Judge:
    if not where.is_dir():
        raise BadInputError(f"{where}: no such directory")
    python = where / "bin" / "python"
    if python.is_file():
        return Judge("reference", data, answers, python=str(python))
    return Judge("reference", data, answers, path=str(where))


def _warm_up(judge: Judge) -> Judge:
    """Let a first run compile the modules, and find out what must stand in for those missing.

    Raises:
        BadInputError: the reference can't be imported even so.
    """
    told = _run(judge)
    if "error" in told:
        raise BadInputError(
            f"{judge.path or judge.python}: bfcl-eval can't be imported from there "
            f"({told['error']}); give its unpacked wheel or a virtual environment that has it"
        )
    return replace(judge, stand_in=tuple(told.get("stand_in", ())))


def _measure(judge: Judge, repeats: int) -> tuple[dict[str, float], dict[str, bool]]:
    """Return the median of each figure, and the verdicts."""
    told = [_run(judge) for _ in range(repeats)]
    medians = {name: statistics.median(one[name] for one in told) for name in FIGURES}
    return medians, told[-1]["verdicts"]


def _run(judge: Judge) -> JsonObject:
    with tempfile.TemporaryDirectory() as scratch:
        job, result = Path(scratch) / "job.json", Path(scratch) / "result.json"
        job.write_text(dump_line({**asdict(judge), "result": str(result)}), "utf-8")
        start_ns = time.monotonic_ns()
        try:
            subprocess.run(
                [judge.python, str(CHILD), str(job)],
                # The reference makes directories there when it is imported.
                env={**os.environ, "BFCL_PROJECT_ROOT": scratch},
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise BadInputError(f"{judge.side}: not done after {TIMEOUT_S:.0f} s") from None
        except subprocess.CalledProcessError as error:
            reason = (error.stderr.strip().splitlines() or [str(error)])[-1]
            raise BadInputError(f"{judge.side}: {judge.python} failed ({reason})") from None
        total_s = (time.monotonic_ns() - start_ns) / 1e9
        return {**read_object(result), "total_s": total_s}


def _without_loading_s(figures: Mapping[str, float]) -> float:
    return figures["import_s"] + figures["judge_s"]


def _package_bytes() -> int:
    """The size of what the gate is made of, as installed: with the modules as compiled here."""
    tag = f".{sys.implementation.cache_tag}.pyc"
    files = (path for path in Path(bfcl_gate.__path__[0]).rglob("*") if path.is_file())
    return sum(f.stat().st_size for f in files if f.suffix != ".pyc" or f.name.endswith(tag))


def _print(result: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result.items():
        print(f"{name:<21} {value:.3f}" if isinstance(value, float) else f"{name:<21} {value}")


if __name__ == "__main__":
    try:
        main()
    except (BadInputError, GateDataError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
