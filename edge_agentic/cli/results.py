"""`edge-agentic results`: show a run directory, verify its summary against its journal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Show and verify run directories.")

RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def show(run: RunPath, json: Json = False) -> None:
    """Show the results of a run, finished or not, as its journal gives them."""
    from rich.console import Console

    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.report.terminal import render_summary
    from edge_agentic.run.verify import recompute

    summary = recompute(run)
    if json:
        typer.echo(dump_pretty(summary), nl=False)
    else:
        render_summary(summary, Console())


@app.command()
def verify(run: RunPath, json: Json = False) -> None:
    """Recompute every verdict, score and figure from the raw log; exit 2 if one differs."""
    from edge_agentic.cli.exits import ExitCode
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.run.verify import verify_run

    findings = verify_run(run)
    if json:
        typer.echo(dump_pretty({"verified": not findings, "findings": findings}), nl=False)
    elif findings:
        for finding in findings:
            typer.echo(f"error: {finding}", err=True)
    else:
        typer.echo(f"{run}: verified; summary.json follows from manifest and journal")
    if findings:
        raise typer.Exit(ExitCode.BAD_INPUT)
