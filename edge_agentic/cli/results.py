"""`edge-agentic results`: show a run directory, verify its summary against its journal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Show and verify run directories.")

MOST_SHOWN = 20

RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def show(run: RunPath, json: Json = False) -> None:
    """Show the results of a run, finished or not, as its journal gives them."""
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.report.terminal import open_console, render_summary
    from edge_agentic.run.verify import recompute

    summary = recompute(run)
    if json:
        typer.echo(dump_pretty(summary), nl=False)
    else:
        render_summary(summary, open_console())


@app.command()
def verify(run: RunPath, json: Json = False) -> None:
    """Recompute every verdict, score and figure from the raw log; exit 2 if one differs."""
    from edge_agentic.cli.exits import ExitCode
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.core.text import one_line
    from edge_agentic.run.verify import verify_run

    report = verify_run(run)
    if json:
        typer.echo(dump_pretty(report.to_json()), nl=False)
    else:
        for finding in report.findings[:MOST_SHOWN]:
            typer.echo(f"error: {one_line(finding)}", err=True)
        if len(report.findings) > MOST_SHOWN:
            typer.echo(f"… and {len(report.findings) - MOST_SHOWN} more (--json)", err=True)
        for gap in report.unchecked:
            typer.echo(f"not checked: {one_line(gap)}")
        if not report.findings:
            typer.echo(f"{run}: verified; the summary follows from manifest and journal")
    if report.findings:
        raise typer.Exit(ExitCode.BAD_INPUT)
