"""The checks of what was acknowledged: jobs, ends and output are there, and slots are live rows."""

from __future__ import annotations

from collections.abc import Iterator

from unswept.adapters.chaos.evidence import Judge, standing, told
from unswept.adapters.chaos.history import Exchange, History
from unswept.core.lease import TERMINAL, Kind


def no_job_is_lost(judge: Judge) -> Iterator[str]:
    """Every acknowledged admission is active, orphaned or terminal. (L14)"""
    for history in judge.evidence.histories.values():
        for job_id in sorted(history.granted):
            judge.counts["jobs admitted"] += 1
            found = judge.evidence.found.get(job_id)
            if found is None:
                yield f"{job_id} was admitted by gateway {history.number}, and there is no such job"
            elif found.job.lease.owner != history.instance:
                yield f"{job_id} was admitted by {history.instance}, and is {standing(found.job)}"
            else:
                judge.counts[f"at the end: {found.job.lease.status}"] += 1


def what_is_over_stays_over(judge: Judge) -> Iterator[str]:
    """After its first terminal event nothing changes a job's status. (L4, L5)"""
    for job_id, story in judge.stories.items():
        ends = [event for event in story if event.status in TERMINAL]
        if not ends:
            continue
        first = ends[0]
        later = [e for e in story[story.index(first) + 1 :] if e.kind is not Kind.STALE_RESULT]
        found = judge.evidence.found.get(job_id)
        if later:
            yield f"{told(first)}, and after that {told(later[0])}"
        elif found is None:
            yield f"{told(first)}, and there is no such job"
        elif (found.job.lease.status, found.job.finished_at) != (first.status, first.at):
            yield f"{told(first)}, but the job is {standing(found.job)}"


def ends_are_what_was_acknowledged(judge: Judge) -> Iterator[str]:
    """Each acknowledged completion, withdrawal and chunk is what the store says. (L4, L14)"""
    for history in judge.evidence.histories.values():
        for exchange in history.exchanges:
            if exchange.answer is not None:
                yield from _acknowledged_end(judge, history, exchange)


def _acknowledged_end(judge: Judge, history: History, exchange: Exchange) -> Iterator[str]:
    answer = exchange.answer
    assert answer is not None
    for end in answer.ends:
        judge.counts["completions acknowledged"] += 1
        found = judge.evidence.found.get(end.job_id)
        code = None if found is None or found.result is None else found.result.exit_code
        lease = None if found is None else found.job.lease
        if lease is None or (lease.status, lease.epoch, code) != (
            end.status,
            end.epoch,
            end.exit_code,
        ):
            yield (
                f"{end.job_id}: gateway {history.number} was told that it is {end.status}, exit"
                f" code {end.exit_code}; it is {standing(found.job) if found else 'not there'},"
                f" exit code {code}"
            )
        elif end.fresh and found is not None and found.job.finished_at != answer.store_at:
            yield f"{end.job_id} was ended at {answer.store_at}, and is {standing(found.job)}"
    for hold in exchange.sent.holds if answer.chunks else ():
        judge.counts["chunks of output acknowledged"] += 1
        if not set(answer.chunks) <= judge.evidence.chunks.get(hold, frozenset()):
            yield f"{hold.job_id}: chunk {answer.chunks[0]} was acknowledged and is gone"
    for job_id in answer.withdrawn:
        judge.counts["withdrawals acknowledged"] += 1
        found = judge.evidence.found.get(job_id)
        if found is not None and found.job.lease.status not in TERMINAL:
            yield f"{job_id} was withdrawn, and is {standing(found.job)}"


def slots_are_the_live_rows(judge: Judge) -> Iterator[str]:
    """At rest each gateway's limiter has as many jobs as the store has live rows of it."""
    for reading in judge.evidence.deeds.slots:
        judge.counts["slots read at the end" if reading.final else "slots read at rest"] += 1
        if not reading.final:
            judge.counts["live rows among them"] += reading.active
        if not reading.balanced:
            yield (
                f"gateway {reading.gateway}: {reading.running} running, {reading.queued} queued,"
                f" {reading.finishing} finishing, beside {reading.active} active and"
                f" {reading.orphaned} orphaned rows"
            )
