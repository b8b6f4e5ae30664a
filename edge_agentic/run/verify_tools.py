"""Recomputes how results of tools agree with the recording, and whether effects are the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.replay.calls import Status
from edge_agentic.replay.trials import TriedCall, TurnEffect, same_effect
from edge_agentic.trace.comparison import compare


def tool_findings(events: Sequence[JsonObject]) -> Iterator[str]:
    """Every verdict in the journal that its own raw facts do not give; a line each."""
    for event in events:
        where = f"conversation '{event.get('conversation_id')}' turn {event.get('turn')}"
        if event["event"] == "turn":
            for number, run in enumerate(event["tools"], start=1):
                if run.get("expected") is None:
                    continue
                match = compare(run["expected"], run["result"]).value
                if match != run["match"]:
                    yield (
                        f"journal.jsonl: {where}: tool {number}: recorded match '{run['match']}', "
                        f"its results give '{match}'"
                    )
        elif event["event"] == "trial":
            same = same_effect(_effect(event.get("recorded")), _effect(event.get("model")))
            if same is not event.get("same_effect"):
                yield (
                    f"journal.jsonl: {where}: recorded same_effect {event.get('same_effect')}, "
                    f"its effects give {same}"
                )


def _effect(fields: Mapping[str, Any] | None) -> TurnEffect | None:
    if fields is None:
        return None
    calls = []
    for call in fields.get("calls", ()):
        status: Status = call.get("status")
        calls.append(TriedCall(status, bool(call.get("ran"))))
    output = fields.get("output")
    return TurnEffect(
        calls=tuple(calls),
        changed_files=fields.get("changed_files", 0),
        changes_sha256=str(fields.get("changes_sha256")),
        output=output if isinstance(output, str) else None,
    )
