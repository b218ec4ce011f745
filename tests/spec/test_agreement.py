"""The specification, the core and the stores agree: on all small states, on traces of the
specification that stores replay, and on runs whose every step the specification must know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from unswept.adapters.sqlite.store import SqliteStore
from unswept.core import commands as c
from unswept.core import lease as core
from unswept.core.lease import Lease, RequeueRule, Status
from unswept.core.memory import MemoryStore
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.simulations.campaign import run_seed
from unswept.simulations.run import Settings
from unswept.simulations.server import Server
from unswept.simulations.timeline import StoreClock
from unswept.simulations.violation import Violation
from unswept.spec.agreement import itf, rules
from unswept.spec.agreement.behaviour import offence_of
from unswept.spec.agreement.judged import Judged
from unswept.spec.agreement.replay import Clock, Disagreement, replay
from unswept.spec.agreement.states import NOW, first_difference, small_leases
from unswept.spec.observations import Step

TRACES = sorted((Path(__file__).parent / "traces").glob("*.itf.json"))
JOBS = ("j1", "j2", "j3", "j4", "j5", "j6")


# On all small states ----------------------------------------------------------------------------


def test_core_and_specification_agree_on_all_small_states() -> None:
    """Each move of the core does, and refuses, what the specification says, for the same reason."""
    assert len(list(small_leases())) > 500
    assert first_difference() is None
    for rule in RequeueRule:
        again = rule is RequeueRule.ALLOWED
        enqueued = rules.written(None, ("Enqueue", {"requeueable": again}), NOW)
        assert enqueued == ("Done", rules.row(core.enqueue(rule)))
        told = {"owner": "i1", "ttl": 5, "confirm": 6, "requeueable": again}
        admitted = core.admit("i1", Ms(5), Ms(6), rule, NOW)
        assert rules.written(None, ("Admit", told), NOW) == ("Done", rules.row(admitted))
    for lease in small_leases():
        assert rules.RULES["wellFormed"](rules.row(lease))
        assert rules.RULES["isSuspect"](rules.row(lease), NOW) == core.is_suspect(lease, NOW)


# Traces of the specification on stores ----------------------------------------------------------


@contextmanager
def memory(_: Path) -> Iterator[tuple[c.Store, Clock]]:
    clock = Clock()
    yield MemoryStore(clock), clock


@contextmanager
def sqlite(folder: Path) -> Iterator[tuple[c.Store, Clock]]:
    clock = Clock()
    with closing(SqliteStore(folder / "store.db", clock=clock, durability="normal")) as store:
        yield store, clock


def disagreement(place: Path, make: Any = memory) -> Disagreement | None:
    for number, trace in enumerate(TRACES):
        folder = place / str(number)
        folder.mkdir()
        with make(folder) as (store, clock):
            found = replay(itf.read(trace), store, clock)
        if found is not None:
            return found
    return None


@pytest.mark.parametrize("make", [memory, sqlite])
def test_stores_replay_the_traces_of_the_specification(make: Any, tmp_path: Path) -> None:
    """After every command each row is, field by field, what the specification says."""
    assert disagreement(tmp_path, make) is None


def test_the_traces_exercise_the_protocol() -> None:
    """What is replayed contains every command, and lets late ones be refused."""
    events = [event for trace in TRACES for event in itf.read(trace)]
    assert {tag for event in events for tag, _ in event.writes.values()} == {
        "Enqueue", "Admit", "Claim", "Start", "Renew", "Delay", "Orphan", "Complete", "Release",
        "Cancel", "Requeue", "Settle", "Withdraw",
    }  # fmt: skip
    assert len(events) > 300


# Runs as behaviours of the specification --------------------------------------------------------


@contextmanager
def pure(clock: StoreClock, seed: int) -> Iterator[c.Store | None]:
    yield None


def unspecified(monkeypatch: pytest.MonkeyPatch, seeds: range, design: str = "unswept") -> str:
    """The first simulated step that is none of the specification's, with no law judging."""
    judged = 0

    def judge(self: Server, step: Step) -> None:
        nonlocal judged
        judged += 1
        if reason := offence_of(step):
            raise Violation("SPEC", reason)

    with monkeypatch.context() as patch:
        patch.setattr(Server, "judge", judge)
        for seed in seeds:
            outcome = run_seed(Settings(seed=seed, hours=0.25, design=design), pure)
            if outcome.violation is not None and outcome.violation.law == "SPEC":
                return outcome.violation.offence
    assert judged > 100
    return ""


def test_simulated_runs_are_behaviours_of_the_specification(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every step of the store under all faults is one that the specification allows."""
    assert unspecified(monkeypatch, range(1, 4)) == ""


def first_offence(trace: Path) -> str | None:
    clock = Clock()
    judged = Judged(MemoryStore(clock), clock, JOBS)
    replay(itf.read(trace), judged, clock)
    return next((found for found in judged.offences if found), None)


def test_a_real_store_behaves_as_the_specification_says(tmp_path: Path) -> None:
    """Each command on SQLite leaves the rows that a step of the specification leaves."""
    with sqlite(tmp_path) as (store, clock):
        judged = Judged(store, clock, JOBS)
        assert replay(itf.read(TRACES[0]), judged, clock) is None
        assert len(judged.offences) > 100
        assert set(judged.offences) == {None}


# Broken cores -----------------------------------------------------------------------------------


def renew_uncounted(lease: Lease, *rest: Any) -> Lease | Refusal:
    found = RENEW(lease, *rest)
    return found if isinstance(found, Refusal) else changed(found, beats=lease.beats)


def renew_of_the_greater(lease: Lease, *rest: Any) -> Lease | Refusal:
    found = RENEW(lease, *rest)
    if isinstance(found, Refusal) or found.deadline is None or lease.deadline is None:
        return found
    return changed(found, deadline=max(found.deadline, lease.deadline))


def orphan_at_the_deadline(lease: Lease, epoch: int, beats: int, now: StoreMs) -> Lease | Refusal:
    return ORPHAN(lease, epoch, beats, StoreMs(now + 1))


def orphan_whatever_the_beats(
    lease: Lease, epoch: int, beats: int, now: StoreMs
) -> Lease | Refusal:
    return ORPHAN(lease, epoch, lease.beats, now)


def complete_whatever_the_epoch(
    lease: Lease, owner: str, epoch: int, outcome: Status
) -> Lease | Refusal:
    return COMPLETE(lease, owner, lease.epoch, outcome)


def requeue_in_the_same_epoch(lease: Lease, epoch: int, force: bool) -> Lease | Refusal:
    found = REQUEUE(lease, epoch, force)
    return found if isinstance(found, Refusal) else changed(found, epoch=lease.epoch)


def start_under_a_cancel(lease: Lease, *rest: Any) -> Lease | Refusal:
    found = START(changed(lease, cancel_requested_at=None), *rest)
    if isinstance(found, Refusal):
        return found
    return changed(found, cancel_requested_at=lease.cancel_requested_at)


def cancel_by_the_latest(lease: Lease, now: StoreMs) -> Lease | Refusal:
    return CANCEL(changed(lease, cancel_requested_at=None), now)


RENEW, ORPHAN, COMPLETE = core.renew, core.orphan, core.complete
REQUEUE, START, CANCEL = core.requeue, core.start, core.request_cancel

BROKEN = (
    ("renew", renew_uncounted),
    ("renew", renew_of_the_greater),
    ("orphan", orphan_at_the_deadline),
    ("orphan", orphan_whatever_the_beats),
    ("complete", complete_whatever_the_epoch),
    ("requeue", requeue_in_the_same_epoch),
    ("start", start_under_a_cancel),
    ("request_cancel", cancel_by_the_latest),
)
broken_cores = pytest.mark.parametrize(
    ("name", "broken"), BROKEN, ids=[broken.__name__ for _, broken in BROKEN]
)


@broken_cores
def test_a_broken_guard_differs_on_small_states(
    name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison of all small states notices each broken rule of the core."""
    monkeypatch.setattr(core, name, broken)
    assert first_difference() is not None


@broken_cores
def test_a_broken_guard_fails_the_replay(
    name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A store over a broken rule leaves a row that the traces do not have."""
    monkeypatch.setattr(core, name, broken)
    assert disagreement(tmp_path) is not None


@broken_cores
def test_a_broken_guard_makes_a_store_whose_steps_are_not_specified(
    name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Judged command by command, a store over a broken rule does what the specification does not
    know."""
    monkeypatch.setattr(core, name, broken)
    assert any(first_offence(trace) for trace in TRACES)


# The other two need a race that a few short runs do not have.
@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("renew", renew_uncounted),
        ("renew", renew_of_the_greater),
        ("orphan", orphan_at_the_deadline),
        ("requeue", requeue_in_the_same_epoch),
        ("start", start_under_a_cancel),
        ("request_cancel", cancel_by_the_latest),
    ],
)
def test_a_broken_guard_makes_runs_that_the_specification_does_not_know(
    name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A simulated run over a broken rule has a step that is none of the specification's."""
    monkeypatch.setattr(core, name, broken)
    assert unspecified(monkeypatch, range(1, 21))
