"""A gateway of a broken design: it sweeps whatever it sees past its deadline, at first sight."""

from __future__ import annotations

import asyncio
import sys

from unswept.adapters.chaos import worker
from unswept.core import sweeper
from unswept.core.lease import RequeueRule
from unswept.core.units import Ms


def no_window(own_ms: Ms, row_ms: Ms, requeue: RequeueRule, ttl_ms: Ms) -> Ms:
    return Ms(0)


if __name__ == "__main__":
    worker.end_with(int(sys.argv[1]))
    sweeper.window_ms = no_window
    asyncio.run(worker.main())
