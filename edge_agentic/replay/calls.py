"""Carries out a model's tool calls in a sandbox: `bash`, and the file tools where offered."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from edge_agentic.core.messages import ToolCall, ToolSpec
from edge_agentic.trace.bash_call import TOOL_NAME, bash_command
from edge_agentic.trace.tool_output import render
from tools_sandbox.errors import InvalidRequest
from tools_sandbox.files import FileOutcome
from tools_sandbox.result import Result
from tools_sandbox.sandbox import Sandbox

Status = int | Literal["timeout", "refused"]
"""How a call ended: its exit code, or why it has none."""

_NOT_RUN: Final = (126, 127)  # bash: found no program, or one that it can't start
_FILE_TOOLS: Final[Mapping[str, Mapping[str, type]]] = {
    "read_file": {"path": str, "first_line": int, "last_line": int},
    "write_file": {"path": str, "content": str},
    "str_replace": {"path": str, "old": str, "new": str},
    "list_dir": {"path": str},
    "grep": {"pattern": str, "path": str},
}
_REQUIRED: Final = frozenset({"content", "old", "new", "pattern"})
_PATH_MAY_BE_LEFT_OUT: Final = frozenset({"list_dir", "grep"})


@dataclass(frozen=True)
class Performed:
    """What came of one call; `result` is None where it can't be carried out at all."""

    text: str
    """What the model is told."""
    result: Result | None

    @property
    def status(self) -> Status:
        """How the call ended."""
        if self.result is None:
            return "refused"
        return "timeout" if self.result.exit_code is None else self.result.exit_code

    @property
    def ran(self) -> bool:
        """It could be executed: its program was found, and it ended within its limits."""
        result = self.result
        return (
            result is not None
            and result.exit_code is not None
            and result.over_limit is None
            and result.exit_code not in _NOT_RUN
        )


def offered_tools(tools: Sequence[ToolSpec]) -> frozenset[str]:
    """The functions that a conversation offers, of those known here; `bash` if it names none."""
    if not tools:
        return frozenset({TOOL_NAME})
    functions = (tool.get("function") for tool in tools)
    names = {str(function.get("name")) for function in functions if isinstance(function, Mapping)}
    return frozenset(names & {TOOL_NAME, *_FILE_TOOLS})


def perform(
    call: ToolCall, offered: Collection[str], sandbox: Sandbox, timeout_s: float
) -> Performed:
    """Carry out one call, or say why it can't be.

    Raises:
        SandboxError: the sandbox itself failed, as opposed to the call.
    """
    if call.truncated:
        return _refused(f"the call of {call.name!r} was cut short")
    if call.name not in offered:
        return _refused(f"there is no tool {call.name!r}; there is: {', '.join(sorted(offered))}")
    try:
        if call.name == TOOL_NAME:
            return _run_bash(call, sandbox, timeout_s)
        return _use_file_tool(call, sandbox, timeout_s)
    except InvalidRequest as error:
        return _refused(str(error))


def _run_bash(call: ToolCall, sandbox: Sandbox, timeout_s: float) -> Performed:
    command = bash_command(call.to_openai())
    if command is None:
        return _refused("'bash' needs 'command', a string")
    result = sandbox.run(command, timeout_s=timeout_s)
    return Performed(render(result, timeout_s), result)


def _use_file_tool(call: ToolCall, sandbox: Sandbox, timeout_s: float) -> Performed:
    kinds = _FILE_TOOLS[call.name]
    needed = [name for name in kinds if name in _REQUIRED]
    if call.name not in _PATH_MAY_BE_LEFT_OUT:
        needed.insert(0, "path")
    if missing := [name for name in needed if name not in call.arguments]:
        return _refused(f"{call.name!r} needs {', '.join(map(repr, missing))}")
    for name, value in call.arguments.items():
        kind = kinds.get(name)
        if kind is None:
            return _refused(f"{call.name!r} has no parameter {name!r}")
        if not isinstance(value, kind) or isinstance(value, bool):
            wanted = "a string" if kind is str else "a whole number"
            return _refused(f"{name!r} of {call.name!r} must be {wanted}")
    words: dict[str, Any] = dict(call.arguments)
    if call.name == "grep":
        words["timeout_s"] = timeout_s
    tool: Callable[..., FileOutcome] = getattr(sandbox.files, call.name)
    start_ns = time.monotonic_ns()
    outcome = tool(**words)
    result = Result(
        exit_code=0 if outcome.ok else 1,
        output=outcome.output,
        truncated=outcome.truncated,
        timed_out=False,
        duration_ns=time.monotonic_ns() - start_ns,
        tier=sandbox.info.tier,
        output_bytes=len(outcome.output.encode("utf-8", "replace")),
    )
    return Performed(outcome.output, result)


def _refused(reason: str) -> Performed:
    return Performed(f"error: {reason}", None)
