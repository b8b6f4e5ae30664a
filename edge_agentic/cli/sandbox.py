"""`edge-agentic sandbox`: prove the sandbox on this machine, run one command in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edge_agentic.core.errors import BadInputError
from tools_sandbox.result import Tier

app = typer.Typer(no_args_is_help=True, help="Check the sandbox, run a command in it.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AllowUnsandboxed = Annotated[
    bool,
    typer.Option(
        "--allow-unsandboxed",
        help="Isolate nothing (tier none): for trusted commands on a machine without bubblewrap.",
    ),
]
TierOption = Annotated[
    Tier | None,
    typer.Option("--tier", help="How to isolate; bubblewrap unless given. Never downgraded."),
]


@app.command()
def check(
    json: Json = False, tier: TierOption = None, allow_unsandboxed: AllowUnsandboxed = False
) -> None:
    """Attack the sandbox from inside; exit 6 if it lets through what it promises to stop."""
    import tempfile

    from edge_agentic.cli.exits import ExitCode
    from edge_agentic.core.jsonio import dump_pretty
    from tools_sandbox.check import CHECK_LIMITS, run_battery
    from tools_sandbox.sandbox import open_view
    from tools_sandbox.store import Store

    typer.echo("attacking the sandbox from inside: half a minute", err=True)
    asked = tier_for(allow_unsandboxed, tier)
    with tempfile.TemporaryDirectory(prefix="edge-agentic-") as scratch:
        empty = Path(scratch, "empty")
        empty.mkdir()
        pristine = Store(Path(scratch, "store")).add_directory(empty)
        with open_view(pristine, tier=asked, limits=CHECK_LIMITS) as sandbox:
            report = run_battery(sandbox)
    if json:
        typer.echo(dump_pretty(report.to_json()), nl=False)
    else:
        for attack in report.attacks:
            verdict = "stopped" if attack.stopped else "LET THROUGH"
            promise = "promised" if attack.promised else "not promised"
            typer.echo(f"{attack.name:<32} {verdict:<12} {promise}")
        for skipped in report.not_run:
            typer.echo(f"{skipped.name:<32} not run: {skipped.reason}")
    if report.broken:
        typer.echo(
            f"error: promised to be stopped, but let through: {', '.join(report.broken)}", err=True
        )
        raise typer.Exit(ExitCode.NOT_READY)
    if not json:
        typer.echo("all that is promised was stopped; docs/sandbox.md says what is not promised")


@app.command("exec", context_settings={"allow_interspersed_args": False})
def execute(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND...",
            help="The program and its words; one word is a bash command line.",
        ),
    ],
    workspace: Annotated[Path, typer.Option(help="The directory that it may write to.")],
    timeout: Annotated[
        float, typer.Option(help="Wall-clock limit, seconds; 7 days at most.")
    ] = 120.0,
    json: Json = False,
    tier: TierOption = None,
    allow_unsandboxed: AllowUnsandboxed = False,
) -> None:
    """Run one command in the sandbox. Options come before `--`, the command after it.

    The exit code is the command's, 124 after a time-out; with --json it is 0, and the result
    holds the command's.
    """
    from edge_agentic.core.jsonio import dump_pretty
    from tools_sandbox.sandbox import open_sandbox

    with open_sandbox(workspace, tier=tier_for(allow_unsandboxed, tier)) as sandbox:
        result = sandbox.run(command[0] if len(command) == 1 else command, timeout_s=timeout)
    if json:
        fields = ("exit_code", "output", "truncated", "timed_out", "over_limit", "duration_ns")
        record = {name: getattr(result, name) for name in fields}
        typer.echo(dump_pretty({**record, "tier": result.tier.value}), nl=False)
        return
    typer.echo(result.output, nl=False)
    if result.timed_out:
        typer.echo(f"error: timed out after {timeout:g} s", err=True)
    if result.over_limit:
        typer.echo(f"error: ended because it went over the limit {result.over_limit}", err=True)
    raise typer.Exit(124 if result.exit_code is None else result.exit_code)


def tier_for(allow_unsandboxed: bool, tier: Tier | None = None) -> Tier:
    """The tier that the flags ask for.

    Raises:
        BadInputError: they contradict each other.
    """
    if allow_unsandboxed and tier not in (None, Tier.NONE):
        raise BadInputError(f"--allow-unsandboxed asks for tier none, --tier for {tier.value}")
    if allow_unsandboxed:
        return Tier.NONE
    if tier is Tier.NONE:
        raise BadInputError("tier none isolates nothing: ask for it by --allow-unsandboxed")
    return tier or Tier.BUBBLEWRAP
