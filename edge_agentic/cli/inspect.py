"""`edge-agentic inspect`: look into models and what they write, without a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge_agentic.cli import options
from edge_agentic.engine.choices import Reasoning

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Look into models and what they write, without a run."""


@app.command()
def model(
    gguf: Annotated[
        str, typer.Argument(metavar="GGUF", help="A file, or a name that 'models list' shows.")
    ],
    context: Annotated[
        int | None,
        typer.Option(
            help="Work out the memory of this many tokens. [default: the model's, at most 32768]"
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a model's sizes, memory, template, and whether the closed division can take it.

    Reads only the header of the file, and checks that its weights are all there.
    """
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.core.text import printable
    from edge_agentic.engine.gguf import read_gguf
    from edge_agentic.engine.model_report import model_report
    from edge_agentic.engine.model_store import resolve_model
    from edge_agentic.report.model import render_model

    report = model_report(read_gguf(resolve_model(gguf)), context)
    if json:
        typer.echo(printable(dump_pretty(report)), nl=False)
        return
    for line in render_model(report):
        typer.echo(line)


@app.command()
def prompt(
    model: Annotated[
        str, typer.Option("--model", "-m", help="A GGUF file, or a name that 'models list' shows.")
    ],
    conversation: Annotated[str, typer.Option(help="A conversation of the pack.")],
    pack: Annotated[
        str, typer.Option(help="A bundled pack, a pack's directory, or a trace file.")
    ] = "edge-mini",
    turn: Annotated[int, typer.Option(help="The generated turn, from 1.")] = 1,
    reasoning: options.Thinking = Reasoning.OFF,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the text that a model is given at one turn, its tokens, and the stable prefix in it.

    Loads only the model's vocabulary.
    """
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.core.text import printable
    from edge_agentic.engine.model_store import resolve_model
    from edge_agentic.engine.requirement import importing_llamacpp
    from edge_agentic.report.prompt import prompt_lines
    from edge_agentic.trace.pack import load_pack

    with importing_llamacpp():
        from edge_agentic.engine.prompt_report import prompt_report
    report = prompt_report(
        resolve_model(model),
        load_pack(pack),
        conversation,
        turn,
        reasoning=reasoning is Reasoning.ON,
    )
    if json:
        typer.echo(printable(dump_pretty(report)), nl=False)
        return
    for line in prompt_lines(report):
        typer.echo(line)


@app.command()
def calls(
    texts: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSONL lines with text, format and tools; - for standard input.",
        ),
    ],
) -> None:
    """Find the tool calls in texts that models wrote, and print a line of JSON for each."""
    from edge_agentic.chat.call_lines import parse_call_line
    from edge_agentic.cli.inputs import read_input
    from edge_agentic.core.jsonio import dump_line, parse_lines
    from edge_agentic.core.text import printable

    for line, fields in parse_lines(read_input(texts), texts):
        typer.echo(printable(dump_line(parse_call_line(fields, texts, line))))
