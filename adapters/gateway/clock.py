"""The instance's own clock: whole milliseconds since the host booted, suspension included."""

from __future__ import annotations

import time
from typing import Final

from unswept.core.units import MonoMs

# Linux's CLOCK_MONOTONIC stops while the host is suspended, and with it every deadline reckoned by
# it; CLOCK_BOOTTIME runs on. On macOS CLOCK_MONOTONIC itself runs on.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", None) or time.CLOCK_MONOTONIC


def boot_ms() -> MonoMs:
    """Now, on the instance's own clock."""
    return MonoMs(time.clock_gettime_ns(_CLOCK) // 1_000_000)
