"""The run directory: its name, its files, and reading them back."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from edge_agentic.core.clock import utc_now
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import (
    JsonObject,
    dump_pretty,
    read_object,
    sha256_file,
    write_atomically,
)
from edge_agentic.run.journal import JOURNAL_NAME, read_events

MANIFEST_NAME = "manifest.json"
SUMMARY_NAME = "summary.json"
SERVER_LOG_NAME = "server.log"
DEFAULT_PARENT = Path("runs")


@dataclass(frozen=True)
class RunDirectory:
    """One run's files. The summary is written last: a run without one is unfinished."""

    path: Path

    @property
    def journal_path(self) -> Path:
        """`journal.jsonl`."""
        return self.path / JOURNAL_NAME

    @property
    def summary_path(self) -> Path:
        """`summary.json`."""
        return self.path / SUMMARY_NAME

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other run out of the directory; the lock ends with the process.

        Raises:
            BadInputError: another run is at work in it.
        """
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadInputError(
                    f"{self.path}: another run is at work in it; wait for its end, or give "
                    "another directory with --out"
                ) from None
            yield
        finally:
            os.close(fd)

    def manifest(self) -> JsonObject:
        """The manifest.

        Raises:
            BadInputError: missing or damaged.
        """
        return read_object(self.manifest_path)

    def events(self) -> list[JsonObject]:
        """The journal's events.

        Raises:
            BadInputError: missing, empty or damaged.
        """
        events = read_events(self.journal_path)
        if not events:
            raise BadInputError(f"{self.journal_path}: holds no event")
        return events

    @property
    def manifest_path(self) -> Path:
        """`manifest.json`."""
        return self.path / MANIFEST_NAME

    def write_manifest(self, manifest: JsonObject) -> str:
        """Write the manifest durably; return its SHA-256, which the journal starts with."""
        write_atomically(self.manifest_path, dump_pretty(manifest))
        return sha256_file(self.manifest_path)

    def add_server_log(self, log: Path, *, is_final: bool) -> None:
        """Put a server's output beside the results, as far as the disk allows.

        Args:
            log: where it was written.
            is_final: the server has ended, so the copy replaces the original.
        """
        with suppress(OSError):
            shutil.copyfile(log, self.path / SERVER_LOG_NAME)
            if is_final:
                log.unlink()

    def write_summary(self, summary: JsonObject) -> None:
        """Write the summary durably."""
        write_atomically(self.summary_path, dump_pretty(summary))


def check_output(out: Path | None) -> None:
    """Refuse an `--out` that holds something, before a model is loaded in vain.

    Raises:
        BadInputError: it is a file or is not empty.
    """
    if out is None or not out.exists():
        return
    if not out.is_dir():
        raise BadInputError(f"{out}: is a file; give a directory with --out")
    if any(out.iterdir()):
        raise BadInputError(f"{out}: is not empty; give a new directory with --out")


def create_run_directory(out: Path | None, model: str, device: str) -> RunDirectory:
    """A new, empty run directory: `out`, or `runs/<UTC time>-<model>-<device>`.

    Raises:
        BadInputError: it holds something already, or can't be written.
    """
    path = out if out is not None else DEFAULT_PARENT / _default_name(model, device)
    try:
        path.mkdir(parents=True, exist_ok=True)
        check_output(path)
        probe = path / ".writable"
        probe.touch()
        probe.unlink()
    except (FileExistsError, NotADirectoryError):
        raise BadInputError(
            f"{path}: it or a folder above it is a file; give a directory with --out"
        ) from None
    except OSError as error:
        raise BadInputError(
            f"{path}: can't be written ({error.strerror}); give another directory with --out"
        ) from None
    return RunDirectory(path)


def open_run_directory(path: Path) -> RunDirectory:
    """An existing run directory.

    Raises:
        BadInputError: not a directory, or no run.
    """
    if path.is_file():
        raise BadInputError(f"{path}: is a file; give its run directory")
    if not path.is_dir():
        raise BadInputError(f"{path}: no such run directory")
    if not (path / MANIFEST_NAME).is_file():
        raise BadInputError(f"{path}: is no run directory (it has no {MANIFEST_NAME})")
    return RunDirectory(path)


def _default_name(model: str, device: str) -> str:
    stamp = utc_now().strftime("%Y%m%dT%H%M%S.%fZ")
    return "-".join([stamp[:19] + "Z", _slug(model), _slug(device)])


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:48] or "unknown"
