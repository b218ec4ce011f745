"""Replays a trace of the specification on a store, and compares every row after every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.errors import MisuseError
from unswept.core.job import Terms
from unswept.core.lease import RequeueRule, Status
from unswept.core.units import Ms, StoreMs
from unswept.spec.agreement.itf import Event
from unswept.spec.agreement.rules import Row, Write, row


@frozen
class Disagreement:
    """A step after which the store's rows are not the specification's."""

    event: Event
    job_id: str
    expected: Row
    found: Row | None

    def __str__(self) -> str:
        """The step, and the fields that differ."""
        found = self.found or {}
        fields = (n for n in self.expected if self.expected[n] != found.get(n))
        told = ", ".join(f"{n} is {found.get(n)}, not {self.expected[n]}" for n in fields)
        event = self.event
        return (
            f"step {event.number}, {event.name} by {event.by} at {event.at}: {self.job_id}: {told}"
        )


class Clock:
    """A store clock that stands where the replay puts it."""

    def __init__(self) -> None:
        """A clock at 0."""
        self.now = StoreMs(0)

    def __call__(self) -> StoreMs:
        """The time."""
        return self.now


def replay(trace: Iterable[Event], store: c.Store, clock: Clock) -> Disagreement | None:
    """Carry out each command of the trace on an empty store whose clock is `clock`; the first
    disagreement, if any."""
    claims: dict[str, int] = {}
    for event in trace:
        clock.now = StoreMs(event.at)
        for command in _commands(event, claims):
            store.execute(command)
        for job_id, expected in event.rows.items():
            reply = store.execute(c.Find(job_id))
            found = row(reply.job.lease) if isinstance(reply, r.Found) else None
            if found != expected:
                return Disagreement(event, job_id, expected, found)
    return None


def _commands(event: Event, claims: dict[str, int]) -> Iterator[c.Command[Any]]:
    if event.by not in claims:
        claims[event.by] = 0
        yield c.Register(event.by)
    if event.name == "heartbeat":
        yield _heartbeat(event.writes)
    elif event.name == "sweep":
        yield _sweep(event)
    else:
        ((job_id, write),) = event.writes.items()
        if write[0] == "Claim":
            claims[event.by] += 1
            yield _claim(job_id, write, claims[event.by], event)
        else:
            yield _single(job_id, write, event.by)


def _terms(fields: Mapping[str, Any]) -> Terms:
    ttl = Ms(fields["ttl"])
    return Terms(ttl, ttl, ttl, Ms(fields["confirm"]))


def _heartbeat(writes: Mapping[str, Write]) -> c.Heartbeat:
    """One beat for all its holds, which all stamp the same terms."""
    stampings = {job_id: fields for job_id, (_, fields) in writes.items()}
    holds = tuple(c.Hold(job_id, fields["epoch"]) for job_id, fields in stampings.items())
    first = next(iter(stampings.values()))
    return c.Heartbeat(first["owner"], _terms(first), holds)


def _sweep(event: Event) -> c.Sweep:
    targets = tuple(
        c.Target(job_id, seen["epoch"], seen["beats"], StoreMs(event.at))
        for job_id, (_, seen) in event.writes.items()
    )
    return c.Sweep(event.by, targets)


def _claim(job_id: str, write: Write, number: int, event: Event) -> c.Claim:
    """A claim names no job: the partition does, in which nothing else waits."""
    fields = write[1]
    return c.Claim(fields["owner"], number, _terms(fields), partition=_partition(job_id))


def _partition(job_id: str) -> str:
    """An admitted job is of no partition, so the one job that may be admitted and wait is of none
    at all."""
    return "" if job_id == "j1" else job_id


def _rule(fields: Mapping[str, Any]) -> RequeueRule:
    return RequeueRule.ALLOWED if fields["requeueable"] else RequeueRule.NEVER


def _single(job_id: str, write: Write, by: str) -> c.Command[Any]:
    tag, told = write
    match tag:
        case "Admit":
            return c.Admit(job_id, told["owner"], _terms(told), requeue=_rule(told))
        case "Enqueue":
            return c.Enqueue(job_id, requeue=_rule(told), partition=_partition(job_id))
        case "Start":
            return c.Start(job_id, told["owner"], told["epoch"], _terms(told))
        case "Complete":
            return c.Complete(job_id, told["owner"], told["epoch"], _status(told["outcome"]))
        case "Release":
            return c.Release(job_id, told["owner"], told["epoch"])
        case "Cancel":
            return c.RequestCancel(job_id)
        case "Requeue":
            return c.Requeue(job_id, told["epoch"], told["force"])
        case "Settle":
            return c.Settle(job_id, told["epoch"], _status(told["outcome"]))
        case "Withdraw":
            return c.Withdraw(job_id, told["owner"])
        case "Delay":
            return c.Delay(job_id, told["epoch"], told["beats"], by)
        case _:
            raise MisuseError(f"a trace can be replayed without {tag}")


def _status(value: tuple[str, Any]) -> Status:
    return Status(value[0].lower())
