"""All attacks on a sandbox, in the order of the report."""

from tools_sandbox import (
    attacks_endings,
    attacks_files,
    attacks_host,
    attacks_kernel,
    attacks_limits,
    attacks_tools,
)
from tools_sandbox.promises import Attack


def all_attacks() -> tuple[Attack, ...]:
    """Every attack; each of them is carried out for real."""
    return (
        *attacks_files.ATTACKS,
        *attacks_tools.ATTACKS,
        *attacks_host.ATTACKS,
        *attacks_kernel.ATTACKS,
        *attacks_endings.ATTACKS,
        *attacks_limits.ATTACKS,
    )
