"""Finds before the run what would spoil it in the middle: a context too small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bfcl_gate.cases import Case
from bfcl_gate.request import messages, tools
from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.api import ChatRequest, Engine
from edge_agentic.engine.choices import EngineKind
from edge_agentic.engine.server_kinds import Cause, ServerKind, remedy
from edge_agentic.replay.player import ReplayPlan, turn_request


def check_context(
    engine: Engine,
    gate_cases: Sequence[Case],
    gate_output_tokens: int,
    replay: ReplayPlan | None,
) -> None:
    """Every prompt and its answer must fit the context window.

    A conversation grows from turn to turn, so of its turns only those decide whose answer may be
    longer than that of every later one. Under the policy `live` only the first is known.

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
        if replay.live:
            requests = [replay.task(conversation).first_request()]
        else:
            requests = [turn_request(replay, conversation, turn) for turn in conversation.turns]
        for request in _deciding(requests):
            _check_fits(
                f"conversation '{conversation.id}'",
                engine.count_prompt_tokens(request.messages, request.tools),
                request.max_output_tokens,
                engine,
            )


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
