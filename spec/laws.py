"""The laws as data: id, sentence, what each judges, and the predicate that says how it was broken.

The simulator, the explorer and the audit all use these predicates. A predicate looks at one
observation (`unswept.spec.observations`) and returns None, or the offence in one sentence. It is
written from the law's sentence, not from the code that keeps the law.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.commands import Command
from unswept.core.heart import Phase
from unswept.core.job import Job, OnOrphan
from unswept.core.lease import ACTIVE, MOVES, TERMINAL, Kind, RequeueRule, Status, well_formed
from unswept.core.outbox import Consumer
from unswept.core.units import StoreMs
from unswept.spec.observations import (
    OF_OUTBOX,
    Delivery,
    Neglect,
    Outbox,
    Reader,
    Send,
    Step,
    SweepTruth,
    Work,
)


class Judges(StrEnum):
    """What kind of observation a law looks at."""

    STEP = "step"
    """One command that a store has executed."""
    SEND = "send"
    """One command that an instance sends."""
    WORK = "work"
    """One step of work that an instance begins."""
    SWEEP = "sweep"
    """A job that was orphaned, with the truth about its owner."""
    NEGLECT = "neglect"
    """An owned job that has not been renewed for a while."""
    DELIVERY = "delivery"
    """An event that a consumer handled, or acknowledged."""
    CODE = "code"
    """The source itself; a test reads it."""


Predicate = Callable[[Any], str | None]


@frozen
class Law:
    """One law of the protocol."""

    id: str
    sentence: str
    judges: Judges
    broken: Predicate | None
    """None where only a test of the source can judge."""
    on: tuple[type, ...] = ()
    """The commands on which a step, or their sending, can break the law; empty: any."""
    of_rows: bool = False
    """Only a step that changes a job's row, or leaves an event, can break the law."""
    of_moves: bool = False
    """Only a step that moves a job to another status, makes one or removes one, can break it."""


READS: Final = frozenset(
    {
        c.Suspects,
        c.LookOverdue,
        c.Find,
        c.ReadRequest,
        c.ReadOutput,
        c.ReadEvents,
        c.Count,
        c.ListConsumers,
        c.ReadDeadLetters,
        c.ListInstances,
    }
)
"""Commands that change nothing, by their very script."""


def _orphaned(step: Step) -> Iterable[tuple[Job, Job]]:
    for before, after in step.rows:
        if before is None or after is None:
            continue
        if after.lease.status is Status.ORPHANED and before.lease.status is not Status.ORPHANED:
            yield before, after


def _l1(step: Step) -> str | None:
    for before, _ in _orphaned(step):
        stamp = step.stamps.get(before.id)
        if stamp is None or stamp.epoch != before.lease.epoch:
            return f"{before.id} was orphaned in epoch {before.lease.epoch}, which stamped nothing"
        if step.now <= stamp.at + stamp.ttl_ms:
            return (
                f"{before.id} was orphaned at {step.now}, but it was stamped at {stamp.at} for "
                f"{stamp.ttl_ms} ms, so its lease ran to {stamp.at + stamp.ttl_ms}"
            )
    return None


def _l2(step: Step) -> str | None:
    for before, _ in _orphaned(step):
        lease = before.lease
        if lease.status not in ACTIVE or lease.owner is None or lease.deadline is None:
            return f"{before.id} was orphaned though it was {lease.status} and had no lease"
        if not lease.deadline < step.now:
            return f"{before.id} was orphaned at {step.now}, its deadline is {lease.deadline}"
        if not isinstance(step.command, c.Sweep):
            return f"{before.id} was orphaned by a {type(step.command).__name__}"
        seen = {(t.job_id, t.epoch, t.beats) for t in step.command.targets}
        if (before.id, lease.epoch, lease.beats) not in seen:
            return (
                f"{before.id} was orphaned at epoch {lease.epoch} and beat {lease.beats}, which is "
                f"not the stamp that the sweeper saw"
            )
    return None


_OWNER_COMMANDS: Final = (c.Start, c.Output, c.Complete, c.Release)
_BY_EPOCH: Final = (c.Requeue, c.Settle, c.Delay)


def _l3(step: Step) -> str | None:
    for before, after in step.rows:
        if before is not None and after is not None and after.lease.epoch < before.lease.epoch:
            return f"{after.id} went from epoch {before.lease.epoch} to {after.lease.epoch}"
    cmd = step.command
    if isinstance(cmd, c.Heartbeat):
        return _l3_heartbeat(step, cmd)
    if isinstance(cmd, _OWNER_COMMANDS):
        return _l3_owner(step, cmd)
    if isinstance(cmd, _BY_EPOCH):
        return _l3_by_epoch(step, cmd)
    return None


def _l3_owner(step: Step, cmd: c.Start | c.Output | c.Complete | c.Release) -> str | None:
    strangers = [after.id for _, after in step.rows if after is not None and after.id != cmd.job_id]
    if strangers:
        return f"{type(cmd).__name__} of {cmd.job_id} changed {strangers[0]}"
    job = step.before(cmd.job_id)
    if job is None:
        return None
    if (cmd.epoch, cmd.owner) == (job.lease.epoch, job.lease.owner):
        return _l3_repeat(step, cmd, job)
    if step.rows or step.output:
        return f"{type(cmd).__name__} under {cmd.owner}, epoch {cmd.epoch} changed {job.id}"
    if not isinstance(step.reply, r.Refused) and not _says_repeat(step):
        return f"{type(cmd).__name__} under {cmd.owner}, epoch {cmd.epoch} was not refused"
    if isinstance(cmd, c.Complete) and 1 <= cmd.epoch < job.lease.epoch:
        kept = (job.id, cmd.epoch, Kind.STALE_RESULT) in step.known_events
        if not kept and [event.kind for event in step.events] != [Kind.STALE_RESULT]:
            return f"the stale result of {job.id}, epoch {cmd.epoch}, left no event"
    return None


def _l3_repeat(step: Step, cmd: Command[Any], job: Job) -> str | None:
    """A repeated start stamps nothing: two stamps under one start would move the fence."""
    after = step.after(job.id)
    stamped = after is not None and after.lease != job.lease
    if isinstance(cmd, c.Start) and job.lease.status is Status.RUNNING and stamped:
        return f"a repeated start of {job.id} stamped it again"
    return None


def _l3_by_epoch(step: Step, cmd: c.Requeue | c.Settle | c.Delay) -> str | None:
    """Whoever acts on what was seen acts on that epoch alone."""
    for before, _ in step.rows:
        if before is None or before.id != cmd.job_id or before.lease.epoch != cmd.epoch:
            return f"{type(cmd).__name__} of {cmd.job_id}, epoch {cmd.epoch} changed another hold"
    return None


def _l3_heartbeat(step: Step, cmd: c.Heartbeat) -> str | None:
    held = {hold.job_id: hold.epoch for hold in cmd.holds}
    for before, _ in step.rows:
        if before is None:
            return "a heartbeat made a job"
        if before.lease.owner != cmd.instance or held.get(before.id) != before.lease.epoch:
            return f"a heartbeat of {cmd.instance} changed {before.id}, which it does not hold"
    return None


def _says_repeat(step: Step) -> bool:
    return isinstance(step.reply, r.Accepted) and step.reply.repeated


_OUT_OF_ORPHANED: Final = (c.Complete, c.Requeue, c.Settle, c.RequestCancel, c.Withdraw)


def _l4(step: Step) -> str | None:
    for before, after in step.rows:
        if before is None or before.lease.status in ACTIVE:
            continue
        if before.lease.status in TERMINAL and (after is not None or not step.is_eviction):
            return f"{before.id} was {before.lease.status} and was changed"
        if before.lease.status is Status.ORPHANED:
            if not isinstance(step.command, _OUT_OF_ORPHANED) and not _by_policy(step, before):
                return f"orphaned {before.id} was changed by {type(step.command).__name__}"
            healed = isinstance(step.command, c.Complete) and after is not None
            if healed and after is not None and after.lease.epoch != before.lease.epoch:
                return f"{before.id} healed under another epoch"
    cmd = step.command
    if isinstance(cmd, c.Output) and step.output:
        job = step.before(cmd.job_id)
        end = None if job is None else job.finished_at
        if end is not None and end + cmd.late_output_ms < step.now:
            return f"output of {cmd.job_id} landed {step.now - end} ms after its end"
    return None


def _l4_never(step: Step) -> str | None:
    cmd = step.command
    if isinstance(cmd, c.Requeue) and cmd.force:
        return None
    lets_go = isinstance(cmd, (c.Release, c.Requeue))
    for before, after in step.rows:
        if before is None or after is None:
            continue
        back = after.lease.epoch > before.lease.epoch and after.lease.status is Status.QUEUED
        if (back or lets_go) and before.lease.requeue is RequeueRule.NEVER:
            return f"{after.id} may not be requeued, and was let go by {type(cmd).__name__}"
    return None


def _by_policy(step: Step, orphan: Job) -> bool:
    """Was it orphaned in this very step, by a sweep that its policy bids go on?"""
    was = step.before(orphan.id)
    now = isinstance(step.command, c.Sweep) and was is not None and was.lease.status in ACTIVE
    return now and orphan.on_orphan in (OnOrphan.REQUEUE, OnOrphan.FAIL)


_WITHOUT_STATUS: Final = frozenset({Kind.DELAY, Kind.REQUEST_CANCEL, Kind.STALE_RESULT, Kind.EVICT})
"""Kinds of event that a transition may leave without a change of status."""


def _l5(step: Step) -> str | None:
    left = {(event.job_id, event.epoch): event for event in step.events}
    if len(left) != len(step.events):
        return "one command left two events for one job and epoch"
    if left:
        offence = _l5_events(step)
        if offence is not None:
            return offence
    for before, after in step.rows:
        if after is None:
            continue
        was = None if before is None else before.lease.status
        stays = before is not None and before.lease.epoch == after.lease.epoch
        if stays and was is after.lease.status:  # a release of a queued job moves the epoch
            silent = left.get((after.id, after.lease.epoch)) if left else None
            if silent is not None and silent.kind not in _WITHOUT_STATUS:
                return f"{after.id} stayed {was} and left the event {silent.kind}"
            continue
        event_ = left.get((after.id, after.lease.epoch))
        if event_ is None:
            return (
                f"{after.id} went from {was} to {after.lease.status}, epoch {after.lease.epoch}, "
                f"and left no event of it"
            )
        if event_.status is not after.lease.status:
            return f"the event of {after.id} says {event_.status}, epoch {event_.epoch}"
        steps = after.lease.epoch - (0 if before is None else before.lease.epoch)
        if not _kind_fits(event_.kind, was, after.lease.status, steps):
            return f"{after.id} went from {was} to {after.lease.status} by {event_.kind}"
    return None


def _l5_events(step: Step) -> str | None:
    """Each event is new, of a job that changed, and there are no more of them than changes."""
    changes = Counter(after.id for _, after in step.rows if after is not None)
    for job_id, count in Counter(event.job_id for event in step.events).items():
        if count > max(1, changes[job_id]):
            return f"one command left {count} events for {job_id}"
    for event in step.events:
        if (event.job_id, event.epoch, event.kind) in step.known_events:
            said = f"{event.kind} of {event.job_id}, epoch {event.epoch}"
            return f"the event {said}, was written twice"
    moved = {job.id for pair in step.rows for job in pair if job is not None}
    for event in step.events:
        if event.kind is not Kind.STALE_RESULT and event.job_id not in moved:
            return f"{event.job_id} did not change and left the event {event.kind}"
    return None


def _kind_fits(kind: Kind, was: Status | None, now: Status, steps: int) -> bool:
    if was is None:
        return now is Status.QUEUED and {Kind.ADMIT: 1, Kind.ENQUEUE: 0}.get(kind) == steps
    move = MOVES.get(kind)
    fits = move is not None and was in move.leaves and now in move.reaches
    return fits and move is not None and steps == move.epoch_step


def _l6(step: Step) -> str | None:
    for before, after in step.rows:
        if before is None and after is not None and after.id in step.used_ids:
            return f"the id {after.id} had been used and was queued again"
    cmd = step.command
    if isinstance(cmd, (c.Admit, c.Enqueue)) and cmd.job_id in step.used_ids and step.rows:
        return f"the id {cmd.job_id} had been used, and a late {type(cmd).__name__} changed a job"
    return None


def _l7(step: Step) -> str | None:
    for before, after in step.rows:
        if before is None or after is None or before.lease.cancel_requested_at is None:
            continue
        first, now = before.lease.cancel_requested_at, after.lease.cancel_requested_at
        if now != first:
            return f"the first cancel request of {after.id} was at {first}, the row says {now}"
        if before.lease.status is Status.QUEUED and after.lease.status is Status.RUNNING:
            return f"{after.id} was started under a cancel request"
        if after.lease.status is Status.QUEUED and after.lease.epoch > before.lease.epoch:
            return f"{after.id} went back to the queue under a cancel request"
    cmd = step.command
    if isinstance(cmd, c.RequestCancel):
        job = step.before(cmd.job_id)
        used = cmd.job_id in step.used_ids or cmd.job_id in step.newly_used
        if job is None and not used:
            return f"the cancel request came before {cmd.job_id} and is not remembered"
        if job is not None and (
            job.lease.status is Status.ORPHANED
            or (job.lease.status is Status.QUEUED and job.lease.owner is None)
        ):
            after = step.after(cmd.job_id)
            if after is None or after.lease.status is not Status.CANCELED:
                return f"{job.id} is nobody's, and the request did not cancel it"
        elif job is not None and job.lease.status in ACTIVE:
            asked = step.after(cmd.job_id)
            if asked is None or asked.lease.cancel_requested_at is None:
                return f"the cancel request did not stay on {job.id}"
    return None


_BEARING: Final = (r.Answer.RENEWED, r.Answer.ORPHANED)


def _l7_answers(step: Step) -> str | None:
    if not isinstance(step.reply, r.Beaten):
        return None
    changed = {after.id: after for _, after in step.rows if after is not None}
    for answer in step.reply.answers:
        if answer.answer not in _BEARING:
            continue
        job = changed.get(answer.job_id) or step.before(answer.job_id)
        if job is not None and answer.cancel_requested_at != job.lease.cancel_requested_at:
            return f"the answer for {job.id} does not bear its cancel request"
    return None


def _l8(step: Step) -> str | None:
    cmd, reply = step.command, step.reply
    if not isinstance(cmd, c.Heartbeat) or not isinstance(reply, r.Beaten):
        return None
    if [(a.job_id, a.epoch) for a in reply.answers] != [(h.job_id, h.epoch) for h in cmd.holds]:
        return "a heartbeat's answers are not one per hold, in their order"
    for answer in reply.answers:
        expected = _expected_answer(step.before(answer.job_id), cmd.instance, answer.epoch)
        if answer.answer is not expected and answer.answer is not r.Answer.BUSY:
            return f"{answer.job_id} was answered {answer.answer}, but it is {expected}"
    renewed = {a.job_id: a.deadline for a in reply.answers if a.answer is r.Answer.RENEWED}
    for before, after in step.rows:
        if before is None or after is None:
            continue
        deadline = renewed.pop(before.id, None)
        due = step.now + cmd.terms.ttl_ms(before.transport)
        if after.lease.beats != before.lease.beats + 1 or after.lease.deadline != due:
            return f"the renewal of {before.id} stamped {after.lease.deadline}, not {due}"
        if deadline != due:
            return f"{before.id} was told the deadline {deadline}, the row says {due}"
    if renewed:
        return f"{next(iter(renewed))} was answered renewed, and its row did not change"
    return None


def _expected_answer(job: Job | None, instance: str, epoch: int) -> r.Answer:
    if job is None:
        return r.Answer.ABSENT
    if (job.lease.owner, job.lease.epoch) != (instance, epoch):
        return r.Answer.FENCED
    if job.lease.status in ACTIVE:
        return r.Answer.RENEWED
    return r.Answer.TERMINAL if job.lease.status in TERMINAL else r.Answer.ORPHANED


def _l9(step: Step) -> str | None:
    for before, after in step.rows:
        if before is None or after is None:
            continue
        was, now = before.lease.delayed_at, after.lease.delayed_at
        if was == now and (was is None or not isinstance(step.command, c.Delay)):
            continue
        if before.lease.epoch != after.lease.epoch:
            continue
        if was is not None:
            return f"{after.id} was delayed twice in epoch {after.lease.epoch}"
        old, new = before.lease.deadline, after.lease.deadline
        if old is None or new is None or new < old or not old < step.now:
            return f"{after.id} was delayed from {old} to {new} at {step.now}"
    return None


_L10: Final[Mapping[type, frozenset[Phase]]] = MappingProxyType(
    {
        command: frozenset(phases)
        for commands, phases in (
            ((c.Admit, c.Claim, c.Start), {Phase.STEADY, Phase.FAINT}),
            ((c.Delay, c.Sweep), {Phase.STEADY}),
        )
        for command in commands
    }
)


def _l10(send: Send) -> str | None:
    if send.repeat:
        return None  # a claim in flight is repeated until it is answered, also while draining
    phases = _L10.get(type(send.command))
    if phases is not None and send.phase not in phases:
        return f"{send.instance} is {send.phase} and sent a {type(send.command).__name__}"
    return None


def _l11(work: Work) -> str | None:
    if work.stamped_from is None:
        return f"{work.instance} began a step of {work.job_id} without any grant"
    local_deadline = work.stamped_from + work.ttl_ms - work.margin_ms
    if work.requeue is RequeueRule.NEVER or work.now < local_deadline:
        return None
    return (
        f"{work.instance} began a step of {work.job_id} {work.now - work.stamped_from} ms after it "
        f"sent its last accepted stamp, whose ttl is {work.ttl_ms} ms"
    )


def _l12a(send: Send) -> str | None:
    for sight in send.sights:
        sent = f"{send.instance} sent its {type(send.command).__name__} of {sight.job_id}"
        if sight.stood_still_ms < sight.window_ms:
            return (
                f"{sent}, which had stood as it was seen for only {sight.stood_still_ms} of "
                f"{sight.window_ms} ms"
            )
        if sight.longest_gap_ms > sight.gap_ms:
            return (
                f"{sent} after a gap of {sight.longest_gap_ms} ms in its own beats, more than "
                f"{sight.gap_ms}"
            )
    return None


def _l12(truth: SweepTruth) -> str | None:
    if not truth.owner_lives:
        return None
    if truth.shared_fault:
        spared = truth.own_fault_ms == 0 and truth.flaps <= truth.flaps_allowed
        cause = "a fault that nobody could renew in had ended, and its owner was not given a beat"
    else:
        spared = truth.own_fault_ms <= truth.ttl_ms - truth.heartbeat_ms
        cause = f"its owner's own faults took only {truth.own_fault_ms} of {truth.ttl_ms} ms"
    if not spared:
        return None
    return (
        f"{truth.job_id} was swept by {truth.sweeper} though {truth.owner} lives and holds it: "
        f"{cause} (last stamp {truth.silent_ms} ms before)"
    )


def _l13(neglect: Neglect) -> str | None:
    if neglect.silent_ms <= neglect.bound_ms or neglect.watched_ms < neglect.silent_ms:
        return None
    return (
        f"{neglect.job_id} was not renewed for {neglect.silent_ms} ms and is not orphaned; the "
        f"bound is {neglect.bound_ms} ms, and {neglect.watcher} was steady all the while"
    )


def _l14(step: Step) -> str | None:
    for before, after in step.rows:
        remembered = after is None or after.id in step.newly_used or after.id in step.used_ids
        if before is None and after is not None and not remembered:
            return f"{after.id} was born and its id is not remembered as used"
        if before is not None and after is not None and not _may_expire(before, after, step.now):
            return f"{after.id} expired before its queue deadline was over"
        if before is None or after is not None:
            continue
        cmd = step.command
        if not isinstance(cmd, c.Evict) or before.lease.status not in TERMINAL:
            return f"{before.id} was {before.lease.status} and is gone"
        if before.finished_at is None or not before.finished_at + cmd.retention_ms < step.now:
            return f"{before.id} was evicted before its retention was over"
        if before.id not in step.used_ids:
            return f"{before.id} was evicted and its id is not remembered"
    if step.left_behind:
        return f"{step.left_behind[0]} was evicted, and its request, result or output is left"
    return None


def _may_expire(before: Job, after: Job, now: int) -> bool:
    """Also where it does not."""
    if after.lease.status is not Status.EXPIRED or before.lease.status is Status.EXPIRED:
        return True
    return before.queue_deadline is not None and before.queue_deadline < now


def _l15(step: Step) -> str | None:
    cmd = step.command
    if not isinstance(cmd, c.Admit) or cmd.job_id in step.used_ids:
        return None
    twin = step.twin
    fits = twin is not None and not cmd.fresh and _handed_out(twin, cmd, step.now)
    joined = isinstance(step.reply, r.Joined)
    if joined and (twin is None or not fits or step.reply.standing.job_id != twin.id):
        return f"{cmd.job_id} joined {step.reply.standing.job_id}, which is not its twin"
    if fits and twin is not None and not joined:
        return f"the admit of {cmd.job_id} did not join its twin {twin.id}"
    return None


def _handed_out(job: Job, cmd: c.Admit, now: int) -> bool:
    if cmd.dedup_window_ms == 0 or now - job.admitted_at > cmd.dedup_window_ms:
        return False
    lease = job.lease
    if lease.status is Status.COMPLETED:
        return True
    return lease.status in ACTIVE and (lease.deadline is None or lease.deadline >= now)


def _well_formed(step: Step) -> str | None:
    for _, after in step.rows:
        if after is not None and not well_formed(after.lease):
            said = ", ".join(f"{name} {value}" for name, value in after.lease.__dict__.items())
            return f"{after.id} is malformed: {said}"
    return None


def _f1(step: Step) -> str | None:
    cmd = step.command
    if not isinstance(cmd, c.Claim):
        return None
    taken = [(before, after) for before, after in step.rows if before and after]
    if taken and cmd.claim_no <= step.claimer.last_no:
        return f"claim {cmd.claim_no} of {cmd.owner} was used before and took {taken[0][0].id} now"
    for before, after in taken:
        offence = _not_to_be_had(before, cmd, step.now) or _taken_wrongly(before, after, cmd)
        if offence is not None:
            return f"{cmd.owner} claimed {before.id}, which {offence}"
    return _f1_bounds(step, cmd, len(taken)) or _f1_order(step, cmd, [job for job, _ in taken])


def _not_to_be_had(job: Job, cmd: c.Claim, now: int) -> str | None:
    if job.lease.status is not Status.QUEUED or job.lease.owner is not None:
        return f"is {job.lease.status} and held by {job.lease.owner}"
    if job.lease.cancel_requested_at is not None:
        return f"somebody had asked to cancel at {job.lease.cancel_requested_at}"
    if job.not_before is not None and job.not_before > now:
        return f"nobody may claim before {job.not_before}, at {now}"
    if job.partition != cmd.partition:
        return f"is of partition {job.partition!r}, for {cmd.partition!r}"
    lacking = set(job.labels) - set(cmd.labels)
    return f"requires {sorted(lacking)}, which was not offered" if lacking else None


def _taken_wrongly(before: Job, after: Job, cmd: c.Claim) -> str | None:
    if (after.lease.owner, after.claim_no) != (cmd.owner, cmd.claim_no):
        return f"says owner {after.lease.owner} and claim {after.claim_no}"
    if after.lease.epoch != before.lease.epoch + 1 or after.attempts != before.attempts + 1:
        return (
            f"went from epoch {before.lease.epoch} and attempt {before.attempts} to epoch "
            f"{after.lease.epoch} and attempt {after.attempts}"
        )
    return None


def _f1_bounds(step: Step, cmd: c.Claim, taken: int) -> str | None:
    if taken > cmd.limit:
        return f"{cmd.owner} claimed {taken} jobs and had asked for {cmd.limit}"
    budget = step.claimer.max_held
    if budget is None or not taken:
        return None
    held = sum(
        1
        for job in step.jobs.values()
        if job.lease.owner == cmd.owner and job.claim_no is not None and job.lease.status in ACTIVE
    )
    if held + taken <= budget:
        return None
    return f"{cmd.owner} held {held} claimed jobs, claimed {taken} more, and may hold {budget}"


def _f1_order(step: Step, cmd: c.Claim, taken: list[Job]) -> str | None:
    if not taken:
        return None
    ids = {job.id for job in taken}
    last = max(taken, key=_claimed_sooner)
    for job in step.jobs.values():
        sooner = _claimed_sooner(job) < _claimed_sooner(last) and job.id not in ids
        if sooner and _not_to_be_had(job, cmd, step.now) is None:
            return f"{cmd.owner} claimed {last.id}, and {job.id} came before it"
    return None


def _claimed_sooner(job: Job) -> tuple[int, int, str]:
    return (job.priority, job.admitted_at, job.id)


def _f2(step: Step) -> str | None:
    for before, _ in _orphaned(step):
        after = step.after(before.id)
        ends = Status.ORPHANED if after is None else after.lease.status
        expected = _by_its_policy(before)
        if ends is not expected:
            return (
                f"{before.id}, attempt {before.attempts} of {before.max_attempts}, was orphaned "
                f"and is {ends}; its policy is {before.on_orphan}, so that it had to be {expected}"
            )
    return None


def _by_its_policy(job: Job) -> Status:
    if job.on_orphan in (OnOrphan.MARK, OnOrphan.HOLD):
        return Status.ORPHANED
    if job.on_orphan is OnOrphan.FAIL:
        return Status.FAILED
    if job.max_attempts is not None and job.attempts >= job.max_attempts:
        return Status.FAILED
    return Status.QUEUED if job.lease.cancel_requested_at is None else Status.CANCELED


def _f3(work: Work) -> str | None:
    if work.requeue is RequeueRule.NEVER or work.reached <= work.epoch:
        return None
    return (
        f"{work.instance} began a step of {work.job_id} under epoch {work.epoch}, and the job has "
        f"reached epoch {work.reached}"
    )


def _f4(delivery: Delivery) -> str | None:
    if delivery.handled:
        if delivery.number <= delivery.done + 1:
            return None
        return (
            f"{delivery.consumer} handled event {delivery.number}, and had handled them only up to "
            f"{delivery.done}"
        )
    if delivery.number <= delivery.done:
        return None
    return (
        f"{delivery.consumer} acknowledged up to event {delivery.number}, and had handled them "
        f"only up to {delivery.done}"
    )


def _f5(step: Step) -> str | None:
    outbox = step.outbox
    if outbox is None:
        return None
    offence = _f5_of_consumer(step, outbox)
    return offence or (_f5_events(step, outbox) if outbox.forgotten else None)


def _f5_of_consumer(step: Step, outbox: Outbox) -> str | None:
    cmd = step.command
    if not isinstance(cmd, (c.LeaseEvents, c.Acknowledge, c.ForgetConsumer)):
        return None
    reader = outbox.readers.get(cmd.consumer, Reader())
    if isinstance(cmd, c.LeaseEvents):
        return _f5_leased(step, cmd, reader) or _f5_told(step.reply, outbox.row)
    if isinstance(cmd, c.Acknowledge):
        return _f5_acknowledged(step, cmd, reader, outbox)
    return _f5_consumer(step, cmd, reader, outbox.row)


def _f5_leased(step: Step, cmd: c.LeaseEvents, reader: Reader) -> str | None:
    now, reply = step.now, step.reply
    alive = reader.is_leased(now)
    others = alive and reader.holder != cmd.holder
    lease = f"the lease of {cmd.consumer}, {_holder(reader)}'s up to {reader.expires_at},"
    if not isinstance(reply, r.EventsLeased):
        if not others:
            return f"{lease} was refused to {cmd.holder} at {now}"
        return _f5_row(step, cmd.consumer, reader)
    if others:
        return f"{lease} was granted to {cmd.holder} at {now}"
    if (reply.token != reader.token) if alive else (reply.token <= reader.token):
        return f"{lease} was granted at {now} under token {reply.token}, after {reader.token}"
    until = StoreMs(now + cmd.lease_ms)
    return _f5_row(step, cmd.consumer, reader.leased(cmd.holder, reply.token, until))


def _f5_told(reply: Any, row: Consumer | None) -> str | None:
    """What a holder is told of its lease is what its row says."""
    if not isinstance(reply, r.EventsLeased) or row is None:
        return None
    told = (reply.token, reply.position, reply.expires_at, reply.attempts)
    if told == (row.token, row.position, row.expires_at, row.attempts):
        return None
    return f"{row.holder} was told {_lease(reply)}; the row of {row.name} says {_lease(row)}"


def _f5_acknowledged(step: Step, cmd: c.Acknowledge, reader: Reader, outbox: Outbox) -> str | None:
    newest = outbox.told.newest
    given_back = reader.holder is None and cmd.upto > reader.position
    may = reader.token == cmd.token and not given_back and cmd.upto <= newest
    took = isinstance(step.reply, r.Acknowledged)
    if took is not may:
        return (
            f"token {cmd.token} of {cmd.consumer} {'moved' if took else 'could not move'} it to "
            f"event {cmd.upto} of {newest}; the newest is {reader.token}, its holder is "
            f"{_holder(reader)}, and it has come to {reader.position}"
        )
    gives_up = cmd.error is not None
    after = reader.acknowledged(cmd.upto, cmd.last, gives_up) if took else reader
    letters = {(cmd.consumer, number) for number in after.given_up - reader.given_up}
    if letters != {*outbox.letters}:
        return (
            f"{cmd.consumer} acknowledged event {cmd.upto} and left {len(outbox.letters)} letters"
        )
    return _f5_row(step, cmd.consumer, after)


def _f5_consumer(
    step: Step, cmd: c.ForgetConsumer, reader: Reader, row: Consumer | None
) -> str | None:
    took, alive = isinstance(step.reply, r.Forgotten), reader.is_leased(step.now)
    lease = f"its lease is {_holder(reader)}'s up to {reader.expires_at}"
    if took is alive:
        return f"{cmd.consumer} was {'forgotten' if took else 'kept'} at {step.now}; {lease}"
    if took and row is not None:
        return f"{cmd.consumer} was forgotten and is still there"
    return None if took else _f5_row(step, cmd.consumer, reader)


def _f5_row(step: Step, name: str, reader: Reader) -> str | None:
    """The row is as everything that was answered has it."""
    assert step.outbox is not None
    row = step.outbox.row
    if row is None:
        return None if reader.token == 0 else f"the row of {name}, {_lease(reader)}, is gone"
    if (row.token, row.position, row.holder, row.expires_at, row.attempts) == reader[:5]:
        return None
    return (
        f"the row of {name} says {_lease(row)}, of {_holder(row)}; by what was answered it is "
        f"{_lease(reader)}, of {_holder(reader)}"
    )


def _holder(of: Consumer | Reader) -> str:
    return of.holder or "nobody"


def _lease(of: Consumer | Reader | r.EventsLeased) -> str:
    """All of a consumer's lease but its holder, in words."""
    return f"token {of.token} behind {of.position} up to {of.expires_at}, attempt {of.attempts}"


def _f5_events(step: Step, outbox: Outbox) -> str | None:
    """Why one of the jobs whose events it took should have kept them."""
    cmd = step.command
    retention_ms = cmd.event_retention_ms if isinstance(cmd, c.ForgetEvents) else None
    numbers: dict[str, list[int]] = {job_id: [] for job_id in outbox.forgotten}
    evicted: dict[str, int] = {}
    for number, event in outbox.told.behind(0):
        if event.job_id in numbers:
            numbers[event.job_id].append(number)
            if event.kind is Kind.EVICT:
                evicted[event.job_id] = event.at
    for job_id, own in numbers.items():
        if job_id in step.jobs or job_id not in evicted:
            return f"the events of {job_id} went, and it was not evicted"
        if retention_ms is None or not evicted[job_id] + retention_ms < step.now:
            return f"the events of {job_id}, evicted at {evicted[job_id]}, went at {step.now}"
        if own[-1] == outbox.told.newest:
            return f"the events of {job_id} went, and {own[-1]} was the newest of all"
        for name, reader in outbox.readers.items():
            if reader.position < own[-1]:
                return (
                    f"the events of {job_id} went up to {own[-1]}, and {name} had come to "
                    f"{reader.position}"
                )
            if not reader.given_up.isdisjoint(own):
                return f"the events of {job_id} went, one of which {name} had given up"
    return None


LAWS: Final[tuple[Law, ...]] = (
    Law(
        "L1",
        "A sweep at store time s orphans a job only if s > h + t, where h is the store time and t "
        "the ttl that the last accepted grant, start or renewal of its epoch stamped.",
        Judges.STEP,
        _l1,
        of_rows=True,
        of_moves=True,
    ),
    Law(
        "L2",
        "A sweep changes only a job that is active, owned, has deadline < now, and still bears the "
        "(epoch, beats) under which this sweeper first saw it.",
        Judges.STEP,
        _l2,
        of_rows=True,
        of_moves=True,
    ),
    Law(
        "L3",
        "Epochs never decrease; a write under another epoch or owner changes no job, output or "
        "deadline, and says so; a late result leaves one event.",
        Judges.STEP,
        _l3,
    ),
    Law(
        "L4",
        "Until its eviction a terminal job never changes; orphaned changes only by heal, requeue, "
        "settlement or cancel, or in the very sweep by the job's policy; a job that may not be "
        "requeued is released by nobody, and requeued by force alone.",
        Judges.STEP,
        lambda step: _l4(step) or _l4_never(step),
    ),
    Law(
        "L5",
        "Every transition that changes the status leaves exactly one event, keyed (job, epoch, "
        "kind), in the same transaction; a repeated command adds none.",
        Judges.STEP,
        _l5,
        of_rows=True,
    ),
    Law(
        "L6",
        "An id that has been used is never queued again by a late enqueue.",
        Judges.STEP,
        _l6,
        (c.Admit, c.Enqueue, c.Withdraw, c.RequestCancel),
        of_rows=True,
    ),
    Law(
        "L7",
        "The first cancel request stays on the row; every renewed or orphaned answer bears it; a "
        "first start under it is refused; nobody's job is canceled at once; an id that has no job "
        "yet is spent.",
        Judges.STEP,
        lambda step: _l7(step) or _l7_answers(step),
    ),
    Law(
        "L8",
        "Each hold named in a heartbeat gets exactly one answer, the first that applies; one bad "
        "hold never spoils the others.",
        Judges.STEP,
        _l8,
        (c.Heartbeat,),
    ),
    Law(
        "L9",
        "Process evidence delays a sweep at most once per epoch, never shortens a lease, never "
        "vetoes.",
        Judges.STEP,
        _l9,
        of_rows=True,
    ),
    Law(
        "L10",
        "An instance that is registering, quiesced, recovering or draining sends no admit, claim, "
        "start, delay or sweep; one that is faint sends no delay and no sweep.",
        Judges.SEND,
        _l10,
        tuple(_L10),
    ),
    Law(
        "L11",
        "Work whose job may be requeued starts no new step after its local deadline: the first "
        "send of the last accepted stamp, plus its ttl, less the margin.",
        Judges.WORK,
        _l11,
    ),
    Law(
        "L12a",
        "An instance sends a sweep only if through the whole window before that its own beats were "
        "accepted without a gap and the job's (epoch, beats) stood still; it evicts, expires and "
        "forgets only what all its looks through a whole window of steady beats have found due.",
        Judges.SEND,
        _l12a,
    ),
    Law(
        "L12",
        "A fault during which nobody can renew sweeps no job whose owner renews within one of its "
        "heartbeats after it; a fault of one owner alone is survived up to the stamped ttl less "
        "one heartbeat.",
        Judges.SWEEP,
        _l12,
    ),
    Law(
        "L13",
        "A job that is not renewed, while some instance that does not hold it stays steady, is "
        "orphaned by h + ttl + sweep interval + window + 2 operation timeouts, and breaker_max_ms "
        "more where a breaker defers.",
        Judges.NEGLECT,
        _l13,
    ),
    Law(
        "L14",
        "Nothing is lost: every id is active, orphaned, terminal, or evicted after its retention "
        "and still remembered as used; its request, result and output go with it; and nothing "
        "expires before its queue deadline is over.",
        Judges.STEP,
        _l14,
        of_rows=True,
        of_moves=True,
    ),
    Law(
        "L15",
        "An admit whose (principal, request key) names, as its newest job, one admitted within the "
        "window that is completed, or active and not suspect, gets that job.",
        Judges.STEP,
        _l15,
        (c.Admit,),
    ),
    Law(
        "L16",
        "No decision reads a wall clock, but for the SQLite store's one function, called with the "
        "write lock held.",
        Judges.CODE,
        None,
    ),
    Law(
        "F1",
        "A claim takes what waits in its partition, due, without a cancel request and with labels "
        "that it offers, by priority, age and id; within its limit and its owner's budget, under "
        "the next epoch and attempt, and nothing under a number that was used.",
        Judges.STEP,
        _f1,
        (c.Claim,),
        of_rows=True,
    ),
    Law(
        "F2",
        "The very sweep that orphans a job does with it what its policy says: nothing, fail it, or "
        "requeue it, unless it has been begun max_attempts times or a cancel is pending.",
        Judges.STEP,
        _f2,
        (c.Sweep,),
        of_rows=True,
        of_moves=True,
    ),
    Law(
        "F3",
        "Of work that may be requeued no step begins under an epoch that is over: it is never done "
        "twice at once.",
        Judges.WORK,
        _f3,
    ),
    Law(
        "F4",
        "A consumer handles every event at least once, or makes it a dead letter, before it is "
        "acknowledged; and none before those in front of it.",
        Judges.DELIVERY,
        _f4,
    ),
    Law(
        "F5",
        "Of a consumer's tokens the newest alone moves its position, until its lease is given up: "
        "forward only, and never past the newest event; a lease that is alive is nobody else's, "
        "one that is over is anybody's, and its grants since the last move are counted; and the "
        "events of a job go only when it is evicted, their retention is over, every consumer has "
        "come so far, and none of them is a dead letter or the newest of all.",
        Judges.STEP,
        _f5,
        OF_OUTBOX,
    ),
    Law(
        "WF",
        "Owned and active means that the deadline is set; running and orphaned mean owned; owned "
        "means epoch 1 or more; terminal and orphaned mean no deadline.",
        Judges.STEP,
        _well_formed,
        of_rows=True,
    ),
)

BY_ID: Final[Mapping[str, Law]] = MappingProxyType({law.id: law for law in LAWS})


def step_laws(command: type) -> tuple[Law, ...]:
    """The laws that a step with this command can break."""
    if command in READS:
        return ()
    return tuple(
        law for law in LAWS if law.judges is Judges.STEP and (not law.on or command in law.on)
    )
