"""Every broken design is run until a law catches it: laws that catch nothing have shown nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Final

from attrs import evolve, frozen

from unswept.core.commands import Store
from unswept.simulations.campaign import run_seed
from unswept.simulations.designs import DESIGNS
from unswept.simulations.faults import FAULTS
from unswept.simulations.run import Found, Settings
from unswept.simulations.timeline import StoreClock

SEEDS: Final = 60
"""How many seeds a broken design gets to show that it is broken."""
CANARY: Final = "two-step-claim"
"""Caught within the first minute of any run that claims a job: a campaign in which it is not
caught has a broken harness, and has found nothing out."""


@frozen
class Verdict:
    """What became of a broken design."""

    design: str
    sentence: str
    expected: tuple[str, ...]
    """The laws that may catch it."""
    law: str | None
    """The law that caught it; None: it survived."""
    seed: int | None
    """The first seed that showed it, so that so many seeds were needed."""
    offence: str | None
    found: Found | None = None
    """The violation, with the last events before it."""


@contextmanager
def pure_alone(clock: StoreClock, seed: int) -> Iterator[Store | None]:
    """Opens no store under test: broken designs run on the pure one."""
    yield None


def try_design(settings: Settings, name: str, seeds: int) -> Verdict:
    """Run a broken design under seeds 1, 2, ... and all faults until a law catches it."""
    design = DESIGNS[name]
    verdict = Verdict(name, design.sentence, tuple(sorted(design.caught_by)), None, None, None)
    for seed in range(1, seeds + 1):
        tried = evolve(settings, seed=seed, design=name, faults=tuple(FAULTS))
        found = run_seed(tried, pure_alone).violation
        if found is not None:
            return evolve(verdict, law=found.law, seed=seed, offence=found.offence, found=found)
    return verdict


def try_designs(
    settings: Settings, names: Sequence[str], seeds: int, workers: int
) -> Iterator[Verdict]:
    """The verdicts in the order of the names, whatever the number of workers."""
    if workers == 1 or len(names) == 1:
        yield from (try_design(settings, name, seeds) for name in names)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(try_design, settings, name, seeds) for name in names]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()
