"""What goes wrong in a simulated run: each fault is a small class with a name, a rate and a story.

A fault strikes at random times, `per_hour` on average, and ends by itself. Durations are drawn
around the numbers that matter: the gap, the heartbeat, the window and the ttl.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from unswept.simulations.faults import clocks, moments, networks, processes, stores
from unswept.simulations.faults.fault import Fault

__all__ = ["FAULTS", "Fault"]

FAULTS: Final[Mapping[str, Fault]] = MappingProxyType(
    {
        fault.name: fault
        for fault in (
            networks.Loss(),
            networks.LostAnswer(),
            networks.Duplicate(),
            networks.OldEcho(),
            networks.Delay(),
            networks.Cut(),
            networks.ConnectionKilled(),
            networks.PoolExhausted(),
            stores.Outage(),
            stores.ReadOnly(),
            stores.Flaps(),
            stores.RenewalsBlocked(),
            stores.RowLock(),
            stores.SlowCommit(),
            stores.PoisonRow(),
            clocks.ClockForward(),
            clocks.ClockBack(),
            clocks.ClockEdge(),
            clocks.ClockRepeat(),
            clocks.Drift(),
            processes.Suspend(),
            processes.SuspendAll(),
            processes.Stall(),
            processes.HeartKilled(),
            processes.Crash(),
            processes.Restart(),
            processes.PidReuse(),
            processes.Drain(),
            processes.KillInDrain(),
            processes.MixedPolicies(),
            processes.ConsumerLost(),
            moments.CrashAtStep(),
            moments.CancelAtStep(),
            moments.TwoSweepers(),
        )
    }
)
