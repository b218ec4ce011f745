"""A simulated instance of any kind: the real heart, sweeper and housekeeper, and jobs at work.

It behaves as a runtime must: what it sends is repeated until it is answered, work that may be
requeued stops at its local deadline, and a hold ends only by the store's word. How it comes by its
jobs is its kind's own business: see `gateway` and `runner`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, Protocol

from attrs import define

from unswept.core import commands as c
from unswept.core import heart as hearts
from unswept.core import housekeeper as keepers
from unswept.core import replies as r
from unswept.core import sweeper as sweepers
from unswept.core.heart import Act, Phase
from unswept.core.holds import Held, local_deadline, may_step, stamped
from unswept.core.job import Process, Transport
from unswept.core.lease import Kind, RequeueRule, Status
from unswept.core.policy import LeasePolicy
from unswept.core.refusal import Refusal
from unswept.core.units import MonoMs, StoreMs
from unswept.core.values import Chunk, Result, Stream
from unswept.simulations.actor import Actor, Call, Host, Surroundings
from unswept.simulations.broken_instances import (
    at_first_sight,
    last_pass,
    untroubled,
    without_living,
)
from unswept.simulations.marks import Mark
from unswept.simulations.network import Envelope


class Doing(StrEnum):
    """Where this process stands with one of its jobs."""

    ADMITTING = "admitting"
    WAITING = "waiting to begin"
    STARTING = "starting"
    WORKING = "working"
    FINISHING = "finishing"


@define(eq=False)
class Task:
    """One job as its own process knows it."""

    job_id: str
    transport: Transport
    requeue: RequeueRule
    work_ms: int
    doing: Doing = Doing.ADMITTING
    held: Held | None = None
    process: Process | None = None
    outcome: Status = Status.COMPLETED
    chunks: int = 0
    orphaned: bool = False


class World(Surroundings, Protocol):
    """What an instance can reach, and who watches it for the laws."""

    def sending(self, instance: Instance, command: c.Command[Any], repeat: bool) -> None:
        """An instance is about to send a command."""
        ...

    def beat_accepted(self, instance: Instance, sent_at: MonoMs, now: MonoMs) -> None:
        """An instance took the answer to its beat."""
        ...

    def looked(self, instance: Instance, overdue: r.Overdue, sent_at: MonoMs, now: MonoMs) -> None:
        """An instance got the answer to its look for what is overdue."""
        ...

    def beat_failed(self, instance: Instance) -> None:
        """An instance got no answer to its beat in time."""
        ...

    def working(self, instance: Instance, job_id: str, epoch: int, requeue: RequeueRule) -> None:
        """An instance begins a step of work."""
        ...

    def blanket_sweep(self, instance: Instance) -> None:
        """The blanket start-up sweep, for the design that has it."""
        ...


class Instance(Actor):
    """One run of a process on a host."""

    world: World

    def __init__(self, name: str, host: Host, policy: LeasePolicy, world: World) -> None:
        """A process that has not booted yet."""
        super().__init__(name, host, world, policy.operation_timeout_ms + policy.retry_ms)
        now = host.clock()
        self.policy = policy
        self.terms = policy.terms()
        self.heart = hearts.boot(policy, now)
        self.sweeper = sweepers.begin(policy, now)
        kept_by = policy if world.design.looks_twice else at_first_sight(policy)
        self.keeper = keepers.begin(kept_by, now)
        self.tasks: dict[str, Task] = {}
        self.heart_dead = False
        """The task that beats is gone, and all else works on."""
        self.watch_since = world.timeline.now
        """True time since which nothing that this instance's sweeping needs has failed."""
        self.store_at: StoreMs | None = None
        """The store time of the last beat's answer: all that it knows of that clock."""
        self._rerunnable: list[Task] = []
        """Work in progress that somebody else may run too, so that it heeds a local deadline."""
        self._due: MonoMs | None = None
        """When there is something to do next."""
        self._timer: MonoMs | None = None
        """The earliest timer that is set."""
        self._sweeps_unanswered = 0
        self._pid = 100
        self._pids: dict[str, int] = {}
        """Of each suspect that names one, its pid: for the design that trusts in it."""

    # What kinds of instance differ in ---------------------------------------------------------

    def _registration(self) -> c.Register:
        """How it makes itself known."""
        raise NotImplementedError

    def _give_back_what_waits(self) -> None:
        """It drains: whatever has not begun is not begun any more."""
        raise NotImplementedError

    def _never_begins(self, task: Task) -> None:
        """A job that it holds cannot be started any more."""
        raise NotImplementedError

    def _work_ends(self, task: Task, failed: bool) -> None:
        """The work has come to its end."""
        raise NotImplementedError

    def _slot_freed(self, task: Task) -> None:
        """A job's work is over, or never began."""

    def _tick_own(self, now: MonoMs) -> None:
        """Time has passed."""

    def _own_timers(self) -> Iterable[MonoMs | None]:
        """When `_tick_own` has something to do."""
        return ()

    def _asks_for_work(self) -> bool:
        """Is it still to hear of jobs that may be its own?"""
        return False

    # The process itself ---------------------------------------------------------------------

    def boot(self) -> None:
        """The process starts."""
        if self.world.design.blanket_sweep_at_boot:
            self.world.blanket_sweep(self)
        self.tick()

    def drain(self) -> None:
        """Take no new work; fail what has not begun, finish what runs, then leave."""
        self._trace("drains")
        self.heart = hearts.drain(self.heart)
        if self.tasks:
            self.world.sometimes(Mark.DRAINED)
        self._give_back_what_waits()
        self._leave_when_idle()

    def next_beat_in(self) -> int:
        """True milliseconds until the next beat is due."""
        return self.host.clock.until(self.heart.next_beat_at)

    def next_pass_in(self) -> int:
        """True milliseconds until the next pass over the suspects is due."""
        return self.host.clock.until(self.sweeper.next_pass_at)

    # Timers ---------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do all that is due, and set the next timer."""
        now = self.host.clock()
        self._stop_expired(now)
        self._tick_own(now)
        self._tick_sweeper(now)
        if not self._heart_stands():
            self._tick_heart(now)
        self._set_timer(now)

    def _heart_stands(self) -> bool:
        """Does it work on and not beat?"""
        if self.heart_dead:
            return True
        if self.world.design.beats_while_draining:
            return False
        return self.heart.phase is Phase.DRAINING

    def _tick_heart(self, now: MonoMs) -> None:
        before = self.heart
        self.heart, sends = hearts.tick(before, now)
        if self.heart.failures > before.failures:
            self._note_failed_beat(before.phase)
        for effect in sends:
            if isinstance(effect, hearts.SendBeat):
                self._beat(effect.number, now)
            else:
                self._register()
        if self.world.trace is not None:
            phase = hearts.phase_at(self.heart, now)
            self.world.trace.mind(self.world.timeline.now, self, phase, self.sweeper.suspicions)

    def _set_timer(self, now: MonoMs) -> None:
        due = None if self._heart_stands() else hearts.wake_at(self.heart)
        ripe = sweepers.wake_at(self.sweeper, self.heart, now)
        if ripe is not None and (due is None or ripe < due):
            due = ripe
        for time in self._own_timers():
            if time is not None and (due is None or time < due):
                due = time
        for task in self._rerunnable:
            if task.held is not None:
                deadline = local_deadline(task.held, self.policy.local_margin_ms)
                if due is None or deadline < due:
                    due = deadline
        if due is not None and due <= now:
            due = MonoMs(now + 1)
        self._due = due
        if due is not None and (self._timer is None or due < self._timer):
            self._arm(due)

    def _arm(self, due: MonoMs) -> None:
        """A timer that is set too early costs less than one that is set anew at every event."""
        self._timer = due
        self.later(self.host.clock.until(due), self._on_timer, due)

    def _on_timer(self, armed: MonoMs) -> None:
        if armed != self._timer:
            return
        self._timer = None
        if self._due is None or self.host.clock() >= self._due:
            self.tick()
        else:
            self._arm(self._due)

    # The heart ------------------------------------------------------------------------------

    def _register(self) -> None:
        self._send(self._registration(), lambda reply: self._registered())

    def _registered(self) -> None:
        before = self.heart.phase
        self.heart = hearts.registered(self.heart, self.host.clock())
        if before is Phase.QUIESCED and self.heart.phase is Phase.RECOVERING:
            self.world.sometimes(Mark.REGISTERED_ANEW)
        self.tick()

    def _beat(self, number: int, now: MonoMs) -> None:
        holds = tuple(
            task.held.hold
            for task in self.tasks.values()
            if task.held is not None and not task.orphaned
        )
        watched = tuple(self.sweeper.suspicions)
        beat = c.Heartbeat(self.name, self.terms, holds, watched)
        if self.world.design.beats_renew:
            self._send(beat, lambda reply: self._beaten(number, now, reply))
            return
        touch = c.Heartbeat(self.name, self.terms)
        self._send(touch, lambda reply: self._beaten(number, now, reply), blind=True)
        self._send(beat, lambda reply: self._renewed(now, reply))

    def _beaten(self, number: int, sent_at: MonoMs, reply: r.Beaten) -> None:
        now = self.host.clock()
        if not hearts.in_time(self.heart, number, now):
            self.world.sometimes(Mark.ANSWER_TOO_LATE)
            return
        phase, close = self.heart.phase, self.heart.pulse and self.heart.pulse.close_since
        busy = r.Answer.BUSY in [answer.answer for answer in reply.answers]
        self.heart = hearts.answered(self.heart, number, now, reply.registered, busy)
        self.store_at = reply.at
        self.world.beat_accepted(self, sent_at, now)
        if phase is Phase.RECOVERING and self.heart.phase is Phase.STEADY:
            self.world.sometimes(Mark.READMITTED)
        if self.sweeper.suspicions and close != (self.heart.pulse and self.heart.pulse.close_since):
            self.world.sometimes(Mark.WINDOW_RESTARTED)
        if reply.locked and self.world.design.heeds_locks:
            self.sweeper = sweepers.found_locked(self.sweeper, reply.locked)
            self.world.sometimes(Mark.LOCKED_FORGOTTEN)
        self._renewed(sent_at, reply)
        self.tick()

    def _renewed(self, sent_at: MonoMs, reply: r.Beaten) -> None:
        for answer in reply.answers:
            task = self.tasks.get(answer.job_id)
            if task is not None and task.held and task.held.hold.epoch == answer.epoch:
                self._answer_hold(task, task.held, answer, sent_at)

    def _answer_hold(self, task: Task, held: Held, answer: r.HoldAnswer, sent_at: MonoMs) -> None:
        if answer.answer is r.Answer.RENEWED:
            task.held = stamped(held, sent_at, self.terms.ttl_ms(task.transport))
        elif answer.answer is r.Answer.ORPHANED:
            task.orphaned = True
            self.world.sometimes(Mark.LEARNED_ORPHANED)
        elif answer.answer is r.Answer.BUSY:
            self.world.sometimes(Mark.HOLD_BUSY)
        else:
            self.world.sometimes(Mark.HOLD_ENDED)
            self._let_go(task)
            return
        if answer.cancel_requested_at is not None and task.doing in (Doing.WAITING, Doing.WORKING):
            self.world.sometimes(Mark.CANCEL_HEARD)
            self._finish(task, Status.CANCELED)

    def _note_failed_beat(self, before: Phase) -> None:
        self.watch_since = self.world.timeline.now
        self.world.beat_failed(self)
        if self.heart.phase is Phase.QUIESCED and before is not Phase.QUIESCED:
            self.world.sometimes(Mark.QUIESCED)

    # The sweeper and the housekeeper --------------------------------------------------------

    def _tick_sweeper(self, now: MonoMs) -> None:
        look = self.sweeper.look
        design = self.world.design
        heart = self.heart if design.heeds_own_gaps else untroubled(self.heart, now)
        self.sweeper, effects = sweepers.tick(self.sweeper, heart, now, self._own())
        if not design.sweeps_again:
            self.sweeper = last_pass(self.sweeper)
        if look is not None and self.sweeper.look is not look:
            self.watch_since = self.world.timeline.now
        self._do(effects)
        if now >= self.keeper.next_look_at:
            self.keeper, looks = keepers.tick(self.keeper, self.heart, now)
            for command in looks:
                self._send(command, lambda reply: self._overdue(now, reply))
        hurried = sweepers.wants_hurry(self.sweeper)
        if hurried is not self.heart.hurried and design.hurries:
            self.heart = hearts.hurry(self.heart, hurried, now)

    def _do(self, effects: tuple[sweepers.Effect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, sweepers.SendSuspects):
                self._look(effect)
            elif isinstance(effect, sweepers.SendSweep):
                targets = effect.targets
                if self.world.design.pid_vetoes:
                    targets = without_living(targets, self._pids, self.host.alive)
                if targets:
                    self._sweep(sweepers.SendSweep(targets))
            elif isinstance(effect, sweepers.FirstSight):
                self._first_sight(effect.suspect)
            elif isinstance(effect, sweepers.Correlated):
                self.world.sometimes(Mark.BREAKER_TRIPPED)

    def _look(self, effect: sweepers.SendSuspects) -> None:
        number = effect.number
        self._send(effect.command, lambda reply: self._suspects(number, reply))

    def _suspects(self, number: int, page: r.SuspectsPage) -> None:
        now = self.host.clock()
        before = self.sweeper.suspicions
        own = self._own()
        self.sweeper, effects = sweepers.answered(self.sweeper, number, page, own, now)
        for job_id, old in before.items():
            new = self.sweeper.suspicions.get(job_id)
            if new is None or new.beats != old.beats:
                self.world.sometimes(Mark.SUSPECT_RENEWED)
        if self.world.design.one_observation:
            self._sweep_at_first_sight(page, own)
        self._do(effects)
        self.tick()

    def _own(self) -> set[str]:
        """The jobs that this instance holds."""
        if not self.sweeper.suspicions and self.sweeper.look is None:
            return set()  # nothing that it could be asked for
        return {task.job_id for task in self.tasks.values() if task.held is not None}

    def _sweep_at_first_sight(self, page: r.SuspectsPage, own: set[str]) -> None:
        targets = tuple(
            c.Target(s.job_id, s.epoch, s.beats, page.at)
            for s in page.suspects
            if s.job_id not in own
        )
        if targets:
            self._sweep(sweepers.SendSweep(targets))

    def _sweep(self, effect: sweepers.SendSweep) -> None:
        self._sweeps_unanswered += 1
        self._send(effect.command(self.name), self._swept)
        self.later(self.policy.operation_timeout_ms, self._sweep_in_time)

    def _sweep_in_time(self) -> None:
        if self._sweeps_unanswered:
            self._sweeps_unanswered = 0
            self.watch_since = self.world.timeline.now

    def _swept(self, reply: r.Swept) -> None:
        self._sweeps_unanswered = 0
        for answer in reply.answers:
            if answer.refusal in (Refusal.BEATS_MOVED, Refusal.ALREADY_TERMINAL):
                self.world.sometimes(Mark.HEARTBEAT_WON)
            elif answer.repeated or answer.refusal is Refusal.ORPHANED:
                self.world.sometimes(Mark.SWEPT_ONCE)

    def _first_sight(self, suspect: r.Suspect) -> None:
        process = suspect.process
        if process is not None:
            self._pids[suspect.job_id] = process.pid
        if process is None or suspect.delayed or process.boot_id != self.host.boot_id:
            return
        if self.host.alive.get(process.pid) != process.start:
            return
        if hearts.may(self.heart, Act.DELAY, self.host.clock()):
            self.world.sometimes(Mark.DELAYED)
            delay = c.Delay(suspect.job_id, suspect.epoch, suspect.beats, self.name)
            self._send(delay, lambda reply: None)

    def _overdue(self, sent_at: MonoMs, overdue: r.Overdue) -> None:
        now = self.host.clock()
        self.world.looked(self, overdue, sent_at, now)
        self.keeper, commands = keepers.answered(self.keeper, overdue, self.heart, now)
        for command in commands:
            of_events = isinstance(command, c.ForgetEvents)
            self._send(command, self._events_forgotten if of_events else lambda reply: None)
            self.world.sometimes(Mark.HOUSEKEPT)

    def _events_forgotten(self, reply: r.Forgotten) -> None:
        if reply.count:
            self.world.sometimes(Mark.EVENTS_FORGOTTEN)

    # Jobs: at work --------------------------------------------------------------------------

    def _start(self, task: Task) -> None:
        if task.held is None or task.doing is not Doing.WAITING:
            return
        task.doing = Doing.STARTING
        if task.transport is Transport.PROCESS:
            self._pid = 100 + (self._pid - 99) % 40
            start = int(self.host.clock())
            task.process = Process(self._pid, start, self.host.boot_id)
            self.host.alive[self._pid] = start
        epoch = task.held.hold.epoch
        command = c.Start(task.job_id, self.name, epoch, self.terms, task.process)
        self.call(
            command, lambda reply, sent_at: self._started(task, reply, sent_at), act=Act.START
        )

    def _started(self, task: Task, reply: r.Accepted | r.Refused, sent_at: MonoMs) -> None:
        if task.doing is not Doing.STARTING or task.held is None:
            return
        if isinstance(reply, r.Refused):
            self.world.sometimes(Mark.START_REFUSED)
            if reply.reason is Refusal.CANCEL_PENDING:
                self._finish(task, Status.CANCELED)
            elif reply.reason is Refusal.ORPHANED:
                self._finish(task, Status.FAILED)
            else:
                self._let_go(task)
            return
        if sent_at > task.held.stamped_from and not reply.repeated:
            task.held = stamped(task.held, sent_at, self.terms.ttl_ms(task.transport))
        task.doing = Doing.WORKING
        if task.requeue is RequeueRule.ALLOWED and self.world.design.heeds_deadlines:
            self._rerunnable.append(task)
        self.later(min(task.work_ms, 20_000), self._work, task, 20_000)
        self._set_timer(self.host.clock())

    def _work(self, task: Task, done_ms: int) -> None:
        if task.doing is not Doing.WORKING or task.held is None:
            return
        now = self.host.clock()
        heeded = self.world.design.heeds_deadlines
        if heeded and not may_step(task.held, self.policy.local_margin_ms, now):
            self._stop_expired(now)
            return
        self._work_step(task, task.held, now)
        if done_ms >= task.work_ms:
            self._work_ends(task, failed=self.world.rng.random() < 0.1)
            return
        pause = min(task.work_ms - done_ms, self.world.rng.randint(5_000, 60_000))
        self.later(pause, self._work, task, done_ms + pause)

    def _work_step(self, task: Task, held: Held, now: MonoMs) -> None:
        self.world.working(self, task.job_id, held.hold.epoch, task.requeue)
        if self.world.rng.random() < 0.2:
            chunk = Chunk(task.chunks, Stream.STDOUT, b"%d" % now)
            task.chunks += 1
            output = c.Output(
                task.job_id, self.name, held.hold.epoch, chunk, self.policy.late_output_ms
            )
            self.call(output, self._stored, tries=3)

    def _stored(self, reply: r.Accepted | r.Refused, sent_at: MonoMs) -> None:
        if isinstance(reply, r.Refused) and reply.reason is Refusal.STALE_EPOCH:
            self.world.sometimes(Mark.WRITE_FENCED)

    # Jobs: out ------------------------------------------------------------------------------

    def _finish(self, task: Task, outcome: Status) -> None:
        """The work is over; the hold stays until the store has acknowledged the terminal write."""
        if task.held is None or task.doing is Doing.FINISHING:
            return
        task.doing = Doing.FINISHING
        task.outcome = outcome
        self._free_slot(task)
        epoch = task.held.hold.epoch
        complete = c.Complete(task.job_id, self.name, epoch, outcome, Result(exit_code=0))
        self.call(complete, lambda reply, sent_at: self._completed(task, reply))

    def _completed(self, task: Task, reply: r.Accepted | r.Refused) -> None:
        if isinstance(reply, r.Refused):
            if reply.reason is Refusal.STALE_EPOCH:
                self.world.sometimes(Mark.WRITE_FENCED)
        elif reply.repeated:
            self.world.sometimes(Mark.COMPLETE_REPEATED)
        elif reply.transition is Kind.HEAL:
            self.world.sometimes(Mark.HEALED)
        self._let_go(task)

    def _stop_expired(self, now: MonoMs) -> None:
        """Work that somebody else may run stops at its local deadline. (L11)"""
        margin = self.policy.local_margin_ms
        for task in tuple(self._rerunnable):
            if task.held is not None and now >= local_deadline(task.held, margin):
                self.world.sometimes(Mark.STOPPED_IN_TIME)
                self._finish(task, Status.FAILED)

    def _let_go(self, task: Task) -> None:
        """The hold has ended."""
        if self.tasks.get(task.job_id) is task:
            del self.tasks[task.job_id]
        task.held = None
        task.doing = Doing.FINISHING
        self._free_slot(task)
        self._leave_when_idle()

    def _free_slot(self, task: Task) -> None:
        """Its work is over, or has never begun."""
        if task in self._rerunnable:
            self._rerunnable.remove(task)
        if task.process is not None:
            self.host.alive.pop(task.process.pid, None)
        self._slot_freed(task)

    def _leave_when_idle(self) -> None:
        if self.heart.phase is Phase.DRAINING and not self.tasks and not self._asks_for_work():
            self.heart = hearts.stop(self.heart)
            self._send(c.Deregister(self.name), lambda reply: None)
            self.alive = False
            self._trace("stopped")

    # Sending --------------------------------------------------------------------------------

    def _send(
        self, command: c.Command[Any], answer: Callable[[Any], None], blind: bool = False
    ) -> None:
        """Send once; the answer, if it comes, is dealt with inside the process."""
        self.world.sending(self, command, False)
        envelope = Envelope(
            self.name,
            command,
            self.host.clock(),
            lambda reply: self.run(answer, reply),
            blind,
            not self.world.design.heeds_locks,
        )
        self.world.network.send(envelope)

    def _sending(self, command: c.Command[Any], repeat: bool) -> None:
        self.world.sending(self, command, repeat)

    def _must_wait(self, call: Call) -> bool:
        if call.act is None or hearts.may(self.heart, call.act, self.host.clock()):
            return False
        if self.heart.phase is Phase.DRAINING:
            self._abandon(call)
        else:
            self.later(self.policy.retry_ms, self._try, call)
        return True

    def _abandon(self, call: Call) -> None:
        super()._abandon(call)
        if isinstance(call.command, c.Start):
            task = self.tasks.get(call.command.job_id)
            if task is not None and task.doing is Doing.STARTING:
                self._never_begins(task)
        self.tick()

    def awake(self) -> None:
        """It runs on, or its heart does: what it watched meanwhile it has not watched."""
        self.watch_since = self.world.timeline.now
        self.tick()
