"""The store as a function: what a decision says, and that a box around it does just that."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.story import TERMS, story
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.lease import Kind, Status
from unswept.core.memory import MemoryStore
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Cause, Chunk, Event, Request, Result, Stream
from unswept.core.world import World, all_commands, decide
from unswept.simulations.conformance import ASKS, Clock, probes, situations


@pytest.mark.parametrize("situation", situations("job", StoreMs(0), 1))
def test_a_box_and_a_function_hold_the_same_world(situation: str) -> None:
    """`MemoryStore` changes its rows exactly as `World.after` makes new ones."""
    clock = Clock()
    store, world = MemoryStore(clock), World.empty()
    life = situations("job", clock.now, 1)[situation]
    for step in (*life, *probes("job", None, clock.now, 2)):
        if isinstance(step, int):
            clock.now = StoreMs(clock.now + step)
            continue
        decision = decide(world, step, clock.now)
        assert store.execute(step) == decision.reply
        world = world.after(decision)
        assert seen(store.world) == seen(world)


def seen(world: World) -> dict[str, Any]:
    """The world's rows, and its sets without their order."""
    rows = {name: dict(getattr(world, name)) for name in ROWS}
    return rows | {name: set(getattr(world, name)) for name in ("owned", "waiting", "ended")}


ROWS = ("jobs", "ids", "keys", "requests", "results", "output", "instances", "events")


def test_a_decision_changes_nothing_by_itself() -> None:
    """Deciding twice gives the same decision: the world and the command are only read."""
    world = World.empty()
    command = c.Admit("j1", "A", TERMS)
    assert decide(world, command, StoreMs(5)) == decide(world, command, StoreMs(5))
    assert seen(world) == seen(World.empty())


def test_every_command_can_be_asked() -> None:
    """The table of commands is whole: each class of command is one that a store carries out."""
    declared = {
        kind
        for kind in vars(c).values()
        if isinstance(kind, type) and issubclass(kind, c.Command) and kind is not c.Command
    }
    assert set(all_commands()) == declared == set(ASKS)


def test_an_event_tells_how_the_lease_stood() -> None:
    """A sweep's event bears the deadline and the last beat before it, and both instances. (L5)"""
    clock = Clock(0)
    store = MemoryStore(clock)
    store.execute(c.Admit("j1", "A", TERMS))
    clock.now = StoreMs(10)
    store.execute(c.Heartbeat("A", TERMS, (c.Hold("j1", 1),)))
    clock.now = StoreMs(150)
    store.execute(c.Sweep("B", (c.Target("j1", 1, 2, StoreMs(111)),)))
    assert list(store.world.events.values())[-1] == Event(
        "j1",
        1,
        Kind.ORPHAN,
        StoreMs(150),
        Status.ORPHANED,
        "A",
        actor="B",
        beats=2,
        deadline=StoreMs(110),
        beat_at=StoreMs(10),
        first_seen_at=StoreMs(111),
        cause=Cause.OWNER_LOST,
    )


def test_a_forced_requeue_is_recorded() -> None:
    """An event says who requeued what was never to be requeued."""
    clock = Clock(0)
    store = MemoryStore(clock)
    store.execute(c.Admit("j1", "A", TERMS))
    clock.now = StoreMs(101)
    store.execute(c.Sweep("B", (c.Target("j1", 1, 1, StoreMs(0)),)))
    store.execute(c.Requeue("j1", 1, force=True, actor="ops"))
    event = list(store.world.events.values())[-1]
    assert (event.kind, event.epoch, event.owner) == (Kind.REQUEUE, 2, "A")
    assert (event.actor, event.forced) == ("ops", True)


def test_pages_end_where_they_say() -> None:
    """A page says whether more follows, and the next begins behind it, with nothing lost."""
    clock = Clock(0)
    store = MemoryStore(clock)
    for name in ("b", "a", "c"):
        store.execute(c.Admit(name, "A", TERMS))
    clock.now = StoreMs(101)
    page = store.execute(c.Suspects(limit=2))
    assert ([s.job_id for s in page.suspects], page.more) == (["a", "b"], True)
    page = store.execute(c.Suspects(after="b", limit=2))
    assert ([s.job_id for s in page.suspects], page.more) == (["c"], False)
    events = store.execute(c.ReadEvents(limit=2))
    assert ([e.job_id for e in events.events], events.next_after) == (["b", "a"], 2)
    events = store.execute(c.ReadEvents(after=events.next_after))
    assert ([e.job_id for e in events.events], events.next_after) == (["c"], 3)
    events = store.execute(c.ReadEvents(after=9))
    assert (events.events, events.next_after) == ((), 9)


def test_output_is_paged_by_number() -> None:
    """Chunks come in the order of their numbers, not of their arrival."""
    store = MemoryStore(lambda: StoreMs(0))
    store.execute(c.Admit("j1", "A", TERMS))
    for number in (10, 9, 2):
        chunk = Chunk(number, Stream.STDERR, b"x")
        store.execute(c.Output("j1", "A", 1, chunk, Ms(1)))
    page = store.execute(c.ReadOutput("j1", first=3, limit=1))
    assert isinstance(page, r.OutputPage)
    assert ([chunk.chunk for chunk in page.chunks], page.more) == ([9], True)


def test_a_job_is_found_with_who_asked_and_what_came_of_it() -> None:
    """`Find` shows the principal, the key and the result, and `ReadRequest` the payload."""
    store = MemoryStore(lambda: StoreMs(0))
    request = Request(b"work", "p", "k")
    store.execute(c.Admit("j1", "A", TERMS, request=request))
    found = store.execute(c.Find("j1"))
    assert isinstance(found, r.Found)
    assert (found.principal, found.request_key, found.result) == ("p", "k", None)
    store.execute(c.Complete("j1", "A", 1, Status.FAILED, Result(error="a\0")))
    found = store.execute(c.Find("j1"))
    assert isinstance(found, r.Found)
    assert found.result == Result(error="a\ufffd")
    read = store.execute(c.ReadRequest("j1"))
    assert read == r.RequestRead(StoreMs(0), request)
    assert store.execute(c.ReadRequest("j2")) == r.Refused(StoreMs(0), Refusal.ABSENT, None)


def test_eviction_takes_all_that_rode_along() -> None:
    """What belonged to an evicted job is gone, and its id stays used. (L6, L14)"""
    clock = Clock(0)
    store = MemoryStore(clock)
    store.execute(c.Admit("j1", "A", TERMS, request=Request(b"work")))
    store.execute(c.Output("j1", "A", 1, Chunk(0, Stream.STDOUT, b"x"), Ms(1)))
    store.execute(c.Complete("j1", "A", 1, Status.COMPLETED))
    clock.now = StoreMs(2)
    store.execute(c.Evict((c.Hold("j1", 1),), Ms(1)))
    world = store.world
    for gone in (world.jobs, world.requests, world.results, world.output, world.ended):
        assert not gone
    assert set(world.ids) == {"j1"}
    assert [event.kind for event in world.events.values()] == [
        Kind.ADMIT,
        Kind.COMPLETE,
        Kind.EVICT,
    ]


def test_instances_are_listed_and_leave_their_jobs() -> None:
    """A deregistered instance keeps its leases: the instances table decides none. (L1)"""
    story(
        """
        0   register A    -> registered, claims=0
        0   admit j1 A    -> admit: queued A e1 b1 d100
        1   deregister A  -> deregistered
        2   deregister A  -> deregistered
        99  suspects      -> nothing
        99  find j1       -> found: queued A e1 b1 d100
        """
    )
