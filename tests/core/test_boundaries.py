"""Every time that decides something, one millisecond before it, at it, and one after."""

from __future__ import annotations

import pytest

from tests.core.story import story
from unswept.core import lease as rules
from unswept.core.job import OnOrphan, Transport, enqueue
from unswept.core.lease import Lease, RequeueRule, Status
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.core.world import may_claim, may_join

TTL_MS = Ms(100)
OTHER_TTL_MS = Ms(60)
WINDOW_MS = Ms(30)


def admitted() -> Lease:
    return rules.admit("A", TTL_MS, WINDOW_MS, RequeueRule.ALLOWED, StoreMs(0))


@pytest.mark.parametrize(("now", "past"), [(99, False), (100, False), (101, True)])
def test_a_deadline_equal_to_now_is_alive(now: int, past: bool) -> None:
    """Only a deadline before now makes a suspect, a sweep or a delay. (L1)"""
    lease = admitted()
    assert rules.is_suspect(lease, StoreMs(now)) is past
    for rule in (rules.orphan, rules.delay):
        outcome = rule(lease, 1, 1, StoreMs(now))
        assert isinstance(outcome, Lease) if past else outcome is Refusal.NOT_EXPIRED


@pytest.mark.parametrize("now", [99, 100, 101, 5_000])
def test_a_lease_past_its_deadline_revives(now: int) -> None:
    """An owner that was not swept may start and renew whenever it comes. (L8)"""
    start = rules.start(admitted(), "A", 1, TTL_MS, WINDOW_MS, StoreMs(now))
    renewed = rules.renew(admitted(), "A", 1, TTL_MS, WINDOW_MS, StoreMs(now))
    assert isinstance(start, Lease)
    assert isinstance(renewed, Lease)
    assert start.deadline == renewed.deadline == now + TTL_MS


def test_a_stamp_overwrites_the_deadline_and_keeps_the_greatest_ttl() -> None:
    """The deadline is now + this ttl, also where that is sooner; ttl_ms is the epoch's greatest."""
    shorter = rules.renew(admitted(), "A", 1, OTHER_TTL_MS, Ms(20), StoreMs(10))
    assert isinstance(shorter, Lease)
    assert (shorter.deadline, shorter.ttl_ms, shorter.confirm_ms) == (70, TTL_MS, 20)
    longer = rules.renew(shorter, "A", 1, Ms(500), WINDOW_MS, StoreMs(11))
    assert isinstance(longer, Lease)
    assert (longer.deadline, longer.ttl_ms, longer.beats) == (511, 500, 3)


def test_a_grant_forgets_the_greatest_ttl_and_the_delay_of_the_epoch_before() -> None:
    """What stamps left belongs to one epoch. (L9)"""
    delayed = rules.delay(admitted(), 1, 1, StoreMs(101))
    assert isinstance(delayed, Lease)
    assert delayed.delayed_at == 101
    released = rules.release(delayed, "A", 1)
    assert isinstance(released, Lease)
    assert (released.delayed_at, released.ttl_ms, released.confirm_ms) == (None, None, None)
    claimed = rules.claim(released, "B", OTHER_TTL_MS, WINDOW_MS, StoreMs(200))
    assert isinstance(claimed, Lease)
    assert (claimed.epoch, claimed.beats, claimed.ttl_ms) == (3, 3, OTHER_TTL_MS)


def test_a_delay_stamps_the_rows_own_ttl() -> None:
    """Evidence stamps by the greatest ttl that the owner stamped, whoever sends it. (L9)"""
    shorter = rules.renew(admitted(), "A", 1, OTHER_TTL_MS, Ms(20), StoreMs(0))
    assert isinstance(shorter, Lease)
    delayed = rules.delay(shorter, 1, 2, StoreMs(61))
    assert isinstance(delayed, Lease)
    assert (delayed.deadline, delayed.ttl_ms, delayed.confirm_ms) == (161, TTL_MS, 20)
    assert rules.delay(delayed, 1, 3, StoreMs(500)) is Refusal.DELAYED_BEFORE


@pytest.mark.parametrize(("now", "over"), [(49, False), (50, False), (51, True)])
def test_a_queue_deadline_equal_to_now_is_not_past(now: int, over: bool) -> None:
    """A queued job may be claimed, and not expired, up to and at its queue deadline."""
    outcome = rules.expire(rules.enqueue(RequeueRule.NEVER), StoreMs(50), StoreMs(now))
    assert isinstance(outcome, Lease) if over else outcome is Refusal.NOT_DUE
    assert rules.expire(rules.enqueue(RequeueRule.NEVER), None, StoreMs(now)) is Refusal.NOT_DUE


@pytest.mark.parametrize(("now", "allowed"), [(29, True), (30, True), (31, False)])
def test_late_output_is_taken_up_to_its_bound(now: int, allowed: bool) -> None:
    """Output of the same epoch is taken until `late_output_ms` after the end, that one too. (L4)"""
    done = rules.complete(admitted(), "A", 1, Status.COMPLETED)
    assert isinstance(done, Lease)
    refusal = rules.may_append(done, "A", 1, StoreMs(10), Ms(20), StoreMs(now))
    assert refusal == (None if allowed else Refusal.TOO_LATE)
    assert rules.may_append(admitted(), "A", 1, None, Ms(20), StoreMs(now)) is None


@pytest.mark.parametrize(("now", "gone"), [(109, False), (110, False), (111, True)])
def test_retention_ends_after_its_last_millisecond(now: int, gone: bool) -> None:
    """A terminal job may be evicted only when its retention is past. (L14)"""
    done = rules.complete(admitted(), "A", 1, Status.FAILED)
    assert isinstance(done, Lease)
    refusal = rules.may_evict(done, 1, StoreMs(10), Ms(100), StoreMs(now))
    assert refusal == (None if gone else Refusal.NOT_DUE)


def test_not_before_counts_from_its_first_millisecond() -> None:
    """A job is not claimed before its `not_before`, and from that millisecond on it is."""
    story(
        """
        0   register A               -> registered, claims=0
        0   enqueue j1 from=50       -> enqueue: queued - e0 b0
        49  claim A 1                -> got: nothing
        50  claim A 2                -> got: j1 running A e1 b1 d100
        """
    )


def test_the_dedup_windows_last_millisecond_counts() -> None:
    """A twin is joined up to `dedup_window_ms` after its admission, that millisecond too. (L15)"""
    story(
        """
        0    admit j1 A key=p/k window=60    -> admit: queued A e1 b1 d100
        59   admit j2 B key=p/k window=60    -> joined j1: queued A e1 b1 d100
        60   admit j3 B key=p/k window=60    -> joined j1: queued A e1 b1 d100
        61   admit j4 B key=p/k window=60    -> admit: queued B e1 b1 d161
        """
    )


def test_a_dedup_window_of_zero_joins_nothing() -> None:
    """A window of 0 switches dedup off, also within one millisecond. (L15)"""
    story(
        """
        0  admit j1 A key=p/k window=0  -> admit: queued A e1 b1 d100
        0  admit j2 A key=p/k window=0  -> admit: queued A e1 b1 d100
        """
    )


def test_housekeeping_lists_only_what_is_past() -> None:
    """Equal is not past for an instance's silence, a dedup key's age and a queue deadline."""
    story(
        """
        0    register A                -> registered, claims=0
        0    admit j1 A key=p/k        -> admit: queued A e1 b1 d100
        0    enqueue j2 until=55       -> enqueue: queued - e0 b0
        0    withdraw j1 A             -> withdraw: failed A e1 b1
        55   overdue                   -> nothing
        56   overdue                   -> j2/0
        60   forget-key p k j1         -> forgot 0
        61   forget-key p k other      -> forgot 0
        61   overdue                   -> j2/0, p/k/j1
        61   forget-key p k j1         -> forgot 1
        61   forget-key p k j1         -> forgot 0
        500  overdue                   -> j2/0
        500  forget A/0                -> forgot 0
        501  overdue                   -> j2/0, A/0
        501  forget A/1                -> forgot 0
        501  forget A/0                -> forgot 1
        1000 overdue                   -> j2/0
        1001 overdue                   -> j1/1, j2/0
        """
    )


def test_what_a_store_may_hand_out_at_its_edges() -> None:
    """Whether a job may be claimed or joined is a rule of its own, which every store asks."""
    rules = (RequeueRule.NEVER, OnOrphan.MARK, None)
    job = enqueue("j", Transport.PROCESS, *rules, "gpu", 0, None, StoreMs(5), (), StoreMs(0))
    assert [may_claim(job, "gpu", StoreMs(now)) for now in (4, 5, 6)] == [False, True, True]
    assert not may_claim(job, "", StoreMs(5))
    assert [may_join(job, Ms(7), StoreMs(now)) for now in (6, 7, 8)] == [True, True, False]
