"""Runs the recorded tool calls of a conversation in its workspace and compares the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.trace.bash_call import bash_command
from edge_agentic.trace.conversation import Turn
from edge_agentic.trace.tool_output import render
from tools_sandbox.errors import InvalidRequest
from tools_sandbox.result import Result
from tools_sandbox.sandbox import Sandbox


@dataclass(frozen=True)
class ToolRun:
    """One call that was to be executed.

    `matches_record` is None where the trace holds no result to match. A command that no kernel
    takes (a NUL, a word of more than 128 KiB) has no exit code and did not time out.
    """

    exit_code: int | None
    timed_out: bool
    truncated: bool
    duration_ns: int
    matches_record: bool | None

    def to_json(self) -> JsonObject:
        """The call as the journal holds it."""
        return asdict(self)


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
        expected = recorded.get(str(call.get("id")))
        try:
            result = sandbox.run(command, timeout_s=timeout_s)
        except InvalidRequest:
            runs.append(ToolRun(None, False, False, 0, None if expected is None else False))
            continue
        runs.append(_as_run(result, expected, timeout_s))
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
