"""All scenarios by id, in the order of docs/faults.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from unswept.simulations.scenarios import (
    admission,
    clocks,
    databases,
    drains,
    endings,
    heartbeats,
    identities,
    late_completion,
    reapers,
    stale_snapshot,
    suspends,
    wrongly_swept,
)
from unswept.simulations.scenarios.scenario import Scenario

CLASSES: Final = (
    wrongly_swept,
    stale_snapshot,
    late_completion,
    heartbeats,
    clocks,
    suspends,
    identities,
    drains,
    reapers,
    databases,
    admission,
    endings,
)
"""One module for each class of faults."""

SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType(
    {scenario.id: scenario for faults in CLASSES for scenario in faults.SCENARIOS}
)
