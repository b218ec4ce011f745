"""Every command in every situation of a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any, Final

from attrs import evolve

from unswept.core import commands as c
from unswept.core.job import Job, OnOrphan, Process, Terms, Transport
from unswept.core.lease import (
    RequeueRule,
    Status,
)
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Chunk, Request, Result, Stream
from unswept.simulations.conformance.coverage import Coverage, edges
from unswept.simulations.conformance.lockstep import Lockstep
from unswept.simulations.conformance.stores import MakeStore

TERMS: Final = Terms(Ms(100), Ms(300), Ms(50), Ms(30))
OTHER_TERMS: Final = Terms(Ms(20), Ms(40), Ms(70), Ms(60))
RETENTION_MS: Final = Ms(120)
INSTANCE_GC_MS: Final = Ms(150)
WINDOW_MS: Final = Ms(80)
LATE_OUTPUT_MS: Final = Ms(40)

Life = tuple[int | c.Command[Any], ...]
"""Commands about one job, and how many milliseconds pass between them."""


LABELS: Final = ((), ("cpu",), ("gpu", "cpu"), ("cpu", "gpu", "é"), ("CPU", "[]", "o'h"))


ON_ORPHAN: Final = (
    ("requeue", OnOrphan.REQUEUE, 2),
    ("attempts spent", OnOrphan.REQUEUE, 1),
    ("fail", OnOrphan.FAIL, None),
    ("hold", OnOrphan.HOLD, None),
)


def situations(job_id: str, now: StoreMs, claim_no: int) -> dict[str, Life]:
    """How a job gets where the next command finds it: one life per situation.

    `ann` admits it or claims it under `claim_no`; its partition and request key are its own, so
    that jobs in one store do not meet.
    """
    request = Request(b"[1]", "p", job_id)
    asked = c.RequestCancel(job_id)
    enqueued = c.Enqueue(
        job_id, requeue=RequeueRule.ALLOWED, partition=job_id, queue_deadline=StoreMs(now + 30)
    )
    later = (
        c.Register("ann"),
        c.Enqueue(job_id, partition=job_id, not_before=StoreMs(now + 20)),
    )
    queue = (
        c.Register("ann"),
        c.Enqueue(f"{job_id}-", partition=job_id, not_before=StoreMs(now + 20)),
        *(1, c.Enqueue(job_id, partition=job_id), 1, c.Enqueue(f"{job_id}+2", partition=job_id)),
    )
    for_others = c.Enqueue(job_id, partition=job_id, labels=("gpu", "cpu"))
    claimed = (enqueued, c.Register("ann"), c.Claim("ann", claim_no, TERMS, job_id))
    admitted = c.Admit(job_id, "ann", TERMS, requeue=RequeueRule.ALLOWED, request=request)
    kept = c.Admit(job_id, "ann", TERMS, Transport.HTTP, request=request)
    hold = (job_id, "ann", 1)
    started = (admitted, c.Start(*hold, OTHER_TERMS, Process(7, 5_000, "boot")))
    printed = tuple(
        c.Output(*hold, Chunk(number, Stream.STDOUT, b"\0\xff"), LATE_OUTPUT_MS)
        for number in (10, 9)
    )
    swept = (101, c.Sweep("bob", (c.Target(job_id, 1, 1, now),)))
    orphaned: Life = (admitted, *printed, *swept)
    completed: Life = (
        admitted,
        c.Complete(*hold, Status.COMPLETED, Result(-9, 500, "went\0wrong", b"\0\xff")),
    )
    return {
        "never named": (),
        "withdrawn unborn": (c.Withdraw(job_id, "ann"),),
        "enqueued": (enqueued,),
        "enqueued for later": later,
        "enqueued between one for later and a younger one": queue,
        "enqueued with labels": (c.Register("ann"), for_others),
        "withdrawn by a cancel": (asked,),
        "enqueued beyond a budget": (
            c.Register("ann", max_held=1),
            *(c.Enqueue(f"{job_id}{n}", partition=job_id) for n in "12"),
            c.Claim("ann", claim_no, TERMS, job_id, limit=2),
        ),
        "canceled in the queue": (enqueued, asked),
        "expired": (enqueued, 31, c.ExpireQueued(job_id)),
        "claimed": claimed,
        "claimed and released": (*claimed, c.Release(job_id, "ann", 1)),
        "admitted": (admitted,),
        "admitted, not to be requeued": (kept,),
        "admitted, cancel pending": (admitted, asked),
        "admitted and withdrawn": (admitted, c.Withdraw(job_id, "ann")),
        "started": started,
        "started, cancel pending": (*started, asked),
        "released": (*started, c.Release(*hold)),
        "released under a cancel": (*started, asked, c.Release(*hold)),
        "suspect": (admitted, 101),
        "delayed": (admitted, 101, c.Delay(job_id, 1, 1, "bob")),
        "orphaned": orphaned,
        "orphaned, not to be requeued": (kept, 200, *swept),
        "orphaned, cancel pending": (admitted, asked, *swept),
        **{
            f"swept: {name}": (
                evolve(admitted, on_orphan=policy, max_attempts=most),
                *swept,
            )
            for name, policy, most in ON_ORPHAN
        },
        "swept under a cancel: requeue": (
            evolve(admitted, on_orphan=OnOrphan.REQUEUE, max_attempts=2),
            asked,
            *swept,
        ),
        "healed": (*orphaned, c.Complete(*hold, Status.FAILED)),
        "requeued": (*orphaned, c.Requeue(job_id, 1)),
        "requeued under a cancel": (admitted, asked, *swept, c.Requeue(job_id, 1)),
        "settled": (*orphaned, c.Settle(job_id, 1, Status.FAILED, "ops")),
        "canceled as an orphan": (*orphaned, asked),
        "completed": completed,
        "failed": (*started, *printed, c.Complete(*hold, Status.FAILED)),
        "canceled": (*started, asked, c.Complete(*hold, Status.CANCELED)),
        "evicted": (
            *completed,
            RETENTION_MS + 1,
            c.Evict((c.Hold(job_id, 1),), RETENTION_MS),
        ),
    }


def probes(job_id: str, job: Job | None, now: StoreMs, claim_no: int) -> Iterator[c.Command[Any]]:
    """Every command about one job, as those say it who know how it stands, and as near misses."""
    epoch, beats = (1, 1) if job is None else (job.lease.epoch, job.lease.beats)
    epochs = (epoch, epoch + 1, *([epoch - 1] if epoch else []))
    key = Request(b"", "p", job_id)
    # Where the job requires none, one offer of several labels is as good as another.
    offers = LABELS[1:] if job is not None and job.labels else LABELS[3:4]
    for owner in ("ann", "bob"):
        yield c.Admit(job_id, owner, TERMS)
        yield c.Withdraw(job_id, owner)
        yield c.Claim(owner, claim_no, TERMS, job_id)
        for offered in offers:
            yield c.Claim(owner, claim_no, TERMS, job_id, labels=offered)
        for said in epochs:
            hold = (job_id, owner, said)
            yield c.Start(*hold, OTHER_TERMS, Process(8, 6_000, "boot"))
            yield c.Heartbeat(owner, OTHER_TERMS, (c.Hold(job_id, said),))
            yield c.Output(*hold, Chunk(11, Stream.STDERR, b""), LATE_OUTPUT_MS)
            yield c.Complete(*hold, Status.COMPLETED)
            yield c.Complete(*hold, Status.FAILED, Result(error="late"))
            yield c.Release(*hold, StoreMs(now + 10))
    for said in epochs:
        yield c.Requeue(job_id, said)
        yield c.Requeue(job_id, said, force=True, actor="ops")
        yield c.Settle(job_id, said, Status.FAILED)
        yield c.Settle(job_id, said, Status.CANCELED, "ops")
        yield c.Evict((c.Hold(job_id, said),), RETENTION_MS)
        yield c.ReadOutput(job_id, said)
        for seen in (beats, beats + 1):
            yield c.Delay(job_id, said, seen, "bob")
            yield c.Sweep("bob", (c.Target(job_id, said, seen, now),))
    yield c.Admit(f"{job_id}+", "bob", TERMS, request=key, dedup_window_ms=WINDOW_MS)
    yield c.Admit(f"{job_id}+", "bob", TERMS, request=key)
    yield c.Enqueue(job_id)
    yield c.RequestCancel(job_id)
    yield c.ExpireQueued(job_id)
    yield c.Find(job_id)
    yield c.ReadRequest(job_id)
    yield c.ReadOutput(job_id)
    yield c.ReadOutput(job_id, limit=1)
    yield c.Suspects(limit=1)


def tour(make_store: MakeStore) -> Coverage:
    """Ask every command in every situation: at once, at its edge and one millisecond past it, and
    each time twice; what was met on the way.

    Raises `NonconformanceError` where the store differs from the pure one.
    """
    coverage: Coverage = Counter()
    for name in situations("job", StoreMs(0), 1):
        pair = Lockstep(make_store, coverage)
        try:
            _visit(pair, name)
            pair.check_reads()
        finally:
            pair.close()
    return coverage


def _visit(pair: Lockstep, name: str) -> None:
    """Every probe finds a job of its own in this situation; one that has an edge, three. How a job
    gets there is checked step by step for the first."""
    for number in count():
        for late in (None, 0, 1):
            job_id = f"{name}/{number}/{late}"
            claim_no = 2 * len(pair.job_ids) + 1  # grows from life to life
            life = situations(job_id, pair.clock.now, claim_no)[name]
            _live(pair, life, pair.retell if number else pair.ask)
            job = pair.pure.world.jobs.get(job_id)
            asked = probes(job_id, job, pair.clock.now, claim_no + 1)
            command = next(islice(asked, number, None), None)
            if command is None:
                return
            edge = max(edges(command, pair.pure.world), default=None)
            if late is not None and edge is not None:
                pair.clock.now = StoreMs(edge + late)
            _live(pair, (command, 1, command), pair.ask)
            if edge is None:
                break


def _live(pair: Lockstep, life: Life, ask: Callable[[c.Command[Any]], object]) -> None:
    for step in life:
        if isinstance(step, int):
            pair.clock.now = StoreMs(pair.clock.now + step)
        else:
            ask(step)
