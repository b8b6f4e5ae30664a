"""Lets a model work on a task by itself: it calls tools in the workspace until it stops."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from edge_agentic.core.clock import NS_PER_S, Clock
from edge_agentic.core.ending import Ending
from edge_agentic.core.live_limits import LiveLimits
from edge_agentic.core.messages import Message, ToolCall, calls_to_openai
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest, Completion, Engine, FinishReason
from edge_agentic.replay.calls import offered_tools, perform
from edge_agentic.replay.naming import request_id
from edge_agentic.replay.tools import ToolRun, as_run
from edge_agentic.trace.conversation import Conversation
from tools_sandbox.sandbox import Sandbox

SUBMIT_LINE: Final = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""The first line of a command's output that submits, as the official trace's prompts say."""
MOST_UNREADABLE: Final = 3
"""So many answers in a row without a call that can be read: the model has given up."""

_UNREADABLE: Final = (
    "No tool call could be read from this answer. Make one call of an offered tool, "
    "or answer in plain text when the job is done."
)
_CUT: Final = (
    "The answer was cut off at {limit} tokens before it was complete. Make one short call of an "
    "offered tool, or answer in a few words when the job is done."
)


@dataclass(frozen=True)
class LiveStep:
    """One answer of the model, and what its calls did."""

    number: int
    completion: Completion
    tools: tuple[ToolRun, ...]
    step_end_ns: int


@dataclass(frozen=True)
class LiveTask:
    """A task: what the model is told, and how far it may go."""

    conversation: Conversation
    limits: LiveLimits
    max_output_tokens: int
    turn_timeout_s: float | None
    tool_timeout_s: float

    @property
    def opening(self) -> list[Message]:
        """The system prompt and the first thing that the user says."""
        return [*self.conversation.system_messages, *self.conversation.row_messages[0]]

    def first_request(self) -> ChatRequest:
        """The request that the task starts with."""
        return self.request(1, self.opening, self.limits.output_tokens, self.limits.wall_s)

    def request(
        self, number: int, messages: list[Message], output_tokens: int, left_s: float
    ) -> ChatRequest:
        """The request of one turn."""
        return ChatRequest(
            request_id=request_id(self.conversation, number),
            conversation_id=self.conversation.id,
            messages=messages,
            tools=self.conversation.tools,
            max_output_tokens=min(self.max_output_tokens, output_tokens),
            deadline_s=min(left_s, self.turn_timeout_s or left_s),
        )


def work(
    task: LiveTask, engine: Engine, sandbox: Sandbox, clock: Clock
) -> Generator[LiveStep, None, Ending]:
    """Play one task to its end; returns how it ended.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    return (yield from _Work(task, engine, sandbox, clock).steps())


class _Work:
    def __init__(self, task: LiveTask, engine: Engine, sandbox: Sandbox, clock: Clock) -> None:
        self._task, self._engine, self._sandbox, self._clock = task, engine, sandbox, clock
        self._messages = task.opening
        self._offered = offered_tools(task.conversation.tools)
        self._tokens_left = task.limits.output_tokens
        self._end_ns = clock() + int(task.limits.wall_s * NS_PER_S)
        self._unreadable = 0

    def steps(self) -> Generator[LiveStep, None, Ending]:
        for number in range(1, self._task.limits.turns + 1):
            if self._tokens_left < 1:
                return Ending.TOKEN_LIMIT
            left_s = self._left_s()
            if left_s <= 0:
                return Ending.TIME_LIMIT
            messages = list(self._messages)
            request = self._task.request(number, messages, self._tokens_left, left_s)
            completion = self._engine.generate(request)
            self._tokens_left -= _tokens(completion)
            tools, ending = self._take(completion, request.max_output_tokens)
            yield LiveStep(number, completion, tools, self._clock())
            if ending is not None:
                return ending
        return Ending.TURN_LIMIT

    def _left_s(self) -> float:
        return (self._end_ns - self._clock()) / NS_PER_S

    def _take(
        self, completion: Completion, limit: int
    ) -> tuple[tuple[ToolRun, ...], Ending | None]:
        """Do what an answer asks for; how the task ends, if it ends with it."""
        if completion.outcome is Outcome.CONTEXT_OVERFLOW:
            return (), Ending.CONTEXT_LIMIT
        if completion.outcome is not Outcome.OK:
            late = completion.outcome is Outcome.TIMEOUT and self._left_s() <= 0
            return (), Ending.TIME_LIMIT if late else Ending.FAILED
        calls = [call for call in completion.tool_calls if not call.truncated]
        self._answered(completion, calls)
        if calls:
            self._unreadable = 0
            return self._perform(calls)
        was_cut = completion.finish_reason is FinishReason.LENGTH
        if not (was_cut or completion.malformed):
            has_said = bool(completion.content.strip())
            return (), Ending.SUBMITTED if has_said else Ending.GAVE_UP
        self._unreadable += 1
        if self._unreadable == MOST_UNREADABLE:
            return (), Ending.GAVE_UP
        told = _CUT.format(limit=limit) if was_cut else _UNREADABLE
        self._messages.append({"role": "user", "content": told})
        return (), None

    def _answered(self, completion: Completion, calls: list[ToolCall]) -> None:
        message: Message = {"role": "assistant", "content": completion.content or None}
        if calls:
            message["tool_calls"] = calls_to_openai(calls)
        else:
            message["content"] = completion.content or completion.text
        if completion.reasoning is not None:
            message["reasoning_content"] = completion.reasoning
        self._messages.append(message)

    def _perform(self, calls: list[ToolCall]) -> tuple[tuple[ToolRun, ...], Ending | None]:
        runs: list[ToolRun] = []
        for call in calls:
            left_s = self._left_s()
            if left_s <= 0:
                return tuple(runs), Ending.TIME_LIMIT
            timeout_s = min(self._task.tool_timeout_s, left_s)
            performed = perform(call, self._offered, self._sandbox, timeout_s)
            runs.append(as_run(performed, self._sandbox))
            self._messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": performed.text}
            )
            result = performed.result
            if result and result.exit_code == 0 and _submits(result.output):
                return tuple(runs), Ending.SUBMITTED
        return tuple(runs), None


def _tokens(completion: Completion) -> int:
    """Output tokens, for the limit alone: of a server that counts none, the pieces that came."""
    counted = completion.tokens.output
    return len(completion.times.arrivals_ns) if counted is None else counted


def _submits(output: str) -> bool:
    return output.lstrip().partition("\n")[0].strip() == SUBMIT_LINE
