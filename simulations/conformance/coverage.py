"""What must have happened in a run of the kit, and how it is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.units import StoreMs
from unswept.core.world import World

Coverage = Counter[tuple[str, str]]
"""How often each (command, outcome) was met."""


def _pairs(table: Mapping[type, str]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (kind.__name__, word) for kind, words in table.items() for word in words.split()
    )


_UNKNOWN = " absent spent"
_FENCED = " stale_epoch not_owner already_terminal" + _UNKNOWN
_EDGES = " at_the_edge past_the_edge"

TOUR: Final = _pairs(
    {
        c.Register: "registered",
        c.Admit: "admit joined repeated id_used spent" + _EDGES,
        c.Enqueue: "enqueue repeated id_used spent",
        c.Withdraw: "withdraw cancel request_cancel repeated withdrawn already_terminal",
        c.Claim: "granted nothing again not_registered budget" + _EDGES,
        c.Start: "start repeated cancel_pending orphaned" + _FENCED,
        c.Heartbeat: "renewed orphaned terminal fenced absent known unknown",
        c.Output: "output repeated too_late stale_epoch not_owner" + _UNKNOWN + _EDGES,
        c.Complete: "complete heal repeated" + _FENCED,
        c.Release: "release repeated not_requeueable orphaned" + _FENCED,
        c.RequestCancel: "request_cancel cancel repeated withdrawn already_terminal",
        c.Requeue: "requeue repeated not_requeueable not_orphaned already_terminal stale_epoch"
        + _UNKNOWN,
        c.Settle: "settle repeated not_orphaned already_terminal stale_epoch" + _UNKNOWN,
        c.ExpireQueued: "expire repeated not_due owned already_running orphaned already_terminal"
        + _UNKNOWN
        + _EDGES,
        c.Suspects: "none some more",
        c.Delay: "delay delayed_before not_expired beats_moved orphaned" + _FENCED + _EDGES,
        c.Sweep: "done repeated not_expired beats_moved orphaned" + _FENCED + _EDGES,
        c.Evict: "done repeated not_due not_terminal stale_epoch absent" + _EDGES,
        c.Find: "found" + _UNKNOWN,
        c.ReadRequest: "read" + _UNKNOWN,
        c.ReadOutput: "none some more" + _UNKNOWN,
    }
)
"""Every (command, outcome) that the tour must have met. The edge of a command is the last
millisecond that counts as in time; `past_the_edge` is the one after it."""

SEARCH: Final = _pairs(
    {
        c.Register: "registered",
        c.Deregister: "deregistered",
        c.ListInstances: "some",
        c.Admit: "admit joined repeated id_used",
        c.Enqueue: "enqueue",
        c.Withdraw: "withdraw cancel withdrawn",
        c.Claim: "granted nothing again not_registered budget",
        c.Start: "start cancel_pending not_owner",
        c.Heartbeat: "renewed terminal fenced absent known unknown",
        c.Output: "output repeated",
        c.Complete: "complete heal",
        c.Release: "release",
        c.RequestCancel: "request_cancel cancel withdrawn",
        c.Requeue: "requeue",
        c.Settle: "settle",
        c.ExpireQueued: "expire",
        c.Suspects: "none some",
        c.Delay: "delay not_expired",
        c.Sweep: "done not_expired beats_moved" + _EDGES,
        c.LookOverdue: "nothing evictable expirable silent keys",
        c.Evict: "done",
        c.ForgetInstances: "none some",
        c.ForgetKeys: "none some",
        c.ForgetEvents: "none",
        c.ForgetConsumer: "none",
        c.Find: "found absent",
        c.ReadRequest: "read absent",
        c.ReadOutput: "none some",
        c.LeaseEvents: "granted renewed leased",
        c.Acknowledge: "moved repeated stale_token ahead absent",
        c.ListConsumers: "none some",
        c.ReadDeadLetters: "none some",
        c.Count: "none some",
        c.ReadEvents: "none some",
    }
)
"""Every (command, outcome) that the search must have met: each command, each transition."""


def outcomes(reply: Any) -> Iterator[str]:
    """What a reply says has happened, in words."""
    match reply:
        case r.Accepted():
            yield "repeated" if reply.transition is None else reply.transition.value
        case r.Refused():
            yield reply.reason.value
        case r.Claimed(repeated=True):
            yield "again" if reply.grants else "nothing"
        case r.Claimed():
            yield "granted" if reply.grants else "nothing"
        case r.Beaten():
            yield "known" if reply.registered else "unknown"
            yield from (answer.answer.value for answer in reply.answers)
        case r.Swept() | r.Evicted():
            for answer in reply.answers:
                done = "repeated" if answer.repeated else "done"
                yield done if answer.refusal is None else answer.refusal.value
        case r.Overdue():
            lists = ("evictable", "expirable", "silent", "keys")
            named = [name for name in lists if getattr(reply, name)]
            yield from named or ["nothing"]
        case r.Forgotten():
            yield "some" if reply.count else "none"
        case r.SuspectsPage():
            yield _amount(reply.suspects, reply.more)
        case r.OutputPage():
            yield _amount(reply.chunks, reply.more)
        case r.EventsPage():
            yield _amount(reply.events, more=False)
        case r.EventsLeased():
            yield "renewed" if reply.renewed else "granted"
        case r.Acknowledged():
            yield "repeated" if reply.repeated else "moved"
        case r.Consumers():
            yield _amount(reply.consumers, more=False)
        case r.DeadLettersPage():
            yield _amount(reply.letters, reply.more)
        case r.Counts():
            yield "none" if reply.total == r.PartitionCount("") else "some"
        case r.Instances():
            yield _amount(reply.instances, more=False)
        case r.RequestRead():
            yield "read"
        case _:
            yield type(reply).__name__.lower()


def _amount(rows: Sequence[object], more: bool) -> str:
    return "more" if more else "some" if rows else "none"


def edges(command: object, world: World) -> Iterator[StoreMs]:
    """The last store times at which `command` would find each row that it names still in time."""
    for job in (world.jobs[job_id] for job_id in named_jobs(command) if job_id in world.jobs):
        match command:
            case c.Sweep() | c.Delay() if job.lease.deadline is not None:
                yield job.lease.deadline
            case c.ExpireQueued() if job.queue_deadline is not None:
                yield job.queue_deadline
            case c.Output() if job.finished_at is not None:
                yield StoreMs(job.finished_at + command.late_output_ms)
            case c.Evict() if job.finished_at is not None:
                yield StoreMs(job.finished_at + command.retention_ms)
    match command:
        case c.Admit():
            key = (command.request.principal, command.request.request_key)
            twins = (row for name, row in world.keys.items() if name == key)
            yield from (StoreMs(row.admitted_at + command.dedup_window_ms) for row in twins)
        case c.Claim():
            waiting = (world.jobs[job_id] for job_id in world.waiting)
            here = (job for job in waiting if job.partition == command.partition)
            offered = frozenset(command.labels)
            dues = (job.not_before for job in here if offered.issuperset(job.labels))
            yield from (StoreMs(due - 1) for due in dues if due is not None)


def named_jobs(command: object) -> list[str]:
    """The ids of the jobs that a command names."""
    match command:
        case c.Sweep() | c.Evict():
            return [row.job_id for row in command.targets]
        case c.Heartbeat():
            return [row.job_id for row in command.holds]
    job_id = getattr(command, "job_id", None)
    return [] if job_id is None else [job_id]
