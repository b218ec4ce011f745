"""Every broken design is run until a law catches it: laws that catch nothing have shown nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from attrs import evolve, frozen

from unswept.core.errors import UnsweptError
from unswept.simulations.campaign import pure_alone, run_seed
from unswept.simulations.designs import DESIGNS
from unswept.simulations.faults import FAULTS
from unswept.simulations.run import Found, Settings
from unswept.simulations.script import Script
from unswept.simulations.shrinking import NotReproducedError, shrink
from unswept.simulations.workers import Workers, in_order

SEEDS: Final = 60
"""How many seeds a broken design gets to show that it is broken."""
CANARY: Final = "two-step-claim"
"""The design that every campaign tries first: the first job that is claimed shows it, so that it
costs next to nothing. Where it is not caught, no law that held has shown anything."""
_CANARY_SEEDS: Final = 3
PURE: Final = "memory:"
"""The URL of the pure store, which broken designs are tried on."""


class HarnessBrokenError(UnsweptError):
    """The design that fails on purpose was not caught: nothing that this harness says counts."""


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

    @classmethod
    def of(cls, design: str) -> Verdict:
        """Nothing has caught it yet."""
        known = DESIGNS[design]
        return cls(design, known.sentence, tuple(sorted(known.caught_by)), None, None, None)

    @property
    def caught(self) -> bool:
        """Did one of the laws catch it that are to?"""
        return self.law in self.expected


@frozen
class Exhibit:
    """What became of a broken design, and the least that shows it."""

    verdict: Verdict
    settings: Settings | None = None
    """The run that a law was broken in."""
    script: Script | None = None
    """That run, cut down."""
    why_no_script: str | None = None


@frozen
class _Trial:
    settings: Settings
    design: str
    seeds: int


def try_designs(
    settings: Settings, names: Iterable[str], seeds: int, workers: Workers
) -> Iterator[Verdict]:
    """Run each broken design under seeds 1, 2, ... and the faults that bring it out, until a law
    catches it; the verdicts come in the order of the names."""
    return in_order(workers, _try, [_Trial(settings, name, seeds) for name in names])


def exhibit_designs(
    settings: Settings, names: Iterable[str], seeds: int, workers: Workers, version: str
) -> Iterator[Exhibit]:
    """Try each broken design, and cut the run that a law catches down to a script, which bears this
    version."""
    trials = (_Trial(settings, name, seeds) for name in names)
    return in_order(workers, partial(_exhibit, version), trials)


def _try(trial: _Trial) -> Verdict:
    verdict = Verdict.of(trial.design)
    for seed in range(1, trial.seeds + 1):
        found = run_seed(_run_of(trial, seed), pure_alone).violation
        if found is not None:
            return evolve(verdict, law=found.law, seed=seed, offence=found.offence, found=found)
    return verdict


def _run_of(trial: _Trial, seed: int) -> Settings:
    faults = DESIGNS[trial.design].under or tuple(FAULTS)
    return evolve(trial.settings, seed=seed, design=trial.design, faults=faults)


def _exhibit(version: str, trial: _Trial) -> Exhibit:
    verdict = _try(trial)
    if verdict.seed is None:
        return Exhibit(verdict)
    settings = _run_of(trial, verdict.seed)
    try:
        script = shrink(settings, pure_alone, PURE, version).script
    except NotReproducedError as error:
        return Exhibit(verdict, settings, why_no_script=str(error))
    return Exhibit(verdict, settings, script)


def try_canary() -> Verdict:
    """Run the canary; raise `HarnessBrokenError` if no law at all catches it."""
    verdict = _try(_Trial(Settings(seed=1), CANARY, _CANARY_SEEDS))
    if verdict.law is None:
        check_canary(verdict)
    return verdict


def check_canary(verdict: Verdict) -> None:
    """Raise `HarnessBrokenError` if the canary was not caught as it must be. Where the design under
    test breaks another law, so does the canary, and that says nothing of the harness."""
    if not verdict.caught:
        raise HarnessBrokenError(
            f"the harness is broken, and this campaign has found nothing out: the design {CANARY} "
            f"must be caught by {' or '.join(verdict.expected)} in every campaign, and was caught "
            f"by {verdict.law or 'nothing'} in {_CANARY_SEEDS} seeds"
        )
