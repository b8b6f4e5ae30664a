"""Runs a job for a command: progress while it lasts, its summary at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from edge_agentic.cli.exits import ExitCode

if TYPE_CHECKING:
    from edge_agentic.run.runner import RunResult
    from edge_agentic.run.settings import RunSettings


def execute(settings: RunSettings) -> RunResult:
    """Run the job with progress on standard error; an interruption is exit code 130."""
    from edge_agentic.report.progress import TerminalProgress
    from edge_agentic.run.runner import run

    try:
        with TerminalProgress() as progress:
            return run(settings, progress)
    except KeyboardInterrupt as interruption:
        from edge_agentic.core.errors import signal_name

        typer.echo(f"interrupted by {signal_name(interruption)}", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def show(result: RunResult, *, as_json: bool) -> None:
    """Print the summary, for people or as JSON, and where the run lies."""
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.core.text import one_line
    from edge_agentic.report.terminal import open_console, render_summary

    if as_json:
        summary = {**result.summary, "run_dir": str(result.directory)}
        typer.echo(dump_pretty(summary), nl=False)
        return
    render_summary(result.summary, open_console())
    typer.echo(f"run directory: {one_line(str(result.directory))}")
