"""The form in which every section says why a figure of it is null."""

from __future__ import annotations

from typing import TypeAlias

Reasons: TypeAlias = dict[str, str]
"""Why a figure or section is null, by its dotted path in the summary."""
