"""`edge-agentic gate`: the function-calling gate alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from edge_agentic.cli import options
from edge_agentic.cli.exits import ExitCode
from edge_agentic.cli.job import execute, show
from edge_agentic.engine.choices import DraftKind, EngineKind, Reasoning, ToolGrammar

if TYPE_CHECKING:
    from edge_agentic.run.runner import RunResult

HELP = (
    "Measure function-calling accuracy, and say whether the model passes. A gate that was cut "
    "short is continued by the same options and its directory as --out."
)

Subsets = Annotated[
    list[str] | None,
    typer.Option("--subset", help="Of this subset only; may be repeated. No verdict."),
]
Limit = Annotated[
    int | None,
    typer.Option(help="At most so many cases, from the subsets in turn. No verdict."),
]
ShowFailures = Annotated[
    bool,
    typer.Option("--show-failures", help="List each wrong answer: question, expected, got."),
]


def command(
    model: options.Model = None,
    gate_set: options.GateSet = "gate-mini",
    selection: options.Selection = None,
    subset: Subsets = None,
    limit: Limit = None,
    early_stop: options.EarlyStop = False,
    error_rate: options.ErrorRate = None,
    show_failures: ShowFailures = False,
    out: options.Out = None,
    json: options.AsJson = False,
    engine: options.Engine = EngineKind.LLAMACPP,
    tool_grammar: options.Grammar = ToolGrammar.REFERENCE,
    tool_format: options.ToolForm = None,
    reasoning: options.Thinking = Reasoning.OFF,
    context: options.Context = None,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    prefix_snapshots: options.PrefixSnapshots = None,
    prefix_snapshot_mib: options.PrefixSnapshotMib = None,
    draft: options.Draft = DraftKind.OFF,
    draft_tokens: options.DraftTokens = None,
    base_url: options.BaseUrl = None,
    served_model: options.ServedModel = None,
    api_key_env: options.ApiKeyEnv = None,
    server_kind: options.Kind = None,
    server_setting: options.ServerSetting = None,
    server_bin: options.ServerBin = None,
    server_arg: options.ServerArg = None,
    keep_server: options.KeepServer = False,
    max_output_tokens: options.MaxOutputTokens = None,
    turn_timeout: options.TurnTimeout = options.DEFAULT_TURN_TIMEOUT_S,
    answers: options.Answers = None,
) -> None:
    """Run the gate; its exit code says whether the model passed."""
    from edge_agentic.run.settings import RunSettings

    settings = RunSettings(
        engine=options.engine_settings(
            kind=engine,
            model=model,
            answers=answers,
            first_token_ms=0.0,
            token_ms=0.0,
            tool_grammar=tool_grammar,
            tool_format=tool_format,
            reasoning=reasoning,
            context=context,
            threads=threads,
            gpu_layers=gpu_layers,
            prefix_snapshots=prefix_snapshots,
            prefix_snapshot_mib=prefix_snapshot_mib,
            draft=draft,
            draft_tokens=draft_tokens,
            server=options.server_options(
                base_url=base_url,
                served_model=served_model,
                api_key_env=api_key_env,
                server_kind=server_kind,
                server_setting=server_setting,
                server_bin=server_bin,
                server_arg=server_arg,
                keep_server=keep_server,
            ),
        ),
        pack=None,
        gate=options.gate_settings(
            gate_set,
            selection,
            early_stop=early_stop,
            error_rate=error_rate,
            subsets=subset or (),
            limit=limit,
        ),
        out=out,
        max_output_tokens=max_output_tokens,
        turn_timeout_s=turn_timeout,
    )
    result = execute(settings)
    show(result, as_json=json)
    if show_failures:
        _show_failures(result, gate_set, to_stderr=json)
    if result.gate_passed is False:
        raise typer.Exit(ExitCode.GATE_FAILED)


def _show_failures(result: RunResult, gate_set: str, *, to_stderr: bool) -> None:
    from edge_agentic.report.gate_failures import render_failures
    from edge_agentic.run.directory import open_run_directory
    from edge_agentic.run.gate_sets import open_gate_set

    events = open_run_directory(result.directory).events()
    for line in render_failures(open_gate_set(gate_set), events):
        typer.echo(line, err=to_stderr)
