"""The headline table: how many heartbeated jobs each design of a sweeper sweeps under each profile
of faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import define, frozen

from unswept.simulations.campaign import OpenStore, run_seed
from unswept.simulations.designs import DESIGNS
from unswept.simulations.profiles import PROFILES
from unswept.simulations.run import Settings
from unswept.simulations.workers import Workers, in_order

_OF_SWEEPS: Final = frozenset({"L1", "L2", "L12"})
"""The laws that say which sweeps are wrong."""
FROM_SEEDS: Final = 100
"""Smaller campaigns have no table: it would cost more than they do."""
SEEDS: Final = tuple(range(1, 9))
"""Each cell's seeds, of one simulated hour, on the pure store."""


@frozen
class Cell:
    """One design under one profile, run to the end whatever it breaks."""

    design: str
    profile: str
    heartbeated_jobs_swept: int
    """Of owners that renewed them, or would have, had not a fault of all kept them from it."""
    jobs_swept: int
    """All that were swept, whoever owned them."""


@define
class _Task:
    design: str
    profile: str
    open_store: OpenStore


def cells() -> list[tuple[str, str]]:
    """(design, profile): the real design, and each broken one that is about sweeping."""
    rows = [
        design.name
        for design in DESIGNS.values()
        if design.sound or (design.of_gateways and design.caught_by & _OF_SWEEPS)
    ]
    return [(row, profile) for row in rows for profile in PROFILES]


def fill(
    wanted: Iterable[tuple[str, str]], open_pure: OpenStore, workers: Workers
) -> Iterator[Cell]:
    """Run these cells."""
    todo = (_Task(design, profile, open_pure) for design, profile in wanted)
    return in_order(workers, _run_cell, todo)


def _run_cell(task: _Task) -> Cell:
    heartbeated = swept = 0
    for seed in SEEDS:
        settings = Settings(
            seed, faults=PROFILES[task.profile], design=task.design, runners=0, counting=True
        )
        outcome = run_seed(settings, task.open_store)
        heartbeated += outcome.heartbeated_jobs_swept
        swept += outcome.events["orphan"]
    return Cell(task.design, task.profile, heartbeated, swept)
