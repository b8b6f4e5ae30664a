"""`edge-agentic score`: score recorded answers without a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edge_agentic.cli.inputs import read_input

if TYPE_CHECKING:
    from edge_agentic.measure.records import GateStart
    from edge_agentic.run.gate_score import Judged

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Score answers without a run."""


@app.command()
def inline(
    pairs: Annotated[
        Path,
        typer.Argument(
            help="JSONL lines with expected_tool_calls and model_tool_calls; - for standard input.",
        ),
    ],
) -> None:
    """Print the actions and the inline score (multiset IoU) of each pair, in order.

    The score is null where the recorded side holds no known action: that turn is excluded.
    """
    from edge_agentic.core.errors import at_line
    from edge_agentic.core.jsonio import dump_line, parse_lines
    from edge_agentic.replay.inline_score import actions, score_turn

    for line, pair in parse_lines(read_input(pairs), pairs):
        for key in ("expected_tool_calls", "model_tool_calls"):
            if key not in pair:
                raise at_line(pairs, line, f"'{key}' is missing; null stands for no calls")
        expected, model = pair["expected_tool_calls"], pair["model_tool_calls"]
        typer.echo(
            dump_line(
                {
                    "expected_actions": actions(expected),
                    "model_actions": actions(model),
                    "score": score_turn(expected, model),
                }
            )
        )


@app.command()
def gate(
    answers: Annotated[
        Path,
        typer.Argument(
            help="JSONL lines with sample_id and tool_calls or text; - for standard input.",
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            help="The set they answer: 'bfcl-v4', 'gate-mini', or a directory. [default: bfcl-v4]"
        ),
    ] = None,
    selection: Annotated[
        str | None,
        typer.Option(help="'official' or 'all'. [default: official of bfcl-v4, all of other sets]"),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Say pass or fail against this model's reference.")
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="Print a line of JSON for every input line instead.")
    ] = False,
    verdicts: Annotated[
        bool,
        typer.Option("--verdicts", help="The lines hold sample_id and valid; needs no data set."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the keys of 'gate' in summary.json.")
    ] = False,
) -> None:
    """Judge recorded answers to the gate's cases, and print the aggregates.

    A sample without a line counts as missing, which is wrong; of several lines the first counts.
    """
    from edge_agentic.core.errors import BadInputError
    from edge_agentic.core.jsonio import dump_line
    from edge_agentic.run.gate_score import (
        judge_answers,
        official_samples,
        read_verdicts,
        samples_of,
    )
    from edge_agentic.run.gate_sets import open_gate_set

    if verdicts:
        if each or data or selection:
            raise BadInputError(
                "--verdicts takes judged samples of the official selection; "
                "leave out --each, --data and --selection"
            )
        samples = official_samples()
        judged = read_verdicts(read_input(answers), answers, samples)
    else:
        if each and (json or selection or reference):
            raise BadInputError(
                "--each prints lines and no aggregates; "
                "leave out --json, --selection and --reference"
            )
        dataset = open_gate_set(data or "bfcl-v4")
        judged = judge_answers(read_input(answers), answers, dataset)
        if each:
            for one in judged:
                typer.echo(dump_line(one.to_json()))
            return
        samples = samples_of(dataset, selection)
    _aggregate(samples, list(judged), reference, as_json=json)


def _aggregate(
    samples: GateStart, judged: list[Judged], reference: str | None, *, as_json: bool
) -> None:
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.report.terminal import open_console, render_gate
    from edge_agentic.run.gate_score import find_reference, score

    held_to = None if reference is None else find_reference(reference, samples)
    section, reasons = score(samples, judged, held_to)
    outside = {one.sample_id for one in judged} - set(samples.sample_ids)
    if outside:
        typer.echo(
            f"note: {len(outside)} samples are not in the {samples.selection} selection of "
            f"{samples.dataset} and are left out",
            err=True,
        )
    if as_json:
        typer.echo(dump_pretty(section), nl=False)
    else:
        render_gate(section, reasons, open_console())
    if section["passed"] is False:
        from edge_agentic.cli.exits import ExitCode

        raise typer.Exit(ExitCode.GATE_FAILED)
