"""The journal: one event a line, append-only, durable; the truth that every figure comes from."""

from __future__ import annotations

import os
from pathlib import Path

from edge_agentic.core.errors import StorageError
from edge_agentic.core.jsonio import JsonObject, dump_line, iter_objects, sync_directory

JOURNAL_NAME = "journal.jsonl"


class JournalWriter:
    """Appends events to a journal file. A context manager; closes the file at its end."""

    def __init__(self, path: Path, *, append: bool = False) -> None:
        """Create the file, which must not exist yet; or append to it.

        A last line without its newline, which a power cut leaves, is cut off before an append.

        Raises:
            StorageError: it exists, or can't be created or written.
        """
        self._path = path
        mode = os.O_RDWR | os.O_APPEND if append else os.O_RDWR | os.O_APPEND | os.O_EXCL
        try:
            self._fd = os.open(path, mode | os.O_CREAT | os.O_CLOEXEC, 0o644)
            sync_directory(path.parent)
            if append:
                os.truncate(self._fd, path.read_bytes().rfind(b"\n") + 1)
        except OSError as error:
            raise StorageError(f"{path}: can't be written ({error.strerror})") from None

    def write(self, event: str, /, **fields: object) -> None:
        """Append one event and make it durable.

        The line goes out in one system call, so a signal or a kill leaves it whole or absent.

        Raises:
            StorageError: the disk is full or gone.
        """
        line = (dump_line({"event": event, **fields}) + "\n").encode("utf-8", "replace")
        try:
            written = os.write(self._fd, line)
            os.fsync(self._fd)
        except OSError as error:
            raise StorageError(f"{self._path}: can't be written ({error.strerror})") from None
        if written != len(line):
            raise StorageError(f"{self._path}: no space left for the whole of an event")

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def read_events(path: Path) -> list[JsonObject]:
    """The events of a journal, in order; none of a run that was killed before its first.

    A last line without its newline is what a power cut leaves; it is not an event.

    Raises:
        BadInputError: unreadable, or a damaged line; names it.
    """
    return [event for _, event in iter_objects(path, torn_tail=True)]
