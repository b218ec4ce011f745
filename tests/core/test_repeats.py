"""Every command can be repeated: no second effect, and the first reply or what stands by now."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import pytest

from tests.core.story import TERMS, story
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.event_log import event_key
from unswept.core.job import Process
from unswept.core.lease import RequeueRule, Status
from unswept.core.memory import MemoryStore
from unswept.core.records import changed
from unswept.core.units import StoreMs
from unswept.core.world import decide
from unswept.simulations.conformance import Clock, probes, situations


@pytest.mark.parametrize("situation", situations("job", StoreMs(0), 1))
def test_a_repeated_command_has_no_second_effect(situation: str) -> None:
    """Whatever the command found, asked again it adds no event and changes no status. (L5)"""
    for number in count():
        clock = Clock()
        store = MemoryStore(clock)
        for step in situations("job", clock.now, 1)[situation]:
            if isinstance(step, int):
                clock.now = StoreMs(clock.now + step)
            else:
                store.execute(step)
        job = store.world.jobs.get("job")
        command = next(islice(probes("job", job, clock.now, 2), number, None), None)
        if command is None:
            return
        store.execute(command)
        once, seen = dict(store.world.jobs), dict(store.world.events)
        store.execute(command)
        assert store.world.events == seen, command
        if not isinstance(command, c.Heartbeat):  # a beat that comes twice stamps twice
            assert store.world.jobs == once, command


def test_events_are_keyed_uniquely_over_many_epochs() -> None:
    """A kind comes once per epoch of a job, however often the job goes round. (L5)"""
    clock = Clock()
    store = MemoryStore(clock)
    decided = []
    for command in rounds():
        clock.now = StoreMs(clock.now + 101)
        for _ in range(2):
            decision = decide(store.world, command, clock.now)
            store.apply(decision)
            decided += [event_key(event) for event in decision.events]
    assert len(decided) == len(set(decided)) == 1 + 5 * 4


def rounds() -> Iterator[c.Command[Any]]:
    """A job that is claimed, swept, requeued and answered late, five times."""
    yield c.Enqueue("job", requeue=RequeueRule.ALLOWED)
    yield c.Register("A")
    for number in range(1, 6):
        epoch = 2 * number - 1
        yield c.Claim("A", number, TERMS)
        yield c.Sweep("B", (c.Target("job", epoch, number, StoreMs(0)),))
        yield c.Requeue("job", epoch)
        yield c.Complete("job", "A", epoch, Status.COMPLETED)


def test_starts_and_ends_repeat_by_id_and_epoch() -> None:
    """A start stamps once; an end that stands is a repeat, another end is told what stands. (L3)"""
    story(
        """
        0   admit j1 A requeueable     -> admit: queued A e1 b1 d100
        1   admit j1 A requeueable     -> repeated: queued A e1 b1 d100
        2   start j1 A 1               -> start: running A e1 b2 d102
        3   start j1 A 1               -> repeated: running A e1 b2 d102
        4   release j1 A 1             -> release: queued - e2 b2
        5   release j1 A 1             -> repeated: queued - e2 b2
        6   start j1 A 1               -> refused stale_epoch: queued - e2 b2
        7   register A                 -> registered, claims=0
        8   claim A 1                  -> got: j1 running A e3 b3 d58
        9   release j1 A 1             -> refused stale_epoch: running A e3 b3 d58
        10  complete j1 A 3 failed     -> complete: failed A e3 b3
        11  complete j1 A 3 failed     -> repeated: failed A e3 b3
        12  complete j1 A 3 canceled   -> refused already_terminal: failed A e3 b3
        13  release j1 A 3             -> refused already_terminal: failed A e3 b3
        14  start j1 A 3               -> refused already_terminal: failed A e3 b3
        """
    )


def test_a_process_is_recorded_once() -> None:
    """A claimed job's start records its process and stamps nothing; no later one replaces it."""
    store = MemoryStore(lambda: StoreMs(0))
    store.execute(c.Enqueue("j1"))
    store.execute(c.Register("A"))
    store.execute(c.Claim("A", 1, TERMS))
    claimed = store.world.jobs["j1"]
    first, second = Process(7, 5_000, "boot"), Process(8, 6_000, "boot")
    for process, recorded in ((None, None), (first, first), (second, first), (None, first)):
        reply = store.execute(c.Start("j1", "A", 1, TERMS, process))
        assert isinstance(reply, r.Accepted)
        assert reply.repeated
        assert store.world.jobs["j1"] == changed(claimed, process=recorded)


def test_output_is_stored_once_per_chunk() -> None:
    """A chunk that comes again is not rewritten, also when its bound is past by then. (L4)"""
    story(
        """
        0   admit j1 A                 -> admit: queued A e1 b1 d100
        1   output j1 A 1 1 second     -> output: queued A e1 b1 d100
        2   output j1 A 1 0 first      -> output: queued A e1 b1 d100
        3   output j1 A 1 0 other      -> repeated: queued A e1 b1 d100
        4   print j1                   -> e1: first second
        5   output j1 B 1 2 third      -> refused not_owner: queued A e1 b1 d100
        6   output j1 A 2 2 third      -> refused stale_epoch: queued A e1 b1 d100
        10  complete j1 A 1 completed  -> complete: completed A e1 b1
        30  output j1 A 1 2 third      -> output: completed A e1 b1
        31  output j1 A 1 3 late       -> refused too_late: completed A e1 b1
        32  output j1 A 1 2 third      -> repeated: completed A e1 b1
        33  print j1                   -> e1: first second third
        """
    )


def test_output_stays_with_its_epoch() -> None:
    """What an old epoch wrote stays apart from what the new one writes. (L3)"""
    story(
        """
        0    register B              -> registered, claims=0
        0    admit j1 A requeueable  -> admit: queued A e1 b1 d100
        1    output j1 A 1 0 old     -> output: queued A e1 b1 d100
        2    release j1 A 1          -> release: queued - e2 b1
        3    claim B 1               -> got: j1 running B e3 b2 d53
        4    output j1 B 3 0 new     -> output: running B e3 b2 d53
        5    output j1 A 1 1 late    -> refused stale_epoch: running B e3 b2 d53
        6    print j1                -> e3: new
        7    print j1 1              -> e1: old
        """
    )


def test_what_outsiders_do_repeats_by_what_stands() -> None:
    """A requeue or settlement is done if that is what stands, and refused after more happened."""
    story(
        """
        0    register B              -> registered, claims=0
        0    admit j1 A requeueable  -> admit: queued A e1 b1 d100
        0    admit j2 A              -> admit: queued A e1 b1 d100
        0    enqueue j3 until=50     -> enqueue: queued - e0 b0
        101  sweep S j1/1/1 j2/1/1 j3/0/0 -> j1 done, j2 done, j3 not_owner
        102  sweep S j1/1/1 j2/1/1   -> j1 repeated, j2 repeated
        103  sweep T j1/1/2          -> j1 orphaned
        104  requeue j1 1            -> requeue: queued - e2 b1
        105  requeue j1 1            -> repeated: queued - e2 b1
        106  sweep S j1/1/1          -> j1 stale_epoch
        107  claim B 1               -> got: j1 running B e3 b2 d157
        108  requeue j1 1            -> refused stale_epoch: running B e3 b2 d157
        109  settle j2 1 failed      -> settle: failed - e2 b1
        110  settle j2 1 failed      -> repeated: failed - e2 b1
        111  settle j2 1 canceled    -> refused stale_epoch: failed - e2 b1
        112  requeue j2 1            -> refused stale_epoch: failed - e2 b1
        113  expire j3               -> expire: expired - e1 b0
        114  expire j3               -> repeated: expired - e1 b0
        """
    )


def test_only_force_requeues_what_is_never_to_be() -> None:
    """requeue = never is overridden by force alone, and such a job is not released. (L11)"""
    story(
        """
        0    admit j1 A        -> admit: queued A e1 b1 d100
        1    release j1 A 1    -> refused not_requeueable: queued A e1 b1 d100
        101  sweep S j1/1/1    -> j1 done
        102  requeue j1 1      -> refused not_requeueable: orphaned A e1 b1
        103  requeue j1 1 force -> requeue: queued - e2 b1
        104  requeue j1 1      -> repeated: queued - e2 b1
        """
    )


def test_a_stale_result_leaves_one_event_and_only_an_old_epochs_does() -> None:
    """A late end under an old epoch is told once; a strange owner or a future epoch never. (L3)"""
    story(
        """
        0    admit j1 A requeueable     -> admit: queued A e1 b1 d100
        1    release j1 A 1             -> release: queued - e2 b1
        2    complete j1 A 1 completed  -> refused stale_epoch: queued - e2 b1
        3    complete j1 A 1 failed     -> refused stale_epoch: queued - e2 b1
        4    complete j1 A 0 failed     -> refused stale_epoch: queued - e2 b1
        5    complete j1 A 9 failed     -> refused stale_epoch: queued - e2 b1
        6    complete j1 A 2 failed     -> refused not_owner: queued - e2 b1
        7    events                     -> admit/1, release/2, stale_result/1
        """
    )


def test_a_strangers_release_is_no_repeat() -> None:
    """Whoever did not hold the job is told so, also after its owner has released it. (L3)"""
    store = MemoryStore(lambda: StoreMs(1_000))
    store.execute(c.Admit("job", "A", TERMS, requeue=RequeueRule.ALLOWED))
    store.execute(c.Release("job", "A", 1))
    again = store.execute(c.Release("job", "A", 1))
    assert isinstance(again, r.Accepted)
    assert again.repeated
    stranger = store.execute(c.Release("job", "B", 1))
    assert isinstance(stranger, r.Refused)
