"""Runs the recorded tool calls of a conversation in its workspace and compares the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import ToolCall
from edge_agentic.replay.calls import Performed, perform
from edge_agentic.trace.bash_call import TOOL_NAME, bash_command
from edge_agentic.trace.comparison import Match, compare
from edge_agentic.trace.conversation import Turn
from tools_sandbox.bubblewrap import INSIDE_WORKSPACE
from tools_sandbox.sandbox import Sandbox
from tools_sandbox.watch import WatchedLimit


@dataclass(frozen=True)
class ToolRun:
    """One call that was to be executed, and what came of it.

    `match` and `expected` are None where the trace holds no result to match; `expected` also
    where the result is the recorded one to the letter. A command that no kernel takes (a NUL, a
    word of more than 128 KiB) has no exit code and did not time out.
    """

    exit_code: int | None
    timed_out: bool
    over_limit: WatchedLimit | None
    truncated: bool
    duration_ns: int
    result: str
    """What the model is told; the workspace is called `/workspace` in every tier."""
    expected: str | None
    """The recorded result."""
    match: Match | None

    def to_json(self) -> JsonObject:
        """The call as the journal holds it."""
        return {
            "exit_code": self.exit_code,
            "timed_out": self.timed_out,
            "over_limit": self.over_limit,
            "truncated": self.truncated,
            "duration_ns": self.duration_ns,
            "result": self.result,
            "expected": self.expected,
            "match": self.match.value if self.match else None,
        }


def recorded_calls(turn: Turn) -> list[ToolCall]:
    """The recorded calls of a turn that can be executed: those of `bash` with a command."""
    return [
        ToolCall(str(call.get("id")), TOOL_NAME, {"command": command})
        for call in turn.expected_calls
        if (command := bash_command(call)) is not None
    ]


def run_recorded_calls(turn: Turn, sandbox: Sandbox, timeout_s: float) -> list[ToolRun]:
    """Execute the recorded calls of one turn, in order, and compare what comes out.

    Raises:
        SandboxError: the sandbox itself failed, as opposed to the command.
    """
    recorded = _contents_by_call(turn.recorded_results)
    return [
        as_run(perform(call, {TOOL_NAME}, sandbox, timeout_s), sandbox, recorded.get(call.id))
        for call in recorded_calls(turn)
    ]


def as_run(performed: Performed, sandbox: Sandbox, recorded: str | None = None) -> ToolRun:
    """A call that was carried out, beside the recorded result if there is one."""
    text, result = in_every_tier(performed.text, sandbox), performed.result
    match = None if recorded is None else compare(recorded, text)
    return ToolRun(
        exit_code=result.exit_code if result else None,
        timed_out=bool(result and result.timed_out),
        over_limit=result.over_limit if result else None,
        truncated=bool(result and result.truncated),
        duration_ns=result.duration_ns if result else 0,
        result=text,
        expected=None if match is Match.EXACT else recorded,
        match=match,
    )


def in_every_tier(text: str, sandbox: Sandbox) -> str:
    """The text with the workspace called as tier `bubblewrap` calls it."""
    return text.replace(str(sandbox.workspace), INSIDE_WORKSPACE)


def _contents_by_call(results: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {str(result["tool_call_id"]): result["content"] for result in results}
