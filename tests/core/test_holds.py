"""Until when work may go on by the last word from the store, to the millisecond. (L11)"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswept.core.commands import Hold
from unswept.core.holds import Held, local_deadline, may_step, stamped
from unswept.core.lease import RequeueRule
from unswept.core.units import MonoMs, Ms


def held(sent_at: int, ttl_ms: int, requeue: RequeueRule = RequeueRule.ALLOWED) -> Held:
    return Held(Hold("j1", 3), requeue, MonoMs(sent_at), Ms(ttl_ms))


@pytest.mark.parametrize(("now", "allowed"), [(1_089, True), (1_090, False), (9_999, False)])
def test_requeueable_work_starts_no_step_from_its_local_deadline_on(
    now: int, allowed: bool
) -> None:
    """The first send plus the ttl less the margin: the millisecond before it is the last. (L11)"""
    hold = held(1_000, 100)
    assert local_deadline(hold, Ms(10)) == 1_090
    assert may_step(hold, Ms(10), MonoMs(now)) is allowed


@pytest.mark.parametrize("now", [1_089, 1_090, 9_999_999])
def test_work_that_nobody_else_will_run_may_always_go_on(now: int) -> None:
    """With requeue = never an orphan heals when it completes, so its work need not stop. (L11)"""
    assert may_step(held(1_000, 100, RequeueRule.NEVER), Ms(10), MonoMs(now))


def test_a_stamp_moves_the_deadline_to_its_own_first_send_and_ttl() -> None:
    """An accepted start or heartbeat keeps the hold, and counts from when it was sent."""
    after = stamped(held(1_000, 50), MonoMs(1_040), Ms(100))
    assert after == held(1_040, 100)
    assert (after.hold, after.requeue) == (Hold("j1", 3), RequeueRule.ALLOWED)
    assert local_deadline(after, Ms(10)) == 1_130


def test_a_shorter_ttl_shortens_the_local_deadline() -> None:
    """A stamp overwrites, on this side as in the store."""
    assert local_deadline(stamped(held(1_000, 300), MonoMs(1_001), Ms(100)), Ms(0)) == 1_101


@given(
    sent_at=st.integers(0, 10_000),
    latency=st.integers(0, 10_000),
    ttl=st.integers(1, 10_000),
    margin=st.integers(0, 100),
    now=st.integers(0, 40_000),
)
def test_work_stops_before_the_store_may_sweep_it(
    sent_at: int, latency: int, ttl: int, margin: int, now: int
) -> None:
    """However long the stamp took to arrive, while a step may begin the lease still runs."""
    deadline_in_the_store = sent_at + latency + ttl
    if may_step(held(sent_at, ttl), Ms(margin), MonoMs(now)):
        assert now + margin < deadline_in_the_store
    elif latency == 0:
        assert now + margin >= deadline_in_the_store
