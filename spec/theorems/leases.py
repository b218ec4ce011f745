"""The laws that one lease keeps by itself: L1 to L4, L7, L9, and what retention asks (L14)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from unswept.core import lease as rules
from unswept.core import outbox
from unswept.core.lease import ACTIVE, TERMINAL, Lease, RequeueRule, Status
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.spec.theorems.drawn import Asked, Name
from unswept.spec.theorems.steps import MOVES, Move, Outcome
from unswept.spec.theorems.theorem import Edit, Theorem, theorem

# L1: the whole ttl runs ---------------------------------------------------------------------------


def a_grant_stamps_the_whole_ttl(
    owner: Name, ttl_ms: Ms, confirm_ms: Ms, requeue: RequeueRule, now: StoreMs
) -> bool:
    """An admit stamps the deadline now + ttl."""
    return rules.admit(owner, ttl_ms, confirm_ms, requeue, now).deadline == now + ttl_ms


def a_claim_stamps_the_whole_ttl(lease: Lease, asked: Asked) -> bool | None:
    """A claim stamps the deadline now + ttl, and counts the stamp."""
    after = rules.claim(lease, asked.owner, asked.ttl_ms, asked.confirm_ms, asked.now)
    return _stamped(lease, asked, after)


def a_start_stamps_the_whole_ttl(lease: Lease, asked: Asked) -> bool | None:
    """The start of a queued job stamps the deadline now + ttl, whatever stood there, and counts the
    stamp; a start of a job that runs stamps nothing."""
    after = rules.start(lease, asked.owner, asked.epoch, asked.ttl_ms, asked.confirm_ms, asked.now)
    if lease.status is Status.RUNNING and not isinstance(after, Refusal):
        return after == lease
    return _stamped(lease, asked, after)


def a_renewal_overwrites(lease: Lease, asked: Asked) -> bool | None:
    """A renewal stamps the deadline now + ttl, whatever stood there, also if that is sooner, and
    counts the stamp."""
    after = rules.renew(lease, asked.owner, asked.epoch, asked.ttl_ms, asked.confirm_ms, asked.now)
    return _stamped(lease, asked, after)


def _stamped(before: Lease, asked: Asked, after: Outcome) -> bool | None:
    if isinstance(after, Refusal):
        return None
    whole = after.deadline == asked.now + asked.ttl_ms
    return whole and after.beats == before.beats + 1 and after.confirm_ms == asked.confirm_ms


# L2: only a confirmed suspect is swept ------------------------------------------------------------


def a_sweep_takes_only_the_suspect_it_saw(lease: Lease, asked: Asked) -> bool | None:
    """A sweep changes only a lease that is active, owned, past its deadline, and under the very
    (epoch, beats) that the sweeper saw; a deadline equal to now is alive."""
    after = rules.orphan(lease, asked.epoch, asked.beats, asked.now)
    return None if isinstance(after, Refusal) else _is_seen_suspect(lease, asked)


def a_sweep_takes_every_suspect_it_saw(lease: Lease, asked: Asked) -> bool | None:
    """A suspect that stands under the (epoch, beats) that was seen is orphaned: nothing else can
    keep it."""
    if not _is_seen_suspect(lease, asked):
        return None
    after = rules.orphan(lease, asked.epoch, asked.beats, asked.now)
    return not isinstance(after, Refusal) and after.status is Status.ORPHANED


def a_delay_takes_only_the_suspect_it_saw(lease: Lease, asked: Asked) -> bool | None:
    """A delay changes only a suspect under the very (epoch, beats) that was seen."""
    after = rules.delay(lease, asked.epoch, asked.beats, asked.now)
    return None if isinstance(after, Refusal) else _is_seen_suspect(lease, asked)


def _is_seen_suspect(lease: Lease, asked: Asked) -> bool:
    return (
        lease.status in ACTIVE
        and lease.owner is not None
        and lease.deadline is not None
        and lease.deadline < asked.now
        and lease.epoch == asked.epoch
        and lease.beats == asked.beats
    )


def a_renewal_saves_from_a_sweep_under_way(
    lease: Lease, asked: Asked, sweep_at: StoreMs
) -> bool | None:
    """A sweep that saw the stamp before a renewal changes nothing after it, whatever the clock."""
    after = rules.renew(lease, asked.owner, asked.epoch, asked.ttl_ms, asked.confirm_ms, asked.now)
    if isinstance(after, Refusal):
        return None
    return rules.orphan(after, lease.epoch, lease.beats, sweep_at) is Refusal.BEATS_MOVED


# L3: the fence ------------------------------------------------------------------------------------


def _fenced(name: str, write: Move, twin: Edit) -> Theorem:
    def claim(lease: Lease, asked: Asked) -> bool | None:
        after = write.ask(lease, asked)
        if lease.epoch == asked.epoch and lease.owner == asked.owner:
            return None
        return after in (Refusal.STALE_EPOCH, Refusal.NOT_OWNER)

    says = f"A {name} under another epoch or owner changes nothing, and says so."
    return Theorem(f"{name}_is_fenced", "L3", says, claim, twin)


def output_is_fenced(
    lease: Lease, owner: Name, epoch: int, late_output_ms: Ms, now: StoreMs
) -> bool | None:
    """Output under another epoch or owner is refused, and says so."""
    verdict = rules.may_append(lease, owner, epoch, None, late_output_ms, now)
    if lease.epoch == epoch and lease.owner == owner:
        return None
    return verdict in (Refusal.STALE_EPOCH, Refusal.NOT_OWNER)


def _under_its_epoch(name: str, write: Move, twin: Edit) -> Theorem:
    def claim(lease: Lease, asked: Asked) -> bool | None:
        if lease.epoch == asked.epoch:
            return None
        return write.ask(lease, asked) is Refusal.STALE_EPOCH

    says = f"A {name} under another epoch than the job's changes nothing, and says so."
    return Theorem(f"{name}_is_under_its_epoch", "L3", says, claim, twin)


_NAMED: Final = {move.name: move for move in MOVES}
_FENCES: Final = (
    _fenced("start", _NAMED["start"], Edit(rules.fence, "lease.owner != owner", "False")),
    _fenced("renew", _NAMED["renew"], Edit(rules.fence, "lease.epoch != epoch", "False")),
    _fenced(
        "complete",
        _NAMED["complete"],
        Edit(rules.complete, "fence(lease, owner, epoch)", "fence(lease, owner, lease.epoch)"),
    ),
    _fenced(
        "release",
        _NAMED["release"],
        Edit(rules.release, "fence(lease, owner, epoch)", "fence(lease, owner, lease.epoch)"),
    ),
    _under_its_epoch(
        "delay", _NAMED["delay"], Edit(rules._seen_suspect, "lease.epoch != epoch", "False")
    ),
    _under_its_epoch(
        "orphan", _NAMED["orphan"], Edit(rules._seen_suspect, "lease.epoch != epoch", "False")
    ),
    _under_its_epoch(
        "requeue", _NAMED["requeue"], Edit(rules._seen_orphan, "lease.epoch != epoch", "False")
    ),
    _under_its_epoch(
        "settle", _NAMED["settle"], Edit(rules._seen_orphan, "lease.epoch != epoch", "False")
    ),
)

# L4: what is over stays ---------------------------------------------------------------------------

_OUT_OF_ORPHANED: Final = frozenset({"complete", "requeue", "settle", "request_cancel", "withdraw"})


def _leaves_what_is_over(move: Move) -> Theorem:
    def claim(lease: Lease, asked: Asked) -> bool | None:
        if lease.status in ACTIVE:
            return None
        after = move.ask(lease, asked)
        if lease.status in TERMINAL or move.name not in _OUT_OF_ORPHANED:
            return isinstance(after, Refusal)
        if move.name == "complete" and not isinstance(after, Refusal):
            return (lease.owner, lease.epoch) == (asked.owner, asked.epoch)
        return True

    what = "a terminal lease"
    if move.name not in _OUT_OF_ORPHANED:
        what += ", nor an orphaned one"
    elif move.name == "complete":
        what += ", and heals an orphaned one only under its owner and epoch"
    return Theorem(
        f"{move.name}_leaves_what_is_over",
        "L4",
        f"A {move.name} never changes {what}.",
        claim,
        _REVIVES[move.name],
    )


_REVIVES: Final[Mapping[str, Edit]] = {
    "claim": Edit(
        rules.claim,
        "lease.status not in MOVES[Kind.CLAIM].leaves",
        "lease.status is Status.RUNNING",
    ),
    "start": Edit(
        rules.start,
        "lease.status not in MOVES[Kind.START].leaves",
        "lease.status is Status.ORPHANED",
    ),
    "renew": Edit(
        rules.renew,
        "lease.status not in MOVES[Kind.RENEW].leaves",
        "lease.status is Status.ORPHANED",
    ),
    "delay": Edit(
        rules.delay, "_seen_suspect(lease, epoch, beats, now)", "_seen_orphan(lease, epoch)"
    ),
    "orphan": Edit(
        rules.orphan, "_seen_suspect(lease, epoch, beats, now)", "_seen_orphan(lease, epoch)"
    ),
    "complete": Edit(
        rules.complete,
        "lease.status not in MOVES[Kind.COMPLETE].leaves | MOVES[Kind.HEAL].leaves",
        "lease.status is Status.EXPIRED",
    ),
    "release": Edit(
        rules.release,
        "lease.status not in MOVES[Kind.RELEASE].leaves",
        "lease.status is Status.COMPLETED",
    ),
    "request_cancel": Edit(
        rules.request_cancel, "lease.status in TERMINAL", "lease.status is Status.CANCELED"
    ),
    "requeue": Edit(
        rules._seen_orphan, "lease.status is not Status.ORPHANED", "lease.status in ACTIVE"
    ),
    "settle": Edit(
        rules._seen_orphan, "lease.status is not Status.ORPHANED", "lease.status in ACTIVE"
    ),
    "expire": Edit(
        rules.expire,
        "lease.status not in MOVES[Kind.EXPIRE].leaves",
        "lease.status is Status.RUNNING",
    ),
    "withdraw": Edit(
        rules.withdraw, "lease.status in MOVES[Kind.WITHDRAW].leaves and lease", "lease"
    ),
}


def late_output_ends(
    lease: Lease, asked: Asked, finished_at: StoreMs, late_output_ms: Ms
) -> bool | None:
    """Output comes too late more than late_output_ms after the end, and not before."""
    verdict = rules.may_append(
        lease, asked.owner, asked.epoch, finished_at, late_output_ms, asked.now
    )
    if verdict is not None and verdict is not Refusal.TOO_LATE:
        return None
    return (verdict is None) == (asked.now <= finished_at + late_output_ms)


# L5: no transition twice in one epoch -------------------------------------------------------------

_RANKS: Final = MappingProxyType(
    {
        Status.QUEUED: 0,
        Status.RUNNING: 1,
        Status.ORPHANED: 2,
        **dict.fromkeys(TERMINAL, 3),
    }
)
"""Within one epoch a lease only ever goes up."""


def _goes_up(move: Move, twin: Edit) -> Theorem:
    def claim(lease: Lease, asked: Asked) -> bool | None:
        after = move.ask(lease, asked)
        if isinstance(after, Refusal) or after.epoch != lease.epoch:
            return None
        return after.status is lease.status or _RANKS[after.status] > _RANKS[lease.status]

    return Theorem(
        f"{move.name}_goes_up_within_its_epoch",
        "L5",
        f"A {move.name} that keeps the epoch never takes a lease back to a status that it had "
        "in it, so that no two events of a job have the same epoch and kind.",
        claim,
        twin,
    )


# L7: the first cancel request ---------------------------------------------------------------------


def _keeps_the_first_request(move: Move) -> Theorem:
    def claim(lease: Lease, asked: Asked) -> bool | None:
        if lease.cancel_requested_at is None:
            return None
        after = move.ask(lease, asked)
        if isinstance(after, Refusal):
            return True
        started = lease.status is Status.QUEUED and after.status is Status.RUNNING
        back = after.status is Status.QUEUED and after.epoch != lease.epoch
        return not started and not back and after.cancel_requested_at == lease.cancel_requested_at

    return Theorem(
        f"{move.name}_keeps_the_first_request",
        "L7",
        f"Under a cancel request a {move.name} keeps its time, starts nothing, and brings nothing "
        "back to the queue.",
        claim,
        _FORGETS[move.name],
    )


_FORGETS: Final[Mapping[str, Edit]] = {
    "claim": Edit(rules.claim, "lease.cancel_requested_at is not None", "False"),
    "start": Edit(rules.start, "lease.cancel_requested_at is not None", "False"),
    "renew": Edit(
        rules._stamp, "confirm_ms=confirm_ms", "confirm_ms=confirm_ms, cancel_requested_at=None"
    ),
    "delay": Edit(rules.delay, "delayed_at=now", "delayed_at=now, cancel_requested_at=None"),
    "orphan": Edit(rules.orphan, "deadline=None", "deadline=None, cancel_requested_at=None"),
    "complete": Edit(rules.complete, "deadline=None", "deadline=None, cancel_requested_at=None"),
    "release": Edit(rules._back_to_queue, "lease.cancel_requested_at is not None", "False"),
    "request_cancel": Edit(
        rules.request_cancel,
        "now if lease.cancel_requested_at is None else lease.cancel_requested_at",
        "now",
    ),
    "requeue": Edit(rules._back_to_queue, "lease.cancel_requested_at is not None", "False"),
    "settle": Edit(rules._let_go, "owner=None", "owner=None, cancel_requested_at=None"),
    "expire": Edit(rules._let_go, "owner=None", "owner=None, cancel_requested_at=None"),
    "withdraw": Edit(rules.withdraw, "deadline=None", "deadline=None, cancel_requested_at=None"),
}


def a_request_ends_what_is_nobodys(lease: Lease, now: StoreMs) -> bool | None:
    """A cancel request that finds a job that is nobody's, queued or orphaned, cancels it at once;
    one that finds an owner leaves the job to it, and stands on the row."""
    after = rules.request_cancel(lease, now)
    if isinstance(after, Refusal):
        return None
    if lease.status is Status.ORPHANED or lease.owner is None:
        return after.status is Status.CANCELED and after.epoch == lease.epoch + 1
    first = now if lease.cancel_requested_at is None else lease.cancel_requested_at
    return after == changed(lease, cancel_requested_at=first)


# L9: process evidence -----------------------------------------------------------------------------


def a_delay_is_the_epochs_first(lease: Lease, asked: Asked) -> bool | None:
    """A lease that was delayed in this epoch is not delayed again, and a delay leaves its mark."""
    after = rules.delay(lease, asked.epoch, asked.beats, asked.now)
    if isinstance(after, Refusal):
        return None
    return lease.delayed_at is None and after.delayed_at == asked.now


def a_delay_never_shortens(lease: Lease, asked: Asked) -> bool | None:
    """A delay moves the deadline later by at least the ttl, by the row's own ttl from now, and
    counts as a stamp."""
    if lease.ttl_ms is None or lease.ttl_ms < 1:
        return None
    after = rules.delay(lease, asked.epoch, asked.beats, asked.now)
    if isinstance(after, Refusal) or lease.deadline is None:
        return None
    later = after.deadline is not None and after.deadline > lease.deadline + lease.ttl_ms
    return later and after.deadline == asked.now + lease.ttl_ms and after.beats == lease.beats + 1


def _keeps_the_delay(move: Move, twin: Edit) -> Theorem:
    def claim(lease: Lease, asked: Asked) -> bool | None:
        if lease.delayed_at is None:
            return None
        after = move.ask(lease, asked)
        if isinstance(after, Refusal):
            return None
        return after.delayed_at == lease.delayed_at

    return Theorem(
        f"{move.name}_keeps_the_delay",
        "L9",
        f"A {move.name} does not make a second delay in the same epoch possible.",
        claim,
        twin,
    )


def a_delay_never_vetoes(lease: Lease, asked: Asked) -> bool | None:
    """Whether a lease was delayed changes nothing about its sweep."""
    if lease.delayed_at is None:
        return None
    after = rules.orphan(lease, asked.epoch, asked.beats, asked.now)
    never_delayed = changed(lease, delayed_at=None)
    other = rules.orphan(never_delayed, asked.epoch, asked.beats, asked.now)
    if isinstance(after, Refusal) or isinstance(other, Refusal):
        return after is other
    return other.status is after.status


# L14: retention -----------------------------------------------------------------------------------


def an_eviction_takes_only_what_is_over(
    lease: Lease, epoch: int, finished_at: StoreMs, retention_ms: Ms, now: StoreMs
) -> bool | None:
    """Only a terminal job, under its epoch, is evicted, and only after its whole retention."""
    if rules.may_evict(lease, epoch, finished_at, retention_ms, now) is not None:
        return None
    whole = now > finished_at + retention_ms
    return whole and lease.status in TERMINAL and lease.epoch == epoch


def events_go_only_when_nobody_may_want_them(
    number: int,
    at: StoreMs,
    newest: int,
    behind: int,
    given_up: bool,
    event_retention_ms: Ms,
    now: StoreMs,
) -> bool | None:
    """The events of an evicted job go only after their whole retention, when the last consumer has
    come so far and none is a dead letter; and never the newest of all."""
    if not outbox.may_forget(number, at, newest, behind, given_up, event_retention_ms, now):
        return None
    return now > at + event_retention_ms and number <= min(behind, newest - 1) and not given_up


THEOREMS: Final = (
    theorem(
        "L1",
        a_grant_stamps_the_whole_ttl,
        Edit(rules._grant, "StoreMs(now + ttl_ms)", "StoreMs(ttl_ms)"),
    ),
    theorem(
        "L1",
        a_claim_stamps_the_whole_ttl,
        Edit(rules._grant, "beats=lease.beats + 1", "beats=1"),
    ),
    theorem(
        "L1",
        a_start_stamps_the_whole_ttl,
        Edit(rules.start, "return lease\n", "return _stamp(lease, ttl_ms, confirm_ms, now)\n"),
    ),
    theorem(
        "L1",
        a_renewal_overwrites,
        Edit(rules._stamp, "now + ttl_ms", "max(now + ttl_ms, lease.deadline or 0)"),
    ),
    theorem(
        "L2",
        a_sweep_takes_only_the_suspect_it_saw,
        Edit(rules._seen_suspect, "lease.deadline >= now", "lease.deadline > now"),
    ),
    theorem(
        "L2",
        a_sweep_takes_every_suspect_it_saw,
        Edit(rules._seen_suspect, "lease.deadline >= now", "lease.deadline >= now - 1"),
    ),
    theorem(
        "L2",
        a_delay_takes_only_the_suspect_it_saw,
        Edit(rules._seen_suspect, "lease.beats != beats", "lease.beats < beats"),
    ),
    theorem(
        "L2",
        a_renewal_saves_from_a_sweep_under_way,
        Edit(rules._stamp, "beats=lease.beats + 1", "beats=lease.beats"),
    ),
    *_FENCES,
    theorem("L3", output_is_fenced, Edit(rules.fence, "lease.owner != owner", "False")),
    *(_leaves_what_is_over(move) for move in MOVES),
    _goes_up(
        _NAMED["start"],
        Edit(rules.start, "return lease\n", "return changed(lease, status=Status.QUEUED)\n"),
    ),
    _goes_up(_NAMED["renew"], Edit(rules._stamp, "ttl_ms=greatest", "status=Status.QUEUED")),
    _goes_up(
        _NAMED["delay"], Edit(rules.delay, "delayed_at=now", "delayed_at=now, status=Status.QUEUED")
    ),
    _goes_up(_NAMED["orphan"], Edit(rules.orphan, "Status.ORPHANED", "Status.QUEUED")),
    _goes_up(
        _NAMED["complete"],
        Edit(rules.complete, "MOVES[Kind.HEAL].leaves", "TERMINAL"),
    ),
    _goes_up(
        _NAMED["request_cancel"],
        Edit(
            rules.request_cancel, "return asked\n", "return changed(asked, status=Status.QUEUED)\n"
        ),
    ),
    _goes_up(
        _NAMED["withdraw"],
        Edit(rules.withdraw, "lease.status in MOVES[Kind.WITHDRAW].leaves and lease", "lease"),
    ),
    theorem(
        "L4",
        late_output_ends,
        Edit(rules.may_append, "finished_at + late_output_ms < now", "finished_at < now"),
    ),
    *(_keeps_the_first_request(move) for move in MOVES),
    theorem(
        "L7",
        a_request_ends_what_is_nobodys,
        Edit(rules.request_cancel, "lease.status is Status.ORPHANED or ", ""),
    ),
    theorem(
        "L9",
        a_delay_is_the_epochs_first,
        Edit(rules.delay, "lease.delayed_at is not None", "False"),
    ),
    theorem(
        "L9",
        a_delay_never_shortens,
        Edit(rules._seen_suspect, "lease.deadline >= now", "lease.deadline >= now + 100"),
    ),
    _keeps_the_delay(
        _NAMED["start"], Edit(rules._stamp, "ttl_ms=greatest", "ttl_ms=greatest, delayed_at=None")
    ),
    _keeps_the_delay(
        _NAMED["renew"], Edit(rules._stamp, "ttl_ms=greatest", "ttl_ms=greatest, delayed_at=None")
    ),
    theorem(
        "L9",
        a_delay_never_vetoes,
        Edit(
            rules.orphan,
            "changed(lease, status=Status.ORPHANED, deadline=None)",
            "Refusal.DELAYED_BEFORE if lease.delayed_at is not None else "
            "changed(lease, status=Status.ORPHANED, deadline=None)",
        ),
    ),
    theorem(
        "L14",
        an_eviction_takes_only_what_is_over,
        Edit(rules.may_evict, "finished_at + retention_ms >= now", "finished_at >= now"),
    ),
    theorem(
        "F5",
        events_go_only_when_nobody_may_want_them,
        Edit(outbox.may_forget, "number <= behind", "number <= newest"),
    ),
)
