"""Compares what runners, producer and driver wrote down with what the store has at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from unswept.adapters.chaos.fleet.driver import Act
from unswept.adapters.chaos.fleet.evidence import Evidence
from unswept.adapters.chaos.fleet.load import Wish
from unswept.adapters.chaos.fleet.records import Begun, Done, Taken, Wrote
from unswept.adapters.chaos.verdict import Violation
from unswept.core.lease import TERMINAL, Kind, Status
from unswept.core.refusal import Refusal
from unswept.core.values import Event

Check = Callable[[Evidence], Iterator[str]]


def every_job_is_accounted_for(evidence: Evidence) -> Iterator[str]:
    """Enqueued and over, or its id was spent before; and its row says the same."""
    spent = {
        line.job_id for line in evidence.enqueued if line.answer == Refusal.SPENT and not line.again
    }
    known = {line.job_id for line in evidence.enqueued if not line.again}
    for task in evidence.tasks:
        story = evidence.stories.get(task.job_id, ())
        if task.job_id not in known:
            yield f"{task.job_id}: its enqueue was never answered"
        elif task.job_id in spent:
            if story:
                yield f"{task.job_id}: its id was spent, and there is {_told(story[-1])}"
        elif not story or story[0].kind is not Kind.ENQUEUE:
            yield f"{task.job_id}: its enqueue was acknowledged, and there is no such event"
        elif story[-1].status not in TERMINAL and story[-1].kind is not Kind.STALE_RESULT:
            yield f"{task.job_id}: it is not over: {_told(story[-1])}"
        if task.job_id in evidence.rows:
            row, last = evidence.rows[task.job_id], _last(story)
            if row != (None if last is None else last.status.value):
                yield f"{task.job_id}: its row says {row}, its events {last and last.status}"


def completions_are_applied_once(evidence: Evidence) -> Iterator[str]:
    """One terminal event, by the hold whose handler was done; one fresh answer to it."""
    done = {
        (notes.instance, line.job_id, line.epoch)
        for notes in evidence.runners
        for line in notes.of(Done)
    }
    for job_id, story in evidence.stories.items():
        ends = [event for event in story if _ends(event)]
        if len(ends) > 1:
            yield f"{job_id}: it ended {len(ends)} times: {'; '.join(map(_told, ends))}"
        for event in ends:
            completed = (
                event.kind in (Kind.COMPLETE, Kind.HEAL) and event.status is Status.COMPLETED
            )
            if completed and (event.owner, job_id, event.epoch) not in done:
                yield f"{job_id}: no handler was done with it: {_told(event)}"
    fresh = Counter(
        line.job_id
        for notes in evidence.runners
        for line in notes.of(Wrote)
        if line.command == "Complete" and line.answer == "fresh"
    )
    for job_id, times in fresh.items():
        if times > 1:
            yield f"{job_id}: {times} completions of it were acknowledged as new"


def no_canceled_job_is_claimed(evidence: Evidence) -> Iterator[str]:
    """By the order of its events, and by the store times of the two answers."""
    for job_id in evidence.canceled:
        asked = False
        for event in evidence.stories.get(job_id, ()):
            asked = asked or event.kind in (Kind.REQUEST_CANCEL, Kind.CANCEL)
            if asked and event.kind is Kind.CLAIM:
                yield f"{job_id}: it was claimed after its cancel: {_told(event)}"
    for (job_id, _), takes in evidence.takes.items():
        if job_id not in evidence.canceled:
            continue
        at = evidence.canceled[job_id].store_at
        for notes, taken in takes:
            # A repetition names what was claimed before, perhaps long before.
            if not taken.repeated and taken.store_at > at:
                yield (
                    f"{job_id}: runner {notes.number} was granted it at {taken.store_at}, after its"
                    f" cancel at {at}"
                )


def no_epoch_is_claimed_twice(evidence: Evidence) -> Iterator[str]:
    """One runner, under one claim number; one event; one handler."""
    for (job_id, epoch), takes in evidence.takes.items():
        claims = {(notes.number, taken.claim_no) for notes, taken in takes}
        if len(claims) > 1:
            told = ", ".join(f"runner {number} by claim {no}" for number, no in sorted(claims))
            yield f"{job_id}, epoch {epoch}: it was granted to {told}"
    claimed = Counter(
        (event.job_id, event.epoch) for event in evidence.events if event.kind is Kind.CLAIM
    )
    begun = Counter(
        (line.job_id, line.epoch) for notes in evidence.runners for line in notes.of(Begun)
    )
    for what, counts in (("claimed", claimed), ("begun", begun)):
        for (job_id, epoch), times in counts.items():
            if times > 1:
                yield f"{job_id}, epoch {epoch}: it was {what} {times} times"


def work_follows_grants(evidence: Evidence) -> Iterator[str]:
    """Each handler began by a grant to its own runner, and each grant is a claim in the store."""
    owners = {
        (event.job_id, event.epoch): event.owner
        for event in evidence.events
        if event.kind is Kind.CLAIM
    }
    for notes in evidence.runners:
        granted = {hold for taken in notes.of(Taken) for hold in taken.holds}
        for job_id, epoch in granted:
            if owners.get((job_id, epoch)) != notes.instance:
                yield f"{job_id}, epoch {epoch}: runner {notes.number} was granted it, not in store"
        for line in notes.of(Begun):
            if (line.job_id, line.epoch) not in granted:
                yield f"{line.job_id}, epoch {line.epoch}: runner {notes.number} was not granted it"


def acknowledged_ends_stand(evidence: Evidence) -> Iterator[str]:
    """What a runner was told to have ended is over by that very hold."""
    for notes in evidence.runners:
        for line in notes.of(Wrote):
            if line.command != "Complete" or line.answer not in ("fresh", "repeated"):
                continue
            last = _last(evidence.stories.get(line.job_id, ()))
            if last is None or (last.epoch, last.owner) != (line.epoch, notes.instance):
                yield (
                    f"{line.job_id}: runner {notes.number} was told that it ended under epoch"
                    f" {line.epoch}, and there is {'nothing' if last is None else _told(last)}"
                )


def repetitions_change_nothing(evidence: Evidence) -> Iterator[str]:
    """A job that is enqueued again, however late, is no new one. (L6)"""
    fresh = Counter(line.job_id for line in evidence.enqueued if line.answer == "fresh")
    for line in evidence.enqueued:
        if line.again and line.answer == "fresh":
            yield f"{line.job_id}: it was enqueued again, as a new job"
    for job_id, story in evidence.stories.items():
        births = sum(event.kind is Kind.ENQUEUE for event in story)
        if births != 1 or fresh[job_id] > 1:
            yield f"{job_id}: it was born {births} times"


CHECKS: Final[Mapping[str, Check]] = {
    "every job is finished or accounted for": every_job_is_accounted_for,
    "each completion is applied once": completions_are_applied_once,
    "no canceled job is claimed": no_canceled_job_is_claimed,
    "no job is claimed twice at the same epoch": no_epoch_is_claimed_twice,
    "work follows grants": work_follows_grants,
    "acknowledged ends stand": acknowledged_ends_stand,
    "an enqueue that is repeated late changes nothing": repetitions_change_nothing,
}
"""Every promise, by the name under which it is reported."""

MUST: Final = (
    "jobs completed",
    "runners killed (SIGKILL)",
    "jobs swept from a dead or stopped runner and queued again",
    "jobs canceled before they were enqueued",
    "jobs canceled in the queue",
    "enqueues that were repeated",
)
"""What a run must have had some of."""


def judged(evidence: Evidence) -> tuple[tuple[Violation, ...], Counter[str]]:
    """Every broken promise, and how much there was of everything."""
    violations = tuple(
        Violation(name, offence) for name, check in CHECKS.items() for offence in check(evidence)
    )
    return violations, counted(evidence)


def counted(evidence: Evidence) -> Counter[str]:
    """How much there was of everything."""
    counts: Counter[str] = Counter()
    for story in evidence.stories.values():
        last = _last(story)
        if last is not None and last.kind is Kind.SETTLE:
            counts["jobs orphaned, and settled as failed by authority"] += 1
        elif last is not None:
            counts[f"jobs {last.status.value}"] += 1
        kinds = Counter(event.kind for event in story)
        counts["claims"] += kinds[Kind.CLAIM]
        counts["jobs claimed more than once"] += kinds[Kind.CLAIM] > 1
        counts["jobs swept from a dead or stopped runner and queued again"] += kinds[Kind.REQUEUE]
        counts["jobs swept that may not be requeued"] += kinds[Kind.ORPHAN] - kinds[Kind.REQUEUE]
        counts["jobs released by their runner"] += kinds[Kind.RELEASE]
        counts["orphans healed by their owner"] += kinds[Kind.HEAL]
        counts["delays by process evidence"] += kinds[Kind.DELAY]
        counts["late results of fenced runners, kept out"] += kinds[Kind.STALE_RESULT]
        counts["jobs canceled in the queue"] += kinds[Kind.CANCEL] > 0
        counts["jobs canceled while they ran"] += kinds[Kind.REQUEST_CANCEL] > 0
    for task in evidence.tasks:
        counts["jobs"] += 1
        before = task.cancel is Wish.BEFORE and task.job_id not in evidence.stories
        counts["jobs canceled before they were enqueued"] += before
    for line in evidence.enqueued:
        counts["enqueues that were repeated"] += line.again
    for notes in evidence.runners:
        counts["handlers begun"] += sum(1 for _ in notes.of(Begun))
        counts["claims asked again and answered with jobs"] += sum(
            taken.repeated for taken in notes.of(Taken)
        )
        counts["writes refused to fenced runners"] += sum(
            line.answer in (Refusal.STALE_EPOCH, Refusal.NOT_OWNER) for line in notes.of(Wrote)
        )
    acts = Counter(deed.act for deed in evidence.deeds)
    counts["runners started"] = acts[Act.START]
    counts["runners killed (SIGKILL)"] = acts[Act.KILL]
    counts["runners drained (SIGTERM)"] = acts[Act.TERM]
    counts["runners stopped past their leases (SIGSTOP)"] = acts[Act.STOP]
    return counts


def _last(story: Sequence[Event]) -> Event | None:
    """The last event that says how the job stands."""
    return next((e for e in reversed(story) if e.kind is not Kind.STALE_RESULT), None)


def _ends(event: Event) -> bool:
    return event.status in TERMINAL and event.kind is not Kind.STALE_RESULT


def _told(event: Event) -> str:
    return f"{event.kind} to {event.status} at {event.at}, epoch {event.epoch} of {event.owner}"
