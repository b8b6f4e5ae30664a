"""The decode loop: picks token after token until the answer ends."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from edge_agentic.core.clock import Clock
from edge_agentic.engine.api import FinishReason
from edge_agentic.engine.drafting import Drafter
from edge_agentic.engine.llama_runtime import DeadlineError, DecodeError, LlamaRuntime
from edge_agentic.engine.llama_sampler import Sampler


@dataclass(frozen=True)
class DecodeLimits:
    """When an answer ends: by one of these tokens, by its length, or by the clock."""

    end_tokens: Set[int]
    output_tokens: int
    deadline_ns: int | None


@dataclass
class DecodeLoop:
    """One answer in the making; what it has is usable wherever it was broken off.

    The prompt has been evaluated. Nothing but the clock is read between a token and its time.

    tokens: the answer, without its end token. arrivals_ns: when each was picked, after
    `issued_ns`. finish: why it ended. drafted: tokens that were drafted; accepted: of them, those
    that the model picked itself.
    """

    runtime: LlamaRuntime
    sampler: Sampler
    limits: DecodeLimits
    clock: Clock
    issued_ns: int
    tokens: list[int] = field(default_factory=list)
    arrivals_ns: list[int] = field(default_factory=list)
    finish: FinishReason | None = None
    drafted: int = 0
    accepted: int = 0

    def run(self) -> None:
        """Pick one token after another.

        Raises:
            DecodeError: llama.cpp refused a token.
            DeadlineError: the deadline passed.
        """
        tokens, arrivals_ns, limits = self.tokens, self.arrivals_ns, self.limits
        while True:
            token = self.sampler.sample()
            now_ns = self.clock()
            if token in limits.end_tokens:
                self.finish = FinishReason.STOP
                return
            arrivals_ns.append(now_ns - self.issued_ns)
            tokens.append(token)
            if len(tokens) >= limits.output_tokens:
                self.finish = FinishReason.LENGTH
                return
            if limits.deadline_ns is not None and now_ns >= limits.deadline_ns:
                raise DeadlineError
            self.runtime.evaluate_one(token)

    def run_drafted(self, prompt: Sequence[int], drafter: Drafter, most: int) -> None:
        """As `run`, with drafted tokens evaluated along with the one before them.

        Each token is still the model's own pick, after the same tokens before it. A batch's
        rounding can differ from that of single tokens, as that of any two batch sizes can.

        Args:
            prompt: what has been evaluated.
            drafter: what drafts; it has begun with this prompt.
            most: the most tokens of a draft; the context can forget as many.

        Raises:
            DecodeError: llama.cpp refused a batch, or could not forget a draft.
            DeadlineError: the deadline passed.
        """
        limits, runtime = self.limits, self.runtime
        draft: Sequence[int] = ()
        while True:
            evaluated = len(prompt) + len(self.tokens)
            picked = self._pick(draft)
            if self.finish is not None:
                return
            if limits.deadline_ns is not None and self.clock() >= limits.deadline_ns:
                raise DeadlineError
            agreed = len(picked) - 1
            if agreed < len(draft) and not runtime.keep(evaluated + agreed):
                raise DecodeError("llama.cpp can't forget a rejected draft")
            drafter.accept(picked)
            draft = drafter.propose(min(most, limits.output_tokens - len(self.tokens) - 1))
            self.drafted += len(draft)
            if draft:
                runtime.evaluate_each([picked[-1], *draft])
            else:
                runtime.evaluate_one(picked[-1])

    def _pick(self, draft: Sequence[int]) -> list[int]:
        """The model's picks along the draft, up to the first that differs from it.

        Where the answer does not end, the last one picked is not evaluated yet.
        """
        picked: list[int] = []
        for place in range(len(draft) + 1):
            token = self.sampler.sample(place if draft else -1)
            now_ns = self.clock()
            if token in self.limits.end_tokens:
                self.finish = FinishReason.STOP
                break
            self.arrivals_ns.append(now_ns - self.issued_ns)
            self.tokens.append(token)
            picked.append(token)
            agrees = place < len(draft) and token == draft[place]
            self.accepted += agrees
            if len(self.tokens) >= self.limits.output_tokens:
                self.finish = FinishReason.LENGTH
                break
            if not agrees:
                break
        return picked
