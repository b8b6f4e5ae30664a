"""The monotonic clock that every duration comes from, and the one wall-clock anchor."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Final

NS_PER_S: Final = 1_000_000_000
NS_PER_MS: Final = 1_000_000

Clock = Callable[[], int]
"""A monotonic clock in nanoseconds. Parts that measure take one as an argument."""

monotonic_ns: Clock = time.monotonic_ns


def utc_now() -> datetime:
    """Wall-clock time, UTC. For names and anchors only; never subtracted from another."""
    return datetime.now(timezone.utc)
