"""The store's side of a simulated run: outages, locks and the clock; every executed command is
judged by the laws and compared, reply for reply, with the store under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from attrs import define, evolve, frozen

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.errors import (
    NotAStoreError,
    OutcomeUnknownError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
    StoreVersionError,
)
from unswept.core.memory import MemoryStore
from unswept.core.refusal import Refusal
from unswept.core.units import MonoMs
from unswept.core.world import Decision
from unswept.simulations.answered import as_answered
from unswept.simulations.designs import Design
from unswept.simulations.difference import difference, raised
from unswept.simulations.network import Envelope, Network
from unswept.simulations.timeline import StoreClock, Timeline
from unswept.simulations.violation import Violation
from unswept.spec.history import History
from unswept.spec.laws import READS, Predicate, step_laws
from unswept.spec.observations import Step

_OUTSIDE: Final = (
    StoreUnavailableError,
    OutcomeUnknownError,
    StoreFullError,
    StoreReadOnlyError,
    NotAStoreError,
    StoreVersionError,
)
"""What the world around a store does to it; a simulated run has nothing to say of that."""
_ELSEWHERE: Final = READS | {c.LeaseEvents, c.Acknowledge}
"""Commands that a lock on the lease table does not hold up."""

_Sort = tuple[type, bool, bool]
"""A step's command, whether it changed anything, and whether it moved a job to another status, made
one or removed one: together they say which laws look at it."""


@define
class _Plan:
    """The laws that look at one sort of steps, by id, and how many such steps they have judged."""

    laws: tuple[tuple[str, Predicate], ...]
    steps: int = 0


@frozen
class Ambush:
    """A fault that lies in wait for a command of one kind, and is told of each just before its
    execution."""

    wanted: type
    until: int
    """After this true time it waits no longer."""
    spring: Callable[[c.Command[Any], Envelope], bool]
    """Called with the command and who sent it. True: it has struck, or waits no longer."""


@define
class _Waiting:
    """A command that waits for a lock, until its lock timeout."""

    envelope: Envelope
    until: int


class Server:
    """One store that all instances share."""

    def __init__(
        self,
        timeline: Timeline,
        clock: StoreClock,
        network: Network,
        under_test: c.Store | None,
        design: Design,
        lock_timeout_ms: int,
        observe: Callable[[Step, Envelope], None],
    ) -> None:
        """A server whose pure store is the reference for `under_test`, if there is one."""
        self._timeline = timeline
        self.clock = clock
        self._network = network
        self._under_test = under_test
        self._design = design
        self._lock_timeout_ms = lock_timeout_ms
        self._observe = observe
        self.pure = MemoryStore(clock)
        self.history = History()
        self.down = 0
        """How many faults keep the store out of reach."""
        self.table_locks = 0
        """How many faults keep writes off the lease table, while reads and other tables work."""
        self.locked_rows: set[str] = set()
        """Jobs whose rows a stranger has locked."""
        self.read_only = 0
        """How many faults keep the store from writing."""
        self.poisoned: set[str] = set()
        """Jobs of which no sweep, requeue or settlement succeeds."""
        self.commit: Callable[[Collection[str]], int] | None = None
        """A fault that says how long the commit takes of a command that wrote these jobs' rows."""
        self.ambushes: list[Ambush] = []
        """Faults that lie in wait."""
        self._touched: list[str] = []
        """The jobs whose rows the command wrote that is being carried out."""
        self.checked: Counter[str] = Counter()
        """How often each law judged, steps apart."""
        self.recorder: Callable[[Step, Envelope], None] | None = None
        """Whoever writes down each step, before it is judged and made so."""
        self.commands = 0
        self._waiting: list[_Waiting] = []
        self._plans: dict[_Sort, _Plan] = {}

    def receive(self, envelope: Envelope) -> None:
        """A command has arrived: execute it now, or when the locks that it needs are free."""
        if not self.down and self._can_do(envelope.command):
            self._take(envelope, self._timeline.now + self._lock_timeout_ms)

    def _can_do(self, command: c.Command[Any]) -> bool:
        """Does it succeed, as far as the state of the store and of its row goes?"""
        if self.read_only and type(command) not in READS:
            return False
        if isinstance(command, (c.Requeue, c.Settle)):
            return command.job_id not in self.poisoned
        return True

    def released(self) -> None:
        """A lock is free: whoever has not waited too long goes on, in the order of arrival."""
        waiting, self._waiting = self._waiting, []
        for entry in waiting:
            if entry.until >= self._timeline.now:
                self._take(entry.envelope, entry.until)

    def _take(self, envelope: Envelope, until: int) -> None:
        if self._must_wait(envelope):
            now = self._timeline.now
            self._waiting = [waiting for waiting in self._waiting if waiting.until >= now]
            self._waiting.append(_Waiting(envelope, until))
        else:
            outer, self._touched = self._touched, []
            reply = self._execute_around_locks(envelope)
            touched, self._touched = self._touched, outer
            takes = self.commit(touched) if self.commit is not None and touched else 0
            if takes:
                self._timeline.after(takes, self._network.answer, envelope, reply)
            else:
                self._network.answer(envelope, reply)

    def sweep_waits(self) -> bool:
        """Does a sweep wait for a lock?"""
        return any(
            entry.until >= self._timeline.now and isinstance(entry.envelope.command, c.Sweep)
            for entry in self._waiting
        )

    def drop_waiting(self) -> None:
        """The store went down: transactions that waited are rolled back."""
        self._waiting.clear()

    def execute(self, command: c.Command[Any], envelope: Envelope) -> Any:
        """Execute one command on the pure store, judge it, and compare the store under test."""
        if self.ambushes:
            self._spring_ambushes(command, envelope)
        decision: Decision[Any] = self._design.decide(self.pure.world, command, self.clock())
        return self.carry_out(command, decision, envelope)

    def _spring_ambushes(self, command: c.Command[Any], envelope: Envelope) -> None:
        # One that strikes may have another command executed; nobody lies in wait for that.
        waiting, self.ambushes = self.ambushes, []
        kind, now = type(command), self._timeline.now
        left = [
            ambush
            for ambush in waiting
            if now <= ambush.until
            and (kind is not ambush.wanted or not ambush.spring(command, envelope))
        ]
        self.ambushes = [*left, *self.ambushes]

    def carry_out(
        self, command: c.Command[Any], decision: Decision[Any], envelope: Envelope
    ) -> Any:
        """Judge what a command comes to, make it so, and compare the store under test."""
        step = self._made_so(command, decision, envelope)
        if self.commit is not None:
            self._touched += [row.id for _, row in step.rows if row is not None]
        self._observe(step, envelope)
        return decision.reply

    def examined(self, command: c.Command[Any], sender: str) -> Any:
        """The same for what is asked when the run is over: no ambush waits, and nobody observes."""
        decision: Decision[Any] = self._design.decide(self.pure.world, command, self.clock())
        envelope = Envelope(sender, command, MonoMs(0), lambda reply: None)
        self._made_so(command, decision, envelope)
        return decision.reply

    def _made_so(
        self, command: c.Command[Any], decision: Decision[Any], envelope: Envelope
    ) -> Step:
        step = self.history.step(self.pure.world, command, decision, self.clock())
        if self.recorder is not None:
            self.recorder(step, envelope)
        self.judge(step)
        self.commands += 1
        if self._under_test is not None:
            self._compare(command, decision)
        self.pure.apply(decision)
        self.history.remember(step)
        return step

    def judge(self, step: Step) -> None:
        """Let every law that this step can break look at it."""
        plan = self._plan_of(step)
        plan.steps += 1
        for law_id, broken in plan.laws:
            offence = broken(step)
            if offence is not None:
                raise Violation(law_id, offence)

    def verdicts(self, step: Step) -> Iterator[tuple[str, str | None]]:
        """Each law that looks at this step, by its id, and how it was broken if it was."""
        for law_id, broken in self._plan_of(step).laws:
            yield law_id, broken(step)

    def _plan_of(self, step: Step) -> _Plan:
        sort = _sort(step)
        plan = self._plans.get(sort)
        if plan is None:
            plan = self._plans[sort] = _Plan(self._laws_on(*sort))
        return plan

    def _laws_on(
        self, command: type, changes: bool, moves: bool
    ) -> tuple[tuple[str, Predicate], ...]:
        return tuple(
            (law.id, law.broken)
            for law in step_laws(command)
            if law.broken is not None
            and law.id not in self._design.excused
            and (changes or not law.of_rows)
            and (moves or not law.of_moves)
        )

    def all_checked(self) -> Counter[str]:
        """How often each law has judged, steps included."""
        found = self.checked.copy()
        for plan in self._plans.values():
            found.update({law_id: plan.steps for law_id, _ in plan.laws})
        return found

    def compare_all(self) -> None:
        """At the end of a run, every job, result, output and event must be the same."""
        if self._under_test is None:
            return
        jobs = sorted(self.pure.world.ids)
        questions: list[c.Command[Any]] = [
            c.ListInstances(),
            c.Suspects(limit=c.MAX_PAGE),
            c.Count(),
            c.ListConsumers(),
        ]
        questions += [c.ReadDeadLetters(name) for name in self.pure.world.consumers]
        for job_id in jobs:
            questions += [c.Find(job_id), c.ReadRequest(job_id), c.ReadOutput(job_id)]
        newest = self.pure.world.events.newest
        questions += [c.ReadEvents(after, 1_000) for after in range(0, newest + 1, 1_000)]
        for question in questions:
            self._compare(question, Decision(self.pure.execute(question)))

    def _compare(self, command: c.Command[Any], decision: Decision[Any]) -> None:
        assert self._under_test is not None
        expected = decision.reply
        self.checked["LOCKSTEP"] += 1
        try:
            reply = self._under_test.execute(command)
        except _OUTSIDE:
            raise
        except Exception as error:
            # Whatever else a store raises, the pure store had a reply: a statement that its own
            # tables refuse, or a guard that disagrees with the core.
            raise _differ(command, raised(command, _told(error), expected)) from error
        if reply != expected:
            said = difference(command, reply, expected)
            raise _differ(command, said + self._accusation(command, decision, reply))

    def _accusation(self, command: c.Command[Any], decision: Decision[Any], reply: Any) -> str:
        """Which law the store under test breaks by what it has made of a command, if it shows."""
        assert self._under_test is not None
        world = self.pure.world
        try:
            answered = as_answered(self._under_test, world, command, decision, reply)
        except Exception:  # the difference stands, whatever becomes of its reads
            return ""
        if answered is None:
            return ""
        step = self.history.step(world, command, answered, self.clock())
        for law_id, broken in self._laws_on(*_sort(step)):
            offence = broken(step)
            if offence is not None:
                return f"; by this it breaks {law_id}: {offence}"
        return ""

    def _must_wait(self, envelope: Envelope) -> bool:
        command = envelope.command
        if type(command) in _ELSEWHERE or envelope.blind:
            return False
        if self.table_locks:
            return True
        if not self.locked_rows or isinstance(command, c.Heartbeat):
            return False
        if isinstance(command, c.Sweep):
            return envelope.lock_blind and any(
                target.job_id in self.locked_rows for target in command.targets
            )
        return getattr(command, "job_id", None) in self.locked_rows

    def _execute_around_locks(self, envelope: Envelope) -> Any:
        """Execute what the row locks leave of a command, and say what they did not."""
        command, locked = envelope.command, self.locked_rows
        if not locked and not self.poisoned:
            return self.execute(command, envelope)
        if isinstance(command, c.Heartbeat):
            return self._beat_around_locks(command, envelope)
        if isinstance(command, c.Sweep):
            return self._sweep_around_locks(command, envelope)
        if isinstance(command, c.Suspects) and not envelope.lock_blind:
            page = self.execute(command, envelope)
            seen = tuple(s for s in page.suspects if s.job_id not in locked)
            return page if page.more else evolve(page, suspects=seen)
        return self.execute(command, envelope)

    def _sweep_around_locks(self, command: c.Sweep, envelope: Envelope) -> r.Swept:
        stuck = self.locked_rows | self.poisoned
        free = tuple(t for t in command.targets if t.job_id not in stuck)
        swept: r.Swept = self.execute(evolve(command, targets=free), envelope)
        answered = {answer.job_id: answer for answer in swept.answers}
        answers = tuple(
            answered.get(target.job_id) or r.SweepAnswer(target.job_id, Refusal.BUSY)
            for target in command.targets
        )
        return evolve(swept, answers=answers)

    def _beat_around_locks(self, command: c.Heartbeat, envelope: Envelope) -> r.Beaten:
        locked = self.locked_rows
        named = {*(hold.job_id for hold in command.holds), *command.watched}
        if named.isdisjoint(locked):
            untouched: r.Beaten = self.execute(command, envelope)
            return untouched
        free = tuple(hold for hold in command.holds if hold.job_id not in locked)
        rest = command
        if len(free) < len(command.holds):
            rest = c.Heartbeat(command.instance, command.terms, free, command.watched)
        beaten: r.Beaten = self.execute(rest, envelope)
        answered = {answer.job_id: answer for answer in beaten.answers}
        answers = tuple(
            answered.get(hold.job_id) or r.HoldAnswer(hold.job_id, hold.epoch, r.Answer.BUSY)
            for hold in command.holds
        )
        watched = tuple(job_id for job_id in command.watched if job_id in locked)
        found = () if envelope.lock_blind else watched
        return r.Beaten(beaten.at, answers, found, beaten.registered)


def _sort(step: Step) -> _Sort:
    return type(step.command), bool(step.rows or step.events), _moves(step)


def _moves(step: Step) -> bool:
    for before, after in step.rows:
        if before is None or after is None or before.lease.status is not after.lease.status:
            return True
    return False


def _differ(command: c.Command[Any], offence: str) -> Violation:
    return Violation("LOCKSTEP", offence, verb=type(command).__name__)


def _told(error: Exception) -> str:
    """An error in words that are the same in every run: its own may name a temporary file, the
    database's, which it came of, do not."""
    first: BaseException = error
    while first.__cause__ is not None:
        first = first.__cause__
    return f"{type(error).__name__}: {first}"
