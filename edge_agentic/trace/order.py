"""Checks the order and numbering of the rows of one conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from edge_agentic.core.errors import at_line
from edge_agentic.core.jsonio import JsonObject

NumberedRow: TypeAlias = tuple[int, JsonObject]
"""A row, after the number of its line."""


def check_order(rows: Sequence[NumberedRow], path: Path) -> None:
    """Refuse rows (each of a right shape) that don't make a conversation.

    The rules are those of the MLPerf Inference v6.1 edge-agentic trace file: `turn` counts
    1, 2, 3, ...; user, assistant, then tool and assistant in turn; a user row may follow an
    assistant row that made no calls; each call has its result; an assistant row ends it.

    Raises:
        BadInputError: names path, line and conversation of the first wrong row, and the remedy.
    """
    previous: JsonObject = {}
    for number, (line, row) in enumerate(rows, start=1):
        problem = (
            _numbering_problem(row, number)
            or _order_problem(row, previous)
            or _setting_problem(row, rows[0][1])
        )
        if problem:
            raise at_line(path, line, f"conversation {row['conversation_id']!r}: {problem}")
        previous = row
    if previous["role"] != "assistant":
        raise at_line(
            path,
            rows[-1][0],
            f"conversation {previous['conversation_id']!r}: ends with a {previous['role']} row; "
            "add the assistant row that answers it (cut short?)",
        )


def _numbering_problem(row: Mapping[str, Any], number: int) -> str | None:
    if row["turn"] == number:
        return None
    return f"turn {row['turn']} where {number} is due; number the rows 1, 2, 3, ... without gaps"


def _order_problem(row: Mapping[str, Any], previous: Mapping[str, Any]) -> str | None:
    role, before = row["role"], previous.get("role")
    calls = previous.get("tool_calls") or ()
    if role == "user":
        if calls:
            return "user row after unanswered calls; put the 'tool' row with their results first"
        if before in ("user", "tool"):
            return f"user row right after a {before} row; an 'assistant' row stands between"
    elif role == "tool":
        if not calls:
            return (
                "tool row without a preceding call; "
                "each 'tool' row follows an assistant row with 'tool_calls'"
            )
        return _result_problem(row, [call["id"] for call in calls])
    elif before is None:
        return "starts with an assistant row; the first row is 'user'"
    elif before == "assistant":
        return "two assistant rows in a row; a 'user' or 'tool' row stands between"
    return None


def _result_problem(row: Mapping[str, Any], call_ids: Sequence[str]) -> str | None:
    calls = Counter(call_ids)
    results = Counter(result["tool_call_id"] for result in row["tool_results"])
    if missing := calls - results:
        return f"call {min(missing)!r} has no result; give each call one, with its id"
    if extra := results - calls:
        return f"result {min(extra)!r} has no call before it; give each call one result"
    return None


def _setting_problem(row: Mapping[str, Any], first: Mapping[str, Any]) -> str | None:
    for key in ("system", "tools"):
        if row.get(key) and row[key] != first.get(key):
            return f"'{key}' differs from the first row's; it holds for a whole conversation"
    return None
