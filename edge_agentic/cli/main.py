"""`edge-agentic`: the commands, and the one place that turns errors into exit codes."""

from __future__ import annotations

import io
import sys
from typing import Annotated, Final

import typer

from edge_agentic.cli import (
    data,
    gate,
    inspect,
    models,
    results,
    run,
    sandbox,
    score,
    server,
    traces,
)
from edge_agentic.cli.exits import code_of, describe
from edge_agentic.core.interrupt import interruptible
from edge_agentic.core.text import one_line

_MOST_CHARACTERS: Final = 2000

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Benchmark LLM agents on the device itself: gate, replay, measure.",
)
app.command("run", help=run.RUN_HELP)(run.command(None))
app.command("gate", help=gate.HELP)(gate.command)
app.command("demo", help=run.DEMO_HELP)(run.command(run.DEMO_MODEL))
app.add_typer(results.app, name="results")
app.add_typer(traces.app, name="traces")
app.add_typer(models.app, name="models")
app.add_typer(data.app, name="data")
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(server.app, name="server")
app.add_typer(score.app, name="score")
app.add_typer(inspect.app, name="inspect")


def main() -> None:
    """Run the command line. An expected error is one line and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # What the terminal's encoding lacks is shown escaped; it must not end a run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with interruptible():
            app()
    except Exception as error:
        code = code_of(error)
        if code is None:
            raise
        print(f"error: {_short(one_line(describe(error)))}", file=sys.stderr)
        sys.exit(code)


def _short(line: str) -> str:
    """The line, cut where a value in it is endless."""
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}…"


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("edge-agentic"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass
