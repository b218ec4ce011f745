"""Commands, each made once: making one checks it, which takes longer than carrying it out."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from unswept.core import commands as c
from unswept.core.job import Terms
from unswept.core.lease import Status
from unswept.core.units import StoreMs
from unswept.core.values import Chunk, Request, Stream
from unswept.spec.explorer.table.scopes import (
    DEDUP_WINDOW,
    LATE_OUTPUT,
    QUEUE_TIME,
    RETENTION,
    Profile,
)
from unswept.spec.explorer.table.state import PRINCIPAL, REQUEST_KEY

Ask = c.Command[Any]

_TWIN: Final = Request(principal=PRINCIPAL, request_key=REQUEST_KEY)
_ALONE: Final = Request()


@cache
def admit(job_id: str, owner: str, terms: Terms, profile: Profile, fresh: bool) -> Ask:
    """`Admit`, made once."""
    return c.Admit(
        job_id,
        owner,
        terms,
        profile.transport,
        profile.requeue,
        _TWIN if profile.keyed else _ALONE,
        DEDUP_WINDOW,
        fresh,
        profile.on_orphan,
        profile.max_attempts,
    )


@cache
def enqueue(job_id: str, profile: Profile, now: StoreMs) -> Ask:
    """`Enqueue`, made once."""
    due = StoreMs(now + QUEUE_TIME)
    return c.Enqueue(
        job_id,
        profile.transport,
        profile.requeue,
        queue_deadline=due if profile.queue_deadline else None,
        not_before=due if profile.not_before else None,
        on_orphan=profile.on_orphan,
        max_attempts=profile.max_attempts,
    )


@cache
def claim(owner: str, number: int, terms: Terms, limit: int) -> Ask:
    """`Claim`, made once."""
    return c.Claim(owner, number, terms, limit=limit)


@cache
def start(job_id: str, owner: str, epoch: int, terms: Terms) -> Ask:
    """`Start`, made once."""
    return c.Start(job_id, owner, epoch, terms)


@cache
def beat(name: str, holds: tuple[tuple[str, int], ...], terms: Terms) -> Ask:
    """`Heartbeat`, made once."""
    return c.Heartbeat(name, terms, tuple(c.Hold(*hold) for hold in holds))


@cache
def complete(job_id: str, owner: str, epoch: int, outcome: Status) -> Ask:
    """`Complete`, made once."""
    return c.Complete(job_id, owner, epoch, outcome)


@cache
def release(job_id: str, owner: str, epoch: int) -> Ask:
    """`Release`, made once."""
    return c.Release(job_id, owner, epoch)


@cache
def output(job_id: str, owner: str, epoch: int) -> Ask:
    """`Output`, made once."""
    return c.Output(job_id, owner, epoch, Chunk(0, Stream.STDOUT, b""), LATE_OUTPUT)


@cache
def cancel(job_id: str) -> Ask:
    """`RequestCancel`, made once."""
    return c.RequestCancel(job_id)


@cache
def withdraw(job_id: str, owner: str) -> Ask:
    """`Withdraw`, made once."""
    return c.Withdraw(job_id, owner)


@cache
def requeue(job_id: str, epoch: int, force: bool) -> Ask:
    """`Requeue`, made once."""
    return c.Requeue(job_id, epoch, force)


@cache
def settle(job_id: str, epoch: int, outcome: Status) -> Ask:
    """`Settle`, made once."""
    return c.Settle(job_id, epoch, outcome)


@cache
def delay(job_id: str, epoch: int, beats: int, actor: str) -> Ask:
    """`Delay`, made once."""
    return c.Delay(job_id, epoch, beats, actor)


@cache
def sweep(sweeper: str, targets: tuple[tuple[str, int, int], ...], now: StoreMs) -> Ask:
    """`Sweep`, made once."""
    return c.Sweep(sweeper, tuple(c.Target(*target, now) for target in targets))


@cache
def expire(job_id: str) -> Ask:
    """`ExpireQueued`, made once."""
    return c.ExpireQueued(job_id)


@cache
def evict(targets: tuple[tuple[str, int], ...]) -> Ask:
    """`Evict`, made once."""
    return c.Evict(tuple(c.Hold(*target) for target in targets), RETENTION)


@cache
def register(name: str, claim_no: int, max_held: int | None) -> Ask:
    """`Register`, made once."""
    return c.Register(name, claim_no=claim_no, max_held=max_held)


@cache
def deregister(name: str) -> Ask:
    """`Deregister`, made once."""
    return c.Deregister(name)
