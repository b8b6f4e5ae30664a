"""Finds before the run what would spoil it in the middle: context too small, tools missing."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bfcl_gate.cases import Case
from bfcl_gate.request import messages, tools
from edge_agentic.core.errors import BadInputError, RequirementError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.engine.api import ChatRequest, Engine
from edge_agentic.engine.choices import EngineKind
from edge_agentic.engine.server_kinds import Cause, ServerKind, remedy
from edge_agentic.replay.player import ReplayPlan, turn_request
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import open_sandbox

_PROBE_TIMEOUT_S = 30.0


def check_context(
    engine: Engine,
    gate_cases: Sequence[Case],
    gate_output_tokens: int,
    replay: ReplayPlan | None,
) -> None:
    """Every prompt and its answer must fit the context window.

    A conversation grows from turn to turn, so of its turns only those decide whose answer may be
    longer than that of every later one.

    Raises:
        BadInputError: one does not fit; names it and both numbers.
    """
    if engine.context_tokens is None:
        return
    for case in gate_cases:
        prompt = engine.count_prompt_tokens(messages(case), tools(case))
        _check_fits(f"gate case '{case.id}'", prompt, gate_output_tokens, engine)
    if replay is None:
        return
    for conversation in replay.pack.conversations:
        requests = [turn_request(replay, conversation, turn) for turn in conversation.turns]
        for request in _deciding(requests):
            _check_fits(
                f"conversation '{conversation.id}'",
                engine.count_prompt_tokens(request.messages, request.tools),
                request.max_output_tokens,
                engine,
            )


def check_sandbox(tier: Tier, required_tools: Sequence[str]) -> JsonObject:
    """Prove the sandbox by running in it, and find the pack's tools there.

    Returns:
        What the sandbox is, for the manifest.

    Raises:
        SandboxUnavailable: the tier can't run here.
        RequirementError: a tool is missing; names every one.
    """
    with (
        tempfile.TemporaryDirectory(prefix="edge-agentic-") as scratch,
        open_sandbox(Path(scratch), tier=tier) as sandbox,
    ):
        probe = "; ".join(
            f"command -v {shlex.quote(tool)} >/dev/null || echo {shlex.quote(tool)}"
            for tool in required_tools
        )
        missing = sandbox.run(probe or "true", timeout_s=_PROBE_TIMEOUT_S).output.split()
        if missing:
            raise RequirementError(
                f"the pack's commands need {', '.join(missing)}, not found in the sandbox; "
                "install them on this machine"
            )
        return sandbox.info.to_json()


def _deciding(requests: Sequence[ChatRequest]) -> Iterator[ChatRequest]:
    """The requests, the last one first, whose answer may be longer than that of every later one."""
    longest = 0
    for request in reversed(requests):
        if request.max_output_tokens > longest:
            longest = request.max_output_tokens
            yield request


def _check_fits(what: str, prompt: int | None, output: int, engine: Engine) -> None:
    context = engine.context_tokens
    if prompt is None or context is None or prompt + output <= context:
        return
    facts = engine.describe()
    needed = _round_up(prompt + output)
    larger = f"use --context {needed} or more"
    if facts["kind"] == EngineKind.OPENAI and "server_program" not in facts:
        larger = f"{remedy(ServerKind(facts['server']), Cause.CONTEXT)} ({needed} or more)"
    raise BadInputError(
        f"{what} needs {prompt} prompt tokens and up to {output} for the answer, "
        f"the context holds {context}; {larger}"
    )


def _round_up(tokens: int) -> int:
    return -(-tokens // 256) * 256
