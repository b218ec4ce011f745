"""Each law is seen to bite: an offence made by hand that it must catch, beside the lawful step.

A scene is a pure store with a history. `step` is what a command would come to; an offence is the
same step with its decision tampered with, or with a ghost that says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from attrs import evolve

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.heart import MAY, Act, Phase
from unswept.core.job import Job, OnOrphan, Terms, Transport
from unswept.core.lease import Kind, Lease, RequeueRule, Status
from unswept.core.memory import MemoryStore
from unswept.core.outbox import Consumer, DeadLetter
from unswept.core.refusal import Refusal
from unswept.core.units import MonoMs, Ms, StoreMs
from unswept.core.values import Chunk, Event, Request, Stream
from unswept.core.world import Change, Decision, Table, all_commands, decide
from unswept.spec.history import History
from unswept.spec.laws import BY_ID, LAWS, READS, Judges, Law, step_laws
from unswept.spec.observations import (
    Claimer,
    Delivery,
    Neglect,
    Reader,
    Send,
    Sight,
    Stamp,
    Step,
    SweepTruth,
    Work,
)

TERMS: Final = Terms(Ms(100), Ms(300), Ms(50), Ms(30))
LATE_MS: Final = Ms(20)
RETENTION_MS: Final = Ms(1_000)
CHUNK: Final = Chunk(0, Stream.STDOUT, b"text")

Tamper = Callable[[Decision[Any]], Decision[Any]]


class Scene:
    """A pure store and the ghosts of its jobs."""

    def __init__(self) -> None:
        self.now = StoreMs(0)
        self.store = MemoryStore(lambda: self.now)
        self.history = History()

    def run(self, at: int, *commands: c.Command[Any]) -> Scene:
        """Let these commands happen; every law must find them lawful."""
        for command in commands:
            step = self.step(at, command)
            assert offences(step) == {}
            self.history.remember(step)
            self.store.execute(command)
        return self

    def step(self, at: int, command: c.Command[Any], tamper: Tamper | None = None) -> Step:
        """What a command comes to, or would if the decision were tampered with."""
        self.now = StoreMs(at)
        decision: Decision[Any] = decide(self.store.world, command, self.now)
        if tamper is not None:
            decision = tamper(decision)
        return self.history.step(self.store.world, command, decision, self.now)


def offences(step: Step) -> dict[str, str]:
    """What each law that can judge this step finds."""
    found: dict[str, str] = {}
    for law in step_laws(type(step.command)):
        assert law.broken is not None
        sentence = law.broken(step)
        if sentence is not None:
            found[law.id] = sentence
    return found


# Ways to tamper with a decision -----------------------------------------------------------------


def with_job(edit: Callable[[Job], Job | None]) -> Tamper:
    """The rows of jobs that it changes, edited."""

    def tamper(decision: Decision[Any]) -> Decision[Any]:
        changes = tuple(
            change._replace(row=edit(change.row))
            if change.table is Table.JOBS and change.row is not None
            else change
            for change in decision.changes
        )
        assert changes != decision.changes, "nothing was tampered with"
        return evolve(decision, changes=changes)

    return tamper


def with_lease(**fields: Any) -> Tamper:
    return with_job(lambda job: evolve(job, lease=evolve(job.lease, **fields)))


def with_event(**fields: Any) -> Tamper:
    def tamper(decision: Decision[Any]) -> Decision[Any]:
        assert decision.events
        return evolve(decision, events=tuple(evolve(e, **fields) for e in decision.events))

    return tamper


def without_events(decision: Decision[Any]) -> Decision[Any]:
    assert decision.events
    return evolve(decision, events=())


def with_reply(edit: Callable[[Any], Any]) -> Tamper:
    return lambda decision: evolve(decision, reply=edit(decision.reply))


def putting(*changes: Change) -> Tamper:
    """With more changes than it should have."""
    return lambda decision: evolve(decision, changes=(*decision.changes, *changes))


def putting_job(scene: Scene, job_id: str, **fields: Any) -> Tamper:
    """With a change of a job that it should not touch."""
    job = scene.store.world.jobs[job_id]
    return putting(Change(Table.JOBS, job_id, evolve(job, lease=evolve(job.lease, **fields))))


# Scenes -----------------------------------------------------------------------------------------


def admit(
    job_id: str = "j1",
    owner: str = "A",
    transport: Transport = Transport.PROCESS,
    requeue: RequeueRule = RequeueRule.ALLOWED,
    key: str | None = None,
    fresh: bool = False,
    window_ms: int = 60,
) -> c.Admit:
    request = Request() if key is None else Request(b"", "p", key)
    return c.Admit(job_id, owner, TERMS, transport, requeue, request, Ms(window_ms), fresh)


def beat(*holds: tuple[str, int], instance: str = "A") -> c.Heartbeat:
    return c.Heartbeat(instance, TERMS, tuple(c.Hold(*hold) for hold in holds))


def complete(epoch: int = 1, owner: str = "A", job_id: str = "j1") -> c.Complete:
    return c.Complete(job_id, owner, epoch, Status.COMPLETED)


def output(epoch: int = 1, owner: str = "A") -> c.Output:
    return c.Output("j1", owner, epoch, CHUNK, LATE_MS)


def sweep(epoch: int = 1, beats: int = 1, job_id: str = "j1") -> c.Sweep:
    return c.Sweep("S", (c.Target(job_id, epoch, beats, StoreMs(0)),))


def evict(epoch: int = 1, retention_ms: Ms = RETENTION_MS) -> c.Evict:
    return c.Evict((c.Hold("j1", epoch),), retention_ms)


def admitted(**options: Any) -> Scene:
    """j1: queued, A's, epoch 1, stamped at 0 until 100."""
    return Scene().run(0, admit(**options))


def running() -> Scene:
    """j1: running, A's, epoch 1, stamped at 10 until 110, second beat."""
    return admitted().run(10, c.Start("j1", "A", 1, TERMS))


def orphaned() -> Scene:
    """j1: swept at 101 under A's epoch 1."""
    return admitted().run(101, sweep())


def requeued() -> Scene:
    """j1: nobody's, epoch 2."""
    return orphaned().run(110, c.Requeue("j1", 1))


def completed() -> Scene:
    """j1: completed at 50."""
    return admitted().run(50, complete())


def waiting() -> Scene:
    """j1: enqueued, nobody's, epoch 0."""
    return Scene().run(0, c.Enqueue("j1", requeue=RequeueRule.ALLOWED))


Pair = tuple[Step, Step]
"""A lawful step, and the offence beside it."""
Case = Callable[[], Pair]


def both(scene: Scene, at: int, command: c.Command[Any], tamper: Tamper) -> Pair:
    """The lawful step, and the same one tampered with."""
    return scene.step(at, command), scene.step(at, command, tamper)


def ghost(scene: Scene, at: int, command: c.Command[Any], stamp: Stamp | None) -> Pair:
    """The same step under a ghost that says that the lease was stamped otherwise."""
    step = scene.step(at, command)
    return step, step._replace(stamps={} if stamp is None else {"j1": stamp})


def l1_equal_is_alive() -> Pair:
    return ghost(admitted(), 101, sweep(), Stamp(1, StoreMs(1), Ms(100)))


def l1_longer_ttl() -> Pair:
    return ghost(admitted(), 101, sweep(), Stamp(1, StoreMs(0), Ms(300)))


def l1_of_another_epoch() -> Pair:
    return ghost(admitted(), 101, sweep(), Stamp(2, StoreMs(0), Ms(100)))


def l1_nothing_stamped() -> Pair:
    return ghost(admitted(), 101, sweep(), None)


def forced_sweep(scene: Scene, at: int, command: c.Command[Any]) -> Step:
    """j1 becomes orphaned by this command, whatever the rules say."""
    job = scene.store.world.jobs["j1"]
    lease = evolve(job.lease, status=Status.ORPHANED, deadline=None)
    event = Event("j1", lease.epoch, Kind.ORPHAN, StoreMs(at), Status.ORPHANED, "A")
    swept = Change(Table.JOBS, "j1", evolve(job, lease=lease, orphaned_at=StoreMs(at)))
    return scene.step(
        at, command, lambda decision: evolve(decision, changes=(swept,), events=(event,))
    )


def l2_not_expired() -> Pair:
    scene = admitted()
    return scene.step(100, sweep()), forced_sweep(scene, 100, sweep())


def l2_beats_moved() -> Pair:
    scene = running()
    return scene.step(111, sweep(beats=1)), forced_sweep(scene, 111, sweep(beats=1))


def l2_other_epoch() -> Pair:
    scene = running()
    return scene.step(111, sweep(2, 2)), forced_sweep(scene, 111, sweep(2, 2))


def l2_another_target() -> Pair:
    scene = admitted()
    return scene.step(101, sweep()), forced_sweep(scene, 101, sweep(job_id="j2"))


def l2_terminal() -> Pair:
    scene = completed()
    return scene.step(101, sweep()), forced_sweep(scene, 101, sweep())


def l2_nobodys() -> Pair:
    scene = requeued()
    return scene.step(300, sweep(2, 1)), forced_sweep(scene, 300, sweep(2, 1))


def l2_by_no_sweep() -> Pair:
    scene = admitted()
    command = c.Delay("j1", 1, 1, "S")
    return scene.step(101, command), forced_sweep(scene, 101, command)


def l3_epoch_falls() -> Pair:
    return both(requeued(), 120, c.Settle("j1", 2, Status.FAILED), _as_it_was_once)


def _as_it_was_once(decision: Decision[Any]) -> Decision[Any]:
    lease = Lease(Status.QUEUED, None, 1, 1, None, None, None, None, None, RequeueRule.ALLOWED)
    job = Job("j1", lease, Transport.PROCESS, StoreMs(0))
    return evolve(decision, changes=(Change(Table.JOBS, "j1", job),))


def l3_writes(command: c.Command[Any], **fields: Any) -> Case:
    """A write under an old epoch or by another owner that moves the deadline."""

    def case() -> Pair:
        scene = running()
        return both(scene, 20, command, putting_job(scene, "j1", deadline=StoreMs(500)))

    return case


def l3_output_of_another() -> Pair:
    stored = putting(Change(Table.OUTPUT, "j1", {(1, 0): CHUNK}))
    return both(running(), 20, output(owner="B"), stored)


def l3_says_done() -> Pair:
    def done(reply: r.Refused) -> r.Accepted:
        assert reply.standing is not None
        return r.Accepted(reply.at, reply.standing, Kind.COMPLETE)

    return both(running(), 20, complete(owner="B"), with_reply(done))


def l3_says_done_of_output() -> Pair:
    def done(reply: r.Refused) -> r.Accepted:
        assert reply.standing is not None
        return r.Accepted(reply.at, reply.standing, Kind.OUTPUT)

    return both(requeued(), 120, output(), with_reply(done))


def l3_stale_result_without_event() -> Pair:
    return both(requeued(), 120, complete(), without_events)


def l3_beat_renews_anothers() -> Pair:
    scene = running().run(10, admit("j2", "B"))
    renewed = putting_job(scene, "j2", deadline=StoreMs(500), beats=2)
    return both(scene, 20, beat(("j1", 1)), renewed)


def l3_beat_renews_old_epoch() -> Pair:
    scene = running()
    renewed = putting_job(scene, "j1", deadline=StoreMs(500), beats=3)
    return both(scene, 20, beat(("j1", 2)), renewed)


def l3_beat_renews_unnamed() -> Pair:
    scene = running()
    renewed = putting_job(scene, "j1", deadline=StoreMs(500), beats=3)
    return both(scene, 20, beat(), renewed)


def l3_beat_makes_a_job() -> Pair:
    born = decide(Scene().store.world, admit("j2"), StoreMs(20))
    return both(
        running(), 20, beat(), lambda d: evolve(d, changes=born.changes, events=born.events)
    )


def l4_terminal_changes() -> Pair:
    scene = completed()
    return both(scene, 60, c.RequestCancel("j1"), putting_job(scene, "j1", status=Status.CANCELED))


def l4_terminal_vanishes() -> Pair:
    gone = putting(Change(Table.JOBS, "j1", None))
    return both(completed(), 60, c.RequestCancel("j1"), gone)


def l4_terminal_changes_by_eviction() -> Pair:
    scene = completed()
    kept = putting_job(scene, "j1", beats=7)
    return both(scene, 60, evict(), kept)


def l4_orphan_renewed() -> Pair:
    scene = orphaned()
    back = putting_job(scene, "j1", status=Status.RUNNING, deadline=StoreMs(500))
    return both(scene, 110, beat(("j1", 1)), back)


def l4_orphan_started() -> Pair:
    scene = orphaned()
    back = putting_job(scene, "j1", status=Status.RUNNING, deadline=StoreMs(500))
    return both(scene, 110, c.Start("j1", "A", 1, TERMS), back)


def l4_heal_moves_epoch() -> Pair:
    return both(orphaned(), 110, complete(), with_lease(epoch=2))


def l4_output_too_late() -> Pair:
    stored = putting(Change(Table.OUTPUT, "j1", {(1, 0): CHUNK}))
    return both(completed(), 71, output(), stored)


def never_requeued() -> Scene:
    return Scene().run(0, admit(requeue=RequeueRule.NEVER))


def l4_requeued_though_never() -> Pair:
    scene = never_requeued().run(101, sweep())
    forced = decide(scene.store.world, c.Requeue("j1", 1, force=True), StoreMs(110))
    return both(scene, 110, c.Requeue("j1", 1), lambda _: forced)


def l4_released_though_never() -> Pair:
    scene = never_requeued()
    back = putting_job(scene, "j1", owner=None, epoch=2, deadline=None, ttl_ms=None)
    return both(scene, 10, c.Release("j1", "A", 1), back)


def l5_no_event() -> Pair:
    return both(admitted(), 10, c.Start("j1", "A", 1, TERMS), without_events)


def l5_born_without_event() -> Pair:
    return both(Scene(), 0, admit(), without_events)


def l5_wrong_kind() -> Pair:
    return both(admitted(), 10, c.Start("j1", "A", 1, TERMS), with_event(kind=Kind.RELEASE))


def l5_impossible_kind() -> Pair:
    return both(admitted(), 101, sweep(), with_event(kind=Kind.COMPLETE))


def l5_wrong_epoch() -> Pair:
    return both(orphaned(), 110, c.Requeue("j1", 1), with_event(epoch=1))


def l5_wrong_status() -> Pair:
    return both(admitted(), 101, sweep(), with_event(status=Status.RUNNING))


def l5_two_events() -> Pair:
    return both(
        admitted(), 101, sweep(), lambda d: evolve(d, events=(*d.events, evolve(d.events[0])))
    )


def l5_written_twice() -> Pair:
    scene = requeued().run(120, complete())
    first = list(scene.store.world.events.values())[-1]
    return both(scene, 130, complete(), lambda d: evolve(d, events=(first,)))


def l5_renewal_leaves_one() -> Pair:
    event = Event("j1", 1, Kind.RENEW, StoreMs(20), Status.RUNNING, "A")
    return both(running(), 20, beat(("j1", 1)), lambda d: evolve(d, events=(event,)))


def l5_birth_of_another_kind() -> Pair:
    return both(Scene(), 0, admit(), with_event(kind=Kind.RELEASE))


def l6_reborn(command: c.Command[Any]) -> Case:
    """An id that was evicted, or spent by a withdrawal, is queued again."""

    def case() -> Pair:
        scene = Scene().run(0, c.Withdraw("j1", "A"))
        return both(scene, 10, command, lambda _: decide(Scene().store.world, command, StoreMs(10)))

    return case


def l7_request_is_lost() -> Pair:
    scene = running().run(20, c.RequestCancel("j1"))
    return both(scene, 30, beat(("j1", 1)), with_lease(cancel_requested_at=None))


def l7_request_is_replaced() -> Pair:
    scene = running().run(20, c.RequestCancel("j1"))
    later = putting_job(scene, "j1", cancel_requested_at=StoreMs(30))
    return both(scene, 30, c.RequestCancel("j1"), later)


def l7_started_under_it() -> Pair:
    scene = admitted().run(5, c.RequestCancel("j1"))
    started = putting_job(scene, "j1", status=Status.RUNNING)
    return both(scene, 10, c.Start("j1", "A", 1, TERMS), started)


def l7_requeued_under_it() -> Pair:
    scene = admitted().run(5, c.RequestCancel("j1")).run(101, sweep())
    return both(scene, 110, c.Requeue("j1", 1), with_lease(status=Status.QUEUED))


def l7_released_under_it() -> Pair:
    scene = running().run(20, c.RequestCancel("j1"))
    return both(scene, 30, c.Release("j1", "A", 1), with_lease(status=Status.QUEUED))


def l7_orphan_not_canceled() -> Pair:
    asked = with_lease(status=Status.ORPHANED, owner="A", epoch=1)
    return both(orphaned(), 110, c.RequestCancel("j1"), asked)


def l7_waiting_not_canceled() -> Pair:
    return both(waiting(), 10, c.RequestCancel("j1"), lambda d: evolve(d, changes=(), events=()))


def _without_cancel(reply: r.Beaten) -> r.Beaten:
    answers = tuple(evolve(row, cancel_requested_at=None) for row in reply.answers)
    return evolve(reply, answers=answers)


def l7_renewed_answer_is_silent() -> Pair:
    scene = running().run(20, c.RequestCancel("j1"))
    return both(scene, 30, beat(("j1", 1)), with_reply(_without_cancel))


def l7_orphaned_answer_is_silent() -> Pair:
    scene = running().run(20, c.RequestCancel("j1")).run(111, sweep(beats=2))
    return both(scene, 120, beat(("j1", 1)), with_reply(_without_cancel))


def answered(job_id: str, answer: r.Answer) -> Tamper:
    def edit(reply: r.Beaten) -> r.Beaten:
        rows = (evolve(a, answer=answer) if a.job_id == job_id else a for a in reply.answers)
        return evolve(reply, answers=tuple(rows))

    return with_reply(edit)


def l8_says(scene: Callable[[], Scene], epoch: int, answer: r.Answer) -> Case:
    """One hold of j1 is answered by what is not so."""
    return lambda: both(scene(), 120, beat(("j1", epoch)), answered("j1", answer))


def l8_leaves_one_out() -> Pair:
    scene = running().run(20, admit("j2"))
    fewer = with_reply(lambda reply: evolve(reply, answers=reply.answers[:1]))
    return both(scene, 30, beat(("j1", 1), ("j2", 1)), fewer)


def l8_in_another_order() -> Pair:
    scene = running().run(20, admit("j2"))
    turned = with_reply(lambda reply: evolve(reply, answers=reply.answers[::-1]))
    return both(scene, 30, beat(("j1", 1), ("j2", 1)), turned)


def l8_one_spoils_the_other() -> Pair:
    scene = running()
    return both(scene, 30, beat(("gone", 1), ("j1", 1)), answered("j1", r.Answer.ABSENT))


def l9_twice() -> Pair:
    scene = admitted().run(101, c.Delay("j1", 1, 1, "S"))
    again = putting_job(scene, "j1", delayed_at=StoreMs(202), deadline=StoreMs(302), beats=3)
    return both(scene, 202, c.Delay("j1", 1, 2, "S"), again)


def l9_shortens() -> Pair:
    return both(admitted(), 101, c.Delay("j1", 1, 1, "S"), with_lease(deadline=StoreMs(99)))


def l9_vetoes() -> Pair:
    return both(admitted(), 101, c.Delay("j1", 1, 1, "S"), with_lease(deadline=None))


def l9_before_the_deadline() -> Pair:
    scene = admitted()
    early = putting_job(scene, "j1", delayed_at=StoreMs(100), deadline=StoreMs(200), beats=2)
    return both(scene, 100, c.Delay("j1", 1, 1, "S"), early)


def l3_start_stamps_again() -> Pair:
    scene = running()
    return both(scene, 30, START, putting_job(scene, "j1", deadline=StoreMs(130), beats=3))


def l3_touches_another() -> Pair:
    scene = running().run(10, admit("j2"))
    return both(scene, 30, complete(), putting_job(scene, "j2", deadline=StoreMs(999)))


def l3_requeues_what_was_not_seen() -> Pair:
    scene = orphaned()
    seen = decide(scene.store.world, c.Requeue("j1", 1), StoreMs(110))
    return both(scene, 110, c.Requeue("j1", 2), lambda _: seen)


def l5_refusal_leaves_one() -> Pair:
    event = Event("j1", 1, Kind.ORPHAN, StoreMs(20), Status.ORPHANED, "A")
    return both(running(), 20, sweep(), lambda d: evolve(d, events=(event,)))


def l5_release_of_a_queued_job_leaves_none() -> Pair:
    """The status stays the same word, queued, and the job has moved none the less."""
    return both(admitted(), 10, c.Release("j1", "A", 1), without_events)


def l5_kind_of_another_epoch_step() -> Pair:
    return both(admitted(), 10, START, with_event(kind=Kind.CLAIM))


def l7_request_is_dropped() -> Pair:
    return both(running(), 20, c.RequestCancel("j1"), nothing_done)


def l4_swept_on_without_a_policy() -> Pair:
    scene = admitted()
    job = scene.store.world.jobs["j1"]
    lease = evolve(job.lease, status=Status.FAILED, owner=None, epoch=2, deadline=None)
    ended = evolve(job, lease=evolve(lease, ttl_ms=None, confirm_ms=None), finished_at=StoreMs(101))
    return both(scene, 101, sweep(), putting(Change(Table.JOBS, "j1", ended)))


def l5_policy_without_its_event() -> Pair:
    command = evolve(admit(), on_orphan=OnOrphan.REQUEUE, max_attempts=9)
    scene = Scene().run(0, command)
    return both(scene, 101, sweep(), lambda d: evolve(d, events=d.events[:1]))


def l5_policy_without_the_orphans_event() -> Pair:
    command = evolve(admit(), on_orphan=OnOrphan.FAIL)
    scene = Scene().run(0, command)
    return both(scene, 101, sweep(), lambda d: evolve(d, events=d.events[1:]))


def l7_request_before_the_job_is_forgotten() -> Pair:
    return both(Scene(), 20, c.RequestCancel("j1"), nothing_done)


def l8_renewed_in_word_only() -> Pair:
    return both(running(), 20, beat(("j1", 1)), nothing_done)


def l8_renewed_without_a_beat() -> Pair:
    return both(running(), 20, beat(("j1", 1)), with_lease(beats=2))


def l8_tells_another_deadline() -> Pair:
    def later(reply: r.Beaten) -> r.Beaten:
        return evolve(reply, answers=(evolve(reply.answers[0], deadline=StoreMs(999)),))

    return both(running(), 20, beat(("j1", 1)), with_reply(later))


def l9_twice_in_one_millisecond() -> Pair:
    scene = admitted().run(101, c.Delay("j1", 1, 1, "S"))
    again = putting_job(scene, "j1", deadline=StoreMs(202), beats=3)
    return both(scene, 101, c.Delay("j1", 1, 2, "S"), again)


def l14_born_and_not_remembered() -> Pair:
    def unrecorded(decision: Decision[Any]) -> Decision[Any]:
        kept = tuple(change for change in decision.changes if change.table is not Table.IDS)
        return evolve(decision, changes=kept)

    return both(Scene(), 0, admit(), unrecorded)


def nothing_done(decision: Decision[Any]) -> Decision[Any]:
    return evolve(decision, changes=(), events=())


START: Final = c.Start("j1", "A", 1, TERMS)


def l14_active_vanishes() -> Pair:
    return both(running(), 5_000, evict(), putting(Change(Table.JOBS, "j1", None)))


def l14_by_no_eviction() -> Pair:
    gone = with_job(lambda job: None)
    return both(running(), 20, complete(), gone)


def l14_too_early() -> Pair:
    return both(completed(), 1_050, evict(), putting(Change(Table.JOBS, "j1", None)))


def l14_forgotten() -> Pair:
    step = completed().step(1_051, evict())
    return step, step._replace(used_ids=())


WIDE: Final = admit("j9", key="k", window_ms=10_000)
"""An admit that would join j1 however late it comes."""


def keyed() -> Scene:
    return admitted(key="k")


def l15_does_not_join() -> Pair:
    scene = admitted(key="k")
    lonely = decide(Scene().store.world, admit("j2", key="k"), StoreMs(10))
    return both(scene, 10, admit("j2", key="k"), lambda _: lonely)


def joins(scene: Scene, job_id: str = "j1") -> Tamper:
    standing = r.Standing.of(scene.store.world.jobs[job_id])
    return lambda d: Decision(r.Joined(d.reply.at, standing))


def l15_joins(scene: Callable[[], Scene], at: int, command: c.Admit, twin: str = "j1") -> Case:
    """An admit is handed a job that it should not get."""

    def case() -> Pair:
        made = scene()
        return both(made, at, command, joins(made, twin))

    return case


def wf_lost_deadline() -> Pair:
    return both(running(), 20, beat(("j1", 1)), with_lease(deadline=None))


def wf_orphan_keeps_deadline() -> Pair:
    return both(admitted(), 101, sweep(), with_lease(deadline=StoreMs(500)))


def wf_running_without_owner() -> Pair:
    nobodys = with_lease(owner=None, deadline=None, ttl_ms=None, confirm_ms=None)
    return both(admitted(), 10, c.Start("j1", "A", 1, TERMS), nobodys)


def l6_moved() -> Pair:
    scene = waiting()
    job = evolve(scene.store.world.jobs["j1"], priority=-1)
    again = c.Enqueue("j1", requeue=RequeueRule.ALLOWED)
    return both(scene, 10, again, putting(Change(Table.JOBS, "j1", job)))


CLAIM: Final = c.Claim("A", 2, TERMS, labels=("cpu",))


def queue(max_held: int | None = 2, **options: Any) -> Scene:
    """j1, which A claimed at 5 as its first; then j2, and j3 behind it, of whom one is as
    `options` say."""
    scene = Scene().run(0, c.Register("A", max_held=max_held), c.Enqueue("j1"))
    scene.run(5, c.Claim("A", 1, TERMS))
    return scene.run(6, c.Enqueue("j2", priority=1), c.Enqueue("j3", priority=2, **options))


def claiming(scene: Scene, job_id: str) -> Tamper:
    """As if the claim took this job, and it alone."""
    job = scene.store.world.jobs[job_id]
    lease = evolve(
        job.lease,
        status=Status.RUNNING,
        owner="A",
        epoch=job.lease.epoch + 1,
        beats=job.lease.beats + 1,
        deadline=StoreMs(500),
        ttl_ms=Ms(50),
        confirm_ms=Ms(30),
    )
    taken = evolve(job, lease=lease, claim_no=2, attempts=job.attempts + 1)
    return lambda d: evolve(d, changes=(Change(Table.JOBS, job_id, taken),))


def f1_takes(job_id: str, **options: Any) -> Case:
    """A claim takes a job that is not to be had, or not yet."""

    def case() -> Pair:
        scene = queue(**options)
        return both(scene, 10, CLAIM, claiming(scene, job_id))

    return case


def f1_under_a_cancel() -> Pair:
    scene = queue()
    job = scene.store.world.jobs["j2"]
    asked = evolve(job, lease=evolve(job.lease, cancel_requested_at=StoreMs(7)))
    scene.store.apply(Decision(None, (Change(Table.JOBS, "j2", asked),)))
    return both(scene, 10, CLAIM, claiming(scene, "j2"))


def f1_under_a_used_number() -> Pair:
    scene = queue()
    return both(scene, 10, evolve(CLAIM, claim_no=1), claiming(scene, "j2"))


def f1_beyond_its_budget() -> Pair:
    """With nothing to be claimed the claim is lawful; A holds one, and may hold one."""
    scene = queue(max_held=1)
    return both(scene, 10, CLAIM, claiming(scene, "j2"))


def f1_beyond_its_limit() -> Pair:
    scene = queue(max_held=None)
    two = scene.step(10, evolve(CLAIM, limit=2))
    return scene.step(10, CLAIM), two._replace(command=CLAIM)


def f1_without_an_attempt() -> Pair:
    return both(queue(), 10, CLAIM, with_job(lambda job: evolve(job, attempts=job.attempts - 1)))


def f1_for_another() -> Pair:
    return both(queue(), 10, CLAIM, with_lease(owner="B"))


LEASE_MS: Final = Ms(100)


def lease(holder: str) -> c.LeaseEvents:
    return c.LeaseEvents("mail", holder, LEASE_MS)


def acknowledge(
    upto: int, token: int = 1, last: bool = False, error: str | None = None
) -> c.Acknowledge:
    return c.Acknowledge("mail", token, upto, last, error)


FORGET: Final = c.ForgetEvents(("j1",), Ms(500))


def finished() -> Scene:
    """Three events of j1: its admit, start and completion at 50."""
    return running().run(50, complete())


def reading(last: bool = False) -> Scene:
    """Three events; R has mail's lease up to 160, by token 1, and has acknowledged two."""
    return finished().run(60, lease("R")).run(61, acknowledge(2, last=last))


def taken_over() -> Scene:
    """S has it since, by token 2."""
    return reading().run(161, lease("S"))


def evicted_and_read(upto: int = 4, given_up: int | None = None) -> Scene:
    """Four events of j1, the last that of its eviction at 1051, and one of another job; mail has
    come to `upto`."""
    scene = finished().run(1_051, evict()).run(1_052, c.Enqueue("q1"), lease("R"))
    if given_up is not None:
        scene.run(1_053, acknowledge(given_up, error="it fails every time"))
    return scene.run(1_054, acknowledge(upto))


def f5(scene: Callable[[], Scene], at: int, command: c.Command[Any], tamper: Tamper) -> Case:
    return lambda: both(scene(), at, command, tamper)


def f5_as(
    scene: Callable[[], Scene], at: int, command: c.Command[Any], taken: c.Command[Any], when: int
) -> Case:
    """A command is carried out as if it were another one, or came at another time."""

    def case() -> Pair:
        made = scene()
        other = decide(made.store.world, taken, StoreMs(when))
        return both(made, at, command, lambda _: other)

    return case


def with_consumer(**fields: Any) -> Tamper:
    """The row of mail as it should not be, and what is replied likewise."""

    def tamper(decision: Decision[Any]) -> Decision[Any]:
        (change,) = decision.changes
        told = {name: value for name, value in fields.items() if hasattr(decision.reply, name)}
        row = change._replace(row=evolve(change.row, **fields))
        return evolve(decision, changes=(row,), reply=evolve(decision.reply, **told))

    return tamper


def refused(reason: Refusal) -> Tamper:
    return lambda d: Decision(r.Refused(d.reply.at, reason, None))


def moved_to(position: int) -> Tamper:
    """As if mail were taken there, by R."""
    row = Consumer("mail", position, 1, "R", StoreMs(160), 0)
    at = Change(Table.CONSUMERS, "mail", row)
    return lambda d: Decision(r.Acknowledged(d.reply.at, position, False), (at,))


def without(table: Table) -> Tamper:
    return lambda d: evolve(d, changes=tuple(ch for ch in d.changes if ch.table is not table))


def letter(number: int) -> Tamper:
    row = DeadLetter("mail", number, StoreMs(62), 1, "for no reason")
    return putting(Change(Table.LETTERS, ("mail", number), row))


FORGOTTEN: Final = putting(Change(Table.EVENTS, "j1", None))


def l14_leaves(table: Table) -> Case:
    return lambda: both(printed(), 1_051, evict(), without(table))


def printed() -> Scene:
    scene = running().run(20, output())
    return scene.run(50, complete())


def policed(on_orphan: OnOrphan, max_attempts: int | None = None) -> Scene:
    command = evolve(admit(), on_orphan=on_orphan, max_attempts=max_attempts)
    return Scene().run(0, command)


def f2_requeued_once_too_often() -> Pair:
    endless = decide(policed(OnOrphan.REQUEUE, 2).store.world, sweep(), StoreMs(101))
    return both(policed(OnOrphan.REQUEUE, 1), 101, sweep(), lambda _: endless)


def f2_not_done() -> Pair:
    def marked(decision: Decision[Any]) -> Decision[Any]:
        return evolve(decision, changes=decision.changes[:1], events=decision.events[:1])

    return both(policed(OnOrphan.FAIL), 101, sweep(), marked)


def f2_done_to_one_that_is_held() -> Pair:
    failing = decide(policed(OnOrphan.FAIL).store.world, sweep(), StoreMs(101))
    return both(policed(OnOrphan.HOLD), 101, sweep(), lambda _: failing)


CASES: Final[dict[str, tuple[str, Case]]] = {
    "equal to the deadline is alive": ("L1", l1_equal_is_alive),
    "another policy's longer ttl counts": ("L1", l1_longer_ttl),
    "the stamp is of another epoch": ("L1", l1_of_another_epoch),
    "nothing was stamped": ("L1", l1_nothing_stamped),
    "swept at its deadline": ("L2", l2_not_expired),
    "swept though renewed": ("L2", l2_beats_moved),
    "swept under another epoch": ("L2", l2_other_epoch),
    "swept though not named": ("L2", l2_another_target),
    "swept though terminal": ("L2", l2_terminal),
    "swept though nobody's": ("L2", l2_nobodys),
    "orphaned by a delay": ("L2", l2_by_no_sweep),
    "the epoch falls": ("L3", l3_epoch_falls),
    "a start of another owner": ("L3", l3_writes(c.Start("j1", "B", 1, TERMS))),
    "a release under a newer epoch": ("L3", l3_writes(c.Release("j1", "A", 2))),
    "a completion under epoch 0": ("L3", l3_writes(complete(0))),
    "output of another owner": ("L3", l3_output_of_another),
    "another owner is told that it is done": ("L3", l3_says_done),
    "an old owner is told that it is stored": ("L3", l3_says_done_of_output),
    "a stale result without its event": ("L3", l3_stale_result_without_event),
    "a heartbeat renews another's job": ("L3", l3_beat_renews_anothers),
    "a heartbeat renews under another epoch": ("L3", l3_beat_renews_old_epoch),
    "a heartbeat renews what it does not name": ("L3", l3_beat_renews_unnamed),
    "a heartbeat makes a job": ("L3", l3_beat_makes_a_job),
    "a repeated start stamps again": ("L3", l3_start_stamps_again),
    "a completion touches another job": ("L3", l3_touches_another),
    "a requeue of what was not seen": ("L3", l3_requeues_what_was_not_seen),
    "a terminal job changes": ("L4", l4_terminal_changes),
    "a terminal job vanishes": ("L4", l4_terminal_vanishes),
    "an eviction changes a terminal job": ("L4", l4_terminal_changes_by_eviction),
    "an orphan is renewed": ("L4", l4_orphan_renewed),
    "an orphan is started": ("L4", l4_orphan_started),
    "a heal under another epoch": ("L4", l4_heal_moves_epoch),
    "output later than late_output_ms": ("L4", l4_output_too_late),
    "a requeue though its rule is never": ("L4", l4_requeued_though_never),
    "a release though its rule is never": ("L4", l4_released_though_never),
    "no event": ("L5", l5_no_event),
    "a birth without an event": ("L5", l5_born_without_event),
    "an event of another kind": ("L5", l5_wrong_kind),
    "an event of a kind that does not reach": ("L5", l5_impossible_kind),
    "a birth of another kind": ("L5", l5_birth_of_another_kind),
    "an event under the epoch before": ("L5", l5_wrong_epoch),
    "an event with another status": ("L5", l5_wrong_status),
    "two events": ("L5", l5_two_events),
    "a repeated command adds one": ("L5", l5_written_twice),
    "a renewal leaves one": ("L5", l5_renewal_leaves_one),
    "a refused sweep leaves one": ("L5", l5_refusal_leaves_one),
    "a release of a queued job leaves none": ("L5", l5_release_of_a_queued_job_leaves_none),
    "a start leaves a claim": ("L5", l5_kind_of_another_epoch_step),
    "a late enqueue": ("L6", l6_reborn(c.Enqueue("j1"))),
    "a late admit": ("L6", l6_reborn(admit())),
    "a late enqueue moves a waiting job": ("L6", l6_moved),
    "the request is lost": ("L7", l7_request_is_lost),
    "the request is dropped": ("L7", l7_request_is_dropped),
    "a sweep ends a job that it should only mark": ("L4", l4_swept_on_without_a_policy),
    "a requeue in a sweep leaves no event": ("L5", l5_policy_without_its_event),
    "a failing sweep leaves no event of the orphan": ("L5", l5_policy_without_the_orphans_event),
    "a request that comes first is forgotten": ("L7", l7_request_before_the_job_is_forgotten),
    "the request is replaced": ("L7", l7_request_is_replaced),
    "a first start under a request": ("L7", l7_started_under_it),
    "a requeue under a request": ("L7", l7_requeued_under_it),
    "a release under a request": ("L7", l7_released_under_it),
    "an orphan is not canceled at once": ("L7", l7_orphan_not_canceled),
    "a waiting job is not canceled at once": ("L7", l7_waiting_not_canceled),
    "a renewed answer does not bear it": ("L7", l7_renewed_answer_is_silent),
    "an orphaned answer does not bear it": ("L7", l7_orphaned_answer_is_silent),
    "renewed though fenced": ("L8", l8_says(requeued, 1, r.Answer.RENEWED)),
    "terminal though fenced": ("L8", l8_says(completed, 2, r.Answer.TERMINAL)),
    "fenced though terminal": ("L8", l8_says(completed, 1, r.Answer.FENCED)),
    "renewed though orphaned": ("L8", l8_says(orphaned, 1, r.Answer.RENEWED)),
    "terminal though orphaned": ("L8", l8_says(orphaned, 1, r.Answer.TERMINAL)),
    "fenced though absent": ("L8", l8_says(Scene, 1, r.Answer.FENCED)),
    "orphaned though alive": ("L8", l8_says(running, 1, r.Answer.ORPHANED)),
    "a hold without an answer": ("L8", l8_leaves_one_out),
    "answers in another order": ("L8", l8_in_another_order),
    "one hold spoils another": ("L8", l8_one_spoils_the_other),
    "renewed in word only": ("L8", l8_renewed_in_word_only),
    "renewed without a beat": ("L8", l8_renewed_without_a_beat),
    "another deadline is told": ("L8", l8_tells_another_deadline),
    "delayed twice in one millisecond": ("L9", l9_twice_in_one_millisecond),
    "delayed twice": ("L9", l9_twice),
    "a delay shortens": ("L9", l9_shortens),
    "a delay vetoes": ("L9", l9_vetoes),
    "a delay at the deadline": ("L9", l9_before_the_deadline),
    "an active job is evicted": ("L14", l14_active_vanishes),
    "a completion removes its job": ("L14", l14_by_no_eviction),
    "an eviction at the end of the retention": ("L14", l14_too_early),
    "an evicted id is not remembered": ("L14", l14_forgotten),
    "an id is born and not remembered": ("L14", l14_born_and_not_remembered),
    "a twin is not joined": ("L15", l15_does_not_join),
    "a fresh admit joins": ("L15", l15_joins(keyed, 10, admit("j2", key="k", fresh=True))),
    "a twin is joined after the window": ("L15", l15_joins(keyed, 61, admit("j2", key="k"))),
    "another request is joined": ("L15", l15_joins(keyed, 10, admit("j2", key="other"))),
    "an admit without a key joins": ("L15", l15_joins(keyed, 10, admit("j2"))),
    "a dedup window of 0 joins": ("L15", l15_joins(keyed, 0, admit("j2", key="k", window_ms=0))),
    "a suspect is joined": ("L15", l15_joins(keyed, 101, WIDE)),
    "an orphan is joined": ("L15", l15_joins(lambda: keyed().run(101, sweep()), 102, WIDE)),
    "a canceled job is joined": (
        "L15",
        l15_joins(lambda: keyed().run(101, sweep()).run(102, c.RequestCancel("j1")), 103, WIDE),
    ),
    "another than the newest is joined": (
        "L15",
        l15_joins(lambda: keyed().run(5, admit("j2", key="k", fresh=True)), 9, WIDE),
    ),
    "a claim takes what another holds": ("F1", f1_takes("j1")),
    "a claim takes what is not due": ("F1", f1_takes("j3", not_before=StoreMs(11))),
    "a claim takes of another partition": ("F1", f1_takes("j3", partition="night")),
    "a claim takes what it has no labels for": ("F1", f1_takes("j3", labels=("cpu", "gpu"))),
    "a claim passes over an older one": ("F1", f1_takes("j3", labels=("cpu",))),
    "a claim takes what is to be canceled": ("F1", f1_under_a_cancel),
    "a claim takes under a used number": ("F1", f1_under_a_used_number),
    "a claim goes beyond its budget": ("F1", f1_beyond_its_budget),
    "a claim goes beyond its limit": ("F1", f1_beyond_its_limit),
    "a claim counts no attempt": ("F1", f1_without_an_attempt),
    "a claim grants to another": ("F1", f1_for_another),
    "a sweep requeues once too often": ("F2", f2_requeued_once_too_often),
    "a sweep does not what the policy says": ("F2", f2_not_done),
    "a sweep fails what a person decides": ("F2", f2_done_to_one_that_is_held),
    "an old token moves a consumer": (
        "F5",
        f5_as(taken_over, 170, acknowledge(3), acknowledge(3, token=2), 170),
    ),
    "a token that was never granted moves one": (
        "F5",
        f5_as(reading, 70, acknowledge(3, token=2), acknowledge(3), 70),
    ),
    "an old token is told that it moved": (
        "F5",
        f5_as(taken_over, 170, acknowledge(2), acknowledge(2, token=2), 170),
    ),
    "the newest token moves nothing": (
        "F5",
        f5(reading, 70, acknowledge(3), refused(Refusal.STALE_TOKEN)),
    ),
    "a lease that was given up moves one": (
        "F5",
        f5(lambda: reading(last=True), 70, acknowledge(3), moved_to(3)),
    ),
    "a consumer goes back": ("F5", f5(reading, 70, acknowledge(1), moved_to(1))),
    "a consumer goes past the newest event": ("F5", f5(reading, 70, acknowledge(4), moved_to(4))),
    "a consumer stays though it was moved": (
        "F5",
        f5(reading, 70, acknowledge(3), without(Table.CONSUMERS)),
    ),
    "a move leaves the grants counted": (
        "F5",
        f5(taken_over, 170, acknowledge(3, token=2), with_consumer(attempts=1)),
    ),
    "a lease that is given up is kept": (
        "F5",
        f5(reading, 70, acknowledge(3, last=True), with_consumer(holder="R")),
    ),
    "a lease is granted at its last millisecond": (
        "F5",
        f5_as(reading, 160, lease("S"), lease("S"), 161),
    ),
    "a lease that is over is refused": (
        "F5",
        f5(reading, 161, lease("S"), refused(Refusal.LEASED)),
    ),
    "its holder is refused its lease": ("F5", f5(reading, 70, lease("R"), refused(Refusal.LEASED))),
    "a lease that is kept gets another token": (
        "F5",
        f5(reading, 70, lease("R"), with_consumer(token=2)),
    ),
    "a token is granted twice": ("F5", f5(reading, 161, lease("S"), with_consumer(token=1))),
    "a lease moves its consumer": ("F5", f5(reading, 161, lease("S"), with_consumer(position=3))),
    "a lease is stamped too short": (
        "F5",
        f5(reading, 161, lease("S"), with_consumer(expires_at=StoreMs(260))),
    ),
    "a grant is not counted": ("F5", f5(reading, 161, lease("S"), with_consumer(attempts=0))),
    "a holder is told another position": (
        "F5",
        f5(reading, 161, lease("S"), with_reply(lambda reply: evolve(reply, position=0))),
    ),
    "a refused lease is taken": (
        "F5",
        f5(
            reading,
            160,
            lease("S"),
            putting(Change(Table.CONSUMERS, "mail", Consumer("mail", 2, 2, "S", StoreMs(260), 1))),
        ),
    ),
    "an event is given up without a letter": (
        "F5",
        f5(reading, 70, acknowledge(3, error="why"), without(Table.LETTERS)),
    ),
    "a letter of an event that was not given up": (
        "F5",
        f5(reading, 70, acknowledge(3), letter(3)),
    ),
    "a consumer is forgotten under its lease": (
        "F5",
        f5_as(reading, 160, c.ForgetConsumer("mail"), c.ForgetConsumer("mail"), 161),
    ),
    "a consumer is kept though nobody has it": (
        "F5",
        f5(reading, 161, c.ForgetConsumer("mail"), refused(Refusal.LEASED)),
    ),
    "a forgotten consumer is still there": (
        "F5",
        f5(reading, 161, c.ForgetConsumer("mail"), without(Table.CONSUMERS)),
    ),
    "a consumer is lost": (
        "F5",
        f5(reading, 160, lease("S"), putting(Change(Table.CONSUMERS, "mail", None))),
    ),
    "events of a job that is there go": ("F5", f5(completed, 1_051, FORGET, FORGOTTEN)),
    "an eviction takes the events": ("F5", f5(completed, 1_051, evict(), FORGOTTEN)),
    "events go at the end of their retention": (
        "F5",
        f5(evicted_and_read, 1_551, FORGET, FORGOTTEN),
    ),
    "events go unread": ("F5", f5(lambda: evicted_and_read(3), 1_552, FORGET, FORGOTTEN)),
    "events go though one is a dead letter": (
        "F5",
        f5(lambda: evicted_and_read(given_up=2), 1_552, FORGET, FORGOTTEN),
    ),
    "the newest event goes": (
        "F5",
        f5(lambda: completed().run(1_051, evict()), 1_552, FORGET, FORGOTTEN),
    ),
    "a lease takes events": ("F5", f5(evicted_and_read, 1_552, lease("R"), FORGOTTEN)),
    "an eviction leaves the request": ("L14", l14_leaves(Table.REQUESTS)),
    "an eviction leaves the result": ("L14", l14_leaves(Table.RESULTS)),
    "an eviction leaves the output": ("L14", l14_leaves(Table.OUTPUT)),
    "the deadline is lost": ("WF", wf_lost_deadline),
    "an orphan keeps its deadline": ("WF", wf_orphan_keeps_deadline),
    "nobody's job runs": ("WF", wf_running_without_owner),
}


@pytest.mark.parametrize("name", CASES)
def test_each_law_catches_its_offence_and_passes_the_lawful_step(name: str) -> None:
    """The lawful step offends no law at all; the one that was tampered with offends its own."""
    law_id, case = CASES[name]
    lawful, offence = case()
    assert offences(lawful) == {}
    found = offences(offence)
    assert law_id in found, f"{law_id} did not see it; found: {found}"
    assert not re.search(r"[<({]\w+\.|<\w+|\w=", found[law_id]), "values, as a person writes them"


def at_the_end_of_late_output() -> Step:
    return completed().step(70, output())


def delayed_to_its_own_deadline() -> Step:
    return admitted().step(101, c.Delay("j1", 1, 1, "S"), with_lease(deadline=StoreMs(100)))


def renewed_in_the_queue_under_a_request() -> Step:
    return admitted().run(5, c.RequestCancel("j1")).step(10, beat(("j1", 1)))


def joined_at_the_end_of_the_window() -> Step:
    return keyed().step(60, admit("j2", key="k"))


def joined_at_the_deadline() -> Step:
    return keyed().step(100, WIDE)


def repeated_under_its_own_key() -> Step:
    return keyed().step(10, admit(key="k"))


def joined_when_completed() -> Step:
    return keyed().run(50, complete()).step(5_000, WIDE)


def swept_under_a_request() -> Step:
    return admitted().run(5, c.RequestCancel("j1")).step(101, sweep())


def healed_under_a_request() -> Step:
    scene = admitted().run(5, c.RequestCancel("j1")).run(101, sweep())
    return scene.step(110, complete())


def busy() -> Step:
    return running().step(20, beat(("j1", 1)), _locked)


def _locked(decision: Decision[Any]) -> Decision[Any]:
    return evolve(answered("j1", r.Answer.BUSY)(decision), changes=())


def claimed_up_to_its_budget() -> Step:
    return queue().step(10, evolve(CLAIM, limit=2))


def requeued_under_a_request_by_its_policy() -> Step:
    scene = policed(OnOrphan.REQUEUE, 9).run(5, c.RequestCancel("j1"))
    return scene.step(101, sweep())


def moved_when_its_lease_was_over() -> Step:
    return reading().step(161, acknowledge(3))


def repeated_when_given_up() -> Step:
    return reading(last=True).step(70, acknowledge(2, last=True))


def kept_at_its_last_millisecond() -> Step:
    return reading().step(160, lease("R"))


def forgotten_events() -> Step:
    step = evicted_and_read().step(1_552, FORGET)
    assert step.outbox is not None
    assert step.outbox.forgotten == ("j1",)
    return step


def forgotten_consumer() -> Step:
    """And another begins under its name, as new."""
    return reading().run(161, c.ForgetConsumer("mail")).step(162, lease("S"))


LAWFUL: Final[dict[str, Callable[[], Step]]] = {
    "a move by a lease that is over and nobody's": moved_when_its_lease_was_over,
    "a repeat when the lease was given up": repeated_when_given_up,
    "a lease that is kept at its last millisecond": kept_at_its_last_millisecond,
    "events that go after their retention": forgotten_events,
    "a consumer under a name that was forgotten": forgotten_consumer,
    "output at the end of late_output_ms": at_the_end_of_late_output,
    "a delay that moves nothing": delayed_to_its_own_deadline,
    "a queued job's renewal under a request": renewed_in_the_queue_under_a_request,
    "a join at the end of the window": joined_at_the_end_of_the_window,
    "a join at the deadline": joined_at_the_deadline,
    "a join of a completed job": joined_when_completed,
    "a repeated admit under a key": repeated_under_its_own_key,
    "a sweep under a request": swept_under_a_request,
    "a heal under a request": healed_under_a_request,
    "a busy answer": busy,
    "a claim up to the budget": claimed_up_to_its_budget,
    "a sweep that cancels under a request": requeued_under_a_request_by_its_policy,
}


@pytest.mark.parametrize("name", LAWFUL)
def test_what_is_just_lawful_offends_no_law(name: str) -> None:
    """At each bound, the last thing that is allowed is allowed."""
    assert offences(LAWFUL[name]()) == {}


def test_every_law_about_steps_has_an_offence() -> None:
    """No predicate is trusted that was never seen to bite."""
    judged = {law.id for law in LAWS if law.judges is Judges.STEP}
    assert judged == {law_id for law_id, _ in CASES.values()}


def test_an_offence_is_told_in_a_sentence_with_the_job_and_the_times() -> None:
    """A violation says what happened, so that a reader need not look it up."""
    _, offence = l1_equal_is_alive()
    assert offences(offence)["L1"] == (
        "j1 was orphaned at 101, but it was stamped at 1 for 100 ms, so its lease ran to 101"
    )


# The catalogue ----------------------------------------------------------------------------------


def test_the_catalogue_has_every_law_once() -> None:
    """L1 to L16, the first half of L12 by itself, the fleet's, and the shape of a lease; ids are
    unique."""
    numbered = {f"L{number}" for number in range(1, 17)} | {f"F{n}" for n in range(1, 6)}
    assert sorted(law.id for law in LAWS) == sorted({*numbered, "L12a", "WF"})
    assert {law.id: law for law in LAWS} == dict(BY_ID)


def test_every_law_has_a_sentence_and_a_predicate() -> None:
    """Only a law about the source itself is judged by a test of the source."""
    for law in LAWS:
        assert law.sentence.endswith(".")
        assert law.sentence[0].isupper()
        assert (law.broken is None) == (law.judges is Judges.CODE)
    assert [law.id for law in LAWS if law.judges is Judges.CODE] == ["L16"]


def test_a_step_is_judged_by_the_laws_that_its_command_can_break() -> None:
    """A law about some commands judges those; a law about any judges all that can write."""
    for command in all_commands():
        judged = step_laws(command)
        if command in READS:
            assert judged == ()
            continue
        for law in LAWS:
            expected = law.judges is Judges.STEP and (not law.on or command in law.on)
            assert (law in judged) is expected


READERS: Final[tuple[c.Command[Any], ...]] = (
    c.Suspects(),
    c.LookOverdue(RETENTION_MS, Ms(500), Ms(60)),
    c.Find("j1"),
    c.ReadRequest("j1"),
    c.ReadOutput("j1"),
    c.ReadEvents(),
    c.ListInstances(),
    c.Count(),
    c.ListConsumers(),
    c.ReadDeadLetters("mail"),
)


def test_reads_change_nothing() -> None:
    """What no law judges, because it is a read, changes no row and leaves no event."""
    assert {type(command) for command in READERS} == READS
    for scene in (Scene(), running(), orphaned(), completed()):
        for command in READERS:
            decision = decide(scene.store.world, command, StoreMs(5_000))
            assert decision.changes == ()
            assert decision.events == ()


@pytest.mark.parametrize("law", [law for law in LAWS if law.of_rows], ids=lambda law: law.id)
def test_a_law_of_rows_needs_a_row_or_an_event_to_be_broken(law: Law) -> None:
    """A step that changed no job and left no event passes it, whatever the command and reply."""
    assert law.broken is not None
    scene = requeued()
    commands: tuple[c.Command[Any], ...] = (
        admit("j2"), c.Enqueue("j2"), sweep(), complete(), evict(), beat(("j1", 1)),
        c.Delay("j1", 1, 1, "S"), c.Requeue("j1", 1), c.RequestCancel("j1"), c.Withdraw("j1", "A"),
    )  # fmt: skip
    for command in commands:
        step = scene.step(120, command, lambda d: evolve(d, changes=(), events=()))
        assert law.broken(step) is None


@pytest.mark.parametrize("law", [law for law in LAWS if law.of_moves], ids=lambda law: law.id)
def test_a_law_of_moves_needs_a_job_that_moves_to_be_broken(law: Law) -> None:
    """A step in which every job keeps its status passes it, whatever else became of the rows."""
    assert law.broken is not None
    scene = running()
    commands: tuple[c.Command[Any], ...] = (
        sweep(), evict(), beat(("j1", 1)), c.Delay("j1", 1, 1, "S"), c.RequestCancel("j1"),
    )  # fmt: skip
    job = scene.store.world.jobs["j1"]
    twisted = evolve(job, lease=evolve(job.lease, epoch=9, beats=7, deadline=None, owner=None))
    row = Change(Table.JOBS, "j1", twisted)
    for command in commands:
        step = scene.step(5_000, command, lambda d: evolve(d, changes=(row,)))
        assert law.broken(step) is None


# What an instance sends -------------------------------------------------------------------------

COMMANDS: Final[dict[Act, c.Command[Any]]] = {
    Act.ADMIT: admit(),
    Act.CLAIM: c.Claim("A", 1, TERMS),
    Act.START: c.Start("j1", "A", 1, TERMS),
    Act.DELAY: c.Delay("j1", 1, 1, "A"),
    Act.SWEEP: sweep(),
}
ALWAYS: Final[tuple[c.Command[Any], ...]] = (
    beat(("j1", 1)),
    complete(),
    output(),
    c.Release("j1", "A", 1),
    c.Withdraw("j1", "A"),
    c.Register("A"),
    c.Suspects(),
)


def found(law_id: str, observation: Any) -> str | None:
    predicate = BY_ID[law_id].broken
    assert predicate is not None
    return predicate(observation)


@pytest.mark.parametrize("phase", Phase)
def test_l10_forbids_what_the_hearts_table_does_not_allow(phase: Phase) -> None:
    """The law, written from its sentence, and the heart's table agree about every phase."""
    for act, command in COMMANDS.items():
        sentence = found("L10", Send("A", command, phase, repeat=False))
        assert (sentence is None) is (act in MAY[phase]), f"{act} while {phase}"
        assert found("L10", Send("A", command, phase, repeat=True)) is None
    for command in ALWAYS:
        assert found("L10", Send("A", command, phase, repeat=False)) is None


@pytest.mark.parametrize(
    ("requeue", "now", "lawful"),
    [
        (RequeueRule.ALLOWED, 1_089, True),
        (RequeueRule.ALLOWED, 1_090, False),
        (RequeueRule.ALLOWED, 5_000, False),
        (RequeueRule.NEVER, 5_000, True),
    ],
)
def test_l11_ends_requeueable_work_at_its_local_deadline(
    requeue: RequeueRule, now: int, lawful: bool
) -> None:
    """The last step begins a millisecond before first send + ttl - margin."""
    work = Work("A", "j1", requeue, MonoMs(now), MonoMs(1_000), Ms(100), Ms(10))
    assert (found("L11", work) is None) is lawful


@pytest.mark.parametrize("requeue", RequeueRule)
def test_l11_lets_nobody_work_without_a_grant(requeue: RequeueRule) -> None:
    """Whether the job may be requeued or not."""
    work = Work("A", "j1", requeue, MonoMs(0), None, Ms(0), Ms(10))
    assert found("L11", work) == "A began a step of j1 without any grant"


@pytest.mark.parametrize(
    ("stood", "gap", "lawful"),
    [(2_400, 300, True), (9_000, 0, True), (2_399, 300, False), (2_400, 301, False)],
)
def test_l12a_wants_a_whole_window_without_a_gap(stood: int, gap: int, lawful: bool) -> None:
    """At exactly the window and exactly the gap it is lawful, also beside another target."""
    sight = Sight("j1", Ms(2_400), Ms(stood), Ms(gap), Ms(300))
    good = Sight("j0", Ms(2_400), Ms(5_000), Ms(100), Ms(300))
    send = Send("S", sweep(), Phase.STEADY, repeat=False, sights=(good, sight))
    assert (found("L12a", send) is None) is lawful
    assert (found("L12a", evolve(send, command=c.ExpireQueued("j1"))) is None) is lawful
    assert found("L12a", evolve(send, sights=())) is None


TRUTH: Final = SweepTruth(
    "j1",
    "S",
    "A",
    owner_lives=True,
    ttl_ms=Ms(4_000),
    heartbeat_ms=Ms(800),
    silent_ms=Ms(4_500),
    shared_fault=False,
    own_fault_ms=Ms(0),
    flaps=0,
    flaps_allowed=2,
)


@pytest.mark.parametrize(
    ("truth", "lawful"),
    [
        (evolve(TRUTH, owner_lives=False), True),
        (TRUTH, False),
        (evolve(TRUTH, own_fault_ms=Ms(3_200)), False),
        (evolve(TRUTH, own_fault_ms=Ms(3_201)), True),
        (evolve(TRUTH, shared_fault=True), False),
        (evolve(TRUTH, shared_fault=True, own_fault_ms=Ms(1)), True),
        (evolve(TRUTH, shared_fault=True, flaps=2), False),
        (evolve(TRUTH, shared_fault=True, flaps=3), True),
        (evolve(TRUTH, shared_fault=True, flaps=3, owner_lives=False), True),
    ],
)
def test_l12_spares_a_live_owner_but_for_its_own_long_fault(
    truth: SweepTruth, lawful: bool
) -> None:
    """One owner's own faults are survived up to ttl less a heartbeat; a shared fault always, with
    as many flaps as the window allows."""
    assert (found("L12", truth) is None) is lawful


@pytest.mark.parametrize(
    ("silent", "watched", "lawful"),
    [(8_300, 9_000, True), (8_301, 8_301, False), (8_301, 8_300, True), (9_000, 9_001, False)],
)
def test_l13_bounds_how_long_a_watched_job_is_neglected(
    silent: int, watched: int, lawful: bool
) -> None:
    """At the bound it is lawful; past it only if nobody was steady all the while."""
    neglect = Neglect("j1", Ms(silent), Ms(8_300), "S", Ms(watched))
    assert (found("L13", neglect) is None) is lawful


@pytest.mark.parametrize(
    ("requeue", "reached", "lawful"),
    [
        (RequeueRule.ALLOWED, 1, True),
        (RequeueRule.ALLOWED, 2, False),
        (RequeueRule.NEVER, 2, True),
    ],
)
def test_f3_ends_requeueable_work_before_its_epoch_is_over(
    requeue: RequeueRule, reached: int, lawful: bool
) -> None:
    """Work that nobody else will do may go on, and heals or leaves a stale result."""
    work = Work("A", "j1", requeue, MonoMs(0), MonoMs(0), Ms(100), Ms(10), epoch=1, reached=reached)
    assert (found("F3", work) is None) is lawful


@pytest.mark.parametrize(
    ("number", "handled", "lawful"),
    [(6, True, True), (3, True, True), (7, True, False), (5, False, True), (6, False, False)],
)
def test_f4_wants_each_event_handled_in_its_turn_before_it_is_acknowledged(
    number: int, handled: bool, lawful: bool
) -> None:
    """Of the events, 1 to 5 are done with."""
    assert (found("F4", Delivery("mail", number, done=5, handled=handled)) is None) is lawful


# The ghosts -------------------------------------------------------------------------------------


def test_the_history_remembers_each_jobs_last_stamp() -> None:
    """Admit, claim, start and renewal stamp by the terms they bear; a delay and a repeat do not."""
    scene = Scene().run(0, admit("j1", transport=Transport.HTTP), c.Enqueue("q1"), c.Register("B"))
    assert scene.history.stamps == {"j1": Stamp(1, StoreMs(0), Ms(300))}
    scene.run(5, c.Claim("B", 1, TERMS)).run(6, c.Claim("B", 1, TERMS))
    assert scene.history.stamps["q1"] == Stamp(1, StoreMs(5), Ms(50))
    scene.run(7, c.Start("q1", "B", 1, TERMS), c.Start("j1", "A", 1, TERMS))
    assert scene.history.stamps["q1"] == Stamp(1, StoreMs(5), Ms(50))
    assert scene.history.stamps["j1"] == Stamp(1, StoreMs(7), Ms(300))
    scene.run(8, beat(("q1", 1), ("j1", 1), instance="B"))
    assert scene.history.stamps["q1"] == Stamp(1, StoreMs(8), Ms(100))
    assert scene.history.stamps["j1"] == Stamp(1, StoreMs(7), Ms(300))
    scene.run(109, c.Delay("q1", 1, 2, "S"))
    assert scene.history.stamps["q1"] == Stamp(1, StoreMs(8), Ms(100))


def test_the_history_remembers_with_what_an_instance_has_claimed() -> None:
    """Its greatest number, refused or not, and its budget; a claim by a stranger is none."""
    scene = Scene().run(0, c.Claim("A", 7, TERMS), c.Enqueue("j1"), c.Enqueue("j2"))
    assert scene.history.claimers == {}
    scene.run(1, c.Register("A", max_held=1), c.Claim("A", 3, TERMS), c.Claim("A", 4, TERMS))
    assert scene.history.claimers == {"A": Claimer(4, 1)}
    scene.run(2, c.Register("A", max_held=2), c.Claim("A", 2, TERMS))
    assert scene.history.claimers == {"A": Claimer(4, 2)}


def test_the_history_remembers_what_a_consumer_was_answered() -> None:
    """Whatever its row says; a consumer that was forgotten begins anew."""
    scene = taken_over().run(170, acknowledge(3, token=2, error="why"))
    known = Reader(2, 3, "S", StoreMs(261), 0, frozenset({3}))
    assert scene.history.readers == {"mail": known}
    scene.store.apply(Decision(None, (Change(Table.CONSUMERS, "mail", None),)))
    scene.history.remember(scene.step(180, acknowledge(1, token=2)))
    assert scene.history.readers == {"mail": known}
    back = taken_over().run(170, acknowledge(3, token=2, last=True)).run(300, lease("S"))
    assert back.history.readers == {"mail": Reader(3, 3, "S", StoreMs(400), 1)}
    assert back.run(401, c.ForgetConsumer("mail")).history.readers == {}


def test_the_history_forgets_an_evicted_job() -> None:
    """A row that is gone has no lease to judge."""
    scene = completed()
    assert "j1" in scene.history.stamps
    scene.run(1_051, evict())
    assert scene.history.stamps == {}
    assert scene.store.execute(c.Find("j1")) == r.Refused(StoreMs(1_051), Refusal.SPENT, None)
