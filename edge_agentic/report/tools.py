"""What a report says of executed tools and of tasks, as labels and texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from edge_agentic.core.jsonio import JsonObject

Row = tuple[str, str]


def turns_line(turns: JsonObject) -> str:
    """How many turns there were, of how many."""
    if turns["expected"] is None:
        return f"{turns['observed']} completed, {turns['failed']} failed"
    return (
        f"{turns['observed']} of {turns['expected']} completed, "
        f"{turns['failed']} failed, {turns['missing']} missing"
    )


def tool_rows(tools: JsonObject, null_reasons: Mapping[str, str]) -> Iterator[Row]:
    """The figures of executed and of tried calls."""
    compared = tools["compared"]
    exact = "" if tools["exact"] == compared else f", {tools['exact']} of them to the letter"
    rows = (
        ("tool fidelity", "fidelity", f"of {compared} compared results{exact}"),
        ("model's calls run", "executable_rate", f"of {tools['tried_calls']} tried"),
        ("  same effect", "effect_match", f"of {tools['tried_turns']} turns with recorded calls"),
    )
    for label, name, of_what in rows:
        value = tools[name]
        if value is None:
            yield label, f"- ({null_reasons[f'replay.tools.{name}']})"
        else:
            yield label, f"{value:.1%} {of_what}"


def difference_lines(tools: JsonObject) -> Iterator[str]:
    """The first difference from the recording, if there is one."""
    if not tools["differences"]:
        return
    first, count = tools["differences"][0], tools["differing_turns"]
    turns = "1 turn" if count == 1 else f"{count} turns"
    yield (
        f"{turns} with other results than recorded; first: turn {first['turn']} of "
        f"'{first['conversation_id']}', line {first['line']}: "
        f"recorded {_quoted(first['recorded'])}, now {_quoted(first['now'])}"
    )


def task_table(tasks: JsonObject) -> Sequence[Sequence[str]]:
    """Each task with its end and its cost, under the names of the columns."""
    return [
        ("  task", "solved", "ending", "turns", "tokens", "model", "tools", "wall"),
        *(
            (
                f"  {task['conversation_id']}",
                "yes" if task["solved"] else "no",
                str(task["ending"]).replace("_", " "),
                str(task["turns"]),
                _known(task["output_tokens"], "{:.0f}"),
                _known(task["model_time_s"], "{:.1f} s"),
                _known(task["tool_time_s"], "{:.1f} s"),
                _known(task["wall_s"], "{:.1f} s"),
            )
            for task in tasks["each"]
        ),
    ]


def task_rows(tasks: JsonObject, null_reasons: Mapping[str, str]) -> Iterator[Row]:
    """How many tasks were solved, and what one costs."""
    yield "solved", f"{tasks['solved']} of {tasks['total']} tasks"
    for label, name in (("per task", "per_task"), ("per solved task", "per_solved_task")):
        cost = tasks[name]
        if cost is None:
            yield label, f"- ({null_reasons[f'replay.tasks.{name}']})"
        else:
            yield (
                label,
                f"{_known(cost['turns'], '{:.1f}')} turns, "
                f"{_known(cost['output_tokens'], '{:.0f}')} output tokens, "
                f"{_known(cost['wall_s'], '{:.1f} s')}",
            )
    yield "  energy", f"- ({null_reasons['replay.tasks.energy_j']})"


def _known(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _quoted(line: str | None) -> str:
    return "nothing" if line is None else f'"{line}"'
