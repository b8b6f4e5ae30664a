"""The contract between the suite and whatever runs a model: `generate(request) -> Completion`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import Message, ToolCall, ToolSpec
from edge_agentic.core.outcome import Outcome


class FinishReason(str, Enum):
    """Why a model stopped, in the words of the OpenAI chat API."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"


@dataclass(frozen=True)
class ChatRequest:
    """One generation: the whole conversation so far, and the limits of the answer.

    `request_id` names the request within the run (`replay/<conversation>/<turn>`,
    `gate/<case>`). Requests of one `conversation_id` may share prefill state; no others do.
    `force_length`: generate exactly `max_output_tokens`, end tokens being suppressed; only for
    an engine that can.
    """

    request_id: str
    conversation_id: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    max_output_tokens: int
    deadline_s: float | None = None
    force_length: bool = False

    def __post_init__(self) -> None:
        """Refuse limits that no answer can meet."""
        if self.max_output_tokens < 1:
            raise ValueError(f"max_output_tokens must be at least 1, got {self.max_output_tokens}")
        if self.deadline_s is not None and self.deadline_s <= 0:
            raise ValueError(f"deadline_s must be positive, got {self.deadline_s}")


@dataclass(frozen=True)
class TokenTimes:
    """When a request was issued and when each delta of its output arrived, monotonic ns.

    A delta counts only if it carries something. In-process each delta is one token.
    """

    issued_ns: int
    arrivals_ns: tuple[int, ...] = ()
    """Offsets from `issued_ns`, ascending."""
    first_delta_tokens: int | None = 1

    def __post_init__(self) -> None:
        """Refuse an arrival before the request or before an earlier arrival."""
        previous = 0
        for arrival in self.arrivals_ns:
            if arrival < previous:
                raise ValueError("arrivals_ns must ascend from the time of issue")
            previous = arrival


@dataclass(frozen=True)
class TokenCounts:
    """Tokens of one request; None where the engine can't know.

    prompt: the rendered prompt. cached: its part whose prefill state was reused.
    computed: its part that was evaluated. ideal: prompt less the longest common prefix with
    the previous prompt of the conversation (all of it on the first turn): what a perfect
    prefix cache would compute. output: what the model produced, its end token excluded.
    drafted: tokens that were drafted for the model to check. accepted: of them, those in output.
    """

    prompt: int | None = None
    cached: int | None = None
    computed: int | None = None
    ideal: int | None = None
    output: int | None = None
    drafted: int | None = None
    accepted: int | None = None


@dataclass(frozen=True)
class Completion:
    """What came back for one request."""

    outcome: Outcome
    times: TokenTimes
    tokens: TokenCounts = field(default_factory=TokenCounts)
    finish_reason: FinishReason | None = None
    text: str = ""
    """Everything the model wrote, verbatim."""
    content: str = ""
    """The answer to the user: the text without reasoning and calls."""
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    malformed: bool = False
    """The text tried to call a tool and could not be parsed, wholly or in part."""
    error: str | None = None
    server: JsonObject | None = None
    """What a server says of its own work, in its words; None in-process. The client's clocks
    are the measure; this is for cross-checks."""


class Engine(Protocol):
    """Runs a model. Not shared between threads."""

    @property
    def is_model(self) -> bool:
        """False for an engine whose answers are scripted."""

    @property
    def can_force_length(self) -> bool:
        """Whether it can suppress end tokens; see `ChatRequest.force_length`."""

    @property
    def context_tokens(self) -> int | None:
        """Size of the context window; None if unlimited or unknown."""

    def describe(self) -> JsonObject:
        """Settings and facts for the manifest."""

    def count_prompt_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> int | None:
        """Tokens of the rendered prompt, without evaluating it; None where unknown."""

    def generate(self, request: ChatRequest) -> Completion:
        """Answer one request; whatever goes wrong is an outcome."""

    def close(self) -> None:
        """Free the model. Safe to call twice."""
