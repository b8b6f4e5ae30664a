"""Runs the recorded tool calls of a conversation in its workspace and compares the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import call_arguments
from edge_agentic.replay.inline_score import TOOL_NAME
from edge_agentic.trace.conversation import Turn
from edge_agentic.trace.tool_output import render
from tools_sandbox.result import Result
from tools_sandbox.sandbox import Sandbox


@dataclass(frozen=True)
class ToolRun:
    """One executed call. `matches_record` is None where the trace holds no result to match."""

    exit_code: int | None
    timed_out: bool
    truncated: bool
    duration_ns: int
    matches_record: bool | None

    def to_json(self) -> JsonObject:
        """The call as the journal holds it."""
        return {
            "exit_code": self.exit_code,
            "timed_out": self.timed_out,
            "truncated": self.truncated,
            "duration_ns": self.duration_ns,
            "matches_record": self.matches_record,
        }


def bash_command(call: Mapping[str, Any]) -> str | None:
    """The command line of an OpenAI-shaped call of `bash`; None for any other call."""
    function = call.get("function")
    if not isinstance(function, Mapping) or function.get("name") != TOOL_NAME:
        return None
    command = (call_arguments(function) or {}).get("command")
    return command if isinstance(command, str) else None


def run_recorded_calls(turn: Turn, sandbox: Sandbox, timeout_s: float) -> list[ToolRun]:
    """Execute the recorded calls of one turn, in order.

    A result matches if its rendering equals the recorded one exactly (*fidelity*).

    Raises:
        SandboxError: the sandbox itself failed, as opposed to the command.
    """
    recorded = _contents_by_call(turn.recorded_results)
    runs = []
    for call in turn.expected_calls:
        command = bash_command(call)
        if command is None:
            continue
        result = sandbox.run(command, timeout_s=timeout_s)
        runs.append(_as_run(result, recorded.get(str(call.get("id"))), timeout_s))
    return runs


def _contents_by_call(results: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {str(result["tool_call_id"]): result["content"] for result in results}


def _as_run(result: Result, recorded: str | None, timeout_s: float) -> ToolRun:
    return ToolRun(
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        truncated=result.truncated,
        duration_ns=result.duration_ns,
        matches_record=None if recorded is None else render(result, timeout_s) == recorded,
    )
