"""`edge-agentic score`: score recorded against generated calls without a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Score answers without a run."""


@app.command()
def inline(
    pairs: Annotated[
        Path,
        typer.Argument(
            help="JSONL lines with expected_tool_calls and model_tool_calls; - for standard input.",
        ),
    ],
) -> None:
    """Print the actions and the inline score (multiset IoU) of each pair, in order.

    The score is null where the recorded side holds no known action: that turn is excluded.
    """
    from edge_agentic.core.errors import at_line
    from edge_agentic.core.jsonio import dump_line, parse_lines, read_bytes
    from edge_agentic.replay.inline_score import actions, score_turn

    raw = sys.stdin.buffer.read() if str(pairs) == "-" else read_bytes(pairs)
    for line, pair in parse_lines(raw, pairs):
        for key in ("expected_tool_calls", "model_tool_calls"):
            if key not in pair:
                raise at_line(pairs, line, f"'{key}' is missing; null stands for no calls")
        expected, model = pair["expected_tool_calls"], pair["model_tool_calls"]
        typer.echo(
            dump_line(
                {
                    "expected_actions": actions(expected),
                    "model_actions": actions(model),
                    "score": score_turn(expected, model),
                }
            )
        )
