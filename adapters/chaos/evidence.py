"""All that a run has left, put together for the checks that compare it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from attrs import field, frozen

from unswept.adapters.chaos.clocks import StoreClock, store_clock
from unswept.adapters.chaos.history import Ailment, Deeds, History, StampAt
from unswept.adapters.chaos.records import HoldName
from unswept.core.job import Job
from unswept.core.lease import Kind
from unswept.core.replies import Found
from unswept.core.values import Event


@frozen
class Evidence:
    """All that a run has left."""

    deeds: Deeds
    histories: Mapping[int, History]
    """By the gateway's number."""
    found: Mapping[str, Found | None]
    """Every job that a gateway or the store knows, as it stands at the end; None: no row."""
    chunks: Mapping[HoldName, frozenset[int]]
    """The numbers of the chunks of output that the store has."""
    events: tuple[Event, ...]
    judged_at: int
    """The store time of the end."""


@frozen
class Case:
    """An orphan event, with the gateway whose job it was."""

    event: Event
    owner: History
    stamps: Sequence[StampAt]
    """Its acknowledged stamps under the epoch of the event."""
    delays: int


@frozen(slots=False)
class Judge:
    """One run's evidence, put together."""

    evidence: Evidence
    counts: Counter[str] = field(factory=Counter, init=False)
    """How much there was of everything."""

    @cached_property
    def clock(self) -> StoreClock:
        """The store's clock."""
        return store_clock(self.evidence.histories.values())

    @cached_property
    def by_instance(self) -> Mapping[str, History]:
        """The gateways by their ids."""
        histories = self.evidence.histories.values()
        return {history.instance: history for history in histories if history.instance}

    @cached_property
    def stories(self) -> Mapping[str, Sequence[Event]]:
        """The events of each job, in their order."""
        found: dict[str, list[Event]] = defaultdict(list)
        for event in self.evidence.events:
            found[event.job_id].append(event)
        return found

    @cached_property
    def cases(self) -> Sequence[Case]:
        """The orphan events of jobs whose owner is a gateway of this run."""
        return [
            Case(
                event,
                owner,
                owner.stamps.get(HoldName(event.job_id, event.epoch), ()),
                sum(
                    (each.kind, each.epoch) == (Kind.DELAY, event.epoch)
                    for each in self.stories[event.job_id]
                ),
            )
            for event in self.evidence.events
            if event.kind is Kind.ORPHAN
            and (owner := self.by_instance.get(event.owner or "")) is not None
        ]

    def ailments(self, history: History, job_id: str) -> list[Ailment]:
        """What kept this gateway from renewing this job."""
        return [*history.ailments(self.evidence.deeds), *history.blocked(job_id)]


def told(event: Event) -> str:
    """An event in words, for an offence."""
    return (
        f"{event.job_id}, epoch {event.epoch}: {event.kind} at {event.at} by {event.actor} (owner"
        f" {event.owner}, {event.beats} beats, last beat {event.beat_at}, deadline"
        f" {event.deadline}, first seen {event.first_seen_at})"
    )


def standing(job: Job) -> str:
    """How a job stands, in words, for an offence."""
    lease = job.lease
    return f"{lease.status}, epoch {lease.epoch}, of {lease.owner}, finished at {job.finished_at}"
