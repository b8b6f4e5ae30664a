"""`edge-agentic server`: start a model server that stays up, look at it, stop it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from edge_agentic.cli import options
from edge_agentic.engine.choices import EngineKind

if TYPE_CHECKING:
    from edge_agentic.engine.server_registry import KeptServer

app = typer.Typer(
    no_args_is_help=True,
    help="Start a model server that stays up, list those that run, stop one, read its output.",
)

Name = Annotated[
    str | None, typer.Argument(help="As 'server list' shows it. [default: the only one]")
]
Program = Annotated[EngineKind, typer.Option("--engine", help="Which server.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]
Lines = Annotated[int, typer.Option(min=1, help="How many of the last lines.")]


@app.command()
def start(
    engine: Program = EngineKind.LLAMA_SERVER,
    model: options.Model = None,
    context: options.Context = None,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    server_bin: options.ServerBin = None,
    server_arg: options.ServerArg = None,
    json: AsJson = False,
) -> None:
    """Start a server with the device profile's settings; it stays until 'server stop'."""
    from edge_agentic.core.errors import BadInputError
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.device.profile import load_profile
    from edge_agentic.engine.server_process import ManagedServer
    from edge_agentic.engine.server_registry import remember
    from edge_agentic.run.server_settings import STARTED, ServerOptions
    from edge_agentic.run.servers import model_to_serve, server_sizes
    from edge_agentic.run.settings import EngineSettings

    if engine not in STARTED:
        known = ", ".join(kind.value for kind in STARTED)
        raise BadInputError(f"--engine {engine.value} starts no server; give one of: {known}")
    settings = EngineSettings(
        kind=engine,
        model=model,
        context_tokens=context,
        threads=threads,
        gpu_layers=gpu_layers,
        server=ServerOptions(server_bin=server_bin, server_args=tuple(server_arg or ())),
    )
    sizes = server_sizes(settings, load_profile(), model_to_serve(settings))
    typer.echo(f"starting {engine.value}", err=True)
    server = ManagedServer(STARTED[engine], server_bin, sizes)
    try:
        kept = remember(server.started)
        server.keep()
    finally:
        server.close()
    typer.echo(dump_pretty(kept.to_json()) if json else _line(kept), nl=not json)


@app.command("list")
def list_servers(json: AsJson = False) -> None:
    """Show the servers that were left running: name and base URL."""
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.engine.server_registry import kept_servers

    running = kept_servers()
    if json:
        typer.echo(dump_pretty([kept.to_json() for kept in running]), nl=False)
        return
    for kept in running:
        typer.echo(_line(kept))


@app.command()
def stop(name: Name = None) -> None:
    """Stop a server that was left running, and everything it started."""
    from edge_agentic.engine import server_registry

    kept = server_registry.find_kept(name)
    server_registry.stop(kept)
    typer.echo(f"stopped {kept.name}")


@app.command()
def logs(name: Name = None, lines: Lines = 40) -> None:
    """Print the last lines that a server wrote."""
    from edge_agentic.core.text import one_line
    from edge_agentic.engine.server_process import log_lines
    from edge_agentic.engine.server_registry import find_kept

    for line in log_lines(find_kept(name).log)[-lines:]:
        typer.echo(one_line(line))


def _line(kept: KeptServer) -> str:
    return f"{kept.name}  {kept.url}"
