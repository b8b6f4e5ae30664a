"""Decides what of an evaluated prompt the next one can go on from, for every kind of memory.

Where each token has cells of its own, the memory is cut back to the common prefix. Where it
can't be cut back (a sliding window, a recurrent state), a snapshot is taken at the end of each
prompt's stable prefix, and the longest snapshot that the next prompt still agrees with is
brought back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Generic, Protocol, TypeVar

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject


class Sized(Protocol):
    """A snapshot, as far as the cache looks at it."""

    @property
    def on_device(self) -> bool:
        """Whether it holds the one place on the device."""

    @property
    def size_bytes(self) -> int:
        """The memory that it takes."""


SnapshotT = TypeVar("SnapshotT", bound=Sized)


class Memory(Protocol[SnapshotT]):
    """What the cache needs of a context; `engine.llama_runtime.LlamaRuntime` has it."""

    def keep(self, tokens: int) -> bool:
        """Forget everything past the first `tokens` positions; False if that is impossible."""

    def clear(self) -> None:
        """Forget everything."""

    def save(self, *, on_device: bool) -> SnapshotT | None:
        """Copy the state that `keep` can't cut back; None if that is impossible."""

    def restore(self, snapshot: SnapshotT) -> bool:
        """Bring back a snapshot's state; False if that is impossible."""


@dataclass(frozen=True)
class SnapshotLimits:
    """How many snapshots are kept, and how much memory they may take together.

    on_device: keep the newest in the memory of the device. There is one place there; older
    snapshots are in the memory of the host.
    """

    count: int
    total_bytes: int
    on_device: bool = False

    def __post_init__(self) -> None:
        """Refuse negative limits.

        Raises:
            BadInputError: they come from options.
        """
        if self.count < 0 or self.total_bytes < 0:
            raise BadInputError("the number and the bytes of prefix snapshots must be at least 0")

    def to_json(self) -> JsonObject:
        """The limits, for the manifest."""
        return asdict(self)


@dataclass(frozen=True)
class Reuse:
    """What of a prompt needs no evaluation.

    cached: its first tokens that are in memory. shared: its longest common prefix with the
    conversation's previous prompt, which a perfect cache would have in memory. save_at: once so
    many of its tokens are in memory, `save` is to be called; None for never.
    """

    cached: int
    shared: int
    save_at: int | None


@dataclass(frozen=True)
class _Kept(Generic[SnapshotT]):
    tokens: int
    snapshot: SnapshotT
    anchor: bool


class PrefixCache(Generic[SnapshotT]):
    """The prefill state of one conversation at a time.

    A prompt starts with `begin`; its tokens past `Reuse.cached` are then evaluated, `save` being
    called at `Reuse.save_at`. Generated tokens stay in memory until the next
    `begin`, which cuts them off: they never stand in for history (MLPerf Inference v6.1
    edge-agentic rule).
    """

    def __init__(
        self, memory: Memory[SnapshotT], limits: SnapshotLimits, *, cuts_back: bool
    ) -> None:
        """Take charge of a memory, which must be empty.

        Args:
            memory: the context.
            limits: of the snapshots.
            cuts_back: whether each token has cells of its own; no snapshots are taken then.
        """
        self._memory, self._limits, self._cuts_back = memory, limits, cuts_back
        self._conversation: str | None = None
        self._previous: Sequence[int] = ()
        self._previous_stable = 0
        self._agreed_past_stable: int | None = None
        self._kept: list[_Kept[SnapshotT]] = []

    @property
    def method(self) -> str:
        """How a prefix is reused: `cut_back`, `snapshots` or `none`."""
        if self._cuts_back:
            return "cut_back"
        return "snapshots" if self.takes_snapshots else "none"

    @property
    def takes_snapshots(self) -> bool:
        """Whether `save` does anything."""
        return not self._cuts_back and self._limits.count > 0

    def begin(self, conversation_id: str, tokens: Sequence[int], stable_tokens: int) -> Reuse:
        """Leave in memory what this prompt shares with the conversation's previous one.

        At least the last token is to be evaluated: its logits choose the first output token.

        Args:
            conversation_id: nothing is shared between conversations.
            tokens: the prompt; at least one.
            stable_tokens: the length of its stable prefix, which the next prompt starts with.
        """
        if conversation_id != self._conversation:
            self.forget()
        shared = common_prefix(self._previous, tokens)
        usable = min(shared, len(tokens) - 1)
        cached = self._cut_back(usable) if self._cuts_back else self._bring_back(usable)
        if cached == 0:
            self._kept.clear()
            self._memory.clear()
        self._learn(shared)
        self._conversation, self._previous = conversation_id, tokens
        self._previous_stable = stable_tokens
        return Reuse(cached, shared, self._save_at(cached))

    def save(self, position: int, *, anchor: bool) -> None:
        """Take a snapshot, the memory holding exactly the first `position` tokens of the prompt.

        Args:
            position: `Reuse.save_at`.
            anchor: the prefix ends with a user's message. Many templates drop the reasoning of
                earlier answers once another user's message follows, so that the next prompt
                agrees up to such a place only: anchors are the last to be dropped.
        """
        if self._limits.on_device:
            # A snapshot that has the place on the device is lost with this one.
            self._kept = [kept for kept in self._kept if not kept.snapshot.on_device]
        snapshot = self._memory.save(on_device=self._limits.on_device)
        if snapshot is not None:
            self._kept.append(_Kept(position, snapshot, anchor))
            self._drop_surplus()

    def forget(self) -> None:
        """Start anew, after a failure or for another conversation."""
        self._kept.clear()
        self._memory.clear()
        self._conversation, self._previous = None, ()
        self._previous_stable, self._agreed_past_stable = 0, None

    def _learn(self, shared: int) -> None:
        """Note how far past its stable prefix the previous prompt has agreed with this one.

        What follows a stable prefix (the start of the answer) is often rendered alike in history.
        The least that was seen in the conversation is trusted: a snapshot further on would be
        of no use where the next prompt agrees less.
        """
        agreed = shared - self._previous_stable
        if self._previous and agreed >= 0:
            known = self._agreed_past_stable
            self._agreed_past_stable = agreed if known is None else min(known, agreed)

    def _save_at(self, cached: int) -> int | None:
        if not self.takes_snapshots:
            return None
        place = min(self._previous_stable + (self._agreed_past_stable or 0), len(self._previous))
        return place if place > cached else None

    def _cut_back(self, usable: int) -> int:
        return usable if usable and self._memory.keep(usable) else 0

    def _bring_back(self, usable: int) -> int:
        """Bring back the longest snapshot within the usable tokens; 0 if there is none."""
        # Those past it belong to prompts that this conversation has left.
        self._kept = [kept for kept in self._kept if kept.tokens <= usable]
        while self._kept:
            kept = self._kept[-1]
            # In this order: only the restored state can be cut back to its own position.
            if self._memory.restore(kept.snapshot) and self._memory.keep(kept.tokens):
                self._leave_device(kept)
                return kept.tokens
            self._kept.pop()
        return 0

    def _leave_device(self, kept: _Kept[SnapshotT]) -> None:
        """Copy a snapshot to the host before the next one takes its place on the device."""
        if kept.snapshot.on_device and self._limits.count > 1:
            copy = self._memory.save(on_device=False)
            if copy is not None:
                self._kept[-1] = _Kept(kept.tokens, copy, kept.anchor)

    def _drop_surplus(self) -> None:
        while self._kept and (
            len(self._kept) > self._limits.count
            or sum(kept.snapshot.size_bytes for kept in self._kept) > self._limits.total_bytes
        ):
            older = self._kept[:-1] or self._kept
            self._kept.remove(next((kept for kept in older if not kept.anchor), older[0]))


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens both start with."""
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return index
    return min(len(first), len(second))
