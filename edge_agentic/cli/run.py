"""`edge-agentic run` and `demo`: the whole job, from gate to results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edge_agentic.cli.exits import ExitCode
from edge_agentic.cli.sandbox import AllowUnsandboxed, tier_for
from edge_agentic.engine.choices import EngineKind, ToolGrammar

if TYPE_CHECKING:
    from edge_agentic.run.runner import RunResult
    from edge_agentic.run.settings import RunSettings

DEMO_MODEL = "smollm2-135m"

Model = Annotated[
    str | None,
    typer.Option("--model", "-m", help="A GGUF file, or a name that 'models list' shows."),
]
Engine = Annotated[EngineKind, typer.Option(help="What runs the model.")]
Answers = Annotated[
    str | None,
    typer.Option(help="Scripted engine only: 'recorded' (default), 'wrong', or a JSONL file."),
]
FirstTokenMs = Annotated[
    float, typer.Option("--first-token-ms", help="Scripted engine only: delay of the first token.")
]
TokenMs = Annotated[
    float, typer.Option("--token-ms", help="Scripted engine only: delay of each further token.")
]
Pack = Annotated[str, typer.Option(help="A bundled pack, a pack's directory, or a trace file.")]
GateSet = Annotated[str, typer.Option(help="'gate-mini', or a directory in BFCL's own shape.")]
Out = Annotated[
    Path | None, typer.Option(help="The run directory; new or empty. [default: runs/…]")
]
Grammar = Annotated[
    ToolGrammar,
    typer.Option(help="Hold answers to the offered functions' schemas; auto: as the reference."),
]
Context = Annotated[
    int | None, typer.Option(help="Context window, tokens. [default: the model's, at most 32768]")
]
Threads = Annotated[int | None, typer.Option(help="[default: one per core]")]
GpuLayers = Annotated[int | None, typer.Option(help="Layers on the accelerator; -1 is all.")]
MaxOutputTokens = Annotated[
    int | None,
    typer.Option(help="Longest answer of a turn. [default: the pack's limit, or 1024]"),
]
TurnTimeout = Annotated[float, typer.Option(help="Deadline of one turn, seconds.")]
Json = Annotated[bool, typer.Option("--json", help="Print summary.json and the run directory.")]


RUN_HELP = "Gate a model, replay recorded coding-agent work on it, report what was measured."
DEMO_HELP = "The same as run, with a small model that is fetched if need be (about 100 MB)."


def command(default_model: str | None) -> Callable[..., None]:
    """The `run` command with a default for `--model`; `demo` differs in nothing else."""

    def command(
        model: Model = default_model,
        pack: Pack = "edge-mini",
        gate_set: GateSet = "gate-mini",
        out: Out = None,
        json: Json = False,
        engine: Engine = EngineKind.LLAMACPP,
        tool_grammar: Grammar = ToolGrammar.AUTO,
        context: Context = None,
        threads: Threads = None,
        gpu_layers: GpuLayers = None,
        max_output_tokens: MaxOutputTokens = None,
        turn_timeout: TurnTimeout = 600.0,
        allow_unsandboxed: AllowUnsandboxed = False,
        answers: Answers = None,
        first_token_ms: FirstTokenMs = 0.0,
        token_ms: TokenMs = 0.0,
    ) -> None:
        from edge_agentic.engine.scripted import ScriptedDelays
        from edge_agentic.run.settings import EngineSettings, RunSettings

        if engine is EngineKind.SCRIPTED:
            if model != default_model:
                typer.echo("note: --engine scripted runs no model; --model is not used", err=True)
            model = None
        elif model is not None and model == default_model:
            _fetch(model)
        settings = RunSettings(
            engine=EngineSettings(
                kind=engine,
                model=model,
                answers=answers,
                delays=ScriptedDelays(first_token_ms, token_ms),
                tool_grammar=tool_grammar,
                context_tokens=context,
                threads=threads,
                gpu_layers=gpu_layers,
            ),
            pack=pack,
            gate_set=gate_set,
            out=out,
            max_output_tokens=max_output_tokens,
            turn_timeout_s=turn_timeout,
            tier=tier_for(allow_unsandboxed),
        )
        _execute(settings, as_json=json)

    return command


def _fetch(model: str) -> None:
    from edge_agentic.engine.model_store import fetch_model

    fetch_model(model, say=lambda line: typer.echo(line, err=True))


def _execute(settings: RunSettings, *, as_json: bool) -> None:
    from edge_agentic.report.progress import TerminalProgress
    from edge_agentic.run.runner import run as run_job

    try:
        with TerminalProgress() as progress:
            result = run_job(settings, progress)
    except KeyboardInterrupt as interruption:
        from edge_agentic.core.errors import signal_name

        typer.echo(f"interrupted by {signal_name(interruption)}", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _show(result, as_json)
    if not result.gate_passed:
        raise typer.Exit(ExitCode.GATE_FAILED)
    if not result.summary["valid"]:
        raise typer.Exit(ExitCode.RUN_INVALID)


def _show(result: RunResult, as_json: bool) -> None:
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.report.terminal import open_console, render_summary

    if as_json:
        summary = {**result.summary, "run_dir": str(result.directory)}
        typer.echo(dump_pretty(summary), nl=False)
        return
    render_summary(result.summary, open_console())
    typer.echo(f"run directory: {result.directory}")
