"""Reads the command line out of a recorded `bash` call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from edge_agentic.core.messages import call_arguments

TOOL_NAME: Final = "bash"


def bash_command(call: Mapping[str, Any]) -> str | None:
    """The command line of an OpenAI-shaped call of `bash`; None for any other call."""
    function = call.get("function")
    if not isinstance(function, Mapping) or function.get("name") != TOOL_NAME:
        return None
    command = (call_arguments(function) or {}).get("command")
    return command if isinstance(command, str) else None
