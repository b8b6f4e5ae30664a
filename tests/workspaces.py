"""Opens the workspaces of a pack for tests, on this machine whatever it has."""

from __future__ import annotations

from pathlib import Path

from edge_agentic.run.workspaces import Workspaces
from edge_agentic.trace.pack import TracePack
from tools_sandbox.result import Tier
from tools_sandbox.store import Store


def unsandboxed(pack: TracePack, directory: Path) -> Workspaces:
    """The workspaces of a pack that the tests have written themselves."""
    return Workspaces(pack, Tier.NONE, Store(directory / "store").add_directory)
