"""What cannot be undone waits for a second look: nothing goes at first sight.

The window is 2400 ms, the sweep interval 1600; without sightings the next look comes after ten.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve

from unswept.core import heart as hearts
from unswept.core import housekeeper as keepers
from unswept.core.commands import (
    Claim,
    Command,
    Complete,
    Enqueue,
    Evict,
    ExpireQueued,
    ForgetConsumer,
    ForgetEvents,
    ForgetInstances,
    ForgetKeys,
    Hold,
    LeaseEvents,
    LookOverdue,
    ReadEvents,
    Register,
)
from unswept.core.heart import Heart, Phase, Pulse
from unswept.core.housekeeper import Housekeeper
from unswept.core.lease import Status
from unswept.core.memory import MemoryStore
from unswept.core.policy import LeasePolicy
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.replies import Evicted, Overdue
from unswept.core.units import MonoMs, Ms, StoreMs

POLICY: Final = LeasePolicy(
    heartbeat_interval_ms=Ms(800),
    operation_timeout_ms=Ms(100),
    lease_ttl_ms=Ms(4_000),
    http_grace_ms=Ms(4_000),
    sweep_interval_ms=Ms(1_600),
    retention_ms=Ms(100_000),
    event_retention_ms=Ms(50_000),
)
KEEPS_EVENTS: Final = evolve(POLICY, event_retention_ms=None)
WINDOW_MS: Final = 2_400
FIRST_LOOK: Final = 1_600
PAUSE_MS: Final = 16_000
"""Between two looks when there is nothing to look at twice."""


def steady(now: int, since: int = 0, phase: Phase = Phase.STEADY) -> Heart:
    pulse = Pulse(MonoMs(now), MonoMs(now), MonoMs(since), MonoMs(since))
    return Heart(POLICY, phase, MonoMs(now), pulse=pulse, known_since=MonoMs(0))


def overdue(
    evictable: tuple[tuple[str, int], ...] = (),
    expirable: tuple[tuple[str, int], ...] = (),
    silent: tuple[tuple[str, StoreMs], ...] = (),
    keys: tuple[tuple[str, str, str], ...] = (),
    events: tuple[str, ...] = (),
) -> Overdue:
    return Overdue(StoreMs(0), evictable, expirable, silent, keys, events)


OLD: Final = overdue(
    (("j1", 1), ("j2", 3)),
    (("q1", 0), ("q2", 2)),
    (("A", StoreMs(7)),),
    (("p", "k", "j1"),),
    ("e1", "e2"),
)
ALL: Final = (
    Evict((Hold("j1", 1), Hold("j2", 3)), POLICY.retention_ms),
    ExpireQueued("q1"),
    ExpireQueued("q2"),
    ForgetInstances((("A", StoreMs(7)),), POLICY.instance_gc_ms),
    ForgetKeys((("p", "k", "j1"),), POLICY.dedup_window_ms),
    ForgetEvents(("e1", "e2"), Ms(50_000)),
)


def tell(
    keeper: Housekeeper, seen: Overdue, now: int, since: int = 0
) -> tuple[Housekeeper, tuple[Command[Any], ...]]:
    looking = changed(keeper, looked_at=MonoMs(now))
    return keepers.answered(looking, seen, steady(now, since), MonoMs(now))


def fresh() -> Housekeeper:
    return keepers.begin(POLICY, MonoMs(0))


def looks_at(keeper: Housekeeper, now: int) -> tuple[Housekeeper, bool]:
    keeper, commands = keepers.tick(keeper, steady(now), MonoMs(now))
    return keeper, bool(commands)


def test_the_first_look_comes_after_a_sweep_interval_and_asks_in_batches() -> None:
    """It asks for at most a hundred rows of each kind, by its own policy's ages."""
    keeper = fresh()
    assert not looks_at(keeper, FIRST_LOOK - 1)[1]
    _, commands = keepers.tick(keeper, steady(FIRST_LOOK), MonoMs(FIRST_LOOK))
    assert commands == (
        LookOverdue(
            POLICY.retention_ms,
            POLICY.instance_gc_ms,
            POLICY.dedup_window_ms,
            keepers.BATCH,
            POLICY.event_retention_ms,
        ),
    )


def test_it_looks_only_while_steady() -> None:
    """Who is not steady proves nothing, and asks when it is steady again."""
    for phase in set(Phase) - {Phase.STEADY}:
        heart = steady(FIRST_LOOK, phase=phase)
        keeper, commands = keepers.tick(fresh(), heart, MonoMs(FIRST_LOOK))
        assert not commands
        assert looks_at(keeper, FIRST_LOOK + 1)[1]


def test_it_looks_seldom_at_nothing_and_soon_at_what_it_has_seen() -> None:
    """Ten sweep intervals lie between two looks, but only a window when something is due."""
    keeper, _ = looks_at(fresh(), FIRST_LOOK)
    keeper, _ = tell(keeper, overdue(), FIRST_LOOK + 10)
    assert not looks_at(keeper, FIRST_LOOK + PAUSE_MS - 1)[1]
    assert looks_at(keeper, FIRST_LOOK + PAUSE_MS)[1]
    keeper, _ = tell(keeper, OLD, FIRST_LOOK + 10)
    assert not looks_at(keeper, FIRST_LOOK + 10 + WINDOW_MS - 1)[1]
    keeper, looked = looks_at(keeper, FIRST_LOOK + 10 + WINDOW_MS)
    assert looked
    assert not looks_at(keeper, FIRST_LOOK + 10 + 2 * WINDOW_MS - 1)[1], "the answer may be lost"
    assert looks_at(keeper, FIRST_LOOK + 10 + 2 * WINDOW_MS)[1]


def test_nothing_goes_at_first_sight() -> None:
    """However old it is said to be, what is seen for the first time is only remembered."""
    keeper, commands = tell(fresh(), OLD, 1_000_000)
    assert commands == ()
    assert len(keeper.seen) == 8
    assert set(keeper.seen.values()) == {1_000_000}


def test_what_stood_for_the_window_goes_in_one_command_per_batch() -> None:
    """At exactly the window it goes, a millisecond before it does not; then it is forgotten."""
    keeper, _ = tell(fresh(), OLD, 10_000)
    keeper, commands = tell(keeper, OLD, 10_000 + WINDOW_MS - 1)
    assert commands == ()
    keeper, commands = tell(keeper, OLD, 10_000 + WINDOW_MS)
    assert commands == ALL
    assert keeper.seen == {}


def test_a_lost_eviction_needs_two_looks_again() -> None:
    """What went is seen anew if it is still there, and waits for a new window."""
    keeper, _ = tell(fresh(), OLD, 10_000)
    keeper, _ = tell(keeper, OLD, 10_000 + WINDOW_MS)
    keeper, commands = tell(keeper, OLD, 10_001 + WINDOW_MS)
    assert commands == ()
    assert set(keeper.seen.values()) == {10_001 + WINDOW_MS}


def test_what_is_no_longer_due_is_forgotten() -> None:
    """A clock step that is corrected within the window leaves nothing to confirm."""
    keeper, _ = tell(fresh(), OLD, 10_000)
    keeper, commands = tell(keeper, overdue(), 11_000)
    assert (commands, keeper.seen) == ((), {})
    keeper, commands = tell(keeper, OLD, 10_000 + WINDOW_MS)
    assert commands == ()


def test_only_the_very_facts_that_were_seen_are_confirmed() -> None:
    """A row that moved on meanwhile (another epoch, a newer beat, a newer job) is a new sight."""
    moved = overdue((("j1", 2),), (("q1", 1),), (("A", StoreMs(8)),), (("p", "k", "j9"),))
    keeper, _ = tell(fresh(), OLD, 10_000)
    keeper, commands = tell(keeper, moved, 10_000 + WINDOW_MS)
    assert commands == ()
    _, commands = tell(keeper, moved, 10_000 + 2 * WINDOW_MS)
    assert len(commands) == 4


def test_each_sight_has_its_own_window() -> None:
    """What came later stays behind when the first goes."""
    first, both = overdue((("j1", 1),)), overdue((("j1", 1), ("j2", 3)))
    keeper, _ = tell(fresh(), first, 10_000)
    keeper, _ = tell(keeper, both, 10_500)
    keeper, commands = tell(keeper, both, 10_000 + WINDOW_MS)
    assert commands == (Evict((Hold("j1", 1),), POLICY.retention_ms),)
    _, commands = tell(keeper, both, 10_500 + WINDOW_MS)
    assert Hold("j2", 3) in commands[0].targets  # type: ignore[attr-defined]


def test_a_gap_in_the_beats_restarts_the_window() -> None:
    """Only a window of steady beats confirms; one that began later is not over yet."""
    keeper, _ = tell(fresh(), OLD, 10_000)
    keeper, commands = tell(keeper, OLD, 12_500, since=11_000)
    assert commands == ()
    assert set(keeper.seen.values()) == {10_000}
    keeper, commands = tell(keeper, OLD, 11_000 + WINDOW_MS - 1, since=11_000)
    assert commands == ()
    _, commands = tell(keeper, OLD, 11_000 + WINDOW_MS, since=11_000)
    assert commands == ALL


def test_an_instance_that_is_not_steady_sends_nothing_but_remembers() -> None:
    """A faint or draining instance looks again when it is steady; what it saw still counts."""
    keeper, _ = tell(fresh(), OLD, 10_000)
    for phase in set(Phase) - {Phase.STEADY}:
        heart = steady(10_000 + WINDOW_MS, phase=phase)
        late = MonoMs(10_000 + WINDOW_MS)
        after, commands = keepers.answered(changed(keeper, looked_at=late), OLD, heart, late)
        assert commands == ()
        assert after.seen == keeper.seen
        early = MonoMs(10_000)
        after, _ = keepers.answered(changed(fresh(), looked_at=early), OLD, heart, early)
        assert after.seen == keeper.seen
    never = hearts.boot(POLICY, MonoMs(0))
    assert keepers.answered(keeper, OLD, never, MonoMs(99_999))[1] == ()


def test_one_look_is_one_observation() -> None:
    """An answer that comes a second time, or too late, is no second look."""
    keeper, looks = keepers.tick(fresh(), steady(FIRST_LOOK), MonoMs(FIRST_LOOK))
    assert looks
    at = MonoMs(FIRST_LOOK + 10)
    keeper, _ = keepers.answered(keeper, OLD, steady(at), at)
    again = MonoMs(at + WINDOW_MS)
    assert keepers.answered(keeper, OLD, steady(again), again) == (keeper, ())
    keeper, looks = keepers.tick(keeper, steady(again), again)
    late = MonoMs(again + POLICY.operation_timeout_ms)
    assert looks
    assert keepers.answered(keeper, OLD, steady(late), late)[1] == ()


def test_what_goes_goes_in_commands_of_a_bounded_size() -> None:
    """Thousands of rows are cleaned up in one window, by commands that are short each."""
    many = overdue(tuple((f"j{number}", 1) for number in range(1_201)))
    keeper, _ = tell(fresh(), many, 10_000)
    _, commands = tell(keeper, many, 10_000 + WINDOW_MS)
    assert [len(command.targets) for command in commands if isinstance(command, Evict)] == [
        keepers.AT_ONCE,
        keepers.AT_ONCE,
        201,
    ]


def test_events_go_in_commands_of_a_bounded_size_too() -> None:
    """Each names so many jobs at most, for it removes all their events at once."""
    many = overdue(events=tuple(f"e{number}" for number in range(501)))
    keeper, _ = tell(fresh(), many, 10_000)
    _, commands = tell(keeper, many, 10_000 + WINDOW_MS)
    assert [len(command.job_ids) for command in commands if isinstance(command, ForgetEvents)] == [
        keepers.AT_ONCE,
        1,
    ]


class Household:
    """A pure store with some rows in it, and a keeper whose heart never misses a beat."""

    def __init__(self, policy: LeasePolicy = KEEPS_EVENTS) -> None:
        self.mono = 0
        self.step = 0
        """How far the store clock is ahead of where it should be."""
        self.store = MemoryStore(lambda: StoreMs(self.mono + self.step))
        self.keeper = keepers.begin(policy, MonoMs(0))
        self.sent: list[Command[Any]] = []
        self.store.execute(Register("A"))
        for number in range(3):
            self.store.execute(Enqueue(f"j{number}"))
        self.store.execute(Claim("A", 1, POLICY.terms(), limit=2))
        self.store.execute(Complete("j0", "A", 1, Status.COMPLETED))
        self.store.execute(Enqueue("late", queue_deadline=StoreMs(50_000)))

    def run(self, until: int, answered_after: int = 5) -> None:
        """Every millisecond that matters, until then."""
        while self.mono < until:
            heart = steady(self.mono)
            self.keeper, looks = keepers.tick(self.keeper, heart, MonoMs(self.mono))
            for look in looks:
                seen: Overdue = self.store.execute(look)
                self.mono += answered_after
                heart = steady(self.mono)
                self.keeper, commands = keepers.answered(
                    self.keeper, seen, heart, MonoMs(self.mono)
                )
                for command in commands:
                    self.sent.append(command)
                    self.store.execute(command)
            self.mono = max(self.mono + 1, min(until, self.keeper.next_look_at))


def test_a_forward_step_of_the_store_clock_that_is_corrected_evicts_nothing() -> None:
    """All rows look old for one look; when the clock is put right within the window, none goes."""
    house = Household()
    house.step = 10**9
    house.run(FIRST_LOOK + 100)
    assert len(house.keeper.seen) == 3  # the finished job, the late one, and the instance
    house.step = 0
    house.run(60_000)
    assert set(house.store.world.jobs) == {"j0", "j1", "j2", "late"}
    assert set(house.store.world.instances) == {"A"}
    assert house.sent == [ExpireQueued("late")]  # at 50 s it was due by the right clock, twice seen
    assert house.store.world.jobs["late"].lease.status is Status.EXPIRED


def test_what_is_truly_old_goes_and_its_id_stays_used() -> None:
    """A finished job past its retention is evicted after a second look; nothing else is touched."""
    house = Household()
    house.run(200_000)
    assert set(house.store.world.jobs) == {"j1", "j2"}  # running, and queued without a deadline
    evictions = [command for command in house.sent if isinstance(command, Evict)]
    assert [target for command in evictions for target in command.targets] == [
        Hold("j0", 1),
        Hold("late", 1),
    ]
    reply: Evicted = house.store.execute(evictions[0])
    assert [(row.refusal, row.repeated) for row in reply.answers] == [(None, True)]
    assert house.store.execute(Enqueue("j0")).reason is Refusal.SPENT  # type: ignore[union-attr]


def told(house: Household) -> set[str]:
    """The jobs of which there are events."""
    return {event.job_id for event in house.store.execute(ReadEvents()).events}


def evicted_household() -> Household:
    """All of one job is gone but its events."""
    house = Household(POLICY)
    house.run(125_000)
    assert told(house) >= {"j0"}
    assert house.store.world.ids.keys() - house.store.world.jobs == {"j0"}
    house.store.execute(Enqueue("newer"))
    return house


def test_old_events_go_after_their_jobs() -> None:
    """Once their own retention, which begins with the eviction, is past and stood for a window."""
    house = evicted_household()
    house.store.execute(LeaseEvents("mail", "R", Ms(1)))
    house.run(180_000)
    assert told(house) == {"j0", "j1", "j2", "late", "newer"}, "a consumer has not read them"
    house.store.execute(ForgetConsumer("mail"))
    house.store.execute(Enqueue("newest"))
    house.run(260_000)
    assert told(house) == {"j1", "j2", "newer", "newest"}


def test_a_forward_step_of_the_store_clock_that_is_corrected_removes_no_event() -> None:
    """All look old for one look; when the clock is put right within the window, none goes."""
    house = evicted_household()
    house.step = 10**9
    house.run(house.keeper.next_look_at + 100)
    assert keepers.Sighting("events", ("j0",)) in house.keeper.seen
    house.step = 0
    house.run(house.mono + 10_000)
    assert not [command for command in house.sent if isinstance(command, ForgetEvents)]
    assert "j0" in {event.job_id for event in house.store.execute(ReadEvents()).events}


def test_more_than_a_batch_goes_batch_by_batch() -> None:
    """A backlog of old jobs is worked off a hundred at a time, each batch after its own window."""
    house = Household()
    for number in range(250):
        house.store.execute(Enqueue(f"n{number:03}", queue_deadline=StoreMs(1)))
    house.run(80_000)
    expired = [command.job_id for command in house.sent if isinstance(command, ExpireQueued)]
    assert len(expired) == len(set(expired)) == 251
    jobs = house.store.world.jobs
    assert all(jobs[name].lease.status is Status.EXPIRED for name in expired)
