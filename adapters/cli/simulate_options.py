"""What a call of `unswept simulate` asks for, and the words that it refuses."""

from __future__ import annotations

import re
import shlex
from typing import Final

from attrs import frozen

from unswept.core.checks import check_whole
from unswept.core.errors import MisuseError
from unswept.simulations import headline
from unswept.simulations.campaign import DEFAULT_SEEDS, Shard
from unswept.simulations.designs import DESIGNS
from unswept.simulations.faults import FAULTS
from unswept.simulations.profiles import named
from unswept.simulations.run import Settings

DEFAULT: Final = Settings(seed=1)
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600}


@frozen
class Campaign:
    """What is to be run."""

    settings: Settings
    store: str
    """The URL of the store under test, without its password."""
    seeds: int = DEFAULT_SEEDS
    """Seeds 1 to this."""
    seed: int | None = None
    """This one seed instead."""
    shard: Shard | None = None
    """A part of it alone."""
    require_coverage: bool = False
    """It owes what must sometimes happen, however small it is."""

    def all_seeds(self) -> list[int]:
        """The seeds of the whole campaign."""
        return list(range(1, self.seeds + 1)) if self.seed is None else [self.seed]

    def tries_broken_designs(self) -> bool:
        """The broken designs show that the laws would notice; one seed alone shows itself."""
        return self.judges_the_design() and self.seed is None

    def part(self) -> Shard:
        """What of it is to be run: all, or a shard."""
        return self.shard or Shard()

    def is_whole(self) -> bool:
        """Does it, or do all its shards together, owe what must sometimes happen? Rare events are
        owed by a whole campaign, not by a few seeds or a few faults."""
        asked = self.settings
        whole = asked.faults == tuple(FAULTS) and asked.hours >= DEFAULT.hours
        enough = self.seeds >= DEFAULT_SEEDS and asked.instances >= DEFAULT.instances
        fleet = asked.runners >= DEFAULT.runners and (asked.jobs, asked.job_minutes) == (None, None)
        return whole and enough and fleet and self.seed is None

    def judges_the_design(self) -> bool:
        """Is it the real design that is judged? That a broken one is caught is no refutation."""
        return DESIGNS[self.settings.design].sound

    def has_headline(self) -> bool:
        """Does it, or do all its shards together, end with the headline table?"""
        return self.is_whole() and self.seeds >= headline.FROM_SEEDS

    def replay_command(self, seed: int) -> str:
        """The command that runs one seed again."""
        return self._command(f"--seed {seed}")

    def command(self) -> str:
        """The command that runs all of it again."""
        if self.seed is not None:
            return self.replay_command(self.seed)
        return self._command(f"--seeds {self.seeds}")

    def _command(self, seeds: str) -> str:
        asked = self.settings
        load = "" if asked.jobs is None else f" --jobs {asked.jobs}"
        if asked.job_minutes is not None:
            load += f" --job-minutes {asked.job_minutes:g}"
        return (
            f"unswept simulate --store {shlex.quote(self.store)} {seeds} "
            f"--hours {asked.hours:g} --instances {asked.instances} --runners {asked.runners}"
            f"{load} --faults {named(asked.faults)} --design {asked.design}"
        )


def checked(campaign: Campaign) -> Campaign:
    """The campaign, if it can be run."""
    asked = campaign.settings
    if not 0 < asked.hours <= 100_000:
        raise MisuseError(f"--hours must be above 0 and at most 100000, got {asked.hours}")
    check_whole("--instances", asked.instances, 1, 100)
    check_whole("--runners", asked.runners, 0, 100)
    if asked.jobs is not None:
        check_whole("--jobs", asked.jobs, 1, 10_000)
    if asked.job_minutes is not None and not 0.01 <= asked.job_minutes <= 100_000:
        raise MisuseError(f"--job-minutes must be 0.01 to 100000, got {asked.job_minutes}")
    if asked.design not in DESIGNS:
        raise MisuseError(f"--design must be one of {', '.join(DESIGNS)}, got {asked.design}")
    check_whole("--seeds", campaign.seeds, 1, 1_000_000)
    if campaign.seed is not None:
        check_whole("--seed", campaign.seed, 0, 2**63 - 1)
        if campaign.shard is not None:
            raise MisuseError("--seed runs one seed, which --shard cannot cut into parts")
    return campaign


def shard_named(words: str | None) -> Shard | None:
    """The part that `--shard I/N` asks for."""
    if words is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", words)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise MisuseError(f"--shard must be I/N with 1 <= I <= N, got {words}")
    return Shard(int(found[1]), int(found[2]))


def seconds_named(words: str | None) -> float | None:
    """How long `--time-budget` allows: 90s, 10m or 1.5h."""
    if words is None:
        return None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh])", words)
    if found is None or float(found[1]) <= 0:
        raise MisuseError(f"--time-budget must be a time like 90s, 10m or 1.5h, got {words}")
    return float(found[1]) * _UNITS[found[2]]
