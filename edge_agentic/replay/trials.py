"""Tries the model's own calls after the replay: did they run, did they do what the recorded did?

The recorded calls run again in a pristine workspace, turn by turn. At each turn the model's calls
run on a throw-away branch of the workspace as it stands there. All of it comes after the last
timed turn, so that no figure of time holds any of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from edge_agentic.core.jsonio import JsonObject, dump_line
from edge_agentic.core.messages import ToolCall
from edge_agentic.replay.calls import Performed, Status, offered_tools, perform
from edge_agentic.replay.lengths import TurnKey
from edge_agentic.replay.tools import in_every_tier, recorded_calls
from edge_agentic.trace.bash_call import TOOL_NAME
from edge_agentic.trace.comparison import normalise
from edge_agentic.trace.conversation import Conversation
from tools_sandbox.effects import Changes, Observer
from tools_sandbox.sandbox import Sandbox

Answers = Mapping[TurnKey, Sequence[ToolCall]]
"""The model's calls in each turn that was issued; none where the turn failed."""


@dataclass(frozen=True)
class TriedCall:
    """How one call ended, whether it could be executed, and how long it took (no figure has it)."""

    status: Status
    ran: bool
    duration_ns: int = 0


@dataclass(frozen=True)
class TurnEffect:
    """What the calls of one turn did, one after the other."""

    calls: tuple[TriedCall, ...]
    changed_files: int
    changes_sha256: str
    """Of the names of changed files and what they are now."""
    output: str | None
    """What the calls put out, if they changed nothing; then it is all that they did."""

    @property
    def status(self) -> Status:
        """That of the first call that did not end with 0; else 0."""
        return next((call.status for call in self.calls if call.status != 0), 0)

    def to_json(self) -> JsonObject:
        """The effect as the journal holds it."""
        return {
            "calls": [asdict(call) for call in self.calls],
            "changed_files": self.changed_files,
            "changes_sha256": self.changes_sha256,
            "output": self.output,
        }


@dataclass(frozen=True)
class Trial:
    """The effects of one turn; `recorded` and `model` are None where there were no calls."""

    conversation_id: str
    number: int
    recorded: TurnEffect | None
    model: TurnEffect | None

    def to_json(self) -> JsonObject:
        """The fields of a `trial` event."""
        return {
            "conversation_id": self.conversation_id,
            "turn": self.number,
            "recorded": self.recorded.to_json() if self.recorded else None,
            "model": self.model.to_json() if self.model else None,
            "same_effect": same_effect(self.recorded, self.model),
        }


def same_effect(recorded: TurnEffect | None, model: TurnEffect | None) -> bool | None:
    """Whether the model's calls did what the recorded ones did; None where those are none.

    The same means: the same exit status, the same files changed to the same content; and of
    calls that change nothing the same output, past what no two runs can have in common.
    """
    if recorded is None:
        return None
    if model is None or model.status != recorded.status:
        return False
    if model.changes_sha256 != recorded.changes_sha256:
        return False
    return normalise(model.output or "") == normalise(recorded.output or "")


def try_calls(
    conversation: Conversation, answers: Answers, sandbox: Sandbox, timeout_s: float
) -> Iterator[Trial]:
    """Try the model's calls of each turn, in a pristine workspace of the conversation.

    Raises:
        SandboxError: the sandbox itself failed.
    """
    observer = Observer(sandbox)
    offered = offered_tools(conversation.tools)
    for turn in conversation.turns:
        calls = answers.get((conversation.id, turn.index))
        if calls is None:
            continue
        model, recorded = None, None
        if calls:
            action = _performing(calls, offered, timeout_s)
            model = _effect(*observer.watch_on_branch(sandbox.snapshot(), action))
        if own := recorded_calls(turn):
            action = _performing(own, {TOOL_NAME}, timeout_s)
            recorded = _effect(*observer.watch(action))
        yield Trial(conversation.id, turn.index, recorded, model)


_Done = Sequence[tuple[Performed, str]]
"""What came of each call, and its output."""


def _performing(
    calls: Sequence[ToolCall], offered: Collection[str], timeout_s: float
) -> Callable[[Sandbox], _Done]:
    def perform_all(sandbox: Sandbox) -> _Done:
        done = []
        for call in calls:
            performed = perform(call, offered, sandbox, timeout_s)
            output = performed.result.output if performed.result else ""
            done.append((performed, in_every_tier(output, sandbox)))
        return done

    return perform_all


def _tried(performed: Performed) -> TriedCall:
    result = performed.result
    return TriedCall(performed.status, performed.ran, result.duration_ns if result else 0)


def _effect(done: _Done, changes: Changes) -> TurnEffect:
    return TurnEffect(
        calls=tuple(_tried(performed) for performed, _ in done),
        changed_files=len(changes),
        changes_sha256=hashlib.sha256(
            dump_line(changes).encode("utf-8", "surrogateescape")
        ).hexdigest(),
        output=None if changes else "".join(output for _, output in done),
    )
