"""`edge-agentic traces`: validate, show, list and record traces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from edge_agentic.trace.pack import TracePack
    from edge_agentic.trace.recorder import Execute

app = typer.Typer(no_args_is_help=True, help="Validate, show, list and record traces.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def validate(
    file: Annotated[str, typer.Argument(help="A trace file, a directory or a bundled pack.")],
    json: Json = False,
) -> None:
    """Check a trace file or a pack, and count what it holds."""
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.trace.pack import load_pack

    counts = _counts(load_pack(file))
    if json:
        typer.echo(dump_pretty(counts), nl=False)
    else:
        numbers = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
        typer.echo(f"{file}: valid; {numbers}")


@app.command()
def show(
    pack: Annotated[str, typer.Argument(help="A bundled pack, a directory or a trace file.")],
    conversation: Annotated[str | None, typer.Argument(help="Show this one in full.")] = None,
    json: Json = False,
) -> None:
    """Show what a pack holds, or one of its conversations turn by turn."""
    from edge_agentic.core.errors import BadInputError
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.core.text import printable
    from edge_agentic.trace.pack import load_pack
    from edge_agentic.trace.show import conversation_lines, describe_pack, pack_lines

    loaded = load_pack(pack)
    if conversation is None:
        description = describe_pack(loaded)
        lines = iter([dump_pretty(description).rstrip()]) if json else pack_lines(description)
    else:
        found = next((c for c in loaded.conversations if c.id == conversation), None)
        if found is None:
            raise BadInputError(
                f"{pack}: no conversation {conversation!r}; 'traces show {pack}' lists them"
            )
        rows = {"id": found.id, "rows": found.rows}
        lines = iter([dump_pretty(rows).rstrip()]) if json else conversation_lines(found)
    for line in lines:
        typer.echo(printable(line))


@app.command("list")
def list_packs(json: Json = False) -> None:
    """List the packs that ship with the project."""
    from edge_agentic.core.jsonio import dump_pretty
    from edge_agentic.trace.pack import bundled_packs

    names = bundled_packs()
    typer.echo(dump_pretty(names).rstrip() if json else "\n".join(names))


@app.command()
def record(
    pack_dir: Annotated[Path, typer.Argument(help="The pack to record, rewritten in place.")],
) -> None:
    """Run a pack's commands in the sandbox and write down their real results."""
    from edge_agentic.trace.pack import load_pack
    from edge_agentic.trace.recorder import record_pack

    record_pack(pack_dir, _open_executor)
    counts = _counts(load_pack(pack_dir))
    typer.echo(f"{pack_dir}: recorded {counts['tool_results']} tool results")


@contextmanager
def _open_executor(workspace: Path) -> Iterator[Execute]:
    from edge_agentic.run.workspaces import keep_workspace
    from tools_sandbox.sandbox import open_view

    with open_view(keep_workspace(workspace)) as sandbox:
        yield lambda command, timeout_s: sandbox.run(command, timeout_s=timeout_s)


def _counts(pack: TracePack) -> dict[str, int]:
    from edge_agentic.replay.inline_score import actions

    turns = [turn for conversation in pack.conversations for turn in conversation.turns]
    return {
        "rows": sum(len(conversation.rows) for conversation in pack.conversations),
        "conversations": len(pack.conversations),
        "turns": len(turns),
        "scorable_turns": sum(bool(actions(turn.expected_calls)) for turn in turns),
        "tool_results": sum(len(turn.recorded_results) for turn in turns),
    }
