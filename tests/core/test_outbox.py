"""Consumers of events: one position each, moved under a lease of their own."""

from __future__ import annotations

import pytest

from tests.core.story import story
from unswept.core import commands as c
from unswept.core.errors import MisuseError
from unswept.core.outbox import how_many
from unswept.core.units import Ms


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
