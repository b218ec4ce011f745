"""All that a fleet's run has left, put together for the checks that compare it."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, TypeVar

from attrs import evolve, field, frozen

from unswept.adapters.chaos.driver import all_events
from unswept.adapters.chaos.fleet.load import Task, tasks
from unswept.adapters.chaos.fleet.producer import answered
from unswept.adapters.chaos.fleet.records import (
    Born,
    Canceled,
    Deed,
    Enqueued,
    Line,
    Taken,
    read,
)
from unswept.core.commands import Find, Store
from unswept.core.replies import Found
from unswept.core.values import Event

L = TypeVar("L", bound=Line)

SAMPLE: Final = 1_000
"""So many rows are read beside those of all jobs with a story."""
_PLAIN: Final = 3
"""Events of a job without a story: enqueue, claim, complete."""


@frozen(slots=False)
class Notes:
    """What one runner wrote down."""

    number: int
    lines: tuple[Line, ...]

    @cached_property
    def instance(self) -> str | None:
        """Its id; None: it was killed before it had one."""
        return next((line.instance for line in self.lines if isinstance(line, Born)), None)

    def of(self, kind: type[L]) -> Iterator[L]:
        """The lines of one kind."""
        return (line for line in self.lines if isinstance(line, kind))


@frozen(slots=False)
class Evidence:
    """All that a run has left."""

    tasks: tuple[Task, ...]
    runners: tuple[Notes, ...]
    enqueued: tuple[Enqueued, ...]
    canceled: Mapping[str, Canceled]
    """By job: the answer to its cancel request."""
    deeds: tuple[Deed, ...]
    events: tuple[Event, ...]
    rows: Mapping[str, str | None] = field(factory=dict)
    """The status of jobs as their rows stand at the end; None: there is no row."""

    @cached_property
    def stories(self) -> Mapping[str, Sequence[Event]]:
        """The events of each job, in their order."""
        found: dict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            found[event.job_id].append(event)
        return found

    @cached_property
    def takes(self) -> Mapping[tuple[str, int], Sequence[tuple[Notes, Taken]]]:
        """Who was told to have which hold, by which claim."""
        found: dict[tuple[str, int], list[tuple[Notes, Taken]]] = defaultdict(list)
        for notes in self.runners:
            for taken in notes.of(Taken):
                for hold in taken.holds:
                    found[hold].append((notes, taken))
        return found


def collect(folder: Path, store: Store, seed: int, jobs: int) -> Evidence:
    """The files of a run, and what the store has."""
    every = tuple(tasks(seed, jobs))
    runners = tuple(
        Notes(int(book.stem.rpartition("-")[2]), tuple(read(book)))
        for book in sorted(folder.glob("runner-*.jsonl"))
    )
    produced = tuple(read(folder / "producer.jsonl"))
    driven = tuple(read(folder / "driver.jsonl"))
    evidence = Evidence(
        every,
        runners,
        tuple(line for line in (*produced, *driven) if isinstance(line, Enqueued)),
        {line.job_id: line for line in produced if isinstance(line, Canceled)},
        tuple(line for line in driven if isinstance(line, Deed)),
        tuple(all_events(store)),
    )
    rows = {job_id: _status(store, job_id) for job_id in _looked_at(evidence, seed)}
    return evolve(evidence, rows=rows)


def _looked_at(evidence: Evidence, seed: int) -> set[str]:
    """All jobs with a story, and a sample of the rest."""
    ids = [task.job_id for task in evidence.tasks]
    sample = random.Random(f"{seed} sample").sample(ids, min(SAMPLE, len(ids)))
    return {*sample, *(each for each in ids if len(evidence.stories.get(each, ())) != _PLAIN)}


def _status(store: Store, job_id: str) -> str | None:
    found = answered(store, Find(job_id))
    return found.job.lease.status.value if isinstance(found, Found) else None
