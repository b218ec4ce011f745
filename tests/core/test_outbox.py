"""Consumers of events: one position each, moved under a lease of their own."""

from __future__ import annotations

import pytest

from tests.core.story import story
from unswept.core import commands as c
from unswept.core.errors import MisuseError
from unswept.core.memory import MemoryStore
from unswept.core.outbox import how_many, may_forget
from unswept.core.units import Ms, StoreMs


class Clock:
    """A store clock that stands."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> StoreMs:
        return StoreMs(self.now)


def test_what_is_not_acknowledged_is_delivered_again() -> None:
    """Whoever has the lease next begins behind the last acknowledged event; equal is alive."""
    story(
        """
        0    admit j1 A      -> admit: queued A e1 b1 d100
        1    start j1 A 1    -> start: running A e1 b2 d101
        2    lease mail R    -> leased: token 1 behind 0 until 52, attempt 1
        3    ack mail 1 1    -> moved: 1
        52   lease mail S    -> refused leased
        53   lease mail S    -> leased: token 2 behind 1 until 103, attempt 1
        104  lease mail R    -> leased: token 3 behind 1 until 154, attempt 2
        105  lease other S   -> leased: token 1 behind 0 until 155, attempt 1
        106  consumers       -> mail 1/2, other 0/2
        """
    )


def test_only_the_newest_token_acknowledges() -> None:
    """Also after its lease has run out, as long as nobody has taken it; never beyond the newest
    event, and never for one that is not known."""
    story(
        """
        0    admit j1 A      -> admit: queued A e1 b1 d100
        1    start j1 A 1    -> start: running A e1 b2 d101
        2    ack mail 1 1    -> refused absent
        3    lease mail R    -> leased: token 1 behind 0 until 53, attempt 1
        4    ack mail 2 1    -> refused stale_token
        99   ack mail 1 1    -> moved: 1
        99   ack mail 1 3    -> refused ahead
        100  lease mail S    -> leased: token 2 behind 1 until 150, attempt 1
        101  ack mail 1 2    -> refused stale_token
        102  ack mail 2 2 last -> moved: 2
        103  ack mail 2 2    -> repeated: 2
        104  complete j1 A 1 completed -> complete: completed A e1 b2
        105  ack mail 2 3    -> refused stale_token
        106  lease mail R    -> leased: token 3 behind 2 until 156, attempt 1
        """
    )


def test_a_lease_is_kept_and_given_back() -> None:
    """Its holder stamps it anew; given back, another need not wait."""
    story(
        """
        0    lease mail R        -> leased: token 1 behind 0 until 50, attempt 1
        40   lease mail R        -> renewed: token 1 behind 0 until 90, attempt 1
        60   lease mail S        -> refused leased
        61   ack mail 1 0 last   -> repeated: 0
        62   lease mail S        -> leased: token 2 behind 0 until 112, attempt 2
        """
    )


def test_an_event_that_always_fails_is_a_dead_letter() -> None:
    """It is passed over, and stands with its error and how often it was tried."""
    story(
        """
        0    admit j1 A               -> admit: queued A e1 b1 d100
        1    start j1 A 1             -> start: running A e1 b2 d101
        2    lease mail R             -> leased: token 1 behind 0 until 52, attempt 1
        60   lease mail R             -> leased: token 2 behind 0 until 110, attempt 2
        61   ack mail 2 1 error=broken -> moved: 1
        62   ack mail 2 2             -> moved: 2
        63   letters mail             -> 1 broken
        64   letters other            -> nothing
        """
    )


def test_the_events_of_a_job_go_together_once_its_retention_is_past() -> None:
    """A job that has a row keeps all of them, however old; equal is not past; the numbers of the
    others stay, and none is used again."""
    story(
        """
        0     admit j1 A                 -> admit: queued A e1 b1 d100
        1     complete j1 A 1 completed  -> complete: completed A e1 b1
        2     admit j2 A                 -> admit: queued A e1 b1 d102
        1001  forget-events j1           -> forgot 0
        1002  evict j1/1                 -> j1 done
        1003  start j2 A 1               -> start: running A e1 b2 d1103
        1302  overdue events             -> nothing
        1302  forget-events j1           -> forgot 0
        1303  overdue                    -> nothing
        1303  overdue events             -> events of j1
        1303  forget-events j1 j2 j3     -> forgot 1
        1304  forget-events j1           -> forgot 0
        1305  overdue events             -> nothing
        1306  events                     -> admit/1, start/1
        1307  lease mail R               -> leased: token 1 behind 0 until 1357, attempt 1
        1308  ack mail 1 6               -> refused ahead
        1309  complete j2 A 1 failed     -> complete: failed A e1 b2
        1310  ack mail 1 6               -> moved: 6
        1311  admit j1 A                 -> refused spent
        1312  complete j1 A 1 completed  -> refused spent
        1313  events                     -> admit/1, start/1, complete/1
        """
    )


def test_numbers_that_are_removed_are_passed_over() -> None:
    """Pages are full, and go on behind the last event that they show."""
    store = MemoryStore(clock := Clock())
    for job_id in ("a", "b", "c"):
        store.execute(c.Enqueue(job_id))
        store.execute(c.RequestCancel(job_id))
    clock.now = 1_001
    store.execute(c.Evict((c.Hold("b", 1),), Ms(1_000)))
    store.execute(c.Enqueue("d"))
    before = store.execute(c.ReadEvents()).events
    clock.now += 11
    store.execute(c.ForgetEvents(("b",), Ms(10)))
    pages = [store.execute(c.ReadEvents(after, 3)) for after in (0, 2, 5, 6, 7, 8)]
    assert [page.next_after for page in pages] == [5, 8, 8, 8, 8, 8]
    assert (*pages[0].events, *pages[2].events) == tuple(e for e in before if e.job_id != "b")
    assert [event.job_id for event in pages[1].events] == ["c", "c", "d"]


def test_the_newest_event_stays() -> None:
    """Its number says how far the events have come; it goes when there is a newer one."""
    story(
        """
        0     enqueue j1      -> enqueue: queued - e0 b0
        1     cancel j1       -> cancel: canceled - e1 b0 c1
        1002  evict j1/1      -> j1 done
        1400  overdue events  -> nothing
        1400  forget-events j1 -> forgot 0
        1401  lease mail R    -> leased: token 1 behind 0 until 1451, attempt 1
        1402  ack mail 1 3 last -> moved: 3
        1403  enqueue j2      -> enqueue: queued - e0 b0
        1404  overdue events  -> events of j1
        1405  forget-events j1 -> forgot 1
        1406  consumers       -> mail 3/4
        """
    )


def test_no_event_goes_that_a_consumer_may_still_want() -> None:
    """The last consumer holds them back, and a dead letter all events of its job; a consumer that
    nobody uses any more is forgotten, but not while somebody has its lease."""
    story(
        """
        0     enqueue j1               -> enqueue: queued - e0 b0
        1     cancel j1                -> cancel: canceled - e1 b0 c1
        2     lease mail R             -> leased: token 1 behind 0 until 52, attempt 1
        3     lease old S              -> leased: token 1 behind 0 until 53, attempt 1
        4     ack mail 1 1 error=broken -> moved: 1
        1002  evict j1/1               -> j1 done
        1003  enqueue j2               -> enqueue: queued - e0 b0
        1004  ack mail 1 4 last        -> moved: 4
        1005  ack old 1 2              -> moved: 2
        1400  forget-events j1         -> forgot 0
        1401  lease old S              -> leased: token 2 behind 2 until 1451, attempt 1
        1451  forget-consumer old      -> refused leased
        1452  forget-consumer old      -> forgot 1
        1453  forget-consumer old      -> forgot 0
        1454  consumers                -> mail 4/4
        1455  overdue events           -> nothing
        1456  forget-events j1         -> forgot 0
        1457  letters mail             -> 1 broken
        1458  forget-consumer mail     -> forgot 1
        1459  letters mail             -> nothing
        1460  overdue events           -> events of j1
        1461  forget-events j1         -> forgot 1
        1462  lease mail R             -> leased: token 1 behind 0 until 1512, attempt 1
        1463  events                   -> enqueue/0
        """
    )


def test_each_condition_of_the_rule_counts() -> None:
    """Each is at its edge, and one step beyond the events stay."""

    def may(newest: int = 6, behind: int = 5, given_up: bool = False, now: int = 111) -> bool:
        return may_forget(5, StoreMs(10), newest, behind, given_up, Ms(100), StoreMs(now))

    assert may()
    assert not may(now=110)
    assert not may(behind=4)
    assert not may(newest=5)
    assert not may(given_up=True)


def test_after_a_failure_events_are_read_one_by_one() -> None:
    """So that the one that fails is found."""
    assert [how_many(attempts, 100) for attempts in (0, 1, 2, 3)] == [100, 100, 1, 1]


def test_an_acknowledgement_refuses_nonsense() -> None:
    """Tokens begin at 1; an error is text, which every store can keep."""
    with pytest.raises(MisuseError, match="token must be 1 to"):
        c.Acknowledge("mail", 0, 1)
    with pytest.raises(MisuseError, match="error must be a string, got 3"):
        c.Acknowledge("mail", 1, 1, error=3)  # type: ignore[arg-type]
    assert c.Acknowledge("mail", 1, 1, error="a\0").error == "a\ufffd"
    with pytest.raises(MisuseError, match="lease_ms must be 1 to"):
        c.LeaseEvents("mail", "R", Ms(0))
