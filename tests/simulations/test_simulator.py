"""The simulator: a seed gives the same run twice, the real design holds, broken ones are caught."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from unswept.core.commands import Store
from unswept.simulations.campaign import Totals, run_seed, run_seeds, tasks
from unswept.simulations.faults import FAULTS
from unswept.simulations.marks import Mark
from unswept.simulations.run import _FORGET_EVERY, Outcome, Run, Settings
from unswept.simulations.timeline import HostClock, StoreClock, Timeline
from unswept.simulations.workers import processes
from unswept.simulations.yardstick import MEMORY_MS


@contextmanager
def pure(clock: StoreClock, seed: int) -> Iterator[Store | None]:
    yield None


def outcome(**settings: object) -> Outcome:
    return run_seed(Settings(**settings), pure)  # type: ignore[arg-type]


def test_a_seed_gives_the_same_run_twice() -> None:
    """Two runs of one seed have the same trace, byte for byte, and other seeds have others."""
    first, again, other = (outcome(seed=seed, hours=0.5) for seed in (3, 3, 4))
    assert (first.digest, first.commands) == (again.digest, again.commands)
    assert other.digest != first.digest


@pytest.mark.parametrize("seed", range(101, 107))
def test_the_real_design_holds(seed: int) -> None:
    """Under all faults no law is broken, whatever the seed."""
    assert outcome(seed=seed, hours=1).violation is None


def test_without_faults_nothing_is_swept() -> None:
    """Where nothing goes wrong, no job is orphaned and no lease runs out."""
    calm = outcome(seed=1, faults=())
    assert calm.violation is None
    assert calm.events["complete"] > 20
    assert calm.events["claim"] > 20
    assert calm.events["orphan"] == 0
    assert calm.sometimes[Mark.STOPPED_IN_TIME.value] == 0
    assert calm.sometimes[Mark.LEASE_REVIVED.value] == 0


def test_a_delayed_enqueue_never_runs_a_job_again() -> None:
    """Whether its job waits, is over, is gone or was given up before it came; whether it is the
    producer that sends it twice or the network."""
    marks = (Mark.ENQUEUE_REPEATED, Mark.ENQUEUE_OVER, Mark.ENQUEUE_SPENT, Mark.CANCEL_FIRST)
    late = outcome(seed=1, hours=3, faults=("duplicate", "crash"))
    assert late.violation is None
    assert all(late.sometimes[mark.value] > 0 for mark in marks)
    assert late.events["enqueue"] > 100
    assert late.checked["L6"] > late.events["enqueue"]


def test_a_campaign_of_gateways_alone_has_nobody_else() -> None:
    """Without runners nobody enqueues, claims or consumes."""
    alone = outcome(seed=1, runners=0)
    assert alone.violation is None
    assert alone.events["admit"] > 20
    assert alone.events["enqueue"] == alone.events["claim"] == alone.checked["F4"] == 0


def test_the_fleet_is_put_to_the_test() -> None:
    """Jobs come back and are claimed again, claims meet budgets, leases change hands."""
    wanted = (Mark.CLAIMED_AGAIN, Mark.RELEASED, Mark.BUDGET_REFUSED, Mark.LEASE_TAKEN_OVER)
    fleet = outcome(seed=3, hours=4, runners=3)
    assert fleet.violation is None
    assert all(fleet.sometimes[mark.value] > 0 for mark in wanted)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone_strikes_and_is_survived(fault: str) -> None:
    """A run under one fault alone meets it, and holds."""
    alone = outcome(seed=2, hours=2, faults=(fault,))
    assert alone.violation is None
    assert sum(alone.faults.values()) > 0


def test_the_order_of_outcomes_does_not_depend_on_the_workers() -> None:
    """Two processes report the same outcomes in the same order as one."""
    todo = tasks(Settings(seed=1, hours=0.2), (1, 2, 3), pure)
    found = []
    for count in (1, 2):
        with processes(count) as workers:
            found.append([checked.outcome.digest for checked in run_seeds(todo, workers)])
    assert found[0] == found[1]


def test_totals_name_what_never_happened() -> None:
    """A campaign that met nothing rare lists every mark as missing."""
    totals = Totals()
    assert totals.missing() == [mark.value for mark in Mark]


@pytest.mark.parametrize("drift_ppm", [-500, -1, 0, 1, 500])
@pytest.mark.parametrize("ahead", [0, 1, 999, 1_000_003])
def test_a_host_clock_wakes_neither_early_nor_late(drift_ppm: int, ahead: int) -> None:
    """A timer fires at the first true millisecond at which the host's clock shows the time."""
    timeline = Timeline()
    timeline.run(12_345)
    clock = HostClock(timeline, 777, drift_ppm)
    when = type(clock())(clock() + ahead)
    wait = clock.until(when)
    assert clock.at(timeline.now + wait) >= when
    assert wait == 0 or clock.at(timeline.now + wait - 1) < when


def test_a_run_keeps_nothing_of_what_is_over() -> None:
    """However long it takes: what grows is the store's ids, and the events of dead letters."""
    timeline = Timeline()
    run = Run(Settings(seed=5, hours=6), None, StoreClock(timeline, 0))
    timeline.run(6 * 3_600_000)
    living, jobs = {each.name: each for each in run.living()}, run.server.pure.world.jobs
    assert run._booted > 2 * len(living)
    assert len(run.server.pure.world.ids) > 5 * len(jobs)
    assert len(run.server.pure.world.events) < run.server.pure.world.events.newest / 2
    assert set(run._watched) <= set(living)
    for name, watched in run._watched.items():
        assert len(watched.stamps) <= len(living[name].tasks) + 20
        assert len(watched.beats) <= 1 + MEMORY_MS / living[name].policy.retry_ms
    evicted_lately = 50
    for kept in (run.truth.freed, run._stamped, run.network.completions, run.server.history.stamps):
        assert len(kept) <= len(jobs) + evicted_lately
    assert len(run.truth.own) + len(run.truth.failed_beats) <= 40
    long_ago = timeline.now - MEMORY_MS - _FORGET_EVERY
    assert all(span.end is None or span.end >= long_ago for span in run.truth.shared)
