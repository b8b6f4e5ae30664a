"""Plays recorded conversations through an engine, under the policies `recorded` and `exact`.

Each request carries the recorded history, whatever the model answered before (MLPerf Inference
v6.1 edge-agentic semantics). Where a conversation has a workspace, the recorded calls really
run in it, after the model's answer and outside its turn latency.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field

from edge_agentic.core.clock import Clock, monotonic_ns
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import calls_to_openai
from edge_agentic.core.replay_policy import ReplayPolicy
from edge_agentic.engine.api import ChatRequest, Completion, Engine
from edge_agentic.replay.inline_score import score_turn
from edge_agentic.replay.lengths import TurnKey
from edge_agentic.replay.tools import ToolRun, run_recorded_calls
from edge_agentic.trace.conversation import Conversation, Turn, request_messages
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

    lengths: of each answer, in tokens, under the policy `exact`; empty under `recorded`.
    """

    pack: TracePack
    limits: ReplayLimits
    lengths: Mapping[TurnKey, int] = field(default_factory=dict)
    concurrency: int = 1
    """How many conversations are played at once."""

    @property
    def policy(self) -> ReplayPolicy:
        """The policy that the plan follows."""
        return ReplayPolicy.EXACT if self.lengths else ReplayPolicy.RECORDED

    def forced_tokens(self, conversation: Conversation, turn: Turn) -> int | None:
        """The length that an answer is to have; None where the model decides."""
        return self.lengths.get((conversation.id, turn.index))


@dataclass(frozen=True)
class TurnRecord:
    """One played turn: the answer, its inline score, and what the recorded calls did."""

    conversation_id: str
    turn: Turn
    forced_tokens: int | None
    completion: Completion
    inline_score: float | None
    tools: tuple[ToolRun, ...]
    step_end_ns: int

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
            "step_end_ns": self.step_end_ns,
        }


@dataclass(frozen=True)
class ConversationEnd:
    """The end of a conversation; `check_passed` is None where there is no success check."""

    conversation_id: str
    check_passed: bool | None
    t_ns: int

    def to_json(self) -> JsonObject:
        """The fields of a `conversation_finished` event."""
        return asdict(self)


OpenWorkspace = Callable[[str], AbstractContextManager[Sandbox | None]]
"""Opens the private workspace of a conversation; gives None where it has none."""


def no_workspaces(conversation_id: str) -> AbstractContextManager[Sandbox | None]:
    """An `OpenWorkspace` for packs without workspaces."""
    return nullcontext(None)


def request_id(conversation: Conversation, turn: Turn) -> str:
    """The name of a replay request."""
    return f"replay/{conversation.id}/{turn.index}"


def turn_request(plan: ReplayPlan, conversation: Conversation, turn: Turn) -> ChatRequest:
    """The request of one turn, with the recorded history."""
    forced_tokens = plan.forced_tokens(conversation, turn)
    return ChatRequest(
        request_id=request_id(conversation, turn),
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
) -> Generator[TurnRecord | ConversationEnd, None, None]:
    """Play every conversation of a pack, one at a time, in order.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    pack, tool_timeout_s = plan.pack, plan.limits.tool_timeout_s
    for conversation in pack.conversations:
        with open_workspace(conversation.id) as sandbox:
            for turn in conversation.turns:
                completion = engine.generate(turn_request(plan, conversation, turn))
                runs = run_recorded_calls(turn, sandbox, tool_timeout_s) if sandbox else []
                step_end_ns = clock()
                yield TurnRecord(
                    conversation_id=conversation.id,
                    turn=turn,
                    forced_tokens=plan.forced_tokens(conversation, turn),
                    completion=completion,
                    inline_score=score_turn(
                        turn.expected_calls, calls_to_openai(completion.tool_calls)
                    ),
                    tools=tuple(runs),
                    step_end_ns=step_end_ns,
                )
            passed = _check(pack.checks.get(conversation.id), sandbox, tool_timeout_s)
        yield ConversationEnd(conversation.id, passed, clock())


def _check(command: str | None, sandbox: Sandbox | None, timeout_s: float) -> bool | None:
    if command is None or sandbox is None:
        return None
    return sandbox.run(command, timeout_s=timeout_s).exit_code == 0
