"""Carries out some attacks of the battery, where a test is not about the others."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path

from tools_sandbox.attacks import all_attacks
from tools_sandbox.sandbox import Sandbox
from tools_sandbox.scene import Scene


def carry_out(sandbox: Sandbox, names: Collection[str]) -> set[str]:
    """Those of the named attacks that got through; each must be promised to be stopped."""
    attacks = [attack for attack in all_attacks() if attack.name in names]
    assert len(attacks) == len(names)
    assert all(attack.promised(sandbox.info) for attack in attacks)
    with tempfile.TemporaryDirectory(prefix="outside-") as outside:
        scene = Scene(sandbox, Path(outside))
        return {attack.name for attack in attacks if not attack.stopped(scene)}
