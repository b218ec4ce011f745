"""The guards of the core that a test removes one by one, and what must notice each removal."""

from __future__ import annotations

from typing import Final

from attrs import frozen


@frozen
class Guard:
    """One condition of the core, as text that can be taken out."""

    name: str
    law: str
    """The law that it keeps."""
    file: str
    """The file under `core/`."""
    stands: str
    """The text, which must occur exactly once in the file."""
    removed: str
    """What stands in its place in the mutant."""
    matters: str
    """What could happen without it."""
    theorems: tuple[str, ...]
    """The theorems that speak of it; each of them must be refuted."""


_CALL: Final = "        return _status_refusal(lease)\n"

LEASE_GUARDS: Final = (
    Guard(
        "the deadline is past",
        "L1",
        "lease.py",
        "    if lease.deadline >= now:\n        return Refusal.NOT_EXPIRED\n",
        "",
        "after the clock was set back, a sweep on its way orphans a job whose lease runs again",
        ("a_sweep_takes_only_the_suspect_it_saw",),
    ),
    Guard(
        "the stamp that was seen",
        "L2",
        "lease.py",
        "    if lease.beats != beats:\n        return Refusal.BEATS_MOVED\n",
        "",
        "a late sweep orphans a job that was renewed since, as soon as it is a suspect again",
        ("a_sweep_takes_only_the_suspect_it_saw",),
    ),
    Guard(
        "a stamp is counted",
        "L2",
        "lease.py",
        "        beats=lease.beats + 1,\n"
        "        deadline=StoreMs(now + ttl_ms),\n"
        "        ttl_ms=greatest,\n",
        "        deadline=StoreMs(now + ttl_ms),\n        ttl_ms=greatest,\n",
        "a renewal leaves the name of the stamp, so that a late sweep does not notice it",
        ("a_renewal_saves_from_a_sweep_under_way",),
    ),
    Guard(
        "the epoch of a write",
        "L3",
        "lease.py",
        "    if lease.epoch != epoch:\n        return Refusal.STALE_EPOCH\n"
        "    if lease.owner != owner:\n",
        "    if lease.owner != owner:\n",
        "an instance that has the job again, in a later epoch, loses it to its own late write",
        ("complete_is_fenced",),
    ),
    Guard(
        "the owner of a write",
        "L3",
        "lease.py",
        "    if lease.owner != owner:\n        return Refusal.NOT_OWNER\n",
        "",
        "an instance that knows another's epoch writes in its place",
        ("complete_is_fenced",),
    ),
    Guard(
        "the epoch of a sweep",
        "L3",
        "lease.py",
        "    if lease.epoch != epoch:\n        return Refusal.STALE_EPOCH\n"
        "    if lease.status not in MOVES[Kind.ORPHAN].leaves:\n",
        "    if lease.status not in MOVES[Kind.ORPHAN].leaves:\n",
        "a sweep of an epoch that nobody saw is taken for one that was confirmed",
        ("orphan_is_under_its_epoch",),
    ),
    Guard(
        "the epoch of an order",
        "L3",
        "lease.py",
        "    if lease.epoch != epoch:\n        return Refusal.STALE_EPOCH\n"
        "    if lease.status is not Status.ORPHANED:\n",
        "    if lease.status is not Status.ORPHANED:\n",
        "a late requeue or settlement of one orphan takes the orphan of a later epoch",
        ("requeue_is_under_its_epoch",),
    ),
    Guard(
        "an end is not completed",
        "L4",
        "lease.py",
        "    if lease.status not in MOVES[Kind.COMPLETE].leaves | MOVES[Kind.HEAL].leaves:\n"
        + _CALL,
        "",
        "a second completion changes a job that is over",
        ("complete_leaves_what_is_over",),
    ),
    Guard(
        "an end is not renewed",
        "L4",
        "lease.py",
        "    if lease.status not in MOVES[Kind.RENEW].leaves:\n" + _CALL,
        "",
        "a late heartbeat gives a deadline to a job that is over or orphaned",
        ("renew_leaves_what_is_over",),
    ),
    Guard(
        "an end is not canceled",
        "L4",
        "lease.py",
        "    if lease.status in TERMINAL:\n        return Refusal.ALREADY_TERMINAL\n    asked",
        "    asked",
        "a late cancel request changes a job that is over",
        ("request_cancel_leaves_what_is_over",),
    ),
    Guard(
        "an end is not released",
        "L4",
        "lease.py",
        "    if lease.status not in MOVES[Kind.RELEASE].leaves:\n" + _CALL,
        "",
        "a late release brings a job back to the queue that is over or orphaned",
        ("release_leaves_what_is_over",),
    ),
    Guard(
        "an end is not started",
        "L4",
        "lease.py",
        "    if lease.status not in MOVES[Kind.START].leaves:\n" + _CALL,
        "",
        "a late start makes a job run that is over or orphaned",
        ("start_leaves_what_is_over",),
    ),
    Guard(
        "only an orphan is requeued",
        "L4",
        "lease.py",
        "    if lease.status is not Status.ORPHANED:\n"
        "        return Refusal.ALREADY_TERMINAL if lease.status in TERMINAL else"
        " Refusal.NOT_ORPHANED\n",
        "",
        "a late requeue or settlement changes a job that has healed",
        ("requeue_leaves_what_is_over",),
    ),
    Guard(
        "no start under a request",
        "L7",
        "lease.py",
        "    if lease.cancel_requested_at is not None:\n        return Refusal.CANCEL_PENDING\n"
        "    return changed(_stamp",
        "    return changed(_stamp",
        "work begins that was canceled before",
        ("start_keeps_the_first_request",),
    ),
    Guard(
        "the first request stays",
        "L7",
        "lease.py",
        "cancel_requested_at=now if lease.cancel_requested_at is None"
        " else lease.cancel_requested_at,",
        "cancel_requested_at=now,",
        "a second request moves the time of the first",
        ("request_cancel_keeps_the_first_request",),
    ),
    Guard(
        "no queue under a request",
        "L7",
        "lease.py",
        "    canceled = lease.cancel_requested_at is not None\n",
        "    canceled = False\n",
        "a release or requeue brings back to the queue what was to be canceled",
        ("requeue_keeps_the_first_request", "release_keeps_the_first_request"),
    ),
    Guard(
        "an orphan is canceled at once",
        "L7",
        "lease.py",
        "lease.status is Status.ORPHANED or lease.owner is None",
        "lease.owner is None",
        "a request waits on an orphan for an owner that may be dead",
        ("a_request_ends_what_is_nobodys",),
    ),
    Guard(
        "what is nobody's is canceled at once",
        "L7",
        "lease.py",
        "lease.status is Status.ORPHANED or lease.owner is None",
        "lease.status is Status.ORPHANED",
        "a request waits on a queued job that nobody owns",
        ("a_request_ends_what_is_nobodys",),
    ),
    Guard(
        "one delay in an epoch",
        "L9",
        "lease.py",
        "    if lease.delayed_at is not None:\n        return Refusal.DELAYED_BEFORE\n",
        "",
        "process evidence delays the sweep of a dead job again and again",
        ("a_delay_is_the_epochs_first",),
    ),
)

SET_GUARDS: Final = (
    Guard(
        "an id is used once",
        "L6",
        "world.py",
        "cmd.job_id in world.ids:\n        return _born_before(world, cmd.job_id, None, now)\n",
        "cmd.job_id in world.jobs:\n        return _born_before(world, cmd.job_id, None, now)\n",
        "a late enqueue queues a job whose id was spent or evicted",
        ("a_late_enqueue_queues_nothing",),
    ),
    Guard(
        "a request before the birth spends the id",
        "L6",
        "world.py",
        "    changes = () if job_id in world.ids else (spent,)\n",
        "    changes = () if spent else (spent,)\n",
        "a job that was canceled or withdrawn before it came is born all the same",
        ("a_request_before_the_birth_spends_the_id",),
    ),
    Guard(
        "a key names the newest job",
        "L15",
        "world.py",
        "() if key is None else (Change(Table.KEYS, key, DedupKey(cmd.job_id, now)),)\n",
        "()\n",
        "an equal request gets a second job beside the first",
        (),
    ),
    Guard(
        "only what lives or is completed is joined",
        "L15",
        "world.py",
        "    return handed_out and window_ms > 0",
        "    return window_ms > 0",
        "an equal request gets a job that is orphaned, failed or canceled",
        ("an_equal_request_gets_the_twin",),
    ),
    Guard(
        "a change leaves its event",
        "L5",
        "world.py",
        "        (_event(kind, before, after, now, actor),),\n",
        "        (),\n",
        "a job starts, ends or is canceled and its history does not tell",
        ("start_leaves_one_event", "complete_leaves_one_event"),
    ),
    Guard(
        "a sweep leaves its event",
        "L5",
        "world.py",
        "(*events, *further))\n",
        "())\n",
        "a job is orphaned and its history does not tell",
        ("orphan_leaves_one_event",),
    ),
    Guard(
        "a stale result leaves one event",
        "L5",
        "world.py",
        "        events = () if event_key(stale) in world.events else (stale,)\n",
        "        events = (stale,)\n",
        "a late completion that comes twice is told twice",
        ("a_stale_result_leaves_one_event",),
    ),
    Guard(
        "the last number outlives its instance",
        "F1",
        "world.py",
        "    left = None if row.claim_no == 0 else changed(row, gone_at=now)\n",
        "    left = None\n",
        "a claim that comes twice, and late, takes a job for an instance that is gone",
        (),
    ),
)

GUARDS: Final = (*LEASE_GUARDS, *SET_GUARDS)
