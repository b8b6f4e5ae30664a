"""`edge-agentic run` and `demo`: the whole job, from gate to results."""

from __future__ import annotations

from collections.abc import Callable

import typer

from edge_agentic.cli import options
from edge_agentic.cli.exits import ExitCode
from edge_agentic.cli.job import execute, show
from edge_agentic.cli.sandbox import AllowUnsandboxed, TierOption, tier_for
from edge_agentic.core.live_limits import LiveLimits
from edge_agentic.core.replay_policy import ReplayPolicy
from edge_agentic.core.tool_mode import ToolMode
from edge_agentic.engine.choices import DraftKind, EngineKind, Reasoning, ToolGrammar

LIVE = LiveLimits()
DEMO_MODEL = "smollm2-135m"
RUN_HELP = "Gate a model, replay recorded coding-agent work on it, report what was measured."
DEMO_HELP = "The same as run, with a small model that is fetched if need be (about 100 MB)."


def command(default_model: str | None) -> Callable[..., None]:
    """The `run` command with a default for `--model`; `demo` differs in nothing else."""

    def command(
        model: options.Model = default_model,
        pack: options.Pack = "edge-mini",
        policy: options.Policy = ReplayPolicy.RECORDED,
        gate_set: options.GateSet = "gate-mini",
        selection: options.Selection = None,
        early_stop: options.EarlyStop = False,
        error_rate: options.ErrorRate = None,
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
        concurrency: options.Concurrency = 1,
        max_output_tokens: options.MaxOutputTokens = None,
        turn_timeout: options.TurnTimeout = options.DEFAULT_TURN_TIMEOUT_S,
        tools: options.Tools = ToolMode.EXECUTE,
        tier: TierOption = None,
        allow_unsandboxed: AllowUnsandboxed = False,
        task_turns: options.TaskTurns = LIVE.turns,
        task_tokens: options.TaskTokens = LIVE.output_tokens,
        task_timeout: options.TaskTimeout = LIVE.wall_s,
        answers: options.Answers = None,
        first_token_ms: options.FirstTokenMs = 0.0,
        token_ms: options.TokenMs = 0.0,
    ) -> None:
        from edge_agentic.run.settings import RunSettings

        if engine is EngineKind.SCRIPTED:
            if model != default_model:
                typer.echo("note: --engine scripted runs no model; --model is not used", err=True)
            model = None
        elif engine is EngineKind.OPENAI and model == default_model:
            model = None
        elif model is not None and model == default_model:
            _fetch(model)
        settings = RunSettings(
            engine=options.engine_settings(
                kind=engine,
                model=model,
                answers=answers,
                first_token_ms=first_token_ms,
                token_ms=token_ms,
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
                    concurrency=concurrency,
                ),
            ),
            pack=pack,
            gate=options.gate_settings(
                gate_set, selection, early_stop=early_stop, error_rate=error_rate
            ),
            out=out,
            policy=policy,
            max_output_tokens=max_output_tokens,
            turn_timeout_s=turn_timeout,
            tools=tools,
            live=LiveLimits(task_turns, task_tokens, task_timeout),
            tier=tier_for(allow_unsandboxed, tier),
        )
        result = execute(settings)
        show(result, as_json=json)
        if not result.gate_passed:
            raise typer.Exit(ExitCode.GATE_FAILED)
        if not result.summary["valid"]:
            raise typer.Exit(ExitCode.RUN_INVALID)

    return command


def _fetch(model: str) -> None:
    from edge_agentic.engine.model_store import fetch_model

    fetch_model(model, say=lambda line: typer.echo(line, err=True))
