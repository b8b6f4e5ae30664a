"""The options that `run`, `demo` and `gate` share, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.replay_policy import ReplayPolicy
from edge_agentic.core.tool_mode import ToolMode
from edge_agentic.engine.choices import (
    DEFAULT_LOOKUP_TOKENS,
    DEFAULT_MTP_TOKENS,
    DEFAULT_SNAPSHOT_MIB,
    DEFAULT_SNAPSHOTS,
    DraftKind,
    EngineKind,
    Reasoning,
    ToolGrammar,
)
from edge_agentic.engine.server_kinds import ServerKind

if TYPE_CHECKING:
    from edge_agentic.run.server_settings import ServerOptions
    from edge_agentic.run.settings import EngineSettings, GateSettings

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
GateSet = Annotated[
    str, typer.Option(help="'gate-mini', 'bfcl-v4', or a directory in BFCL's own shape.")
]
Selection = Annotated[
    str | None,
    typer.Option(help="'official' or 'all'. [default: official of bfcl-v4, all of other sets]"),
]
EarlyStop = Annotated[
    bool, typer.Option("--early-stop", help="Stop the gate as soon as its verdict is decided.")
]
ErrorRate = Annotated[
    float | None,
    typer.Option(
        help="With --early-stop: how often the verdict may be another; 0 to 0.5. [default: 0.05]"
    ),
]
Out = Annotated[
    Path | None, typer.Option(help="The run directory; new or empty. [default: runs/…]")
]
Grammar = Annotated[
    ToolGrammar,
    typer.Option(
        help="Hold calls to the functions' schemas: off; auto: once a call begins; on: answers "
        "are nothing but calls; reference: as the model's gate reference was measured."
    ),
]
ToolForm = Annotated[
    ToolFormat | None,
    typer.Option(
        "--tool-format", help="How the model writes calls. [default: as its template asks for]"
    ),
]
Thinking = Annotated[
    Reasoning,
    typer.Option(
        "--reasoning", help="Whether the model thinks first, where its template has a switch."
    ),
]
Context = Annotated[
    int | None, typer.Option(help="Context window, tokens. [default: the model's, at most 32768]")
]
Threads = Annotated[int | None, typer.Option(help="[default: one per core]")]
GpuLayers = Annotated[int | None, typer.Option(help="Layers on the accelerator; -1 is all.")]
PrefixSnapshots = Annotated[
    int | None,
    typer.Option(
        help="Kept states of memory that can't be cut back; 0 re-evaluates each prompt. "
        f"[default: {DEFAULT_SNAPSHOTS}]"
    ),
]
PrefixSnapshotMib = Annotated[
    int | None,
    typer.Option(help=f"Memory that they may take, MiB. [default: {DEFAULT_SNAPSHOT_MIB}]"),
]
Draft = Annotated[
    DraftKind, typer.Option(help="Draft tokens for the model to check: same answers, sooner.")
]
DraftTokens = Annotated[
    int | None,
    typer.Option(
        help=f"Tokens drafted at once. [default: {DEFAULT_LOOKUP_TOKENS} for lookup, "
        f"{DEFAULT_MTP_TOKENS} for mtp]"
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option(help="Engine openai: the server's API, such as http://host:8080/v1.")
]
ServedModel = Annotated[
    str | None,
    typer.Option(help="Engine openai: the server's name of the model. [default: its only one]"),
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(help="Engine openai: the environment variable that holds the server's key."),
]
Kind = Annotated[
    ServerKind | None,
    typer.Option("--server-kind", help="Engine openai: which server it is. [default: detected]"),
]
ServerSetting = Annotated[
    list[str] | None,
    typer.Option(help="How the server is asked, NAME=VALUE; may be repeated. See docs/servers.md."),
]
ServerBin = Annotated[
    str | None, typer.Option(help="The program of an engine that starts a server.")
]
ServerArg = Annotated[
    list[str] | None,
    typer.Option(help="A further word for that program's command line; may be repeated."),
]
Concurrency = Annotated[
    int, typer.Option(help="Server engines only: conversations played at once.")
]
KeepServer = Annotated[
    bool, typer.Option("--keep-server", help="Leave the started server running after the run.")
]
MaxOutputTokens = Annotated[
    int | None,
    typer.Option(
        help="Longest answer. [default: 1024, or the pack's limit; 192 for the cases of gate-mini]"
    ),
]
Policy = Annotated[
    ReplayPolicy,
    typer.Option(
        help="exact: each answer has as many tokens as the recorded one; live: the model works "
        "on each task by itself, and the pack's check decides."
    ),
]
Tools = Annotated[
    ToolMode,
    typer.Option(
        help="execute: recorded calls run in the sandbox, the model's are tried there afterwards; "
        "recorded: wait as long as they took; off: neither."
    ),
]
TaskTurns = Annotated[int, typer.Option(min=1, help="Policy live: most turns of one task.")]
TaskTokens = Annotated[
    int, typer.Option(min=1, help="Policy live: most output tokens of one task.")
]
TaskTimeout = Annotated[float, typer.Option(min=1, help="Policy live: most seconds for one task.")]
TurnTimeout = Annotated[float, typer.Option(help="Deadline of one turn, seconds.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print summary.json and the run directory.")]

DEFAULT_ERROR_RATE = 0.05
DEFAULT_TURN_TIMEOUT_S = 600.0


def engine_settings(
    *,
    kind: EngineKind,
    model: str | None,
    answers: str | None,
    first_token_ms: float,
    token_ms: float,
    tool_grammar: ToolGrammar,
    tool_format: ToolFormat | None,
    reasoning: Reasoning,
    context: int | None,
    threads: int | None,
    gpu_layers: int | None,
    prefix_snapshots: int | None,
    prefix_snapshot_mib: int | None,
    draft: DraftKind,
    draft_tokens: int | None,
    server: ServerOptions,
) -> EngineSettings:
    """The engine that the options ask for.

    Raises:
        BadInputError: options that don't go together, or sizes that can't be.
    """
    from edge_agentic.engine.drafting import draft_settings
    from edge_agentic.engine.scripted import ScriptedDelays
    from edge_agentic.run.settings import EngineSettings

    return EngineSettings(
        kind=kind,
        model=model,
        answers=answers,
        delays=ScriptedDelays(first_token_ms, token_ms),
        tool_grammar=tool_grammar,
        tool_format=tool_format,
        reasoning=reasoning,
        context_tokens=context,
        threads=threads,
        gpu_layers=gpu_layers,
        prefix_snapshots=prefix_snapshots,
        prefix_snapshot_mib=prefix_snapshot_mib,
        draft=draft_settings(draft, draft_tokens),
        server=server,
    )


def server_options(
    *,
    base_url: str | None,
    served_model: str | None,
    api_key_env: str | None,
    server_kind: ServerKind | None,
    server_setting: Sequence[str] | None,
    server_bin: str | None,
    server_arg: Sequence[str] | None,
    keep_server: bool,
    concurrency: int = 1,
) -> ServerOptions:
    """The server that the options ask for.

    Raises:
        BadInputError: a URL or a setting that can't be used.
    """
    from edge_agentic.run.server_settings import ServerOptions

    return ServerOptions(
        base_url=base_url,
        served_model=served_model,
        api_key_env=api_key_env,
        server_kind=server_kind,
        server_settings=tuple(server_setting or ()),
        server_bin=server_bin,
        server_args=tuple(server_arg or ()),
        keep_server=keep_server,
        concurrency=concurrency,
    )


def gate_settings(
    dataset: str,
    selection: str | None,
    *,
    early_stop: bool,
    error_rate: float | None,
    subsets: Sequence[str] = (),
    limit: int | None = None,
) -> GateSettings:
    """The gate that the options ask for.

    Raises:
        BadInputError: options that don't go together.
    """
    from edge_agentic.core.errors import BadInputError
    from edge_agentic.run.settings import GateSettings

    if error_rate is not None and not early_stop:
        raise BadInputError("--error-rate belongs to --early-stop; give both")
    if early_stop and error_rate is None:
        error_rate = DEFAULT_ERROR_RATE
    return GateSettings(dataset, selection, tuple(subsets), limit, error_rate)
