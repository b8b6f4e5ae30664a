"""Reads a trace file: the rows' shape, their order and numbering, then the conversations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edge_agentic.core.errors import BadInputError, at_line
from edge_agentic.core.jsonio import JsonObject, iter_objects
from edge_agentic.trace.conversation import Conversation, conversation_from_rows
from edge_agentic.trace.order import NumberedRow, check_order
from edge_agentic.trace.rows import check_row

_METADATA_TYPE: Final = "dataset_metadata"


@dataclass(frozen=True)
class Trace:
    """The conversations of one file, in file order."""

    metadata: JsonObject | None
    """The leading `_type: dataset_metadata` row, where there is one."""
    conversations: tuple[Conversation, ...]


def load_trace(path: Path) -> Trace:
    """Read and check a trace file: the official MLPerf file or one of the same format.

    Raises:
        BadInputError: the first line that is wrong, with conversation and remedy.
    """
    metadata, groups = read_rows(path)
    for rows in groups:
        check_order(rows, path)
    return Trace(
        metadata, tuple(conversation_from_rows([row for _, row in rows]) for rows in groups)
    )


def read_rows(path: Path) -> tuple[JsonObject | None, list[list[NumberedRow]]]:
    """The leading metadata row, and the rows of each conversation with their line numbers.

    Checks the shape of each row and that conversations don't interleave, not the order within
    one: drafts are read by this too.

    Raises:
        BadInputError: a wrong row, an interleaved conversation, or no conversation at all.
    """
    metadata: JsonObject | None = None
    groups: dict[str, list[NumberedRow]] = {}
    current: str | None = None
    for line, row in iter_objects(path):
        if metadata is None and not groups and row.get("_type") == _METADATA_TYPE:
            metadata = row
            continue
        check_row(row, path, line)
        name = row["conversation_id"]
        if name != current and name in groups:
            raise at_line(
                path,
                line,
                f"conversation {name!r}: its rows are not consecutive; "
                f"move this one up to its others (the last is line {groups[name][-1][0]})",
            )
        current = name
        groups.setdefault(name, []).append((line, row))
    if not groups:
        raise BadInputError(f"{path}: holds no conversation; give a trace in JSONL form")
    return metadata, list(groups.values())
