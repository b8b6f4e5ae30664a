"""Plays conversations through an engine.

Under the policies `recorded` and `exact` each request carries the recorded history, whatever the
model answered before (MLPerf Inference v6.1 edge-agentic semantics). Where a conversation has a
workspace, the recorded calls really run in it, after the model's answer and outside its turn
latency. Under `live` the model's own calls run, and it sees what came of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from edge_agentic.core.clock import Clock, monotonic_ns
from edge_agentic.core.ending import Ending
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.live_limits import LiveLimits
from edge_agentic.core.messages import calls_to_openai
from edge_agentic.core.replay_policy import ReplayPolicy
from edge_agentic.core.tool_mode import ToolMode
from edge_agentic.engine.api import ChatRequest, Completion, Engine
from edge_agentic.replay.check import check_of, passes
from edge_agentic.replay.inline_score import score_turn
from edge_agentic.replay.lengths import TurnKey
from edge_agentic.replay.live import LiveTask, work
from edge_agentic.replay.naming import request_id
from edge_agentic.replay.tools import ToolRun, run_recorded_calls
from edge_agentic.trace.conversation import (
    Conversation,
    Turn,
    request_messages,
    unrecorded_turn,
)
from edge_agentic.trace.pack import TracePack
from tools_sandbox.sandbox import Sandbox

DEFAULT_MAX_OUTPUT_TOKENS = 1024
"""MLPerf Inference v6.1, edge-agentic: at most 1024 new tokens a turn."""


@dataclass(frozen=True)
class ReplayLimits:
    """Limits of one turn. `max_output_tokens` None takes the trace's, the pack's, or 1024."""

    max_output_tokens: int | None
    turn_timeout_s: float | None
    tool_timeout_s: float

    def output_tokens(self, pack: TracePack, turn: Turn) -> int:
        """The output limit of one turn."""
        return (
            self.max_output_tokens
            or turn.max_output_tokens
            or pack.max_output_tokens
            or DEFAULT_MAX_OUTPUT_TOKENS
        )


@dataclass(frozen=True)
class ReplayPlan:
    """What is to be replayed, and under which limits.

    lengths: of each answer, in tokens, under the policy `exact`; empty under the others.
    live: how far the model may go under the policy `live`; None under the others.
    """

    pack: TracePack
    limits: ReplayLimits
    lengths: Mapping[TurnKey, int] = field(default_factory=dict)
    concurrency: int = 1
    """How many conversations are played at once."""
    tools: ToolMode = ToolMode.EXECUTE
    live: LiveLimits | None = None

    def __post_init__(self) -> None:
        """Refuse what can't go together."""
        if self.live and (self.lengths or self.tools is not ToolMode.EXECUTE):
            raise ValueError("under the policy 'live' tools run, and the model ends its answers")

    @property
    def policy(self) -> ReplayPolicy:
        """The policy that the plan follows."""
        if self.live:
            return ReplayPolicy.LIVE
        return ReplayPolicy.EXACT if self.lengths else ReplayPolicy.RECORDED

    def task(self, conversation: Conversation) -> LiveTask:
        """A conversation as a task of the policy `live`."""
        assert self.live is not None
        return LiveTask(
            conversation,
            self.live,
            self.limits.max_output_tokens or DEFAULT_MAX_OUTPUT_TOKENS,
            self.limits.turn_timeout_s,
            self.limits.tool_timeout_s,
        )

    def forced_tokens(self, conversation: Conversation, turn: Turn) -> int | None:
        """The length that an answer is to have; None where the model decides."""
        return self.lengths.get((conversation.id, turn.index))


@dataclass(frozen=True)
class TurnRecord:
    """One played turn: the answer, its inline score, and what the calls did that ran.

    Those are the recorded ones, or under the policy `live` the model's own.
    tool_delay_ns: how long was waited in their place; None where nothing was.
    """

    conversation_id: str
    turn: Turn
    forced_tokens: int | None
    completion: Completion
    inline_score: float | None
    tools: tuple[ToolRun, ...]
    step_end_ns: int
    tool_delay_ns: int | None = None

    def to_json(self) -> JsonObject:
        """The fields of a `turn` event."""
        done, tokens = self.completion, self.completion.tokens
        return {
            "conversation_id": self.conversation_id,
            "turn": self.turn.index,
            "issued_ns": done.times.issued_ns,
            "outcome": done.outcome.value,
            "finish_reason": done.finish_reason.value if done.finish_reason else None,
            "error": done.error,
            "prompt_tokens": tokens.prompt,
            "cached_tokens": tokens.cached,
            "computed_tokens": tokens.computed,
            "ideal_tokens": tokens.ideal,
            "output_tokens": tokens.output,
            "forced_tokens": self.forced_tokens,
            "drafted_tokens": tokens.drafted,
            "accepted_tokens": tokens.accepted,
            "first_delta_tokens": done.times.first_delta_tokens,
            "arrivals_ns": list(done.times.arrivals_ns),
            "server": done.server,
            "text": done.text,
            "reasoning": done.reasoning,
            "tool_calls": calls_to_openai(done.tool_calls),
            "malformed": done.malformed,
            "expected_tool_calls": list(self.turn.expected_calls),
            "inline_score": self.inline_score,
            "tools": [run.to_json() for run in self.tools],
            "tool_delay_ns": self.tool_delay_ns,
            "step_end_ns": self.step_end_ns,
        }


@dataclass(frozen=True)
class ConversationEnd:
    """The end of a conversation.

    check_passed: None where there is no success check. ending: None but under the policy `live`.
    """

    conversation_id: str
    check_passed: bool | None
    t_ns: int
    ending: Ending | None = None

    def to_json(self) -> JsonObject:
        """The fields of a `conversation_finished` event."""
        return {
            "conversation_id": self.conversation_id,
            "check_passed": self.check_passed,
            "ending": self.ending.value if self.ending else None,
            "t_ns": self.t_ns,
        }


OpenWorkspace = Callable[[str], AbstractContextManager[Sandbox | None]]
"""Opens the private workspace of a conversation; gives None where it has none."""


def no_workspaces(conversation_id: str) -> AbstractContextManager[Sandbox | None]:
    """An `OpenWorkspace` for packs without workspaces."""
    return nullcontext(None)


def turn_request(plan: ReplayPlan, conversation: Conversation, turn: Turn) -> ChatRequest:
    """The request of one turn, with the recorded history."""
    forced_tokens = plan.forced_tokens(conversation, turn)
    return ChatRequest(
        request_id=request_id(conversation, turn.index),
        conversation_id=conversation.id,
        messages=request_messages(conversation, turn),
        tools=conversation.tools,
        max_output_tokens=forced_tokens or plan.limits.output_tokens(plan.pack, turn),
        deadline_s=plan.limits.turn_timeout_s,
        force_length=forced_tokens is not None,
    )


def play(
    plan: ReplayPlan,
    engine: Engine,
    open_workspace: OpenWorkspace = no_workspaces,
    clock: Clock = monotonic_ns,
    wait: Callable[[float], object] = time.sleep,
) -> Generator[TurnRecord | ConversationEnd, None, None]:
    """Play every conversation of a pack, one at a time, in order.

    `wait` waits for a number of seconds where recorded calls are not executed but waited for.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    for conversation in plan.pack.conversations:
        with open_workspace(conversation.id) as sandbox:
            ending = None
            if plan.live:
                assert sandbox is not None, "a task has a workspace"
                ending = yield from _play_live(plan, conversation, engine, sandbox, clock)
            else:
                yield from _play_recorded(plan, conversation, engine, sandbox, clock, wait)
            check = check_of(plan.pack, conversation.id)
            passed = None
            if check and sandbox:
                passed = passes(check, sandbox, plan.limits.tool_timeout_s)
        yield ConversationEnd(conversation.id, passed, clock(), ending)


def _play_recorded(
    plan: ReplayPlan,
    conversation: Conversation,
    engine: Engine,
    sandbox: Sandbox | None,
    clock: Clock,
    wait: Callable[[float], object],
) -> Generator[TurnRecord, None, None]:
    for turn in conversation.turns:
        completion = engine.generate(turn_request(plan, conversation, turn))
        runs = run_recorded_calls(turn, sandbox, plan.limits.tool_timeout_s) if sandbox else []
        delay_ns = None
        if plan.tools is ToolMode.RECORDED and turn.delay_s is not None:
            start_ns = clock()
            wait(turn.delay_s)
            delay_ns = clock() - start_ns
        step_end_ns = clock()
        yield TurnRecord(
            conversation_id=conversation.id,
            turn=turn,
            forced_tokens=plan.forced_tokens(conversation, turn),
            completion=completion,
            inline_score=score_turn(turn.expected_calls, calls_to_openai(completion.tool_calls)),
            tools=tuple(runs),
            step_end_ns=step_end_ns,
            tool_delay_ns=delay_ns,
        )


def _play_live(
    plan: ReplayPlan, conversation: Conversation, engine: Engine, sandbox: Sandbox, clock: Clock
) -> Generator[TurnRecord, None, Ending]:
    steps = work(plan.task(conversation), engine, sandbox, clock)
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            ending: Ending = end.value
            return ending
        yield TurnRecord(
            conversation_id=conversation.id,
            turn=unrecorded_turn(step.number),
            forced_tokens=None,
            completion=step.completion,
            inline_score=None,
            tools=step.tools,
            step_end_ns=step.step_end_ns,
        )
