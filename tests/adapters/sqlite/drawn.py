"""Draws commands that often meet: few ids, stamps near those that stand, many repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Job, OnOrphan, Process, Terms, Transport
from unswept.core.lease import Kind, RequeueRule, Status
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Chunk, Request, Result, Stream
from unswept.core.world import World

OWNERS = ("a", "b", "c")
TERMS = (
    Terms(Ms(20), Ms(35), Ms(12), Ms(9)),
    Terms(Ms(30), Ms(30), Ms(40), Ms(15)),
)
LABELS = ((), (), ("x",), ("y",), ("y", "x"))
RETENTION = Ms(60)
EVENT_RETENTION = Ms(20)


class Drawer:
    """One seeded stream of commands against what stands in `world`."""

    def __init__(self, seed: int, world: World) -> None:
        self.random = Random(seed)
        self.world = world
        self.newest = 1
        self.claim_no = 0
        self.last: c.Command[Any] | None = None

    def command(self) -> c.Command[Any]:
        """The next command; one in eight is the last once more, as after an unknown outcome."""
        if self.last is not None and self.random.random() < 0.12:
            return self.last
        kind = self.random.choices(_KINDS, weights=_WEIGHTS)[0]
        self.last = _DRAW[kind](self)
        return self.last

    def moved(self, now: int, command: c.Command[Any]) -> int:
        """The clock a little later, at times standing, far ahead, back, or around a time that
        decides the command."""
        dice = self.random.random()
        if dice < 0.3:
            return now
        if dice < 0.75:
            return now + self.random.randint(1, 4)
        if dice < 0.9:
            edge = self.edge(now, self.meant(command))
            return max(0, edge + self.random.randint(-1, 1))
        if dice < 0.95:
            return now + self.random.randint(20, 80)
        return max(0, now - self.random.randint(1, 40))

    def meant(self, command: c.Command[Any]) -> str:
        """A job that the command may be about."""
        waiting = [i for i in self.world.waiting if self.world.jobs[i].not_before is not None]
        if isinstance(command, c.Claim) and waiting:
            return self.random.choice(waiting)
        return getattr(command, "job_id", None) or self.job_id()

    def edge(self, now: int, job_id: str) -> int:
        """Some time that a rule compares with."""
        job = self.world.jobs.get(job_id)
        if job is None:
            return now
        edges = (
            job.lease.deadline,
            job.queue_deadline,
            job.not_before,
            job.admitted_at + 25,
            None if job.finished_at is None else job.finished_at + 5,
            None if job.finished_at is None else job.finished_at + RETENTION,
        )
        return self.random.choice([edge for edge in edges if edge is not None])

    # What commands are made of ------------------------------------------------------------------

    def job_id(self, fresh: float = 0.0) -> str:
        if self.random.random() < fresh:
            self.newest += 1
        return f"j{self.random.randint(max(1, self.newest - 4), self.newest):03}"

    def born_id(self) -> str:
        if self.random.random() < 0.5:
            self.newest += 1
            return f"j{self.newest:03}"
        return self.job_id()

    def job_that(self, fits: Callable[[Job], bool]) -> str:
        """Often a job that the command is about; else any."""
        fitting = [job.id for job in self.world.jobs.values() if fits(job)]
        if fitting and self.random.random() < 0.4:
            return self.random.choice(fitting)
        return self.job_id()

    def orphan(self) -> str:
        return self.job_that(lambda job: job.lease.status is Status.ORPHANED)

    def owner(self, job_id: str | None = None) -> str:
        job = None if job_id is None else self.world.jobs.get(job_id)
        if job is not None and job.lease.owner is not None and self.random.random() < 0.9:
            return job.lease.owner
        return self.random.choice(OWNERS)

    def epoch(self, job_id: str) -> int:
        job = self.world.jobs.get(job_id)
        stands = 1 if job is None else job.lease.epoch
        return max(0, stands + self.random.choice((*[0] * 9, -1, -1, -2, 1)))

    def beats(self, job_id: str) -> int:
        job = self.world.jobs.get(job_id)
        stands = 1 if job is None else job.lease.beats
        return max(0, stands + self.random.choice((*[0] * 7, -1)))

    def held(self) -> tuple[str, str, int]:
        job_id = self.job_id()
        return job_id, self.owner(job_id), self.epoch(job_id)

    def some(self) -> list[str]:
        ids = {self.job_id() for _ in range(self.random.randint(0, 4))}
        shuffled = sorted(ids)
        self.random.shuffle(shuffled)
        return shuffled

    def maybe_time(self) -> StoreMs | None:
        if self.random.random() < 0.6:
            return None
        at = max((event.at for event in self.world.events.values()), default=StoreMs(1_000))
        return StoreMs(max(0, at + self.random.randint(-5, 15)))

    def terms(self) -> Terms:
        return self.random.choice(TERMS)

    def request(self) -> Request:
        if self.random.random() < 0.4:
            return Request(self.random.randbytes(3))
        key = self.random.choice((None, "k1", "k2"))
        return Request(b"x", self.random.choice(("p", "q")), key)

    def process(self) -> Process | None:
        return self.random.choice((None, Process(self.random.randint(1, 3), 7, "boot")))

    def transport(self) -> Transport:
        return self.random.choice(tuple(Transport))

    def consumer(self) -> str:
        return self.random.choice(("k1", "k1", "k2"))

    def policy(self, rule: RequeueRule) -> tuple[OnOrphan, int | None]:
        if rule is RequeueRule.ALLOWED and self.random.random() < 0.12:
            return OnOrphan.REQUEUE, self.random.randint(1, 3)
        return self.random.choice((*[OnOrphan.MARK] * 8, OnOrphan.FAIL, OnOrphan.HOLD)), None

    def rule(self) -> RequeueRule:
        return self.random.choice((RequeueRule.NEVER, *[RequeueRule.ALLOWED] * 2))


def _admit(d: Drawer) -> c.Admit:
    window = Ms(d.random.choice((0, 25, 25)))
    fresh = d.random.random() < 0.1
    rule = d.rule()
    facts = (d.born_id(), d.owner(), d.terms(), d.transport(), rule, d.request(), window, fresh)
    return c.Admit(*facts, *d.policy(rule))


def _enqueue(d: Drawer) -> c.Enqueue:
    rule = d.rule()
    return c.Enqueue(
        d.born_id(),
        d.transport(),
        rule,
        d.request(),
        d.random.choice(("", "", "", "p1")),
        d.random.randint(-1, 1),
        d.maybe_time(),
        d.maybe_time(),
        d.random.choice(LABELS),
        *d.policy(rule),
    )


def _withdraw(d: Drawer) -> c.Withdraw:
    job_id = d.job_id(fresh=0.1)
    return c.Withdraw(job_id, d.owner(job_id))


def _claim(d: Drawer) -> c.Claim:
    d.claim_no += d.random.choice((0, 1, 1, 1))
    return c.Claim(
        d.random.choice((*OWNERS, "stranger")),
        max(1, d.claim_no),
        d.terms(),
        d.random.choice(("", "", "", "p1")),
        d.random.randint(1, 3),
        d.random.choice((*LABELS, ("x", "y", "z"), ("z", "y", "x"))),
    )


def _heartbeat(d: Drawer) -> c.Heartbeat:
    ids = d.some()
    owner = d.owner(ids[0]) if ids else d.owner()
    holds = tuple(c.Hold(job_id, d.epoch(job_id)) for job_id in ids)
    return c.Heartbeat(owner, d.terms(), holds, watched=tuple(d.some()))


def _output(d: Drawer) -> c.Output:
    job_id = d.job_that(lambda job: job.lease.owner is not None)
    chunk = Chunk(d.random.randint(0, 2), d.random.choice(tuple(Stream)), d.random.randbytes(2))
    return c.Output(job_id, d.owner(job_id), d.epoch(job_id), chunk, Ms(5))


def _complete(d: Drawer) -> c.Complete:
    outcome = d.random.choice((Status.COMPLETED, Status.COMPLETED, Status.FAILED, Status.CANCELED))
    result = d.random.choice((Result(), Result(0, 200, "no \0 \ud800", b"body"), Result(-9)))
    return c.Complete(*d.held(), outcome, result)


def _requeue(d: Drawer) -> c.Requeue:
    job_id = d.orphan()
    force = d.random.random() < 0.3
    return c.Requeue(job_id, d.epoch(job_id), force, d.maybe_time(), d.random.choice((None, "op")))


def _settle(d: Drawer) -> c.Settle:
    job_id = d.orphan()
    return c.Settle(job_id, d.epoch(job_id), d.random.choice((Status.CANCELED, Status.FAILED)))


def _delay(d: Drawer) -> c.Delay:
    job_id = d.job_that(lambda job: job.lease.deadline is not None)
    return c.Delay(job_id, d.epoch(job_id), d.beats(job_id), d.owner())


def _sweep(d: Drawer) -> c.Sweep:
    targets = (c.Target(i, d.epoch(i), d.beats(i), StoreMs(990)) for i in d.some())
    return c.Sweep(d.owner(), tuple(targets))


def _suspects(d: Drawer) -> c.Suspects:
    limit = d.random.choice((1, 2, 100))
    return c.Suspects(d.random.choice((None, None, d.job_id())), limit, counted=limit == 2)


def _evict(d: Drawer) -> c.Evict:
    old = [job_id for job_id, job in d.world.jobs.items() if job.finished_at is not None]
    some = sorted({*d.some(), *d.random.sample(old, min(2, len(old)))})
    return c.Evict(tuple(c.Hold(i, d.epoch(i)) for i in some), RETENTION)


def _forget_instances(d: Drawer) -> c.ForgetInstances:
    seen = [(i.id, i.seen_at) for i in d.world.instances.values() if d.random.random() < 0.7]
    return c.ForgetInstances((*seen, ("nobody", StoreMs(1))), Ms(50))


def _forget_keys(d: Drawer) -> c.ForgetKeys:
    seen = [(*key, row.job_id) for key, row in d.world.keys.items() if d.random.random() < 0.7]
    return c.ForgetKeys((*seen, ("nobody", "k", "j")), Ms(25))


def _look_overdue(d: Drawer) -> c.LookOverdue:
    events = d.random.choice((None, EVENT_RETENTION))
    return c.LookOverdue(RETENTION, Ms(50), Ms(25), d.random.choice((1, 100)), events)


def _forget_events(d: Drawer) -> c.ForgetEvents:
    told = {job_id for job_id, _, _ in d.world.events}
    evicted = sorted(told - {*d.world.jobs})
    some = {*d.some(), *d.random.sample(evicted, min(9, len(evicted)))}
    return c.ForgetEvents((*sorted(some), "nobody"), EVENT_RETENTION)


def _read_output(d: Drawer) -> c.ReadOutput:
    job_id = d.job_that(lambda job: len(d.world.output.get(job.id, ())) > 1)
    epoch = d.random.choice((None, d.epoch(job_id)))
    return c.ReadOutput(job_id, epoch, d.random.randint(0, 1), d.random.choice((1, 100)))


def _start(d: Drawer) -> c.Start:
    return c.Start(*d.held(), d.terms(), d.process())


def _release(d: Drawer) -> c.Release:
    job_id = d.job_that(lambda job: job.lease.deadline is not None)
    return c.Release(job_id, d.owner(job_id), d.epoch(job_id), d.maybe_time())


def _register(d: Drawer) -> c.Register:
    return c.Register(
        d.owner(),
        "runner",
        "host",
        d.random.choice((None, 7)),
        d.random.randint(0, 3),
        d.random.choice((None, None, None, 1, 2)),
    )


def _read_events(d: Drawer) -> c.ReadEvents:
    after = d.random.randint(0, d.world.events.newest + 2)
    return c.ReadEvents(after, d.random.choice((1, 3, 100)))


def _acknowledge(d: Drawer) -> c.Acknowledge:
    name, newest = d.consumer(), d.world.events.newest
    row = d.world.consumers.get(name)
    token, position = (1, 0) if row is None else (row.token, row.position)
    upto = d.random.choice((position, position + 1, position + 2, newest + 1))
    error = d.random.choice((None, "no \0"))
    token = max(1, token - (d.random.random() < 0.2))
    return c.Acknowledge(name, token, upto, d.random.random() < 0.3, error)


_DRAW: dict[type[c.Command[Any]], Callable[[Drawer], c.Command[Any]]] = {
    c.Register: _register,
    c.Deregister: lambda d: c.Deregister(d.owner()),
    c.ListInstances: lambda d: c.ListInstances(),
    c.Admit: _admit,
    c.Enqueue: _enqueue,
    c.Withdraw: _withdraw,
    c.Claim: _claim,
    c.Start: _start,
    c.Heartbeat: _heartbeat,
    c.Output: _output,
    c.Complete: _complete,
    c.Release: _release,
    c.RequestCancel: lambda d: c.RequestCancel(d.job_id()),
    c.Requeue: _requeue,
    c.Settle: _settle,
    c.ExpireQueued: lambda d: c.ExpireQueued(d.job_that(lambda j: j.queue_deadline is not None)),
    c.Suspects: _suspects,
    c.Delay: _delay,
    c.Sweep: _sweep,
    c.LookOverdue: _look_overdue,
    c.Evict: _evict,
    c.ForgetInstances: _forget_instances,
    c.ForgetKeys: _forget_keys,
    c.ForgetEvents: _forget_events,
    c.Find: lambda d: c.Find(d.job_id()),
    c.ReadRequest: lambda d: c.ReadRequest(d.job_id()),
    c.ReadOutput: _read_output,
    c.LeaseEvents: lambda d: c.LeaseEvents(d.consumer(), d.owner(), Ms(d.random.randint(1, 30))),
    c.Acknowledge: _acknowledge,
    c.ForgetConsumer: lambda d: c.ForgetConsumer(d.consumer()),
    c.ListConsumers: lambda d: c.ListConsumers(),
    c.ReadDeadLetters: lambda d: c.ReadDeadLetters("k1", 0, d.random.choice((1, 9))),
    c.Count: lambda d: c.Count(d.random.choice((None, ("p1", "none"), ("",)))),
    c.ReadEvents: _read_events,
}
_KINDS = tuple(_DRAW)
_READERS = (
    c.ReadDeadLetters,
    c.ListConsumers,
    c.Count,
    c.ListInstances,
    c.Find,
    c.ReadRequest,
    c.ReadEvents,
    c.Suspects,
    c.LookOverdue,
)
_WEIGHT = {
    **dict.fromkeys(_READERS, 0.5),
    c.LookOverdue: 1.0,
    **dict.fromkeys((c.Deregister, c.ForgetInstances, c.ForgetKeys, c.ForgetConsumer), 0.3),
    c.ForgetEvents: 0.6,
    c.RequestCancel: 1.0,
    c.Withdraw: 0.5,
    **dict.fromkeys((c.Requeue, c.Settle, c.Complete, c.Release, c.Output), 1.5),
    **dict.fromkeys((c.Claim, c.Start, c.Heartbeat, c.Register), 2.0),
    **dict.fromkeys((c.Admit, c.Enqueue, c.Sweep), 3.0),
}
_WEIGHTS = tuple(_WEIGHT.get(kind, 1.0) for kind in _KINDS)


Seen = Counter[tuple[str, str]]


def outcomes(command: c.Command[Any], reply: Any) -> Iterator[tuple[str, str]]:
    """What happened, as (command, outcome) pairs: a batch has one for each of its members."""
    name = type(command).__name__
    for outcome in _said(reply):
        yield name, outcome


def _said(reply: Any) -> Iterator[str]:
    if isinstance(reply, r.Accepted):
        yield _accepted(reply)
    elif isinstance(reply, r.Refused):
        yield reply.reason.value
    elif isinstance(reply, r.Beaten):
        yield from (answer.answer.value for answer in reply.answers)
        yield "registered" if reply.registered else "unregistered"
    elif isinstance(reply, (r.Swept, r.Evicted)):
        for answer in reply.answers:
            done = "repeated" if answer.repeated else "done"
            yield done if answer.refusal is None else answer.refusal.value
    elif isinstance(reply, r.Claimed):
        yield ("again " if reply.repeated else "took ") + str(min(len(reply.grants), 2))
    elif isinstance(reply, r.SuspectsPage):
        yield ("more" if reply.more else "some") if reply.suspects else "none"
    elif isinstance(reply, r.Overdue):
        for kind in ("evictable", "expirable", "silent", "keys", "events"):
            if getattr(reply, kind):
                yield kind
    elif isinstance(reply, r.Forgotten):
        yield "some" if reply.count else "none"
    elif isinstance(reply, r.OutputPage):
        yield ("more" if reply.more else "some") if reply.chunks else "none"
    elif isinstance(reply, r.EventsLeased):
        yield "renewed" if reply.renewed else "granted"
    elif isinstance(reply, r.Acknowledged):
        yield "repeated" if reply.repeated else "moved"
    elif isinstance(reply, r.DeadLettersPage):
        yield ("more" if reply.more else "some") if reply.letters else "none"
    elif isinstance(reply, r.Found):
        yield "with result" if reply.result is not None else "without result"
    else:
        yield type(reply).__name__.lower()


def _accepted(reply: r.Accepted) -> str:
    if reply.transition is None:
        return "repeated"
    if reply.transition in (Kind.RELEASE, Kind.REQUEUE):
        return f"{reply.transition.value}, {reply.standing.status.value}"
    return reply.transition.value
