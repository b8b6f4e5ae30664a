"""Reads a journal's events into typed records: the one place that knows its field names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import TokenCounts, TokenTimes
from edge_agentic.measure.fields import Fields

JOURNAL_SCHEMA: Final = "edge-agentic/journal/1"


@dataclass(frozen=True)
class GateStart:
    """What the gate set out to ask, and what it is compared with."""

    dataset: str
    dataset_sha256: str
    selection: str
    sample_ids: tuple[str, ...]
    reference: Mapping[str, Any]


@dataclass(frozen=True)
class GateCase:
    """The verdict on one answer."""

    sample_id: str
    outcome: Outcome
    valid: bool
    malformed: bool


@dataclass(frozen=True)
class ReplayStart:
    """What the replay set out to issue; the counts are the data set's own."""

    dataset: str
    dataset_sha256: str
    policy: str
    expected_turns: int
    scorable_turns: int

    def __post_init__(self) -> None:
        """Refuse more scorable turns than turns."""
        if self.scorable_turns > self.expected_turns:
            raise ValueError("'scorable_turns' is larger than 'expected_turns'")


@dataclass(frozen=True)
class ToolRun:
    """One executed tool call; `matches_record` is None where nothing was recorded."""

    duration_ns: int
    matches_record: bool | None


@dataclass(frozen=True)
class Turn:
    """One generated turn. `session` counts the starts of the run: clocks differ between them."""

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


@dataclass
class Journal:
    """All that a journal tells, in its order. Filled by `read_journal` alone."""

    sessions: int = 0
    """How often the run was started: more than once if it was resumed."""
    gate: GateStart | None = None
    gate_cases: list[GateCase] = field(default_factory=list)
    gate_finished: bool = False
    replay: ReplayStart | None = None
    turns: list[Turn] = field(default_factory=list)
    conversation_ends: list[ConversationEnd] = field(default_factory=list)
    replay_finished: bool = False
    peak_rss_mb: float | None = None
    interrupted_by: str | None = None
    """The signal that ended the last session."""
    finished: bool = False


def read_journal(events: Iterable[Mapping[str, Any]]) -> Journal:
    """The records of a journal that may stop anywhere; unknown kinds of event are left out.

    Raises:
        BadInputError: an event of the wrong shape or in an impossible place, or another
            schema; names the journal's line.
    """
    journal = Journal()
    for line, event in enumerate(events, start=1):
        fields = Fields(event, f"journal.jsonl:{line}")
        kind = fields.text("event")
        if not journal.sessions and kind != "run_started":
            raise fields.error(f"a journal starts with 'run_started', found '{kind[:40]}'")
        if handler := _HANDLERS.get(kind):
            try:
                handler(journal, fields)
            except ValueError as error:
                raise fields.error(f"{error} (event '{kind}')") from None
    return journal


def _run_started(journal: Journal, fields: Fields) -> None:
    if (schema := fields.text("schema")) != JOURNAL_SCHEMA:
        raise fields.error(
            f"schema '{schema[:80]}' is unknown; this version reads '{JOURNAL_SCHEMA}'"
        )
    journal.sessions += 1
    journal.interrupted_by = None
    journal.finished = False


def _gate_started(journal: Journal, fields: Fields) -> None:
    _require_none(journal.gate)
    sample_ids = fields.texts("sample_ids")
    if len(set(sample_ids)) < len(sample_ids):
        raise ValueError("'sample_ids' names a sample twice")
    journal.gate = GateStart(
        dataset=fields.text("dataset"),
        dataset_sha256=fields.text("dataset_sha256"),
        selection=fields.text("selection"),
        sample_ids=sample_ids,
        reference=fields.mapping("reference").values,
    )


def _gate_case(journal: Journal, fields: Fields) -> None:
    _require_one(journal.gate, "gate_started")
    journal.gate_cases.append(
        GateCase(
            sample_id=fields.text("sample_id"),
            outcome=_outcome(fields),
            valid=fields.flag("valid"),
            malformed=fields.flag("malformed"),
        )
    )


def _gate_finished(journal: Journal, fields: Fields) -> None:
    _require_one(journal.gate, "gate_started")
    journal.gate_finished = True


def _replay_started(journal: Journal, fields: Fields) -> None:
    _require_none(journal.replay)
    journal.replay = ReplayStart(
        dataset=fields.text("dataset"),
        dataset_sha256=fields.text("dataset_sha256"),
        policy=fields.text("policy"),
        expected_turns=fields.count("expected_turns"),
        scorable_turns=fields.count("scorable_turns"),
    )


def _turn(journal: Journal, fields: Fields) -> None:
    _require_one(journal.replay, "replay_started")
    journal.turns.append(
        Turn(
            session=journal.sessions,
            conversation_id=fields.text("conversation_id"),
            number=fields.count("turn"),
            outcome=_outcome(fields),
            times=TokenTimes(
                issued_ns=fields.count("issued_ns"),
                arrivals_ns=fields.counts("arrivals_ns"),
                first_delta_tokens=fields.optional_count("first_delta_tokens"),
            ),
            tokens=TokenCounts(
                prompt=fields.optional_count("prompt_tokens"),
                cached=fields.optional_count("cached_tokens"),
                computed=fields.optional_count("computed_tokens"),
                ideal=fields.optional_count("ideal_tokens"),
                output=fields.optional_count("output_tokens"),
            ),
            inline_score=fields.optional_number("inline_score"),
            tools=tuple(
                ToolRun(
                    duration_ns=tool.count("duration_ns"),
                    matches_record=tool.optional_flag("matches_record"),
                )
                for tool in fields.mappings("tools")
            ),
            step_end_ns=fields.count("step_end_ns"),
        )
    )


def _conversation_finished(journal: Journal, fields: Fields) -> None:
    _require_one(journal.replay, "replay_started")
    journal.conversation_ends.append(
        ConversationEnd(
            conversation_id=fields.text("conversation_id"),
            check_passed=fields.optional_flag("check_passed"),
        )
    )


def _replay_finished(journal: Journal, fields: Fields) -> None:
    _require_one(journal.replay, "replay_started")
    journal.replay_finished = True


def _memory(journal: Journal, fields: Fields) -> None:
    peak = fields.optional_number("peak_rss_mb")
    known = [value for value in (peak, journal.peak_rss_mb) if value is not None]
    journal.peak_rss_mb = max(known, default=None)


def _interrupted(journal: Journal, fields: Fields) -> None:
    journal.interrupted_by = fields.text("signal")


def _run_finished(journal: Journal, fields: Fields) -> None:
    journal.finished = True


_HANDLERS: Final[Mapping[str, Callable[[Journal, Fields], None]]] = {
    "run_started": _run_started,
    "gate_started": _gate_started,
    "gate_case": _gate_case,
    "gate_finished": _gate_finished,
    "replay_started": _replay_started,
    "turn": _turn,
    "conversation_finished": _conversation_finished,
    "replay_finished": _replay_finished,
    "memory": _memory,
    "interrupted": _interrupted,
    "run_finished": _run_finished,
}

_T = TypeVar("_T")


def _outcome(fields: Fields) -> Outcome:
    """The outcome of a request, one of the known ones."""
    text = fields.text("outcome")
    try:
        return Outcome(text)
    except ValueError:
        known = ", ".join(outcome.value for outcome in Outcome)
        raise ValueError(f"'outcome' must be one of {known}; found '{text[:40]}'") from None


def _require_none(earlier: object) -> None:
    """Refuse a second start of a phase: two data sets in one journal have no one summary."""
    if earlier is not None:
        raise ValueError("this phase has started before in this journal")


def _require_one(earlier: object, kind: str) -> None:
    """Refuse an event of a phase that has not started."""
    if earlier is None:
        raise ValueError(f"'{kind}' must come before")
