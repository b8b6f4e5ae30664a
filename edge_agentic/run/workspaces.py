"""The workspaces of a pack, kept pristine, and the sandboxes over views of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from edge_agentic.core import interrupt
from edge_agentic.core.errors import RequirementError, StorageError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.resources import cache_dir
from edge_agentic.trace.pack import BYTECODE_DIRECTORY, TracePack
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import Sandbox, open_view
from tools_sandbox.store import Pristine, Store

_PROBE_TIMEOUT_S = 30.0


def keep_workspace(source: Path) -> Pristine:
    """A workspace of a pack as this machine keeps it, in the cache directory.

    Raises:
        InvalidRequest: it is too large, or holds what is no file.
        StorageError: the cache directory can't be written.
    """
    place = cache_dir() / "workspaces"
    try:
        return Store(place).add_directory(source, leave_out=BYTECODE_DIRECTORY)
    except OSError as error:
        raise StorageError(
            f"{place}: can't be written ({error.strerror}); make room, or name "
            "another directory with EDGE_AGENTIC_CACHE"
        ) from None


class Workspaces:
    """Opens a private view of a conversation's workspace, in a sandbox of one tier."""

    def __init__(
        self, pack: TracePack, tier: Tier, keep: Callable[[Path], Pristine] = keep_workspace
    ) -> None:
        """Keep every workspace of the pack, by the hash of its content.

        Raises:
            InvalidRequest, StorageError: as `keep_workspace`.
        """
        kept = {source: keep(source) for source in set(pack.workspaces.values())}
        self._pristine: dict[str, Pristine] = {
            name: kept[source] for name, source in pack.workspaces.items()
        }
        self._required_tools = pack.required_tools
        self._tier = tier

    def prove(self) -> JsonObject:
        """Run in the sandbox, and find the pack's tools there.

        Returns:
            What the sandbox is, for the manifest.

        Raises:
            SandboxUnavailable: the tier can't run here.
            RequirementError: a tool is missing; names every one.
        """
        pristine = next(iter(self._pristine.values()))
        with open_view(pristine, tier=self._tier) as sandbox:
            probe = "; ".join(
                f"command -v {shlex.quote(tool)} >/dev/null || echo {shlex.quote(tool)}"
                for tool in self._required_tools
            )
            missing = sandbox.run(probe or "true", timeout_s=_PROBE_TIMEOUT_S).output.split()
            if missing:
                raise RequirementError(
                    f"the pack's commands need {', '.join(missing)}, not found in the sandbox; "
                    "install them on this machine"
                )
            digests = sorted({each.digest for each in self._pristine.values()})
            return {**sandbox.info.to_json(), "workspaces_sha256": digests}

    @contextmanager
    def open(self, conversation_id: str) -> Iterator[Sandbox | None]:
        """A sandbox over a pristine workspace; None where the conversation has none.

        Raises:
            SandboxUnavailable: the tier can't run here any more.
        """
        pristine = self._pristine.get(conversation_id)
        if pristine is None:
            yield None
            return
        with ExitStack() as stack:
            # A view that is half made or half removed would stay on the disk.
            with interrupt.deferred():
                sandbox = stack.enter_context(open_view(pristine, tier=self._tier))
            try:
                yield sandbox
            finally:
                with interrupt.deferred():
                    stack.close()
