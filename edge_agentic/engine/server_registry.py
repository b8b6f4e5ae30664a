"""Remembers servers that were left running, so that they can be found and stopped later."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from edge_agentic.core.errors import BadInputError, RequirementError
from edge_agentic.core.jsonio import JsonObject, dump_pretty, read_object, write_atomically
from edge_agentic.engine.server_process import StartedServer, server_folder, stop_guard


@dataclass(frozen=True)
class KeptServer:
    """A server that runs on its own."""

    name: str
    url: str
    log: Path
    guard_pid: int
    guard_start: str
    """When the guard was made, as the kernel counts: another process may get its number later."""

    @property
    def is_running(self) -> bool:
        """Whether that very guard, and so its server, still runs."""
        return _start_of(self.guard_pid) == self.guard_start

    def to_json(self) -> JsonObject:
        """The record that is kept, and what `server list --json` prints."""
        return {
            "name": self.name,
            "url": self.url,
            "log": str(self.log),
            "guard_pid": self.guard_pid,
            "guard_start": self.guard_start,
        }


def remember(server: StartedServer, folder: Path | None = None) -> KeptServer:
    """Write down a server that is kept; its name is kind and port."""
    kept = KeptServer(
        name=f"{server.kind.value}-{server.endpoint.port}",
        url=server.endpoint.url,
        log=server.log,
        guard_pid=server.guard_pid,
        guard_start=_start_of(server.guard_pid) or "",
    )
    folder = folder or server_folder()
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{kept.name}.json", dump_pretty(kept.to_json()))
    return kept


def kept_servers(folder: Path | None = None) -> list[KeptServer]:
    """The servers that still run, by name; records of others are removed."""
    running = []
    for path in sorted((folder or server_folder()).glob("*.json")):
        kept = _read(path)
        if kept is not None and kept.is_running:
            running.append(kept)
        else:
            # What is no file was not written here; it is in nobody's way.
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    return running


def find_kept(name: str | None, folder: Path | None = None) -> KeptServer:
    """The kept server of that name, or the only one.

    Raises:
        BadInputError: none of that name, none at all, or several and no name.
    """
    running = kept_servers(folder)
    if name is not None:
        running = [kept for kept in running if kept.name == name]
    if len(running) == 1:
        return running[0]
    if running:
        names = ", ".join(kept.name for kept in running)
        raise BadInputError(f"several servers run; name one of: {names}")
    known = ", ".join(kept.name for kept in kept_servers(folder))
    called = f" called {name!r}" if name else ""
    raise BadInputError(f"no kept server{called} runs" + (f"; there are: {known}" if known else ""))


def stop(kept: KeptServer, folder: Path | None = None) -> None:
    """Stop a kept server, and forget it and its log.

    Raises:
        RequirementError: it does not end.
    """
    if kept.is_running and not stop_guard(kept.guard_pid):
        raise RequirementError(
            f"{kept.name} (process {kept.guard_pid}) does not end; its log: {kept.log}"
        )
    folder = folder or server_folder()
    (folder / f"{kept.name}.json").unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        (folder / kept.log.name).unlink()


def _start_of(pid: int) -> str | None:
    """This start of the machine, and the clock ticks from it to the process's own start.

    No wall-clock time: that of a board without a battery jumps. None if it does not run.
    """
    try:
        # The name, in brackets, may hold anything; state and parent follow, the start is 20th.
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return None if fields[0] in "ZX" else f"{boot}:{fields[19]}"


def _read(path: Path) -> KeptServer | None:
    try:
        record = read_object(path)
        if int(record["guard_pid"]) < 1:
            return None
        return KeptServer(
            name=path.stem,
            url=str(record["url"]),
            log=Path(str(record["log"])),
            guard_pid=int(record["guard_pid"]),
            guard_start=str(record["guard_start"]),
        )
    except (BadInputError, KeyError, OverflowError, TypeError, ValueError):
        return None
