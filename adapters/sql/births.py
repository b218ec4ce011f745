"""The scripts of instances, and of the two ways in: admit, enqueue, their withdrawal, and claim."""

from __future__ import annotations

from typing import Any, Final

from unswept.adapters.sql.common import (
    bear,
    carry_out,
    locked_job,
    read_job,
    refused,
    repeated,
    why,
)
from unswept.adapters.sql.outsiders import asked_to_end
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.rows import (
    NO_LABELS,
    Before,
    event_params,
    instance_of,
    job_of,
    labels_text,
    request_of,
    requeue_of,
    standing_of,
    terms_params,
    transport_of,
)
from unswept.adapters.sql.statements import CLAIM, WITHDRAW
from unswept.adapters.sql.steps import (
    Each,
    Script,
    Statement,
    Tell,
    Timed,
    read_clock,
)
from unswept.core import commands as c
from unswept.core import job as jobs
from unswept.core import replies as r
from unswept.core.lease import Kind, Status
from unswept.core.refusal import Refusal
from unswept.core.units import StoreMs
from unswept.core.values import Request
from unswept.core.world import claim_room, may_join

# Instances --------------------------------------------------------------------------------------


def register(q: Queries, cmd: c.Register) -> Script[r.Registered]:
    """Makes an instance known, keeping its greatest claim number."""
    now = yield from read_clock()
    rows = yield Statement(
        q.register,
        {
            "id": cmd.instance,
            "role": cmd.role,
            "host": cmd.host,
            "pid": cmd.pid,
            "claim_no": cmd.claim_no,
            "max_held": cmd.max_held,
            "now": now,
        },
    )
    return r.Registered(now, rows[0][0])


def deregister(q: Queries, cmd: c.Deregister) -> Script[r.Deregistered]:
    """Takes the instance for gone; jobs and leases stay."""
    rows = yield Timed(q.lock_instance, {"id": cmd.instance})
    now = yield from read_clock()
    if rows:
        for statement in (q.drop_instance, q.part_from_instance):
            yield Tell(statement, [{"id": cmd.instance, "now": now}])
    return r.Deregistered(now)


def list_instances(q: Queries, cmd: c.ListInstances) -> Script[r.Instances]:
    """All registered instances."""
    rows = yield Timed(q.list_instances, {})
    now = yield from read_clock()
    return r.Instances(now, tuple(instance_of(row) for row in rows))


# Two ways in ------------------------------------------------------------------------------------


def admit(q: Queries, cmd: c.Admit) -> Script[r.Accepted | r.Joined | r.Refused]:
    """Locks the dedup key, then looks for its own id, and only then uses the key. (L6, L15)"""
    known: r.Accepted | r.Joined | r.Refused
    key = _dedup_key(cmd.request)
    newest = None
    if key is not None:
        rows = yield Statement(q.lock_key, {**key, "id": cmd.job_id})
        newest = rows[0][0] if rows else None
    if newest is not None and not cmd.fresh:
        rows = yield Statement(q.read_id, {"id": cmd.job_id})
        if rows:
            known = yield from _born_before(q, cmd.job_id, cmd.owner)
            return known
        twin = yield from _twin(q, newest, cmd)
        if twin is not None:
            return twin
    now = yield from bear(q, cmd.job_id, cmd.owner)
    if now is None:
        if key is not None and q.free_key is not None:
            yield Tell(q.free_key, [key])
        known = yield from _born_before(q, cmd.job_id, cmd.owner)
        return known
    if key is not None:
        yield Tell(q.put_key, [{**key, "id": cmd.job_id, "now": now}])
    params = {
        "id": cmd.job_id,
        "owner": cmd.owner,
        **_rules(cmd),
        "now": now,
        **terms_params(cmd.terms),
    }
    return (yield from _put(q, q.admit, Kind.ADMIT, params, cmd.request, now))


def enqueue(q: Queries, cmd: c.Enqueue) -> Script[c.Outcome]:
    """A job that nobody owns until a claim. (L6)"""
    now = yield from bear(q, cmd.job_id, None)
    if now is None:
        known: c.Outcome = yield from _born_before(q, cmd.job_id, None)
        return known
    label_set = NO_LABELS
    if cmd.labels:
        label_set = yield from _interned(q, labels_text(cmd.labels))
        now = yield from read_clock()  # behind the wait for whoever was interning the same
    params = {
        "id": cmd.job_id,
        **_rules(cmd),
        "partition": cmd.partition,
        "label_set": label_set,
        "priority": cmd.priority,
        "queue_deadline": cmd.queue_deadline,
        "not_before": cmd.not_before,
        "now": now,
    }
    return (yield from _put(q, q.enqueue, Kind.ENQUEUE, params, cmd.request, now))


def withdraw(q: Queries, cmd: c.Withdraw) -> Script[r.Accepted | r.Withdrawn | r.Refused]:
    """Takes an admit or enqueue back; where it has not come yet, its id is spent. (L6)"""
    yield from bear(q, cmd.job_id, None)
    before, now = yield from locked_job(q, cmd.job_id)
    if isinstance(before, Refusal):
        return r.Withdrawn(now, cmd.job_id)
    if before.status == Status.QUEUED and before.owner == cmd.owner:
        done = yield from carry_out(q, WITHDRAW, before, now, cmd.owner, {"owner": cmd.owner})
        if done is not None:
            return done
        job = yield from read_job(q, before.id)
        return refused(why(jobs.withdraw(job, cmd.owner, now), WITHDRAW, job.id), job, now)
    return (yield from asked_to_end(q, before, now, cmd.owner))


def claim(q: Queries, cmd: c.Claim) -> Script[r.Claimed | r.Refused]:
    """Takes waiting jobs; under a number that was used before, those of them still held."""
    rows = yield Timed(q.lock_instance, {"id": cmd.owner})
    now = yield from read_clock()
    if not rows:
        return r.Refused(now, Refusal.NOT_REGISTERED, None)
    last, max_held = rows[0]
    if cmd.claim_no <= last:
        rows = yield Statement(q.claimed_before, {"owner": cmd.owner, "claim_no": cmd.claim_no})
        return r.Claimed(now, tuple(_grant(row) for row in rows), repeated=True)
    mine = {"owner": cmd.owner, "claim_no": cmd.claim_no, "now": now}
    yield Tell(q.number_claim, [{**mine, "id": cmd.owner}])
    room = cmd.limit
    if max_held is not None:
        rows = yield Statement(q.count_claimed, {"owner": cmd.owner})
        room = claim_room(cmd.limit, max_held, rows[0][0])
    if room == 0:
        return r.Refused(now, Refusal.BUDGET, None)
    waiting = yield from _candidates(q, cmd, room, now)
    mine |= terms_params(cmd.terms)
    rows = yield Each(q.update[CLAIM.name], [{"id": job_id, **mine} for job_id in waiting])
    events = [event_params(Kind.CLAIM, waiting[row[0]], row, now, cmd.owner) for row in rows]
    yield Tell(q.put_event, events)
    rows = yield Statement(q.claimed_now, q.dialect.bind_ids(row[0] for row in rows))
    return r.Claimed(now, tuple(_grant(row) for row in rows), repeated=False)


# The queue ----------------------------------------------------------------------------------------

SPARE: Final = 16
"""Rows that a claim looks at beyond its limit, in case others have locked the first."""


def _candidates(q: Queries, cmd: c.Claim, room: int, now: StoreMs) -> Script[dict[str, Before]]:
    """The first jobs that this claim may have, with their rows locked, and no others: what it does
    not take is not kept from anybody."""
    here: dict[str, Any] = {"partition": cmd.partition, "now": now}
    sets = [NO_LABELS]
    if cmd.labels:
        offered = {"partition": cmd.partition, "offered": labels_text(cmd.labels)}
        rows = yield Statement(q.matching_sets, offered)
        sets = [row[0] for row in rows]
    if len(sets) == 1:  # its queue has the order of the claim
        rows = yield Statement(q.candidates, {**here, "label_set": sets[0], "rows": room})
        return {row[0]: Before(*row) for row in rows}
    depth = room + SPARE
    while sets:
        heads = yield Each(
            q.heads, [{**here, "label_set": number, "rows": depth} for number in sets]
        )
        first = sorted(heads)[:depth]  # by priority, age and id
        ids = q.dialect.bind_ids(row[-1] for row in first)
        rows = yield Statement(q.lock_to_claim, {**ids, "now": now, "rows": room})
        if len(rows) == room or len(first) < depth:
            return {row[0]: Before(*row) for row in rows}
        depth *= 8
    return {}


def _interned(q: Queries, labels: str) -> Script[int]:
    """The number of a set of labels, which whoever needs it first gives it."""
    said = {"labels": labels}
    rows = yield Timed(q.find_label_set, said)
    if not rows:
        rows = yield Timed(q.put_label_set, said)
    if not rows:  # another enqueue has put it in between
        rows = yield Timed(q.find_label_set, said)
    number: int = rows[0][0]
    return number


# What these share -------------------------------------------------------------------------------


def _rules(cmd: c.Admit | c.Enqueue) -> dict[str, Any]:
    """What is set once, at a job's birth."""
    return {
        "requeue": cmd.requeue.value,
        "transport": cmd.transport.value,
        "on_orphan": cmd.on_orphan.value,
        "max_attempts": cmd.max_attempts,
    }


def _dedup_key(request: Request) -> dict[str, Any] | None:
    if request.principal is None or request.request_key is None:
        return None
    return {"principal": request.principal, "request_key": request.request_key}


def _twin(q: Queries, newest: str, cmd: c.Admit) -> Script[r.Joined | None]:
    """The newest job under the key, if it may be handed out. (L15)"""
    # Before the row: a renewal between the two must not make a live twin look suspect.
    now = yield from read_clock()
    rows = yield Statement(q.read_job, {"id": newest})
    if not rows:
        return None
    twin = job_of(rows[0])
    if not may_join(twin, cmd.dedup_window_ms, now):
        return None
    used = {"id": cmd.job_id, "owner": cmd.owner, "now": now, "joined_to": twin.id}
    rows = yield Statement(q.bear_id, used)
    if not rows:  # a withdrawal of this very admit came in between
        return None
    return r.Joined(now, r.Standing.of(twin))


def _born_before(q: Queries, job_id: str, first_owner: str | None) -> Script[Any]:
    """An id is used once, ever: its first owner repeats, anybody else is refused. (L6)"""
    ids = yield Statement(q.read_id, {"id": job_id})
    owner, joined_to = ids[0]
    rows = yield Statement(q.read_job, {"id": joined_to or job_id})
    now = yield from read_clock()
    if not rows:
        return r.Refused(now, Refusal.SPENT, None)
    job = job_of(rows[0])
    if joined_to is not None:
        own = owner == first_owner
        return r.Joined(now, r.Standing.of(job)) if own else r.Refused(now, Refusal.ID_USED, None)
    if owner != first_owner:
        return refused(Refusal.ID_USED, job, now)
    return repeated(job, now)


def _put(
    q: Queries, insert: str, kind: Kind, params: dict[str, Any], request: Request, now: StoreMs
) -> Script[r.Accepted]:
    """The new row, its request and its event."""
    rows = yield Statement(insert, params)
    born = rows[0]
    riders = {
        "job_id": params["id"],
        "payload": request.payload,
        "principal": request.principal,
        "request_key": request.request_key,
    }
    yield Tell(q.put_request, [riders])
    yield Tell(q.put_event, [event_params(kind, None, born, now, None)])
    return r.Accepted(now, standing_of(born), kind)


def _grant(row: tuple[Any, ...]) -> r.Grant:
    transport, requeue, attempts, *request = row[7:]
    facts = (transport_of(transport), requeue_of(requeue), attempts)
    return r.Grant(standing_of(row), *facts, request_of(tuple(request)))
