"""What a journal tells, as typed records that refuse impossible values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edge_agentic.core.ending import Ending
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import TokenCounts, TokenTimes
from edge_agentic.trace.comparison import Match


@dataclass(frozen=True)
class GateStart:
    """What the gate set out to ask, in order, and what it is compared with."""

    dataset: str
    dataset_sha256: str | None
    selection: str
    sample_ids: tuple[str, ...]
    reference: Mapping[str, Any] | None
    """None where there is no verdict to come: a part of a set was asked."""
    early_stop_error_rate: float | None = None
    """None where every case is asked."""

    def __post_init__(self) -> None:
        """Refuse a sample that comes twice, and an early stop without anything to decide."""
        if len(set(self.sample_ids)) < len(self.sample_ids):
            raise ValueError("'sample_ids' names a sample twice")
        if self.early_stop_error_rate is not None and self.reference is None:
            raise ValueError("'early_stop_error_rate' needs a reference")


@dataclass(frozen=True)
class GateCase:
    """The verdict on one answer."""

    sample_id: str
    outcome: Outcome
    valid: bool
    malformed: bool

    @property
    def is_right(self) -> bool:
        """Whether the case counts as right; a request that failed has no answer.

        Without that rule a failed request would be right wherever no call is due.
        """
        return self.outcome is Outcome.OK and self.valid


def first_records(cases: Iterable[GateCase]) -> dict[str, GateCase]:
    """The first record of each case, by its id: the one that counts."""
    first: dict[str, GateCase] = {}
    for case in cases:
        first.setdefault(case.sample_id, case)
    return first


@dataclass(frozen=True)
class ReplayStart:
    """What the replay set out to issue; the counts are the data set's own.

    Under the policy `live` there are tasks instead, of nobody knows how many turns.
    """

    dataset: str
    dataset_sha256: str
    policy: str
    expected_turns: int | None
    scorable_turns: int | None
    concurrency: int = 1
    """How many conversations were played at once."""
    tasks: tuple[str, ...] | None = None
    """The conversations that are tasks under the policy `live`; None under the others."""

    def __post_init__(self) -> None:
        """Refuse more scorable turns than turns, and both or none of turns and tasks."""
        has_turns = self.expected_turns is not None and self.scorable_turns is not None
        if has_turns is (self.tasks is not None):
            raise ValueError("needs 'expected_turns' and 'scorable_turns', or 'tasks'")
        if (self.scorable_turns or 0) > (self.expected_turns or 0):
            raise ValueError("'scorable_turns' is larger than 'expected_turns'")


@dataclass(frozen=True)
class ToolRun:
    """One executed tool call; `match` is None where nothing was recorded.

    expected: the recorded result, where it is not `result` to the letter.
    """

    duration_ns: int
    result: str
    expected: str | None
    match: Match | None

    def __post_init__(self) -> None:
        """Refuse a comparison with nothing."""
        if (self.expected is None) is not (self.match in (None, Match.EXACT)):
            raise ValueError("'expected' is there if and only if 'match' is not null or 'exact'")


@dataclass(frozen=True)
class Turn:
    """One generated turn. `session` counts the starts of the run: clocks differ between them.

    forced_tokens: the length that its answer was to have; None where the model decided.
    """

    session: int
    conversation_id: str
    number: int
    outcome: Outcome
    times: TokenTimes
    tokens: TokenCounts
    inline_score: float | None
    """None where the recorded side gives nothing to score."""
    tools: tuple[ToolRun, ...]
    step_end_ns: int
    forced_tokens: int | None = None
    tool_delay_ns: int | None = None
    """How long was waited in the place of tools; None where nothing was."""

    def __post_init__(self) -> None:
        """Refuse a turn before the first, a step that ends before its output, a score over 1."""
        if self.number < 1:
            raise ValueError("'turn' counts from 1")
        if self.step_end_ns < self.times.issued_ns + max(self.times.arrivals_ns, default=0):
            raise ValueError("'step_end_ns' lies before the end of the turn's output")
        if self.inline_score is not None and self.inline_score > 1:
            raise ValueError("'inline_score' is larger than 1")

    @property
    def completed(self) -> bool:
        """Whether the model's answer is whole."""
        return self.outcome is Outcome.OK


@dataclass(frozen=True)
class ConversationEnd:
    """The end of one conversation; `check_passed` is None where it has no check."""

    conversation_id: str
    check_passed: bool | None
    ending: Ending | None = None
    """How the model ended a task of the policy `live`."""


@dataclass(frozen=True)
class Trial:
    """What became of the model's own calls of one turn, tried after the replay.

    same_effect: None where no recorded call ran in the turn.
    """

    conversation_id: str
    number: int
    model_ran: tuple[bool, ...]
    same_effect: bool | None


@dataclass
class Journal:
    """All that a journal tells, in its order. Filled by `events.read_journal` alone."""

    sessions: int = 0
    """How often the run was started: more than once if it was resumed."""
    gate: GateStart | None = None
    gate_cases: list[GateCase] = field(default_factory=list)
    gate_finished: bool = False
    replay: ReplayStart | None = None
    turns: list[Turn] = field(default_factory=list)
    conversation_ends: list[ConversationEnd] = field(default_factory=list)
    replay_finished: bool = False
    trials: list[Trial] = field(default_factory=list)
    peak_rss_mb: float | None = None
    interrupted_by: str | None = None
    """The signal that ended the last session."""
    finished: bool = False
