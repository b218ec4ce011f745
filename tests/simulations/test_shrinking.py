"""Shrinking: a run that broke a law becomes a short script that breaks the same law, every time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from attrs import evolve

from unswept.core import commands as c
from unswept.core.commands import Store
from unswept.core.heart import Phase
from unswept.core.job import Terms
from unswept.core.lease import Status
from unswept.core.memory import MemoryStore
from unswept.core.units import Ms, StoreMs
from unswept.simulations import shrinking
from unswept.simulations.campaign import EPOCH, run_seed
from unswept.simulations.ddmin import ddmin
from unswept.simulations.designs import DESIGNS
from unswept.simulations.faults import FAULTS
from unswept.simulations.instance import Instance
from unswept.simulations.recording import RecordedRun, TooLong
from unswept.simulations.rewriting import mentioned, rebased, renamed, restricted, stamps_of
from unswept.simulations.run import Run, Settings
from unswept.simulations.script import Broken, Told, carried_out
from unswept.simulations.script_file import lines_of, script_of
from unswept.simulations.shrinking import NotReproducedError, Shrunk, shrink
from unswept.simulations.timeline import StoreClock, Timeline
from unswept.simulations.witness import Truth, Witness
from unswept.spec.observations import Send

AT_MOST = 15
"""Every minimal script is shorter."""
DESIGNS_TRIED = (
    "cancel-lost",
    "deadline-identity",
    "early-acknowledgement",
    "event-again",
    "first-page",
    "forgetful",
    "label-blind",
    "single-observation",
    "sweep-by-id",
)
"""Of laws that judge a step, a sweep, a delivery and neglect; each takes seconds."""
TERMS = Terms(Ms(90_000), Ms(300_000), Ms(90_000), Ms(45_000))


@contextmanager
def pure(clock: StoreClock, seed: int) -> Iterator[Store | None]:
    yield None


@cache
def violating(design: str) -> Settings:
    for seed in range(1, 21):
        settings = Settings(seed, design=design, faults=DESIGNS[design].under or tuple(FAULTS))
        if run_seed(settings, pure).violation is not None:
            return settings
    pytest.fail(f"{design} broke no law in 20 seeds")


@cache
def shrunk(settings: Settings) -> Shrunk:
    return shrunk_anew(settings)


def shrunk_anew(settings: Settings) -> Shrunk:
    return shrink(settings, pure, "memory:", "1.0")


def ending(steps: tuple[Told, ...], design: str) -> Broken | None:
    return carried_out(steps, design, pure)


@pytest.mark.parametrize("design", DESIGNS_TRIED)
def test_each_broken_design_shows_itself_in_few_steps(design: str) -> None:
    """The script breaks a law that the run broke, and without any one of its steps it does not."""
    settings = violating(design)
    broken = run_seed(settings, pure).violation
    assert broken is not None
    script = shrunk(settings).script
    assert script.law == broken.law
    assert len(script.steps) < AT_MOST
    found = ending(script.steps, design)
    assert found is not None
    assert (found.law, found.offence, found.index) == (
        script.law,
        script.offence,
        len(script.steps) - 1,
    )
    if not DESIGNS[design].excused and not DESIGNS[design].blanket_sweep_at_boot:
        without = [script.steps[:i] + script.steps[i + 1 :] for i in range(len(script.steps))]
        laws = [found.law for steps in without if (found := ending(steps, design)) is not None]
        assert script.law not in laws


@pytest.mark.parametrize("design", ["cancel-blind", "double-claim", "forgetful", "endless-requeue"])
def test_a_script_of_a_broken_store_holds_on_the_real_one(design: str) -> None:
    """What a broken store does wrong the real one does right, told the same."""
    assert ending(shrunk(violating(design)).script.steps, "unswept") is None


@pytest.mark.parametrize("design", ["single-observation", "forgetful"])
def test_a_run_shrinks_alike_every_time(design: str) -> None:
    """Two searches end with the same script, after as many tries."""
    settings = violating(design)
    assert shrunk_anew(settings) == shrunk(settings)


def test_a_run_that_holds_cannot_be_shrunk() -> None:
    """Where no law was broken there is nothing to look for, and that is said."""
    with pytest.raises(NotReproducedError, match="seed 1 broke no law"):
        shrunk(Settings(1, hours=0.02))


def test_a_run_that_is_longer_than_all_tries_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its script is looked for at once, and is as short."""
    settings = violating("cancel-lost")
    known = shrunk(settings)
    assert known.run_tries > 0
    monkeypatch.setattr(shrinking, "_COMMANDS", known.told - 1)
    small = shrunk_anew(settings)
    assert small.run_tries == 0
    assert small.script.settings.faults == settings.faults
    assert len(small.script.steps) == len(known.script.steps)


def test_a_recorded_run_is_the_same_run() -> None:
    """Writing down what the store is told changes nothing; a run that tells too much is cut off."""
    settings = Settings(4, hours=0.1)
    clock = StoreClock(Timeline(), EPOCH)
    run = RecordedRun(settings, None, clock)
    outcome = run.outcome()
    assert outcome.digest == run_seed(settings, pure).digest
    assert len(run.entries) == outcome.commands
    with pytest.raises(TooLong):
        RecordedRun(settings, None, StoreClock(Timeline(), EPOCH), at_most=10).outcome()


# Truth that no store knows ----------------------------------------------------------------------


def test_a_sweep_is_judged_only_where_the_stamp_is_as_old_as_it_was() -> None:
    """Told of another silence than the one that was recorded, nothing is said of the owner."""
    script = shrunk(violating("single-observation")).script
    swept = script.steps[-1]
    later = evolve(swept, store_at=StoreMs(swept.store_at + 1))
    assert ending((*script.steps[:-1], later), "single-observation") is None


def test_a_sweep_that_the_store_refuses_is_not_judged() -> None:
    """The truth about an owner weighs nothing where its job was not swept."""
    script = shrunk(violating("single-observation")).script
    swept = script.steps[-1]
    assert isinstance(swept.command, c.Sweep)
    [target] = swept.command.targets
    missed = evolve(swept.command, targets=(evolve(target, beats=target.beats + 1),))
    assert ending((*script.steps[:-1], evolve(swept, command=missed)), "single-observation") is None


def test_work_is_judged_only_under_an_epoch_that_was_held() -> None:
    """Nobody is blamed for work on a job that the store never gave them."""
    script = shrunk(violating("deadline-deaf")).script
    work = script.steps[-1]
    assert work.truth is not None
    stranger = evolve(work.truth, observation=renamed(work.truth.observation, {work.sender: "x"}))
    steps = (*script.steps[:-1], evolve(work, truth=stranger))
    assert ending(steps, "deadline-deaf") is None


@pytest.mark.parametrize("granted", [True, False])
def test_work_without_a_grant_shrinks_to_the_work_alone(
    granted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody works who has heard of no grant: the store had given it, or had not."""
    real = Run.working

    def working(run: Run, instance: Instance, job_id: str, *rest: Any) -> None:
        if not granted:
            job_id = "stranger"
        run._watched[instance.name].stamps.clear()
        real(run, instance, job_id, *rest)

    monkeypatch.setattr(Run, "working", working)
    script = shrunk_anew(Settings(1, hours=0.2)).script
    assert script.law == "L11"
    assert script.offence.endswith("without any grant")
    steps = script.steps
    assert [type(told.command) for told in steps] == [*([c.Admit] if granted else []), type(None)]
    assert steps[-1].truth is not None
    assert steps[-1].truth.facts == {"granted": int(granted)}
    assert script_of(lines_of(script), "it") == script
    found = ending(steps, "unswept")
    assert found is not None
    assert found.offence == script.offence
    if granted:
        assert ending(steps[1:], "unswept") is None


def test_a_law_that_the_design_is_excused_from_is_not_judged() -> None:
    """What somebody sent is judged before it reaches the store, unless its design does not care."""
    sweep = c.Sweep("i2", (c.Target("a", 1, 1, StoreMs(0)),))
    sent = Truth("L10", Send("i2", sweep, Phase.QUIESCED, repeat=False), {})
    steps = (Told(StoreMs(EPOCH), "i2", sweep, sent),)
    found = ending(steps, "unswept")
    assert found is not None
    assert (found.law, found.index) == ("L10", 0)
    assert ending(steps, "single-observation") is None


# The tools --------------------------------------------------------------------------------------


def test_ddmin_finds_the_parts_that_matter() -> None:
    """Of a hundred items the three that are needed are left, in their order, in few tries."""
    tries = []

    def holds(items: list[int]) -> bool:
        tries.append(items)
        return {3, 50, 97} <= set(items)

    assert ddmin(range(100), holds) == [3, 50, 97]
    assert len(tries) < 100


def test_ddmin_leaves_nothing_that_can_be_left_out() -> None:
    """Where two items can only go after a third has gone, they go too."""

    def holds(items: list[int]) -> bool:
        return 9 in items and (5 not in items or 8 in items) and (8 not in items or 2 in items)

    kept = ddmin(range(10), holds)
    assert kept == [9]
    assert ddmin([], lambda items: True) == []


def test_a_command_is_cut_down_to_some_jobs() -> None:
    """Holds, targets and watched jobs go one by one; a command about none of them goes too."""
    beat = c.Heartbeat("i1", TERMS, (c.Hold("a", 1), c.Hold("b", 2)), ("d",))
    assert mentioned(beat) == ("a", "b", "d")
    assert restricted(beat, {"b"}) == c.Heartbeat("i1", TERMS, (c.Hold("b", 2),))
    assert restricted(beat, {"x"}) is None
    assert restricted(c.Find("a"), {"x"}) is None
    assert restricted(c.Register("i1"), {"x"}) == c.Register("i1")


def test_a_command_follows_the_stamps_of_another_history() -> None:
    """A sweep that named the row's beats names those that the row has now, an old epoch stays one
    behind."""
    clock = StoreClock(Timeline(), 0)
    long, short = MemoryStore(clock), MemoryStore(clock)
    for store in (long, short):
        store.execute(c.Admit("a", "i1", TERMS))
    for _ in range(5):
        long.execute(c.Heartbeat("i1", TERMS, (c.Hold("a", 1),)))
    sweep = c.Sweep("i2", (c.Target("a", 1, 6, StoreMs(0)),))
    stale = c.Complete("a", "i1", 0, Status.FAILED)
    told = rebased(sweep, stamps_of(sweep, long.world), short.world)
    assert told == c.Sweep("i2", (c.Target("a", 1, 1, StoreMs(0)),))
    assert rebased(stale, stamps_of(stale, long.world), short.world) == stale


def test_a_witness_knows_no_sweep_that_it_has_not_seen() -> None:
    """A fresh store bears nothing out."""
    script = shrunk(violating("single-observation")).script
    truth = script.steps[-1].truth
    assert truth is not None
    store = MemoryStore(StoreClock(Timeline(), 0))
    assert Witness(store.world, {}).remade(truth, None, StoreMs(0)) is None
