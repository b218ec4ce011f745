"""The small world: an owner with one job, a sweeper, a store, and messages between them.

Both hearts, the sweeper and the store's `decide` are the real functions of the core. Time is in
ticks, and every state is told relative to now: by the time-shift theorem nothing depends on when it
happens, so that states that differ only in when are one state, and there are finitely many.

A message is executed in the tick in which it was sent, and answered at once, or it is lost. But a
beat may wait for as long as its answer would be in time, which is longer than its tick only where
the operation timeout is longer than one, and a sweep may stay on its way for ever. A registration
is answered at once where the store is up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from attrs import evolve, frozen

from unswept.core import commands as c
from unswept.core import heart as hearts
from unswept.core import job as jobs
from unswept.core import replies as r
from unswept.core import sweeper as sweepers
from unswept.core.heart import Flight, Heart, Phase, Pulse
from unswept.core.job import Job, OnOrphan, Transport
from unswept.core.lease import RequeueRule, Status
from unswept.core.policy import LeasePolicy
from unswept.core.records import changed
from unswept.core.sweeper import Look, Suspicion, Sweeper
from unswept.core.units import MonoMs, StoreMs
from unswept.core.world import Birth, World, decide
from unswept.spec.explorer.designs import Design, Faults, Mix, policy_of
from unswept.spec.explorer.happenings import What
from unswept.spec.explorer.offence import Offence

NOW: Final = MonoMs(10_000)
"""The time in every state, on both instances' clocks and on the store's."""
STORE_NOW: Final = StoreMs(10_000)
JOB: Final = "job"
OWNER: Final = "owner"
SWEEPER: Final = "sweeper"
_BEATS: Final = 1_000
"""The job's beats in every state; only whether a stamp is the present one matters."""
_OLDER: Final = _BEATS - 1


class Kind(StrEnum):
    """The messages; the rival is the instance that sweeps."""

    OWNER_BEAT = "owner beat"
    RIVAL_BEAT = "rival beat"
    LOOK = "look"
    SWEEP = "sweep"


class Message(NamedTuple):
    """A request that is on its way, or its answer."""

    kind: Kind
    seen: tuple[int, int] = (0, 0)
    """Of a sweep and a look's answer: (beats, deadline) of the stamp that was seen, if any."""
    locked: bool = False
    """Of a beat's answer: the row is locked."""


@frozen(eq=False, slots=False)
class State:
    """All that can matter from here on."""

    job: Job
    owner: Heart
    rival: Heart
    sweeper: Sweeper
    messages: tuple[Message, ...]
    up: bool
    row_locked: bool
    table_locked: bool
    left: Faults
    """What may still go wrong."""

    @property
    def offence(self) -> Offence | None:
        """Why a law is broken here; the owner lives in every state, so any sweep breaks one."""
        swept = self.job.lease.status is Status.ORPHANED
        return Offence("L12", "a job was swept whose owner lives") if swept else None


class Move(NamedTuple):
    """One thing that may happen next."""

    what: What | None
    """None: nothing but that a tick passes."""
    state: State
    ticks: int


class Model:
    """The transition relation of one design under one policy."""

    def __init__(self, design: Design, mix: Mix, policy: LeasePolicy | None = None) -> None:
        """A model; the policy is the design's, in quarters of a heartbeat, unless given."""
        own = policy_of(
            window=mix.window if design.window is None else design.window,
            sweep=mix.sweep_interval,
            slow=not design.hurries,
        )
        self.design = design
        self.mix = mix
        self.policy = own if policy is None else policy
        self.owner_policy = self.policy
        self.terms = self.policy.terms()
        self.step_ticks = self.policy.lease_ttl_ms + 2
        """A clock step is longer than any lease."""
        self.floor = StoreMs(STORE_NOW - 3 * self.step_ticks - mix.back_further)
        """How far past a deadline may be told apart: no steps back make an older one alive."""
        self.reach = self.policy.confirm_after_ms + self.policy.steady_ms + 1
        """How far back a heart's proof and a suspicion are ever asked for."""

    def first(self, owner_phase: int, rival_phase: int, pass_phase: int) -> State:
        """A state in which all is well: the owner beat `owner_phase` ticks ago, and so on."""
        rules = (RequeueRule.NEVER, OnOrphan.MARK, None)
        job = jobs.admit(JOB, OWNER, Transport.PROCESS, *rules, self.terms, STORE_NOW)
        lease = changed(
            job.lease,
            status=Status.RUNNING,
            beats=_BEATS,
            deadline=StoreMs(STORE_NOW + self.policy.lease_ttl_ms - owner_phase),
        )
        return self._normal(
            State(
                changed(job, lease=lease),
                self._steady(owner_phase, self.owner_policy),
                self._steady(rival_phase, self.policy),
                sweepers.Sweeper(self.policy, MonoMs(NOW + pass_phase), {}),
                (),
                up=True,
                row_locked=False,
                table_locked=False,
                left=self.mix.faults,
            )
        )

    def starts(self) -> Iterator[State]:
        """All phases in which the two hearts and the sweeper's passes can stand to each other."""
        beat = self.policy.heartbeat_interval_ms
        if self.mix.at_the_step:
            for rival in range(beat):
                yield self._advance(self.first(beat - 1, rival, 1))
            return
        for rival in range(beat):
            for pass_phase in range(1, self.policy.sweep_interval_ms + 1):
                yield self.first(0, rival, pass_phase)

    def _steady(self, ago: int, policy: LeasePolicy) -> Heart:
        then = MonoMs(NOW - ago)
        long_ago = MonoMs(NOW - 1_000)
        pulse = Pulse(then, then, long_ago, long_ago)
        beat = MonoMs(then + policy.heartbeat_interval_ms)
        heart = hearts.boot(policy, beat)
        return changed(heart, phase=Phase.STEADY, pulse=pulse, known_since=long_ago)

    # What may happen ------------------------------------------------------------------------

    def moves(self, state: State) -> Iterator[Move]:
        """Everything that may happen next."""
        if state.offence or self._is_over(state):
            return
        yield from self._deliveries(state)
        if self.mix.at_the_step and state.left.steps_forward:
            yield self._step_forward(state)
            return
        yield from self._faults(state)
        if all(self._may_wait(state, message) for message in state.messages):
            after = self._advance(state)
            sends = _sweeps(after) > _sweeps(state)
            yield Move(What.SENDS if sends else None, after, 1)

    def _may_wait(self, state: State, message: Message) -> bool:
        """May it still be on its way in the next tick, and be answered in time?"""
        if message.kind is Kind.SWEEP or message.kind is Kind.LOOK:
            return message.kind is Kind.SWEEP
        heart = state.owner if message.kind is Kind.OWNER_BEAT else state.rival
        sent_at = NOW if heart.flight is None else heart.flight.sent_at
        return NOW + 1 - sent_at < heart.policy.operation_timeout_ms

    def _is_over(self, state: State) -> bool:
        """The story that begins at the step ends with the owner's first renewal after it."""
        deadline = state.job.lease.deadline
        alive = deadline is not None and deadline >= STORE_NOW
        return self.mix.at_the_step and not state.left.steps_forward and alive

    def _deliveries(self, state: State) -> Iterator[Move]:
        for index, message in enumerate(state.messages):
            without = changed(state, messages=state.messages[:index] + state.messages[index + 1 :])
            if self._reaches(state, message):
                what, after, answer = self._execute(without, message)
                heard = after if answer is None else self._hear(after, answer)
                yield self._move(state, what, heard)
            elif message.kind is not Kind.SWEEP:
                yield self._move(state, _UNHEARD[message.kind], without)
            if state.left.lost and message.kind is not Kind.SWEEP:
                spent = evolve(state.left, lost=state.left.lost - 1)
                lost = changed(without, left=spent)
                yield self._move(state, _LOST[message.kind], lost)
                if self._reaches(state, message):
                    _, after, _ = self._execute(lost, message)
                    yield self._move(state, _UNANSWERED[message.kind], after)

    def _reaches(self, state: State, message: Message) -> bool:
        if not state.up:
            return False
        if message.kind is Kind.LOOK:
            return True
        if state.table_locked:
            return message.kind is Kind.RIVAL_BEAT and not self.design.beats_renew
        return not (message.kind is Kind.SWEEP and state.row_locked)

    def _faults(self, state: State) -> Iterator[Move]:
        left = state.left
        if left.steps_forward and state.up:
            yield self._step_forward(state)
        if left.steps_back and state.up:
            spent = evolve(left, steps_back=left.steps_back - 1)
            back = self._step(state, -1, spent)
            yield self._move(state, What.BACK, back)
        if state.up and left.outages:
            spent = evolve(left, outages=left.outages - 1)
            down = changed(state, up=False, messages=(), left=spent)
            yield self._move(state, What.DOWN, down)
        if not state.up:
            yield self._move(state, What.UP, changed(state, up=True))
        if state.row_locked:
            free = changed(state, row_locked=False)
            yield self._move(state, What.ROW_FREE, free)
        elif left.row_locks:
            spent = evolve(left, row_locks=left.row_locks - 1)
            locked = changed(state, row_locked=True, left=spent)
            yield self._move(state, What.ROW_LOCKED, locked)
        if state.table_locked:
            free = changed(state, table_locked=False)
            yield self._move(state, What.TABLE_FREE, free)
        elif left.table_locks:
            spent = evolve(left, table_locks=left.table_locks - 1)
            locked = changed(state, table_locked=True, left=spent)
            yield self._move(state, What.TABLE_LOCKED, locked)

    def _step_forward(self, state: State) -> Move:
        spent = evolve(state.left, steps_forward=state.left.steps_forward - 1)
        after = self._step(state, 1, spent)
        return self._move(state, What.FORWARD, after)

    def _move(self, before: State, what: What, after: State) -> Move:
        return Move(what, self._normal(after, before), 0)

    def _step(self, state: State, sign: int, left: Faults) -> State:
        """A step of the store clock, told relative to it: the deadline moves the other way."""
        deadline = state.job.lease.deadline
        assert deadline is not None
        shift = self.step_ticks if sign > 0 else -(self.step_ticks + self.mix.back_further)
        lease = changed(state.job.lease, deadline=StoreMs(deadline - shift))
        return _with_seen(changed(state, job=changed(state.job, lease=lease), left=left), shift)

    # One tick -------------------------------------------------------------------------------

    def _advance(self, state: State) -> State:
        """A tick passes: all times fall back by one, and both instances do what is due."""
        state = _with_seen(state, 1)
        owner, rival = _older_heart(state.owner), _older_heart(state.rival)
        sweeper = _older_sweeper(state.sweeper)
        deadline = state.job.lease.deadline
        assert deadline is not None
        lease = changed(state.job.lease, deadline=StoreMs(deadline - 1))
        messages = list(state.messages)
        owner, sends = hearts.tick(owner, NOW)
        owner = self._send_beat(owner, sends, Kind.OWNER_BEAT, state, messages)
        sweeper, effects = sweepers.tick(sweeper, rival, NOW, ())
        messages += [self._message(effect) for effect in effects if _goes_out(effect)]
        if self.design.hurries:
            rival = hearts.hurry(rival, sweepers.wants_hurry(sweeper), NOW)
        rival, sends = hearts.tick(rival, NOW)
        rival = self._send_beat(rival, sends, Kind.RIVAL_BEAT, state, messages)
        return self._normal(
            changed(
                state,
                job=changed(state.job, lease=lease),
                owner=owner,
                rival=rival,
                sweeper=sweeper,
                messages=tuple(messages),
            )
        )

    def _send_beat(
        self,
        heart: Heart,
        sends: tuple[hearts.Effect, ...],
        kind: Kind,
        state: State,
        messages: list[Message],
    ) -> Heart:
        """Beats go on their way; a registration is answered at once where the store is up."""
        for effect in sends:
            if isinstance(effect, hearts.SendBeat):
                messages[:] = [m for m in messages if m.kind is not kind]
                messages.append(Message(kind))
            elif state.up:
                heart = hearts.registered(heart, NOW)
        return heart

    def _message(self, effect: sweepers.Effect) -> Message:
        if isinstance(effect, sweepers.SendSweep):
            target = effect.targets[0]
            return Message(Kind.SWEEP, (target.beats, target.first_seen_at))
        return Message(Kind.LOOK)

    # What the store does --------------------------------------------------------------------

    def _execute(self, state: State, message: Message) -> tuple[What, State, Message | None]:
        """A request is executed: what happened, the state after it, and its answer."""
        if message.kind is Kind.SWEEP:
            return self._sweep(state, message)
        if message.kind is Kind.LOOK:
            return self._look(state)
        if message.kind is Kind.OWNER_BEAT:
            return self._renew(state)
        watched = bool(state.sweeper.suspicions) and state.row_locked
        found = watched and self.design.heeds_locks
        return What.ACCEPTED, state, message._replace(locked=found)

    def _decide(self, job: Job, command: c.Command[Any]) -> tuple[Any, Job]:
        """The real decision on this one job."""
        born = Birth(OWNER, STORE_NOW)
        world = evolve(World.empty(), jobs={JOB: job}, ids={JOB: born}, owned=(JOB,))
        decision = decide(world, command, STORE_NOW)
        after = [change.row for change in decision.changes if change.key == JOB]
        return decision.reply, after[0] if after else job

    def _renew(self, state: State) -> tuple[What, State, Message]:
        answer = Message(Kind.OWNER_BEAT, (0, 0), locked=state.row_locked)
        if state.row_locked:
            return What.BUSY, state, answer
        hold = (c.Hold(JOB, state.job.lease.epoch),)
        _, job = self._decide(state.job, c.Heartbeat(OWNER, self.terms, hold))
        renewed = job.lease.beats != state.job.lease.beats
        older = tuple(_with_older_stamp(m) for m in state.messages)
        sweeper = state.sweeper
        if sweeper.suspicions:
            suspicions = {k: evolve(s, beats=_OLDER) for k, s in sweeper.suspicions.items()}
            sweeper = changed(sweeper, suspicions=suspicions)
        job = changed(job, lease=changed(job.lease, beats=_BEATS))
        state = changed(state, job=job, messages=older, sweeper=sweeper)
        return What.RENEWED if renewed else What.REFUSED, state, answer

    def _look(self, state: State) -> tuple[What, State, Message]:
        """The real question, told in the design's own terms."""
        page, _ = self._decide(state.job, c.Suspects())
        seen = bool(page.suspects) and not (state.row_locked and self.design.heeds_locks)
        lease = state.job.lease
        assert lease.deadline is not None
        stamp = (lease.beats, int(lease.deadline)) if seen else (0, 0)
        what = What.SUSPECT if seen else What.NO_SUSPECT
        return what, state, Message(Kind.LOOK, stamp)

    def _sweep(self, state: State, message: Message) -> tuple[What, State, None]:
        lease = state.job.lease
        beats, deadline = message.seen
        same_deadline = self.design.deadline_is_identity and lease.deadline == deadline
        if self.design.deadline_alone or same_deadline:
            beats = lease.beats
        target = c.Target(JOB, lease.epoch, beats, StoreMs(0))
        _, job = self._decide(state.job, c.Sweep(SWEEPER, (target,)))
        swept = job.lease.status is Status.ORPHANED
        what = What.SWEPT if swept else What.SWEEP_REFUSED
        return what, changed(state, job=job), None

    # What an answer does --------------------------------------------------------------------

    def _hear(self, state: State, message: Message) -> State:
        if message.kind is Kind.OWNER_BEAT:
            return changed(state, owner=self._answered(state.owner, busy=message.locked))
        if message.kind is Kind.RIVAL_BEAT:
            sweeper = sweepers.found_locked(state.sweeper, (JOB,) if message.locked else ())
            return changed(state, rival=self._answered(state.rival, busy=False), sweeper=sweeper)
        return self._seen(state, message)

    def _answered(self, heart: Heart, busy: bool) -> Heart:
        number = 0 if heart.flight is None else heart.flight.number
        return hearts.answered(heart, number, NOW, registered=True, busy=busy)

    def _seen(self, state: State, message: Message) -> State:
        """The answer to a look: named or not."""
        beats, deadline = message.seen
        suspects: tuple[r.Suspect, ...] = ()
        if beats:
            suspects = (self._suspect(state, beats, deadline),)
        look = state.sweeper.look
        number = 0 if look is None else look.number
        page = r.SuspectsPage(StoreMs(deadline), suspects, more=False)
        sweeper, _ = sweepers.answered(state.sweeper, number, page, (), NOW)
        state = changed(state, sweeper=sweeper)
        if self.design.one_observation and suspects:
            sweep = Message(Kind.SWEEP, (beats, deadline))
            return changed(state, messages=(*state.messages, sweep))
        return state

    def _suspect(self, state: State, beats: int, deadline: int) -> r.Suspect:
        lease = state.job.lease
        known = state.sweeper.suspicions.get(JOB)
        if self.design.deadline_is_identity and known is not None:
            same = known.first_seen_at == deadline
            beats = known.beats if same else beats + 1
        assert lease.ttl_ms is not None and lease.confirm_ms is not None
        return r.Suspect(
            JOB,
            OWNER,
            lease.epoch,
            beats,
            StoreMs(deadline),
            lease.ttl_ms,
            lease.confirm_ms,
            lease.requeue,
            delayed=False,
            process=None,
        )

    # One state for all that behave alike ----------------------------------------------------

    def _normal(self, state: State, before: State | None = None) -> State:
        """The same state without what cannot matter: ages beyond every bound, old numbers. What it
        has in common with the normal state `before` is normal already."""
        lease, reach = state.job.lease, self.reach
        if lease.deadline is not None and lease.deadline < self.floor:
            lease = changed(lease, deadline=self.floor)
            state = changed(state, job=changed(state.job, lease=lease))
        owner, rival, sweeper = state.owner, state.rival, state.sweeper
        if before is None or owner is not before.owner:
            owner = _normal_heart(owner, 0)
        if before is None or rival is not before.rival:
            rival = _normal_heart(rival, reach)
        if before is None or sweeper is not before.sweeper:
            sweeper = _normal_sweeper(sweeper, reach)
        messages = tuple(sorted(state.messages)) if len(state.messages) > 1 else state.messages
        return changed(state, owner=owner, rival=rival, sweeper=sweeper, messages=messages)

    def key(self, state: State) -> tuple[Any, ...]:
        """What makes two states the same."""
        lease, sweeper = state.job.lease, state.sweeper
        suspicion = sweeper.suspicions.get(JOB)
        return (
            lease.deadline,
            lease.status,
            _heart_key(state.owner),
            _heart_key(state.rival),
            sweeper.next_pass_at if sweeper.pass_began_at is None else sweeper.pass_began_at,
            sweeper.pass_began_at is None,
            None if sweeper.look is None else sweeper.look.sent_at,
            suspicion
            and (suspicion.beats == lease.beats, suspicion.since, self._identity(suspicion)),
            tuple(self._message_key(state, message) for message in state.messages),
            state.up,
            state.row_locked,
            state.table_locked,
            state.left,
        )

    def _identity(self, suspicion: Suspicion) -> int:
        return suspicion.first_seen_at if self.design.deadline_is_identity else 0

    def _message_key(self, state: State, message: Message) -> tuple[Any, ...]:
        beats, deadline = message.seen
        stamp = (beats and (beats == state.job.lease.beats)) or -bool(beats)
        shown = deadline if self.design.deadline_is_identity else 0
        return (message.kind, stamp, shown, message.locked)


_UNHEARD: Final[Mapping[Kind, What]] = MappingProxyType(
    {
        Kind.OWNER_BEAT: What.OWNER_UNHEARD,
        Kind.RIVAL_BEAT: What.HEART_UNHEARD,
        Kind.LOOK: What.LOOK_UNHEARD,
    }
)
_LOST: Final[Mapping[Kind, What]] = MappingProxyType(
    {
        Kind.OWNER_BEAT: What.OWNER_LOST,
        Kind.RIVAL_BEAT: What.HEART_LOST,
        Kind.LOOK: What.LOOK_LOST,
    }
)
_UNANSWERED: Final[Mapping[Kind, What]] = MappingProxyType(
    {
        Kind.OWNER_BEAT: What.OWNER_UNANSWERED,
        Kind.RIVAL_BEAT: What.HEART_UNANSWERED,
        Kind.LOOK: What.LOOK_UNANSWERED,
    }
)


def _sweeps(state: State) -> int:
    return sum(message.kind is Kind.SWEEP for message in state.messages)


def _goes_out(effect: sweepers.Effect) -> bool:
    return isinstance(effect, (sweepers.SendSuspects, sweepers.SendSweep))


def _with_older_stamp(message: Message) -> Message:
    beats, deadline = message.seen
    return message._replace(seen=(_OLDER, deadline)) if beats else message


def _with_seen(state: State, shift: int) -> State:
    """The deadlines that were seen, told relative to a store clock that has moved on by `shift`."""
    messages = tuple(
        m._replace(seen=(m.seen[0], m.seen[1] - shift)) if m.seen[0] else m for m in state.messages
    )
    suspicions = {
        k: evolve(s, first_seen_at=StoreMs(s.first_seen_at - shift))
        for k, s in state.sweeper.suspicions.items()
    }
    return changed(state, messages=messages, sweeper=changed(state.sweeper, suspicions=suspicions))


def _older(time: MonoMs) -> MonoMs:
    return MonoMs(time - 1)


def _older_heart(heart: Heart) -> Heart:
    """The heart one tick later, told relative to the new now."""
    flight, pulse, known = heart.flight, heart.pulse, heart.known_since
    return changed(
        heart,
        next_beat_at=_older(heart.next_beat_at),
        flight=None if flight is None else Flight(flight.number, _older(flight.sent_at)),
        pulse=None
        if pulse is None
        else Pulse(
            _older(pulse.sent_at),
            _older(pulse.answered_at),
            _older(pulse.steady_since),
            _older(pulse.close_since),
        ),
        known_since=None if known is None else _older(known),
    )


def _older_sweeper(sweeper: Sweeper) -> Sweeper:
    look, began = sweeper.look, sweeper.pass_began_at
    return changed(
        sweeper,
        next_pass_at=_older(sweeper.next_pass_at),
        suspicions={k: evolve(s, since=_older(s.since)) for k, s in sweeper.suspicions.items()},
        pass_began_at=None if began is None else _older(began),
        look=None if look is None else Look(look.number, look.after, _older(look.sent_at)),
    )


def _normal_heart(heart: Heart, reach: int) -> Heart:
    """A heart without what cannot matter; `reach` is how far back its proof is ever asked for."""
    pulse, flight = heart.pulse, heart.flight
    past = MonoMs(NOW - heart.policy.steady_ms - 1)
    if pulse is not None:
        pulse = Pulse(
            max(pulse.sent_at, past),
            max(pulse.answered_at, past),
            NOW,
            max(pulse.close_since, MonoMs(NOW - reach)),
        )
    return changed(
        heart,
        phase=hearts.phase_at(heart, NOW),
        next_beat_at=NOW if flight is not None else max(heart.next_beat_at, NOW),
        last_number=1,
        flight=None if flight is None else Flight(1, flight.sent_at),
        pulse=pulse,
        failures=min(heart.failures, hearts.FAILURES_TO_QUIESCE),
        good_beats=min(heart.good_beats, hearts.BEATS_TO_READMIT),
        known_since=None if heart.known_since is None else MonoMs(NOW - 1_000),
    )


def _normal_sweeper(sweeper: Sweeper, reach: int) -> Sweeper:
    past = MonoMs(NOW - reach)
    return changed(
        sweeper,
        next_pass_at=max(sweeper.next_pass_at, NOW),
        suspicions={k: evolve(s, since=max(s.since, past)) for k, s in sweeper.suspicions.items()},
        last_number=1,
        look=None if sweeper.look is None else evolve(sweeper.look, number=1),
    )


def _heart_key(heart: Heart) -> tuple[Any, ...]:
    return (
        heart.phase,
        heart.next_beat_at,
        heart.flight,
        heart.pulse,
        heart.failures,
        heart.good_beats,
        heart.known_since is None,
        heart.hurried,
    )
