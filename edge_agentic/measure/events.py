"""Reads a journal's events into typed records: the one place that knows its field names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, TypeVar

from edge_agentic.core.ending import Ending
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import TokenCounts, TokenTimes
from edge_agentic.measure.fields import Fields
from edge_agentic.measure.records import (
    ConversationEnd,
    GateCase,
    GateStart,
    Journal,
    ReplayStart,
    ToolRun,
    Trial,
    Turn,
)
from edge_agentic.trace.comparison import Match

JOURNAL_SCHEMA: Final = "edge-agentic/journal/1"


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
            raise fields.error(f"a journal starts with 'run_started', found {kind[:40]!r}")
        if handler := _HANDLERS.get(kind):
            try:
                handler(journal, fields)
            except ValueError as error:
                raise fields.error(f"{error} (event '{kind}')") from None
    return journal


def _run_started(journal: Journal, fields: Fields) -> None:
    if (schema := fields.text("schema")) != JOURNAL_SCHEMA:
        raise fields.error(
            f"schema {schema[:80]!r} is unknown; this version reads '{JOURNAL_SCHEMA}'"
        )
    journal.sessions += 1
    journal.interrupted_by = None
    journal.finished = False


def _gate_started(journal: Journal, fields: Fields) -> None:
    _require_none(journal.gate)
    journal.gate = GateStart(
        dataset=fields.text("dataset"),
        dataset_sha256=fields.text("dataset_sha256"),
        selection=fields.text("selection"),
        sample_ids=fields.texts("sample_ids"),
        reference=reference.values if (reference := fields.optional_mapping("reference")) else None,
        early_stop_error_rate=fields.optional_number("early_stop_error_rate"),
    )


def _gate_case(journal: Journal, fields: Fields) -> None:
    _require_one(journal.gate, "gate_started")
    journal.gate_cases.append(
        GateCase(
            sample_id=fields.text("sample_id"),
            outcome=_one_of(Outcome, fields, "outcome"),
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
        expected_turns=fields.optional_count("expected_turns"),
        scorable_turns=fields.optional_count("scorable_turns"),
        concurrency=fields.optional_count("concurrency") or 1,
        tasks=fields.optional_texts("tasks"),
    )


def _turn(journal: Journal, fields: Fields) -> None:
    _require_one(journal.replay, "replay_started")
    journal.turns.append(
        Turn(
            session=journal.sessions,
            conversation_id=fields.text("conversation_id"),
            number=fields.count("turn"),
            outcome=_one_of(Outcome, fields, "outcome"),
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
                drafted=fields.optional_count("drafted_tokens"),
                accepted=fields.optional_count("accepted_tokens"),
            ),
            forced_tokens=fields.optional_count("forced_tokens"),
            inline_score=fields.optional_number("inline_score"),
            tools=tuple(map(_tool_run, fields.mappings("tools"))),
            step_end_ns=fields.count("step_end_ns"),
            tool_delay_ns=fields.optional_count("tool_delay_ns"),
        )
    )


def _tool_run(fields: Fields) -> ToolRun:
    """One executed call. Runs of before results were kept say only whether it matched."""
    if "result" not in fields.values and "matches_record" in fields.values:
        matches = fields.optional_flag("matches_record")
        return ToolRun(
            duration_ns=fields.count("duration_ns"),
            result="",
            expected="" if matches is False else None,
            match=None if matches is None else Match.EXACT if matches else Match.DIFFERENT,
        )
    return ToolRun(
        duration_ns=fields.count("duration_ns"),
        result=fields.text("result"),
        expected=fields.optional_text("expected"),
        match=_one_of_or_none(Match, fields, "match"),
    )


def _conversation_finished(journal: Journal, fields: Fields) -> None:
    _require_one(journal.replay, "replay_started")
    journal.conversation_ends.append(
        ConversationEnd(
            conversation_id=fields.text("conversation_id"),
            check_passed=fields.optional_flag("check_passed"),
            ending=_one_of_or_none(Ending, fields, "ending"),
        )
    )


def _trial(journal: Journal, fields: Fields) -> None:
    _require_one(journal.replay, "replay_started")
    model = fields.optional_mapping("model")
    journal.trials.append(
        Trial(
            conversation_id=fields.text("conversation_id"),
            number=fields.count("turn"),
            model_ran=tuple(call.flag("ran") for call in model.mappings("calls")) if model else (),
            same_effect=fields.optional_flag("same_effect"),
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
    "trial": _trial,
    "memory": _memory,
    "interrupted": _interrupted,
    "run_finished": _run_finished,
}

_E = TypeVar("_E", bound=Enum)


def _one_of_or_none(kind: type[_E], fields: Fields, name: str) -> _E | None:
    """One of the known values, or null."""
    return None if fields.optional_text(name) is None else _one_of(kind, fields, name)


def _one_of(kind: type[_E], fields: Fields, name: str) -> _E:
    """One of the known values."""
    text = fields.text(name)
    try:
        return kind(text)
    except ValueError:
        known = ", ".join(str(member.value) for member in kind)
        raise ValueError(f"'{name}' must be one of {known}; found {text[:40]!r}") from None


def _require_none(earlier: object) -> None:
    """Refuse a second start of a phase: two data sets in one journal have no one summary."""
    if earlier is not None:
        raise ValueError("this phase has started before in this journal")


def _require_one(earlier: object, kind: str) -> None:
    """Refuse an event of a phase that has not started."""
    if earlier is None:
        raise ValueError(f"'{kind}' must come before")
