"""One seed: hosts, gateways, runners and who deals with them, a store and faults, run through
virtual time and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, frozen
from attrs import fields as attrs_fields

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.event_log import event_key
from unswept.core.heart import Phase
from unswept.core.job import Job, Transport
from unswept.core.lease import Kind, RequeueRule, Status, is_suspect
from unswept.core.policy import Breaker, LeasePolicy
from unswept.core.units import MonoMs, Ms
from unswept.core.values import Cause, Event
from unswept.simulations.actor import Actor, Host, pause
from unswept.simulations.authority import Authority
from unswept.simulations.broken_leases import blanket_sweep
from unswept.simulations.consumer import Consumer
from unswept.simulations.coverage import Coverage
from unswept.simulations.designs import DESIGNS, Design
from unswept.simulations.examiner import Examiner
from unswept.simulations.faults import FAULTS
from unswept.simulations.gateway import Gateway, load_of
from unswept.simulations.instance import Instance
from unswept.simulations.marks import Mark
from unswept.simulations.network import Envelope, Network
from unswept.simulations.producer import Producer
from unswept.simulations.runner import FITS, Fit, Runner
from unswept.simulations.server import Server
from unswept.simulations.stranger import Stranger
from unswept.simulations.swarm import Drawn, draw, drift_ppm_of, weather_of
from unswept.simulations.timeline import HostClock, StoreClock, Timeline
from unswept.simulations.transcript import Transcript, told
from unswept.simulations.truth import Span, Truth
from unswept.simulations.violation import Violation
from unswept.simulations.yardstick import (
    HOUSEKEEPING,
    MEMORY_MS,
    Watched,
    close_ms,
    window_ms,
)
from unswept.spec.laws import BY_ID
from unswept.spec.observations import Delivery, Neglect, Send, Sight, Step, SweepTruth, Work

if TYPE_CHECKING:
    from unswept.simulations.trace import Trace

HOUR: Final = 3_600_000
_LOOK_EVERY: Final = 10_000
"""How often law L13 looks for neglected jobs."""
_FORGET_EVERY: Final = 300_000
"""How often a run forgets what is over."""
CONSUMERS: Final = 2
"""Processes that compete for the one consumer's lease."""
_L10_ON: Final = frozenset(BY_ID["L10"].on)
_SPARED: Final = BY_ID["L12"].broken or (lambda truth: None)

DEFAULT: Final = LeasePolicy(
    retention_ms=Ms(1_800_000), dedup_window_ms=Ms(600_000), breaker=Breaker.SHADOW
)
"""The defaults, but for a retention and a dedup window that end within a run, and a breaker that
only says that it trips."""
QUICK: Final = LeasePolicy(
    heartbeat_interval_ms=Ms(5_000),
    lease_ttl_ms=Ms(30_000),
    http_grace_ms=Ms(120_000),
    retention_ms=Ms(1_200_000),
    dedup_window_ms=Ms(300_000),
    event_retention_ms=Ms(600_000),
    instance_gc_ms=Ms(600_000),
)
"""Three times as quick, and it forgets the events of jobs that are gone, and instances soon:
instances with different policies share a store."""
FLEET: Final = evolve(DEFAULT, first_beat_ttl_ms=Ms(45_000), sweep_interval_ms=Ms(60_000))
"""A runner's: a claim that is not beaten soon is over soon; and it seldom looks for suspects."""
PATIENT: Final = evolve(FLEET, breaker=Breaker.DEFER, event_retention_ms=Ms(600_000))
"""Another runner's: its breaker lets sweeps wait, and it forgets the events of jobs that are
gone."""


class SlowHeartPolicy(LeasePolicy):
    """The policy of a sweeper that takes one beat per heartbeat for proof."""

    @property
    def gap_ms(self) -> Ms:
        """What it believes to be a closely beating heart."""
        return self.steady_ms


@frozen
class Settings:
    """What a run is made of; the same settings give the same run, byte for byte."""

    seed: int
    hours: float = 1.0
    instances: int = 3
    """Gateways at a time."""
    faults: tuple[str, ...] = tuple(FAULTS)
    design: str = "unswept"
    runners: int = 2
    """Runners at a time; with them come a producer, an authority, consumers and a stranger."""
    jobs: int | None = None
    """How many jobs all gateways together run at a time, on average; by default what comes of one
    person every 90 seconds at each."""
    job_minutes: float | None = None
    """How long a gateway's job takes on average; by default 4.4 minutes."""
    counting: bool = False
    """A broken law ends no run: what broken designs do to live jobs is counted to the end."""


@define
class Found:
    """A violation, with what a person needs to see and replay it."""

    law: str
    offence: str
    at_ms: int
    last_lines: tuple[str, ...]
    verb: str = ""
    """Where two stores differ: on which command."""


@define
class Outcome:
    """What one run came to."""

    seed: int
    violation: Found | None
    digest: str
    commands: int
    simulated_ms: int
    faults: Counter[str]
    events: Counter[str]
    sometimes: Counter[str]
    checked: Counter[str]
    live_jobs_swept: int
    """Swept while their owner lived and held them, its own faults included."""
    heartbeated_jobs_swept: int
    """Those of them that law L12 spares: nothing kept their owner, and it alone, from renewing."""
    coverage: Counter[str]
    """How often each transition happened while each fault was felt."""


class Run:
    """A simulated world. `outcome()` runs it to its end, or to its first violation."""

    def __init__(
        self,
        settings: Settings,
        under_test: c.Store | None,
        clock: StoreClock,
        trace: Trace | None = None,
    ) -> None:
        """A world in which nothing has happened yet; `clock` is also the store under test's."""
        self.settings = settings
        self.design: Design = DESIGNS[settings.design]
        if settings.counting:
            self.design = evolve(self.design, excused=frozenset(BY_ID))
        if not self.design.on_real_store:
            under_test = None
        self.rng = Random(settings.seed)
        self.timeline: Timeline = clock.timeline
        self.truth = Truth()
        self.transcript = Transcript()
        self.faults: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.marks: Counter[str] = Counter()
        self.live_jobs_swept = 0
        self.heartbeated_jobs_swept = 0
        mix = draw([FAULTS[name] for name in settings.faults], self.rng)
        lying = [drawn.fault.name for drawn in mix if not drawn.fault.per_hour]
        self.coverage = Coverage(self.timeline, lying)
        self.network = Network(self.timeline, self.rng, weather_of(mix), self._heard)
        timeout = DEFAULT.operation_timeout_ms
        self.server = Server(
            self.timeline, clock, self.network, under_test, self.design, timeout, self._observe
        )
        self.network.store = self.server
        self.trace = trace
        if trace is not None:
            trace.begins(settings, self.design.excused, clock())
            self.server.recorder = self._record
            self.truth.told = self._trace_span
        self.hosts = self._make_hosts(drift_ppm_of(mix))
        self.instances: list[Instance] = []
        self._watched: dict[str, Watched] = {}
        self._stamped: dict[str, int] = {}
        self._booted = 0
        self._load = load_of(settings.instances, settings.jobs, settings.job_minutes)
        self.clients: list[Actor] = []
        """Whoever deals with the fleet: producer, authority, consumers and a stranger."""
        for index in range(settings.instances):
            self.timeline.after(index * 100, self._boot_gateway, self._host(index))
        runners = 0 if self.design.of_gateways else settings.runners
        for index in range(runners):
            fit = FITS[index % len(FITS)]
            self.timeline.after(50 + index * 100, self._boot_runner, self._host(index), fit)
        if runners:
            self._boot_clients()
        for drawn in mix:
            self._schedule(drawn)
        self.timeline.after(_LOOK_EVERY, self._look_for_neglect)
        self.timeline.after(_FORGET_EVERY, self._forget)

    def outcome(self) -> Outcome:
        """Run to the end of the simulated time, or to the first violation."""
        end = int(self.settings.hours * HOUR)
        found = None
        try:
            self.timeline.run(end)
            self.server.compare_all()
            Examiner(self.server.examined, self.server.pure.world, self.server.clock).examine()
        except Violation as violation:
            last = tuple(self.transcript.last)  # what is found is said beside them, and once
            self.transcript.line(self.timeline.now, f"VIOLATION {violation}")
            if self.trace is not None:
                self.trace.violation(self.timeline.now, violation.law, violation.offence)
            found = Found(
                violation.law,
                violation.offence,
                self.timeline.now,
                last,
                violation.verb,
            )
        outcome = Outcome(
            self.settings.seed,
            found,
            self.transcript.digest,
            self.server.commands,
            self.timeline.now,
            self.faults + Counter(self.network.seen),
            self.events,
            self.marks,
            self.server.all_checked(),
            self.live_jobs_swept,
            self.heartbeated_jobs_swept,
            self.coverage.cells(),
        )
        if self.trace is not None:
            self.trace.ends(
                self.timeline.now,
                digest=outcome.digest,
                commands=outcome.commands,
                checked=outcome.checked,
                faults=outcome.faults,
                sometimes=outcome.sometimes,
                live_jobs_swept=outcome.live_jobs_swept,
            )
        return outcome

    # What instances and faults use ----------------------------------------------------------

    def note(self, text: str) -> None:
        """A line of the trace."""
        self.transcript.line(self.timeline.now, text)

    def sometimes(self, mark: Mark) -> None:
        """Something that must happen now and then has happened."""
        self.marks[mark.value] += 1

    def living(self) -> list[Instance]:
        """The instances whose process is there."""
        return [instance for instance in self.instances if instance.alive]

    def consumers(self) -> list[Consumer]:
        """The consumers whose process is there."""
        return [each for each in self.clients if isinstance(each, Consumer) and each.alive]

    def boot_like(self, actor: Actor) -> None:
        """Another of the same kind starts on the same host, under a new name."""
        if actor.host.asleep:
            self.timeline.after(1_000, self.boot_like, actor)
        elif isinstance(actor, Consumer):
            self._boot_consumer(actor.host, actor.handler)
        elif isinstance(actor, Runner):
            self._boot_runner(actor.host, actor.fit)
        else:
            self._boot_gateway(actor.host)

    def boot_guest(self, host: Host, policy: LeasePolicy) -> Instance:
        """A gateway with a policy of its own starts."""
        guest = Gateway(self._name("i"), host, policy, self, self._load)
        self._boot(guest)
        return guest

    def _boot_gateway(self, host: Host) -> None:
        policy = self._policy((DEFAULT, DEFAULT, QUICK))
        self._boot(Gateway(self._name("i"), host, policy, self, self._load))

    def _boot_runner(self, host: Host, fit: Fit) -> None:
        policy = self._policy((FLEET, PATIENT))
        self._boot(Runner(self._name("r"), host, policy, fit, self))

    def _policy(self, policies: tuple[LeasePolicy, ...]) -> LeasePolicy:
        policy = self.rng.choice(policies)
        if self.design.hurries:
            return policy
        return SlowHeartPolicy(**{name: getattr(policy, name) for name in _FIELDS})

    def _name(self, kind: str) -> str:
        self._booted += 1
        return f"{kind}{self._booted}"

    def _boot(self, instance: Instance) -> None:
        self.instances = [*self.living(), instance]
        self._watched[instance.name] = Watched(instance.policy)
        beat = instance.policy.heartbeat_interval_ms
        self.note(f"{instance.name} boots on {instance.host.name}, beats every {beat} ms")
        self._trace_boot(instance, instance.policy)
        instance.boot()

    def kill(self, instance: Instance) -> None:
        """A process is killed; its children may live on for a while."""
        self.note(f"{instance.name} is killed")
        instance.kill()
        children = [t.process for t in instance.tasks.values() if t.process is not None]
        for process in children:
            if self.rng.random() < 0.5:
                instance.host.alive.pop(process.pid, None)
            else:
                wait = self.rng.randint(1, 600_000)
                self.timeline.after(wait, self._child_ends, instance.host, process.pid)

    def _child_ends(self, host: Host, pid: int) -> None:
        host.alive.pop(pid, None)

    def blanket_sweep(self, instance: Instance) -> None:
        """What the blanket start-up sweep does to the store, past every guard."""
        world, now = self.server.pure.world, self.server.clock()
        if self.server.down or self.server.table_locks or not world.owned:
            return
        sweep, decision = blanket_sweep(world, instance.name, now)
        envelope = Envelope(instance.name, sweep, instance.host.clock(), lambda _: None)
        self.server.carry_out(sweep, decision, envelope)

    # What the laws judge of instances -------------------------------------------------------

    def sending(self, instance: Instance, command: c.Command[Any], repeat: bool) -> None:
        """An instance is about to send a command: laws L10 and L12a."""
        bound = type(command) in _L10_ON
        if not bound and not isinstance(command, HOUSEKEEPING):
            return  # neither law says anything of it
        now, watched = instance.host.clock(), self._watched[instance.name]
        phase = watched.phase(instance.heart.phase, now)
        sights = watched.sights_of(command, now)
        if isinstance(command, c.Sweep):
            sights = tuple(
                sight for target in command.targets if (sight := self._sight(instance, target))
            )
        exempt = repeat and isinstance(command, c.Claim)
        send = Send(instance.name, command, phase, exempt, sights)
        if self.trace is not None:
            self.trace.send(self.timeline.now, send)
        if bound:
            self._judge("L10", send)
        if sights:
            self._judge("L12a", send)

    def working(self, instance: Instance, job_id: str, epoch: int, requeue: RequeueRule) -> None:
        """An instance begins a step of work: law L11."""
        heard = self._watched[instance.name].stamps.get((job_id, epoch))
        margin = instance.policy.local_margin_ms
        now = instance.host.clock()
        if self.trace is not None:
            self.trace.work(
                self.timeline.now, instance, (job_id, epoch), requeue, now, heard, margin
            )
        sent_at, ttl_ms = (None, Ms(0)) if heard is None else heard
        job = self.server.pure.world.jobs.get(job_id)
        reached = epoch if job is None else job.lease.epoch
        work = Work(instance.name, job_id, requeue, now, sent_at, ttl_ms, margin, epoch, reached)
        self._judge("L11", work)
        self._judge("F3", work)

    def handled(self, consumer: str, event: Event) -> None:
        """A consumer has handled an event: law F4."""
        number = self.server.pure.world.events.number(event_key(event))
        if number is None:  # gone by now, for every consumer had come so far (F5)
            self.sometimes(Mark.DELIVERED_AGAIN)
            return
        done = self.truth.events_done(consumer, number)
        if number <= done:
            self.sometimes(Mark.DELIVERED_AGAIN)
        delivery = Delivery(consumer, number, done, handled=True)
        if self.trace is not None:
            self.trace.delivery(self.timeline.now, delivery)
        self._judge("F4", delivery)

    def beat_accepted(self, instance: Instance, sent_at: MonoMs, now: MonoMs) -> None:
        """An instance took the answer to its beat."""
        self._watched[instance.name].beat(sent_at, now)

    def beat_failed(self, instance: Instance) -> None:
        """An instance got no answer to its beat in time."""
        self.truth.beat_failed(instance.name, self.timeline.now)

    def looked(self, instance: Instance, overdue: r.Overdue, sent_at: MonoMs, now: MonoMs) -> None:
        """An instance got the answer to its look for what is overdue."""
        self._watched[instance.name].looked(overdue, sent_at, now)

    def _sight(self, instance: Instance, target: c.Target) -> Sight | None:
        """The truth about one target's window; None where the store will refuse it anyway."""
        job = self.server.pure.world.jobs.get(target.job_id)
        if job is None or (job.lease.epoch, job.lease.beats) != (target.epoch, target.beats):
            return None
        clock, now = instance.host.clock, instance.host.clock()
        stood = now - clock.at(self._stamped[job.id])
        return self._watched[instance.name].sight_of_sweep(job.id, job.lease, stood, now)

    def _heard(self, envelope: Envelope, reply: Any) -> None:
        """An answer reached its sender: what it says of stamps is what the sender may rely on."""
        watched = self._watched.get(envelope.sender)
        terms = getattr(envelope.command, "terms", None)
        if watched is None or terms is None:
            return
        stamps = watched.stamps
        if isinstance(reply, r.Beaten):
            for answer in reply.answers:
                job = self.server.pure.world.jobs.get(answer.job_id)
                key = (answer.job_id, answer.epoch)
                if answer.answer is r.Answer.RENEWED and job is not None:
                    heard = (envelope.sent_at, terms.ttl_ms(job.transport))
                    stamps[key] = max(heard, stamps.get(key, heard))
        elif isinstance(reply, r.Claimed):
            for grant in reply.grants:
                key = (grant.standing.job_id, grant.standing.epoch)
                stamps.setdefault(key, (envelope.sent_at, terms.first_beat_ttl_ms))
        elif isinstance(reply, r.Accepted):
            key = (reply.standing.job_id, reply.standing.epoch)
            ttl = terms.ttl_ms(getattr(envelope.command, "transport", self._transport(key[0])))
            before = stamps.get(key)
            if before is None or (not reply.repeated and envelope.sent_at > before[0]):
                stamps[key] = (envelope.sent_at, ttl)

    def _transport(self, job_id: str) -> Transport:
        job = self.server.pure.world.jobs.get(job_id)
        return Transport.PROCESS if job is None else job.transport

    # What the laws judge of the store -------------------------------------------------------

    def _observe(self, step: Step, envelope: Envelope) -> None:
        """A command was executed: remember what is true, and judge every sweep."""
        self.note(told(envelope.sender, step.command, step.reply))
        for before, after in step.rows:
            if after is None or before is None or after.lease.beats != before.lease.beats:
                if after is not None:
                    if before is not None and is_suspect(before.lease, step.now):
                        self._mark_revival(step)
                    self._stamped[after.id] = self.timeline.now
                elif before is not None:
                    self._stamped.pop(before.id, None)
        if isinstance(step.reply, r.Beaten):
            renewed = sum(after is not None for _, after in step.rows)
            self.coverage.count(Kind.RENEW, renewed)
        elif step.output:
            self.coverage.count(Kind.OUTPUT)
        for event in step.events:
            self.events[event.kind.value] += 1
            self.coverage.count(event.kind)
            if event.kind is Kind.ORPHAN:
                self._swept(step, event, envelope)
            elif isinstance(step.command, c.Sweep):
                self._mark_policy(event)
        if isinstance(step.command, c.Acknowledge) and isinstance(step.reply, r.Acknowledged):
            self._acknowledged(step.command)

    def _mark_revival(self, step: Step) -> None:
        if isinstance(step.command, c.Heartbeat):
            self.sometimes(Mark.LEASE_REVIVED)

    def _mark_policy(self, event: Event) -> None:
        if event.kind is Kind.REQUEUE:
            self.sometimes(Mark.REQUEUED_BY_POLICY)
        else:
            spent = event.cause is Cause.ATTEMPTS_SPENT
            self.sometimes(Mark.ATTEMPTS_SPENT if spent else Mark.FAILED_BY_POLICY)

    def _acknowledged(self, command: c.Acknowledge) -> None:
        """A consumer has acknowledged events: law F4."""
        if command.error is not None:
            self.truth.events_done(command.consumer, command.upto)
        done = self.truth.done_events.get(command.consumer, 0)
        self._judge("F4", Delivery(command.consumer, command.upto, done, handled=False))

    def _swept(self, step: Step, event: Event, envelope: Envelope) -> None:
        # What its policy makes of it in the same step has no owner any more.
        job = next(
            after
            for _, after in step.rows
            if after is not None
            and after.id == event.job_id
            and after.lease.status is Status.ORPHANED
        )
        owner = next((i for i in self.living() if i.name == event.owner), None)
        task = None if owner is None else owner.tasks.get(job.id)
        held = None if task is None or task.orphaned else task.held
        holds = held is not None and held.hold.epoch == event.epoch
        if owner is None or not holds:
            self.sometimes(Mark.DEAD_SWEPT)
            return
        self.live_jobs_swept += 1
        sweeper = next((i for i in self.living() if i.name == envelope.sender), owner)
        truth = self._truth_of(job, owner, sweeper)
        if _SPARED(truth) is not None:
            self.heartbeated_jobs_swept += 1
        self._judge("L12", truth)
        self.sometimes(Mark.OWN_FAULT_SWEPT)

    def _truth_of(self, job: Job, owner: Instance, sweeper: Instance) -> SweepTruth:
        now, truth = self.timeline.now, self.truth
        last = self._stamped[job.id]
        gap = min(owner.policy.gap_ms, DEFAULT.gap_ms, sweeper.policy.retry_ms)
        spans = truth.shared_since(last, now, job.id)
        long_ones = [span for span in spans if span.length(now) > gap]
        steps = [time for time in truth.steps if last < time <= now]
        ends = [now if span.end is None else span.end for span in long_ones] + steps
        shared_end = max(ends, default=None)
        beat = owner.policy.heartbeat_interval_ms
        since = last if shared_end is None else max(last, shared_end - beat)
        flaps = [s for s in spans if s not in long_ones and s.begin >= since]
        lost = truth.beats_failed(owner.name, since if shared_end is None else shared_end)
        window = window_ms(sweeper.policy, job.lease)
        allowed = (window - beat - 1) // (close_ms(owner.policy) + close_ms(sweeper.policy))
        own = sum(span.overlap(since, now) for span in truth.own.get(owner.name, ()))
        if shared_end is None:
            own += lost * beat
        stamp = self.server.history.stamps[job.id]
        return SweepTruth(
            job.id,
            sweeper.name,
            owner.name,
            owner_lives=True,
            ttl_ms=stamp.ttl_ms,
            heartbeat_ms=beat,
            silent_ms=Ms(now - last),
            shared_fault=shared_end is not None,
            own_fault_ms=Ms(own),
            flaps=len(flaps) + (lost if shared_end is not None else 0),
            flaps_allowed=allowed,
        )

    def _look_for_neglect(self) -> None:
        """Law L13: no dead owner's job hangs for ever."""
        now, world = self.timeline.now, self.server.pure.world
        for instance in self.living():
            watched = self._watched[instance.name]
            phase = watched.phase(instance.heart.phase, instance.host.clock())
            if phase is not Phase.STEADY:
                instance.watch_since = now
        for job_id in (*self.server.locked_rows, *self.server.poisoned):
            self.truth.freed[job_id] = now
        stepped_back = max(self.truth.back_steps, default=0)
        for job_id in world.owned:
            silent = now - self._stamped[job_id]
            if silent > QUICK.lease_ttl_ms:
                self._judge_neglect(world.jobs[job_id], silent, stepped_back)
        self.timeline.after(_LOOK_EVERY, self._look_for_neglect)

    def _forget(self) -> None:
        """A run may take a simulated year: nothing is kept of what is over but the store's rows."""
        now, jobs = self.timeline.now, self.server.pure.world.jobs
        self.truth.forget(now - MEMORY_MS)
        self.network.forget_completions(jobs)
        self.truth.freed = {job_id: at for job_id, at in self.truth.freed.items() if job_id in jobs}
        self._watched = {each.name: self._watched[each.name] for each in self.living()}
        for instance in self.living():
            if not instance.frozen:  # one that stands still may yet hear of what it was granted
                watched = self._watched[instance.name]
                kept = {key: at for key, at in watched.stamps.items() if key[0] in instance.tasks}
                watched.stamps = kept
        self.timeline.after(_FORGET_EVERY, self._forget)

    def _judge_neglect(self, job: Job, silent: int, stepped_back: int) -> None:
        now = self.timeline.now
        watchers = [i for i in self.living() if not i.frozen and job.id not in i.tasks]
        if not watchers:
            return
        watcher = min(watchers, key=lambda i: i.watch_since)
        since = max(watcher.watch_since, stepped_back, self.truth.freed.get(job.id, 0))
        policy, lease = watcher.policy, job.lease
        delayed = lease.delayed_at is not None and lease.ttl_ms is not None
        ttl = lease.ttl_ms if delayed else self.server.history.stamps[job.id].ttl_ms
        assert ttl is not None
        bound = ttl + policy.sweep_interval_ms + window_ms(policy, job.lease)
        bound += 2 * policy.operation_timeout_ms
        bound += policy.breaker_max_ms if policy.breaker is Breaker.DEFER else 0
        bound += bound // 1_000  # the watcher's clock may be slow
        self._judge("L13", Neglect(job.id, Ms(silent), Ms(bound), watcher.name, Ms(now - since)))

    def _judge(self, law_id: str, observation: Any) -> None:
        if law_id in self.design.excused:
            return
        law = BY_ID[law_id]
        self.server.checked[law_id] += 1
        offence = law.broken(observation) if law.broken else None
        if offence is not None:
            raise Violation(law_id, offence)

    # What is written down -------------------------------------------------------------------

    def _record(self, step: Step, envelope: Envelope) -> None:
        assert self.trace is not None
        self.trace.command(self.timeline.now, envelope.sender, step)

    def _trace_boot(self, actor: Actor, policy: LeasePolicy | None = None) -> None:
        if self.trace is not None:
            self.trace.boots(self.timeline.now, actor, policy)

    def _trace_span(self, span: Span) -> None:
        assert self.trace is not None
        event = "begins" if span.end is None else "ends"
        self.trace.fault(self.timeline.now, span.name, event, span.job_id or span.instance)

    # The world's own doings -----------------------------------------------------------------

    def _make_hosts(self, drift_ppm: int) -> list[Host]:
        count = 1 if self.rng.random() < 0.25 else self.settings.instances
        return [
            Host(
                f"h{index}",
                HostClock(
                    self.timeline,
                    self.rng.randint(0, HOUR),
                    self.rng.randint(-drift_ppm, drift_ppm),
                ),
                f"boot-{index}",
            )
            for index in range(count)
        ]

    def _schedule(self, drawn: Drawn) -> None:
        if drawn.fault.per_hour:
            mean = HOUR / (drawn.fault.per_hour * drawn.intensity)
            self.timeline.after(pause(self.rng, mean), self._strike, drawn)
        elif drawn.fault.weather is None:  # what the weather does, the network counts
            self.faults[drawn.fault.name] += 1

    def _strike(self, drawn: Drawn) -> None:
        name = drawn.fault.name
        self.faults[name] += 1
        self.note(f"fault: {name}")
        if self.trace is not None:
            self.trace.fault(self.timeline.now, name, "strikes")
        self.coverage.lasts(name)
        drawn.fault.strike(self)
        self._schedule(drawn)

    def _host(self, index: int) -> Host:
        return self.hosts[index % len(self.hosts)]

    def _boot_clients(self) -> None:
        host = self.hosts[0]
        authority = Authority("authority", host, self, self._active)
        producer = Producer("producer", host, self)
        rows, terms = self.server.pure.world, DEFAULT.terms()
        stranger = Stranger("stranger", self._host(1), self, rows, terms)
        for client in (authority, producer, stranger):
            self._trace_boot(client)
            client.begin()
        self.clients = [authority, producer, stranger]
        for index in range(CONSUMERS):
            self._boot_consumer(self._host(index), authority.hear)

    def _active(self) -> list[Job]:
        world = self.server.pure.world
        return [world.jobs[job_id] for job_id in sorted((*world.owned, *world.waiting))]

    def _boot_consumer(self, host: Host, handler: Callable[[Event], None]) -> None:
        consumer = Consumer(self._name("c"), host, self, "authority", handler)
        self.clients = [*(client for client in self.clients if client.alive), consumer]
        self.note(f"{consumer.name} boots on {host.name}, a consumer")
        self._trace_boot(consumer)
        consumer.begin()


_FIELDS: Final = tuple(field.name for field in attrs_fields(LeasePolicy))
