"""The judge measures by the laws' sentences, so that a slip of the core's is not its own too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from attrs import evolve

from unswept.core import commands as c
from unswept.core import heart as hearts
from unswept.core import sweeper as sweepers
from unswept.core.heart import Phase
from unswept.core.lease import Lease, RequeueRule, Status
from unswept.core.policy import LeasePolicy
from unswept.core.replies import Overdue
from unswept.core.units import MonoMs, Ms, StoreMs
from unswept.simulations.campaign import pure_alone, run_seed
from unswept.simulations.run import Settings
from unswept.simulations.yardstick import Watched, window_ms

WINDOW_OF: Final = sweepers.window_ms
POLICY: Final = LeasePolicy(
    heartbeat_interval_ms=Ms(1_000),
    lease_ttl_ms=Ms(6_000),
    confirm_after_ms=Ms(3_000),
    operation_timeout_ms=Ms(100),
)
LEASE: Final = Lease(
    Status.RUNNING, "A", 1, 1, StoreMs(9), None, None, Ms(6_000), Ms(2_000), RequeueRule.NEVER
)
RERUN: Final = evolve(LEASE, requeue=RequeueRule.ALLOWED)
FOUND: Final = Overdue(
    StoreMs(0),
    (("j1", 2),),
    (("q1", 0),),
    (("i9", StoreMs(7)),),
    (("ann", "k1", "j2"),),
    ("j3",),
)
CLEAN_UPS: Final = (
    c.Evict((c.Hold("j1", 2),), Ms(1)),
    c.ExpireQueued("q1"),
    c.ForgetInstances((("i9", StoreMs(7)),), Ms(1)),
    c.ForgetKeys((("ann", "k1", "j2"),), Ms(1)),
    c.ForgetEvents(("j3",), Ms(1)),
)
OTHERS: Final = (
    c.Evict((c.Hold("j1", 3),), Ms(1)),
    c.ExpireQueued("j1"),
    c.ForgetInstances((("i9", StoreMs(8)),), Ms(1)),
    c.ForgetKeys((("ann", "k2", "j2"),), Ms(1)),
    c.ForgetEvents(("j1",), Ms(1)),
)


def beating(until: int, every: int = 1_000) -> Watched:
    """An instance whose beats, sent every second, were answered after 10 ms."""
    watched = Watched(POLICY)
    for sent in range(0, until + 1, every):
        watched.beat(MonoMs(sent), MonoMs(sent + 10))
    return watched


def look(watched: Watched, found: Overdue, now: int, took: int = 10) -> None:
    watched.looked(found, MonoMs(now - took), MonoMs(now))


def stood(watched: Watched, command: c.Command[Any], now: int) -> int:
    (sight,) = watched.sights_of(command, MonoMs(now))
    assert sight.window_ms == POLICY.confirm_after_ms
    return sight.stood_still_ms


@pytest.mark.parametrize(
    ("lease", "window"),
    [
        (LEASE, 3_000),
        (evolve(LEASE, confirm_ms=Ms(4_000)), 4_000),
        (RERUN, 6_000),
        (evolve(RERUN, ttl_ms=Ms(2_500)), 3_000),
        (evolve(RERUN, confirm_ms=Ms(7_000)), 7_000),
    ],
)
def test_a_window_is_the_longest_that_anybody_asks_for(lease: Lease, window: int) -> None:
    """The sweeper's own, the row's, and the row's ttl where the job may be requeued."""
    assert window_ms(POLICY, lease) == window


def test_a_steady_heart_is_faint_without_an_answer_in_time() -> None:
    """A heartbeat and an operation timeout after the last one, and before the first; what else the
    heart is, it is."""
    watched = beating(5_000)
    assert watched.phase(Phase.STEADY, MonoMs(5_010 + 1_100)) is Phase.STEADY
    assert watched.phase(Phase.STEADY, MonoMs(5_010 + 1_101)) is Phase.FAINT
    assert watched.phase(Phase.QUIESCED, MonoMs(5_010)) is Phase.QUIESCED
    assert Watched(POLICY).phase(Phase.STEADY, MonoMs(0)) is Phase.FAINT


@pytest.mark.parametrize(
    ("every", "window", "gap"), [(1_000, 2_000, 1_010), (250, 2_000, 260), (1_000, 5_000, 5_000)]
)
def test_the_longest_gap_runs_from_a_send_to_the_next_answer(
    every: int, window: int, gap: int
) -> None:
    """And a window in which the first beat came was not watched from its beginning."""
    assert beating(5_000, every).longest_gap(Ms(window), MonoMs(5_000)) == gap


def test_a_gap_goes_on_until_the_sweep_is_sent() -> None:
    """From the send of the last accepted beat; to a sweeper only a quarter of a heartbeat is
    close."""
    watched = beating(5_000, 250)
    sights = [watched.sight_of_sweep("j1", LEASE, 3_000, MonoMs(now)) for now in (5_010, 5_400)]
    assert [(sight.longest_gap_ms, sight.gap_ms) for sight in sights] == [(260, 350), (400, 350)]


@pytest.mark.parametrize(("command", "other"), [*zip(CLEAN_UPS, OTHERS, strict=True)])
def test_what_is_cleaned_up_stood_since_the_first_look_that_named_it(
    command: c.Command[Any], other: c.Command[Any]
) -> None:
    """Under just these facts; what no look named has not stood at all."""
    watched = beating(9_000)
    assert stood(watched, command, 2_000) == 0
    look(watched, FOUND, 2_000)
    look(watched, FOUND, 5_000)
    assert stood(watched, command, 5_001) == 3_001
    assert stood(watched, other, 5_001) == 0


@pytest.mark.parametrize("command", CLEAN_UPS)
def test_a_look_that_passes_it_over_is_a_break(command: c.Command[Any]) -> None:
    """But one whose answer took an operation timeout is no look."""
    watched = beating(9_000)
    nothing = Overdue(StoreMs(0), (), (), (), ())
    look(watched, FOUND, 2_000)
    look(watched, nothing, 3_000, took=100)
    assert stood(watched, command, 5_000) == 3_000
    look(watched, nothing, 5_000, took=99)
    look(watched, FOUND, 6_000)
    assert stood(watched, command, 6_000) == 0


def test_cleaning_up_takes_a_steady_heart_and_no_closer_one() -> None:
    """A gap is one that is longer than a heartbeat and an operation timeout."""
    watched = beating(5_000)
    (sight,) = watched.sights_of(CLEAN_UPS[0], MonoMs(5_010))
    assert (sight.longest_gap_ms, sight.gap_ms) == (1_010, 1_100)
    (late,) = watched.sights_of(CLEAN_UPS[0], MonoMs(5_010 + 1_101))
    assert late.longest_gap_ms == 1_101
    assert watched.sights_of(c.Suspects(), MonoMs(5_010)) == ()


# Guards of the core that somebody loosens ---------------------------------------------------------


def broken_in(seeds: int = 8) -> Iterator[str]:
    """The law that each seed breaks, of those that break one."""
    for seed in range(1, seeds + 1):
        violation = run_seed(Settings(seed), pure_alone).violation
        if violation is not None:
            yield violation.law


@pytest.mark.parametrize(
    "window",
    [
        lambda own, row, requeue, ttl: WINDOW_OF(own, row, requeue, ttl) // 2,
        lambda own, row, requeue, ttl: max(own, row),
        lambda own, row, requeue, ttl: WINDOW_OF(own, own, requeue, ttl),
    ],
    ids=["halved", "without the ttl", "own only"],
)
def test_a_sweeper_with_a_shorter_window_is_caught(
    monkeypatch: pytest.MonkeyPatch, window: Any
) -> None:
    """Though the core's function is what was changed."""
    monkeypatch.setattr(sweepers, "window_ms", window)
    assert next(broken_in()) == "L12a"


def test_a_heart_that_is_never_late_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sends what a faint one may not, if only in a window that has a gap."""
    monkeypatch.setattr(hearts, "phase_at", lambda heart, now: heart.phase)
    assert set(broken_in()) == {"L10", "L12a"}
