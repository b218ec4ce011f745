"""Broken designs of the table: functions of the core, replaced in the store that is searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType, ModuleType
from typing import Any, Final
from unittest.mock import patch

from attrs import evolve, frozen

from unswept.core import job as jobs
from unswept.core import lease as rules
from unswept.core import replies as r
from unswept.core import world as store
from unswept.core.commands import Claim, Complete, Deregister, Enqueue, Evict, Heartbeat
from unswept.core.job import Job, OnOrphan
from unswept.core.lease import ACTIVE, Kind, Lease, Status
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.core.world import Change, Decision, Table, World


@frozen
class Replacement:
    """One name of a module of the core, and what stands there instead."""

    module: ModuleType
    name: str
    by: Any


@frozen
class TableDesign:
    """A store that breaks a law."""

    name: str
    sentence: str
    law: str
    """The law that the last step of the shortest way breaks; others may break beside it."""
    scope: str
    """Where it is searched."""
    replaced: tuple[Replacement, ...]
    jobs: int = 1
    """The least number of jobs that shows it."""

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """While this lasts, the core of this process is the broken one."""
        with ExitStack() as stack:
            for each in self.replaced:
                stack.enter_context(patch.object(each.module, each.name, each.by))
            yield


# Rules of one lease -----------------------------------------------------------------------------


def _fence_by_owner(lease: Lease, owner: str, epoch: int) -> Refusal | None:
    return None if lease.owner == owner else Refusal.NOT_OWNER


def _fence_by_epoch(lease: Lease, owner: str, epoch: int) -> Refusal | None:
    return None if lease.epoch == epoch else Refusal.STALE_EPOCH


def _renew_anybody(
    lease: Lease, owner: str, epoch: int, ttl_ms: Ms, confirm_ms: Ms, now: StoreMs
) -> Lease | Refusal:
    return rules._stamp(lease, ttl_ms, confirm_ms, now) if _held(lease, epoch) else _no(lease)


def _held(lease: Lease, epoch: int) -> bool:
    return lease.status in ACTIVE and lease.owner is not None and lease.epoch == epoch


def _no(lease: Lease) -> Refusal:
    return Refusal.ORPHANED if lease.status is Status.ORPHANED else Refusal.STALE_EPOCH


def _orphan(lease: Lease) -> Lease | Refusal:
    if lease.status not in ACTIVE or lease.owner is None:
        return Refusal.ALREADY_TERMINAL
    return changed(lease, status=Status.ORPHANED, deadline=None)


def _sweep_blindly(lease: Lease, epoch: int, beats: int, now: StoreMs) -> Lease | Refusal:
    return _orphan(lease)


def _sweep_any_stamp(lease: Lease, epoch: int, beats: int, now: StoreMs) -> Lease | Refusal:
    late = lease.deadline is not None and lease.deadline < now
    return _orphan(lease) if late and lease.epoch == epoch else Refusal.NOT_EXPIRED


def _sweep_any_time(lease: Lease, epoch: int, beats: int, now: StoreMs) -> Lease | Refusal:
    seen = (lease.epoch, lease.beats) == (epoch, beats)
    return _orphan(lease) if seen else Refusal.BEATS_MOVED


def _delay_again(lease: Lease, epoch: int, beats: int, now: StoreMs) -> Lease | Refusal:
    if refusal := rules._seen_suspect(lease, epoch, beats, now):
        return refusal
    assert lease.ttl_ms is not None and lease.confirm_ms is not None
    stamped = rules._stamp(lease, lease.ttl_ms, lease.confirm_ms, now)
    return changed(stamped, delayed_at=now)


def _end_again(lease: Lease, owner: str, epoch: int, outcome: Status) -> Lease | Refusal:
    refusal = rules.fence(lease, owner, epoch)
    return refusal or changed(lease, status=outcome, deadline=None)


def _release_by_anybody(lease: Lease, owner: str, epoch: int) -> Lease | Refusal:
    may = lease.epoch == epoch and lease.status in ACTIVE and lease.owner is not None
    return rules._back_to_queue(lease) if may else Refusal.STALE_EPOCH


def _requeue_all(lease: Lease, epoch: int, force: bool) -> Lease | Refusal:
    return rules._seen_orphan(lease, epoch) or rules._back_to_queue(lease)


def _start_canceled(
    lease: Lease, owner: str, epoch: int, ttl_ms: Ms, confirm_ms: Ms, now: StoreMs
) -> Lease | Refusal:
    if refusal := rules.fence(lease, owner, epoch):
        return refusal
    if lease.status is not Status.QUEUED:
        return lease if lease.status is Status.RUNNING else rules._status_refusal(lease)
    return changed(rules._stamp(lease, ttl_ms, confirm_ms, now), status=Status.RUNNING)


def _back_without_request(lease: Lease) -> Lease:
    return rules._let_go(changed(lease, cancel_requested_at=None), Status.QUEUED)


def _stamp_the_greater(lease: Lease, ttl_ms: Ms, confirm_ms: Ms, now: StoreMs) -> Lease:
    stamped = _REAL_STAMP(lease, ttl_ms, confirm_ms, now)
    assert lease.deadline is not None and stamped.deadline is not None
    return changed(stamped, deadline=max(lease.deadline, stamped.deadline))


_REAL_STAMP: Final = rules._stamp


def _append_any_time(
    lease: Lease, owner: str, epoch: int, finished_at: Any, late_output_ms: Ms, now: StoreMs
) -> Refusal | None:
    return rules.fence(lease, owner, epoch)


def _evict_at_once(
    lease: Lease, epoch: int, finished_at: Any, retention_ms: Ms, now: StoreMs
) -> Refusal | None:
    over = lease.epoch == epoch and lease.status in rules.TERMINAL
    return None if over else Refusal.NOT_TERMINAL


# Rules of sets ----------------------------------------------------------------------------------


def _join_orphans(job: Job, window_ms: Ms, now: StoreMs) -> bool:
    handed_out = job.lease.status in ACTIVE | {Status.COMPLETED, Status.ORPHANED}
    return handed_out and window_ms > 0 and job.admitted_at + window_ms >= now


def _no_twin(world: World, key: Any, window_ms: Ms, now: StoreMs) -> Job | None:
    return None


def _always_again(on_orphan: OnOrphan, attempts: int, max_attempts: int | None) -> Kind | None:
    if on_orphan is OnOrphan.REQUEUE:
        return Kind.REQUEUE
    return Kind.SETTLE if on_orphan is OnOrphan.FAIL else None


def _decided(command: type, by: Callable[[World, Any, StoreMs], Decision[Any]]) -> Replacement:
    return Replacement(store, "_DECIDERS", MappingProxyType({**store._DECIDERS, command: by}))


def _complete_silently(world: World, cmd: Complete, now: StoreMs) -> Decision[Any]:
    return evolve(store._complete(world, cmd, now), events=())


def _complete_twice(world: World, cmd: Complete, now: StoreMs) -> Decision[Any]:
    decision, job = store._complete(world, cmd, now), world.jobs.get(cmd.job_id)
    if job is None or decision.changes or not 1 <= cmd.epoch < job.lease.epoch:
        return decision
    return evolve(decision, events=(store.stale_result(job, cmd.epoch, cmd.owner, now),))


def _enqueue_again(world: World, cmd: Enqueue, now: StoreMs) -> Decision[Any]:
    gone = {name: birth for name, birth in world.ids.items() if name in world.jobs}
    return store._enqueue(evolve(world, ids=gone), cmd, now)


def _claim_by_no_number(world: World, cmd: Claim, now: StoreMs) -> Decision[Any]:
    rows = {name: changed(row, claim_no=0) for name, row in world.instances.items()}
    return store._claim(evolve(world, instances=rows), cmd, now)


def _forget_the_number(world: World, cmd: Deregister, now: StoreMs) -> Decision[Any]:
    decision = store._deregister(world, cmd, now)
    return evolve(decision, changes=tuple(each._replace(row=None) for each in decision.changes))


def _evict_ids(world: World, cmd: Evict, now: StoreMs) -> Decision[Any]:
    decision = store._evict(world, cmd, now)
    gone = [change.key for change in decision.changes if change.table is Table.JOBS]
    ids = (Change(Table.IDS, job_id, None) for job_id in gone)
    return evolve(decision, changes=(*decision.changes, *ids))


def _one_spoils_all(world: World, cmd: Heartbeat, now: StoreMs) -> Decision[Any]:
    decision = store._heartbeat(world, cmd, now)
    answers = decision.reply.answers
    if all(answer.answer is r.Answer.RENEWED for answer in answers):
        return decision
    worst = next(a.answer for a in answers if a.answer is not r.Answer.RENEWED)
    told = tuple(r.HoldAnswer(a.job_id, a.epoch, worst) for a in answers)
    return Decision(evolve(decision.reply, answers=told))


def _rule(name: str, by: Any) -> tuple[Replacement, ...]:
    return (Replacement(rules, name, by),)


TABLE_DESIGNS: Final[Mapping[str, TableDesign]] = MappingProxyType(
    {
        design.name: design
        for design in (
            TableDesign(
                "epoch-ignored",
                "An owner's write is fenced by its owner alone, under whatever epoch.",
                "L3",
                "a fleet",
                _rule("fence", _fence_by_owner),
            ),
            TableDesign(
                "owner-ignored",
                "An owner's write is fenced by its epoch alone, whoever sends it.",
                "L3",
                "a gateway",
                _rule("fence", _fence_by_epoch),
            ),
            TableDesign(
                "renewed-by-anybody",
                "A heartbeat renews whatever it names.",
                "L3",
                "a gateway",
                _rule("renew", _renew_anybody),
            ),
            TableDesign(
                "released-by-anybody",
                "A release asks neither who sends it nor whether the job may be requeued.",
                "L3",
                "a fleet",
                _rule("release", _release_by_anybody),
            ),
            TableDesign(
                "swept-blindly",
                "The sweep's write tests again nothing of what was seen.",
                "L1",
                "a gateway",
                _rule("orphan", _sweep_blindly),
            ),
            TableDesign(
                "swept-by-any-stamp",
                "The sweep's write does not ask whether the stamp is the one that was seen.",
                "L2",
                "a gateway",
                _rule("orphan", _sweep_any_stamp),
            ),
            TableDesign(
                "swept-at-any-time",
                "The sweep's write does not ask whether the deadline is past.",
                "L1",
                "a gateway",
                _rule("orphan", _sweep_any_time),
            ),
            TableDesign(
                "delayed-again",
                "A suspect may be delayed as often as it is one.",
                "L9",
                "the store clock",
                _rule("delay", _delay_again),
            ),
            TableDesign(
                "greater-stamp",
                "A stamp takes the greater deadline, so that none is shortened after a step back.",
                "L8",
                "the store clock",
                _rule("_stamp", _stamp_the_greater),
            ),
            TableDesign(
                "ended-again",
                "A completion is taken whatever became of the job under this epoch.",
                "L4",
                "ends",
                _rule("complete", _end_again),
            ),
            TableDesign(
                "requeued-though-never",
                "An orphan is requeued though its requeue rule is never, and without force.",
                "L4",
                "force",
                _rule("requeue", _requeue_all),
            ),
            TableDesign(
                "started-though-canceled",
                "A first start does not ask whether a cancel request came first.",
                "L7",
                "a gateway",
                _rule("start", _start_canceled),
            ),
            TableDesign(
                "cancel-lost-on-requeue",
                "What goes back to the queue forgets its cancel request.",
                "L7",
                "force",
                _rule("_back_to_queue", _back_without_request),
            ),
            TableDesign(
                "output-at-any-time",
                "Output is taken however long after the job's end.",
                "L4",
                "output",
                _rule("may_append", _append_any_time),
            ),
            TableDesign(
                "evicted-at-once",
                "A terminal job may be evicted before its retention is over.",
                "L14",
                "ids",
                _rule("may_evict", _evict_at_once),
            ),
            TableDesign(
                "no-tombstone",
                "Eviction forgets the id with the row.",
                "L6",
                "ids",
                (_decided(Evict, _evict_ids),),
            ),
            TableDesign(
                "enqueued-again",
                "An enqueue asks whether there is a row, not whether the id was used.",
                "L6",
                "ids",
                (_decided(Enqueue, _enqueue_again),),
            ),
            TableDesign(
                "orphan-joined",
                "An equal request is given a job that is orphaned, or suspect.",
                "L15",
                "twins",
                (Replacement(store, "may_join", _join_orphans),),
                jobs=2,
            ),
            TableDesign(
                "no-dedup",
                "An equal request always gets a job of its own.",
                "L15",
                "twins",
                (Replacement(store, "_twin", _no_twin),),
                jobs=2,
            ),
            TableDesign(
                "event-left-out",
                "A completion leaves no event.",
                "L5",
                "a gateway",
                (_decided(Complete, _complete_silently),),
            ),
            TableDesign(
                "event-twice",
                "Each late result leaves an event, also where one was left.",
                "L5",
                "a fleet",
                (_decided(Complete, _complete_twice),),
            ),
            TableDesign(
                "one-hold-spoils-all",
                "A heartbeat with one bad hold renews none.",
                "L8",
                "a gateway",
                (_decided(Heartbeat, _one_spoils_all),),
                jobs=2,
            ),
            TableDesign(
                "claim-number-ignored",
                "A claim that is repeated takes new work.",
                "F1",
                "budgets",
                (_decided(Claim, _claim_by_no_number),),
            ),
            TableDesign(
                "claim-number-forgotten",
                "The last claim number goes with the row of an instance that is gone.",
                "F1",
                "budgets",
                (_decided(Deregister, _forget_the_number),),
            ),
            TableDesign(
                "attempts-ignored",
                "A sweep requeues a job however often it has been begun.",
                "F2",
                "policies",
                (Replacement(jobs, "next_by_policy", _always_again),),
            ),
        )
    }
)
