"""The search for the shortest script that breaks the same law: what concerns few jobs, then ever
fewer steps, then simpler commands, fewer names and shorter waits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, Final

from attrs import evolve

from unswept.core import commands as c
from unswept.core.commands import Command
from unswept.core.errors import UnsweptError
from unswept.core.units import StoreMs
from unswept.core.world import World
from unswept.simulations.campaign import EPOCH, OpenStore
from unswept.simulations.ddmin import ddmin
from unswept.simulations.recording import Entry
from unswept.simulations.rewriting import (
    Stamps,
    rebased,
    renamed,
    restricted,
    shifted,
    simpler,
)
from unswept.simulations.run import Found
from unswept.simulations.script import Broken, Told, carried_out
from unswept.spec.laws import READS

_STEPS: Final = 150_000
"""How much all tries may tell the pure store."""
_STORE: Final = 4
"""How many times that a step costs where a store under test keeps step."""
_OPENING: Final = 20
"""How many steps it costs to begin a try."""
_ROUNDS: Final = 4
"""How often all is tried anew, since one cut makes room for another."""
_OF_EVENTS: Final = (c.LeaseEvents, c.Acknowledge, c.ForgetEvents, c.ForgetConsumer)
_OF_ROWS: Final = (c.Register, c.Deregister)
_BY_NAME: Final = ("owner", "instance", "holder")

Entries = Sequence[Entry]


def cost(steps: int, with_store: bool) -> int:
    """What a try costs, in steps of the pure store: tries are bounded by what they tell, not by a
    clock, so that they end alike on every machine."""
    return (_STORE if with_store else 1) * (_OPENING + steps)


class Search:
    """Tries scripts on fresh stores of one design until none is shorter."""

    def __init__(self, found: Found, design: str, open_store: OpenStore) -> None:
        """It looks for scripts that break the law that was `found` broken."""
        self._found = found
        self._design = design
        self._open_store = open_store
        self._with_store = found.verb != ""
        self._told = 0
        self._broken: Broken | None = None
        """How the last try ended."""
        self._meant: list[Command[Any] | None] = []
        """What the last try told its store."""
        self.tries = 0

    def minimal(self, entries: Entries) -> tuple[list[Told], Broken] | None:
        """The shortest script that was found, and how it ends; None if not even all that was told
        breaks the law again."""
        kept = self._about_few_jobs(entries)
        if kept is None:
            return None
        kept = self._as_meant(self._smaller(kept))
        kept = self._from_the_beginning(self._smaller(kept))
        steps = [entry.told for entry in kept]
        broken = carried_out(steps, self._design, self._open_store)
        return None if broken is None else (steps[: broken.index + 1], broken)

    def _smaller(self, entries: list[Entry]) -> list[Entry]:
        kept = entries
        for _ in range(_ROUNDS):
            before = kept
            kept = self._fewer_steps(kept)
            kept = self._simpler(kept)
            kept = self._fewer_names(kept)
            kept = self._shorter_waits(kept)
            if kept == before:
                break
        return kept

    # Trying -------------------------------------------------------------------------------------

    def _holds(self, entries: Entries) -> bool:
        """Is the same law broken by these?"""
        self._broken, self._meant = None, []
        if not entries or self._told > _STEPS:
            return False
        self.tries += 1
        self._told += cost(len(entries), self._with_store)

        def meaning(index: int, world: World) -> Command[Any] | None:
            command = entries[index].told.command
            if command is not None:
                command = rebased(command, entries[index].stamps, world)
            self._meant.append(command)
            return command

        steps = [entry.told for entry in entries]
        try:
            broken = carried_out(steps, self._design, self._open_store, meaning)
        except UnsweptError:  # it says something that cannot be said, or the store gave up
            return False
        self._broken = broken
        same = broken is not None and broken.law == self._found.law
        return same and broken is not None and broken.verb == self._found.verb

    def _as_meant(self, entries: list[Entry]) -> list[Entry]:
        """The same steps with what was meant by them, told literally from now on."""
        self._told = 0
        kept = self._from_the_beginning(entries)
        self._holds(kept)
        return [
            Entry(evolve(entry.told, command=command), Stamps(), entry.jobs)
            for entry, command in zip(self._ended(kept), self._meant, strict=True)
        ]

    def _from_the_beginning(self, entries: list[Entry]) -> list[Entry]:
        """The same steps, the first of them when every run begins; where a command names a time as
        if it were a number, they stay when they were."""
        by = EPOCH - entries[0].told.store_at
        moved = [_later(entry, by) for entry in entries]
        return moved if self._holds(moved) else entries

    def _ended(self, entries: list[Entry]) -> list[Entry]:
        """Those up to the step that broke the law in the last try."""
        return entries if self._broken is None else entries[: self._broken.index + 1]

    # Few jobs -----------------------------------------------------------------------------------

    def _about_few_jobs(self, entries: Entries) -> list[Entry] | None:
        """What concerns the jobs that the offence names, or as few more as it takes."""
        everyone = {job_id for entry in entries for job_id in entry.jobs}
        for jobs in _ever_more_jobs(entries, everyone, self._found.offence):
            about = _about(entries, jobs)
            if self._holds(about):
                return self._fewer_jobs(self._ended(about), jobs)
        return self._ended(list(entries)) if self._holds(entries) else None

    def _fewer_jobs(self, entries: list[Entry], jobs: set[str]) -> list[Entry]:
        fewest = ddmin(sorted(jobs), lambda some: self._holds(_about(entries, set(some))))
        about = _about(entries, set(fewest))
        return self._ended(about) if self._holds(about) else entries

    # Fewer steps, simpler ones --------------------------------------------------------------------

    def _fewer_steps(self, entries: list[Entry]) -> list[Entry]:
        kept = ddmin(entries, self._holds)
        return self._ended(kept) if self._holds(kept) else kept

    def _simpler(self, entries: list[Entry]) -> list[Entry]:
        kept = list(entries)
        for index in range(len(kept)):
            while (found := self._simpler_at(kept, index)) is not None:
                kept = found
        return kept

    def _simpler_at(self, entries: list[Entry], index: int) -> list[Entry] | None:
        entry = entries[index]
        if entry.told.command is None or entry.told.blanket:
            return None
        for command in simpler(entry.told.command):
            tried = [*entries]
            tried[index] = evolve(entry, told=evolve(entry.told, command=command))
            if self._holds(tried):
                return tried
        return None

    # Fewer names ----------------------------------------------------------------------------------

    def _fewer_names(self, entries: list[Entry]) -> list[Entry]:
        """One job, or one instance, in place of two; where the truth was told of an instance, each
        stays who it is."""
        kept = entries
        groups = [_jobs_of(entries)]
        if all(entry.told.truth is None for entry in entries):
            groups.append(_instances_of(entries))
        for names in groups:
            for other in names[1:]:
                for name in names[: names.index(other)]:
                    tried = [_renamed(entry, {other: name}) for entry in kept]
                    if None not in tried and self._holds(whole := [e for e in tried if e]):
                        kept = whole
                        break
        return kept

    # Shorter waits --------------------------------------------------------------------------------

    def _shorter_waits(self, entries: list[Entry]) -> list[Entry]:
        kept = entries
        for index in range(1, len(kept)):
            wait = kept[index].told.store_at - kept[index - 1].told.store_at
            sign = 1 if wait > 0 else -1
            tried = partial(_with_wait, kept, index)
            shortest = _least(abs(wait), lambda ms, t=tried, s=sign: self._holds(t(s * ms)))  # type: ignore[misc]
            if shortest != abs(wait):
                kept = tried(sign * shortest)
        return kept


def _ever_more_jobs(entries: Entries, everyone: set[str], offence: str) -> Iterator[set[str]]:
    last = entries[-1]
    named = {job_id for job_id in everyone if _names(offence, job_id)}
    touched = named | last.jobs
    senders = {entry.told.sender for entry in entries if entry.jobs & touched}
    theirs = {job_id for e in entries if e.told.sender in senders for job_id in e.jobs}
    before: set[str] = set()
    for jobs in (named, touched, theirs, everyone):
        if jobs - before:
            yield jobs
        before = jobs


def _names(offence: str, job_id: str) -> bool:
    """Does the sentence name this job, and not one whose name begins or ends like it?"""
    found = offence.find(job_id)
    while found >= 0:
        around = offence[max(0, found - 1) : found], offence[found + len(job_id) :][:1]
        if not any(mark.isalnum() or mark in "-_" for mark in around if mark):
            return True
        found = offence.find(job_id, found + 1)
    return False


def _about(entries: Entries, jobs: Collection[str]) -> list[Entry]:
    """What concerns these jobs, and the instances that do."""
    senders = {entry.told.sender for entry in entries if not entry.jobs.isdisjoint(jobs)}
    of_events = isinstance(entries[-1].told.command, _OF_EVENTS)
    kept = []
    for entry in entries[:-1]:
        command = entry.told.command
        if command is None or type(command) in READS:
            continue
        if entry.jobs:
            about = None if entry.jobs.isdisjoint(jobs) else restricted(command, jobs)
            if about is not None:
                kept.append(evolve(entry, told=evolve(entry.told, command=about)))
        elif isinstance(command, _OF_ROWS):
            if entry.told.sender in senders:
                kept.append(entry)
        elif of_events and isinstance(command, _OF_EVENTS):
            kept.append(entry)
    last = entries[-1]
    command = last.told.command
    about = None if command is None else restricted(command, jobs) or command
    return [*kept, evolve(last, told=evolve(last.told, command=about))]


def _jobs_of(entries: Entries) -> list[str]:
    return sorted({job_id for entry in entries for job_id in entry.jobs})


def _instances_of(entries: Entries) -> list[str]:
    """Those that may hold jobs; a sweeper stays another, for none sweeps what it holds."""
    commands = [entry.told.command for entry in entries]
    holders = {getattr(command, name, None) for command in commands for name in _BY_NAME}
    sweepers = {getattr(command, "sweeper", None) for command in commands}
    return sorted(name for name in holders - sweepers if name is not None)


def _renamed(entry: Entry, names: dict[str, str]) -> Entry | None:
    told, stamps = entry.told, entry.stamps
    try:
        command = None if told.command is None else renamed(told.command, names)
    except UnsweptError:  # one row twice in one batch
        return None
    truth = told.truth
    if truth is not None:
        facts = {k: names.get(v, v) if isinstance(v, str) else v for k, v in truth.facts.items()}
        truth = evolve(truth, observation=renamed(truth.observation, names), facts=facts)
    told = evolve(told, sender=names.get(told.sender, told.sender), command=command, truth=truth)
    stamps = evolve(
        stamps,
        epochs={names.get(k, k): v for k, v in stamps.epochs.items()},
        beats={names.get(k, k): v for k, v in stamps.beats.items()},
        seen={names.get(k, k): v for k, v in stamps.seen.items()},
    )
    return Entry(told, stamps, frozenset(names.get(job_id, job_id) for job_id in entry.jobs))


def _with_wait(entries: list[Entry], index: int, wait: int) -> list[Entry]:
    """The same steps, with so long a wait before one of them."""
    by = entries[index - 1].told.store_at + wait - entries[index].told.store_at
    return [*entries[:index], *(_later(entry, by) for entry in entries[index:])]


def _later(entry: Entry, by_ms: int) -> Entry:
    told = entry.told
    command = None if told.command is None else shifted(told.command, by_ms)
    return evolve(
        entry, told=evolve(told, store_at=StoreMs(told.store_at + by_ms), command=command)
    )


def _least(most: int, holds: Callable[[int], bool]) -> int:
    """The least number that still holds, as far as halving finds it; `most` holds."""
    if most == 0 or holds(0):
        return 0
    fails = 0
    while most - fails > 1:
        middle = (fails + most) // 2
        if holds(middle):
            most = middle
        else:
            fails = middle
    return most
