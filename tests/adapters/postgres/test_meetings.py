"""Many rows, many sessions, ids and keys that meet: what a race of two on one job does not show."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain, count
from random import Random
from typing import Any, TypeVar

import pytest

from tests.adapters.postgres.conftest import Connect
from tests.adapters.postgres.helpers import (
    PATIENT_MS,
    TERMS,
    Meanwhile,
    Observer,
    ServerClock,
    admit_many,
    tables_of,
    with_options,
)
from unswept.adapters.postgres import PostgresStore
from unswept.core import commands as c
from unswept.core.job import Terms
from unswept.core.lease import MOVES, Kind, RequeueRule, Status
from unswept.core.refusal import Refusal
from unswept.core.replies import (
    Accepted,
    Answer,
    Claimed,
    EventsLeased,
    Forgotten,
    Found,
    Joined,
    Refused,
    Swept,
)
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Chunk, Event, Request, Stream

T = TypeVar("T")

RETENTION = Ms(200)


@pytest.fixture
def stores(postgres_url: str, postgres_schema: str) -> Iterator[list[PostgresStore]]:
    """Several, as several processes have them."""
    with ExitStack() as opened:
        yield [
            opened.enter_context(
                PostgresStore(postgres_url, schema=postgres_schema, operation_timeout_ms=PATIENT_MS)
            )
            for _ in range(4)
        ]


def at_once(*works: Callable[[], T]) -> list[T]:
    """What each comes to, all begun at the same moment."""
    ready = threading.Barrier(len(works))

    def after_all(work: Callable[[], T]) -> T:
        ready.wait()
        return work()

    begun = [Meanwhile(partial(after_all, work)) for work in works]
    return [each.result() for each in begun]


def events_of(store: PostgresStore) -> tuple[Event, ...]:
    return store.execute(c.ReadEvents(limit=10_000)).events


def event_counts(store: PostgresStore) -> Counter[tuple[str, int, Kind]]:
    return Counter((event.job_id, event.epoch, event.kind) for event in events_of(store))


def status_of(store: PostgresStore, job_id: str) -> Status:
    found = store.execute(c.Find(job_id))
    assert isinstance(found, Found)
    return found.job.lease.status


def test_several_make_the_schema_at_once(postgres_url: str, postgres_schema: str) -> None:
    """Instances that start together on an empty database all get their store."""

    def open_and_close() -> int:
        with PostgresStore(postgres_url, schema=postgres_schema) as store:
            store.execute(c.Register("a"))
            return len(store.execute(c.ListInstances()).instances)

    assert at_once(*[open_and_close] * 6) == [1] * 6


# Ids and keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "k"], ids=["without a key", "with a key"])
def test_an_admit_that_is_delivered_twice_at_once_is_one(
    stores: list[PostgresStore], key: str | None
) -> None:
    """One of the two makes the job, the other one repeats it, whoever comes first. (L6)"""
    request = Request(b"payload", None if key is None else "p", key)
    for number in range(20):
        admit = c.Admit(f"j{number}", "a", TERMS, request=request, dedup_window_ms=Ms(0))
        said = at_once(*(partial(store.execute, admit) for store in stores))
        accepted = [reply for reply in said if isinstance(reply, Accepted)]
        assert Counter(reply.repeated for reply in accepted) == {False: 1, True: 3}, said
    assert set(event_counts(stores[0]).values()) == {1}


def test_equal_requests_at_once_get_one_job(stores: list[PostgresStore]) -> None:
    """Of admits under one key that differ in their ids, one makes a job and the others join it;
    where no twin may be handed out, all make one, and the key names the last. (L15)"""
    for number in range(15):
        request = Request(b"", "p", f"k{number}")
        ids = [f"j{number}-{who}" for who in range(4)]
        admits = [
            c.Admit(job_id, "a", TERMS, request=request, dedup_window_ms=Ms(3_600_000))
            for job_id in ids
        ]
        said = at_once(
            *(partial(store.execute, admit) for store, admit in zip(stores, admits, strict=True))
        )
        (made,) = (reply for reply in said if isinstance(reply, Accepted))
        joined = [reply for reply in said if isinstance(reply, Joined)]
        assert len(joined) == 3
        assert {reply.standing.job_id for reply in joined} == {made.standing.job_id}
        again = [stores[0].execute(admit) for admit in admits]
        assert {reply.standing.job_id for reply in again if not isinstance(reply, Refused)} == {
            made.standing.job_id
        }


def test_a_withdrawal_of_an_admit_that_waits_for_its_key_is_heard(
    store: PostgresStore,
    clock: ServerClock,
    connect: Connect,
    observer: Observer,
    postgres_schema: str,
) -> None:
    """The admit waits for its twin; meanwhile it is given up: no job of that id is ever made."""
    request = Request(b"", "p", "k")
    other = connect()
    other.begin()
    other.execute(postgres_schema, c.Admit("twin", "a", TERMS, request=request))
    admit = c.Admit("late", "a", TERMS, request=request, dedup_window_ms=Ms(1_000))
    work = Meanwhile(lambda: store.execute(admit))
    assert observer.sees_wait(work, other)
    store.execute(c.Withdraw("late", "a"))
    other.commit()
    reply = work.result()
    assert isinstance(reply, Refused)
    assert reply.reason is Refusal.SPENT
    assert [event.job_id for event in events_of(store)] == ["twin"]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_key_is_not_forgotten_while_it_is_used_again(
    end: str,
    store: PostgresStore,
    clock: ServerClock,
    connect: Connect,
    observer: Observer,
    postgres_schema: str,
) -> None:
    """A clean-up that saw the old job under the key waits for the admit that gives it a new one,
    and then leaves it; an admit that waits for the clean-up finds the key free. (L15)"""
    request = Request(b"", "p", "k")
    old, new = (c.Admit(job_id, "a", TERMS, request=request) for job_id in ("old", "new"))
    store.execute(old)
    clock.now += 1_001
    forget = c.ForgetKeys((("p", "k", "old"),), Ms(1_000))
    other = connect()

    other.begin()
    other.execute(postgres_schema, new)
    forgetting = Meanwhile(lambda: store.execute(forget))
    assert observer.sees_wait(forgetting, other)
    getattr(other, end)()
    assert forgetting.result().count == (end == "rollback")
    keyed = store.execute(c.Admit("twin", "b", TERMS, request=request, dedup_window_ms=Ms(10_000)))
    assert isinstance(keyed, Joined) == (end == "commit")

    clock.now += 1_001
    other.begin()
    named = "new" if end == "commit" else "twin"
    assert other.execute(postgres_schema, c.ForgetKeys((("p", "k", named),), Ms(1_000))).count
    late = c.Admit("late", "a", TERMS, request=request, dedup_window_ms=Ms(10_000))
    admitting = Meanwhile(lambda: store.execute(late))
    assert observer.sees_wait(admitting, other)
    store.execute(c.Heartbeat("a", TERMS, (c.Hold("new", 1),)))
    store.execute(c.Heartbeat("b", TERMS, (c.Hold("twin", 1),)))
    getattr(other, end)()
    assert isinstance(admitting.result(), Accepted if end == "commit" else Joined)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_id_is_never_queued_again_while_its_job_is_evicted(
    end: str,
    store: PostgresStore,
    clock: ServerClock,
    connect: Connect,
    observer: Observer,
    postgres_schema: str,
) -> None:
    """A late enqueue that meets its eviction makes no row, whatever becomes of it. (L6)"""
    store.execute(c.Register("a"))
    store.execute(c.Enqueue("j"))
    store.execute(c.RequestCancel("j"))
    clock.now += RETENTION + 1
    evicting = connect()
    evicting.begin()
    evicted = evicting.execute(postgres_schema, c.Evict((c.Hold("j", 1),), RETENTION))
    assert evicted.answers[0].refusal is None
    enqueue = c.Enqueue("j")
    work = Meanwhile(lambda: store.execute(enqueue))
    observer.sees_wait(work, evicting)
    getattr(evicting, end)()
    reply, again = work.result(), store.execute(enqueue)
    for said in (reply, again):
        queued = isinstance(said, Accepted) and said.standing.status is Status.QUEUED
        assert not queued, said
    assert isinstance(again, Refused) == (end == "commit")
    assert evicting.value(f"SELECT count(*) FROM {postgres_schema}.jobs") == (end != "commit")
    claimed = store.execute(c.Claim("a", 1, TERMS))
    assert isinstance(claimed, Claimed)
    assert claimed.grants == ()


# Claims -----------------------------------------------------------------------------------------


def test_each_job_is_claimed_once(stores: list[PostgresStore]) -> None:
    """However many claim at once, each job has one event and one owner, and none is left over.
    (L5, F1)"""
    jobs = 60
    for number in range(jobs):
        stores[0].execute(c.Enqueue(f"j{number:02}"))

    def claim_all(store: PostgresStore, owner: str) -> list[str]:
        store.execute(c.Register(owner))
        mine: list[str] = []
        claim_no = 0
        while True:
            claim_no += 1
            claimed = store.execute(c.Claim(owner, claim_no, TERMS, limit=3))
            assert isinstance(claimed, Claimed)
            mine += [grant.standing.job_id for grant in claimed.grants]
            if not claimed.grants:
                return mine

    taken = at_once(
        *(partial(claim_all, store, owner) for store, owner in zip(stores, "abcd", strict=True))
    )
    assert sorted(chain.from_iterable(taken)) == [f"j{number:02}" for number in range(jobs)]
    counts = event_counts(stores[0])
    assert sum(n for (_, _, kind), n in counts.items() if kind is Kind.CLAIM) == jobs


# Sweeps and beats -------------------------------------------------------------------------------


def test_two_sweepers_orphan_each_suspect_once(
    stores: list[PostgresStore], connect: Connect, postgres_schema: str
) -> None:
    """Over the same suspects at the same time: each has one event, and between them they say once
    that they did it; whoever found a row locked says so. (L2, L5)"""
    clock = ServerClock(connect(), postgres_schema)
    ids = admit_many(connect(), postgres_schema, 300)
    clock.now += TERMS.lease_ttl_ms + 1
    targets = tuple(c.Target(job_id, 1, 1, clock()) for job_id in ids)
    swept: list[Swept] = at_once(
        lambda: stores[0].execute(c.Sweep("s", targets)),
        lambda: stores[1].execute(c.Sweep("t", targets)),
        lambda: stores[2].execute(c.Sweep("u", targets[::-1])),
    )
    answers = list(chain.from_iterable(each.answers for each in swept))
    assert {answer.refusal for answer in answers} <= {None, Refusal.BUSY}
    done = Counter(
        answer.job_id for answer in answers if answer.refusal is None and not answer.repeated
    )
    assert done == dict.fromkeys(ids, 1)
    counts = event_counts(stores[0])
    assert counts == {(job_id, 1, Kind.ORPHAN): 1 for job_id in ids}


def test_beats_and_sweeps_in_opposite_orders_disturb_nobody(
    stores: list[PostgresStore], connect: Connect, postgres_schema: str
) -> None:
    """Many holds in one order, many targets in the other, over and over, single writes between: no
    deadlock and no other error reaches a caller, and each hold gets its one answer. (L8)"""
    ServerClock(connect(), postgres_schema)  # it stands: what is renewed is not past again
    ids = admit_many(connect(), postgres_schema, 200, deadline=0)
    rounds = 12
    holds = tuple(c.Hold(job_id, 1) for job_id in ids)

    def beat(store: PostgresStore, holds: tuple[c.Hold, ...]) -> list[Answer]:
        said: list[Answer] = []
        for _ in range(rounds):
            beaten = store.execute(c.Heartbeat("a", TERMS, holds, watched=tuple(ids[::7])))
            assert [answer.job_id for answer in beaten.answers] == [h.job_id for h in holds]
            said += [answer.answer for answer in beaten.answers]
        return said

    def sweep(store: PostgresStore, sweeper: str) -> list[Refusal | None]:
        said: list[Refusal | None] = []
        for beats in range(rounds):
            targets = tuple(c.Target(job_id, 1, 1 + beats, StoreMs(1)) for job_id in ids[::-1])
            swept = store.execute(c.Sweep(sweeper, targets))
            assert [answer.job_id for answer in swept.answers] == ids[::-1]
            said += [answer.refusal for answer in swept.answers]
        return said

    def write(store: PostgresStore) -> list[None]:
        for job_id in ids[::3]:
            store.execute(c.RequestCancel(job_id))
        return []

    at_once(
        lambda: beat(stores[0], holds),
        lambda: beat(stores[1], holds[::-1]),
        lambda: sweep(stores[2], "s"),
        lambda: write(stores[3]),
    )
    allowed = {Status.QUEUED, Status.ORPHANED, Status.CANCELED}
    assert {status_of(stores[0], job_id) for job_id in ids} <= allowed
    assert max(event_counts(stores[0]).values()) == 1


@pytest.fixture
def two(postgres_url: str, postgres_schema: str) -> Iterator[list[PostgresStore]]:
    """Two stores whose beats wait two seconds for a row, on a server that ends no deadlock before:
    only those who wait for each other ever take so long."""
    url = with_options(postgres_url, "-c deadlock_timeout=60s")
    with ExitStack() as opened:
        yield [
            opened.enter_context(
                PostgresStore(url, schema=postgres_schema, operation_timeout_ms=16_000)
            )
            for _ in range(2)
        ]


def beats(store: PostgresStore, beat: c.Heartbeat, times: int) -> None:
    """Each renews all its holds, and finds no row locked."""
    for _ in range(times):
        beaten = store.execute(beat)
        assert {answer.answer for answer in beaten.answers} <= {Answer.RENEWED}
        assert beaten.locked == ()


def test_two_that_watch_each_others_holds_beat_at_once(two: list[PostgresStore]) -> None:
    """As after an outage, when all look expired: a row is not locked whose owner is just being
    served, while its beat looks at the rows of the other one. (L8, L12)"""
    m, o = (tuple(f"{owner}{number:02}" for number in range(60)) for owner in "mo")
    for owner, ids in (("m", m), ("o", o)):
        for job_id in ids:
            two[0].execute(c.Admit(job_id, owner, TERMS))
    m_beat = c.Heartbeat("m", TERMS, tuple(c.Hold(job_id, 1) for job_id in m), watched=o)
    o_beat = c.Heartbeat("o", TERMS, tuple(c.Hold(job_id, 1) for job_id in o), watched=m)
    at_once(partial(beats, two[0], m_beat, 20), partial(beats, two[1], o_beat, 20))


def test_two_that_watch_the_same_jobs_beat_at_once(two: list[PostgresStore]) -> None:
    """Two sweepers with the same suspects: neither takes the other's look for a lock, after which
    it would have to begin its window anew. (L12, L13)"""
    dead = tuple(f"j{number:02}" for number in range(60))
    for job_id in dead:
        two[0].execute(c.Admit(job_id, "a", TERMS))
    one, other = (c.Heartbeat(sweeper, TERMS, watched=dead) for sweeper in "st")
    at_once(partial(beats, two[0], one, 30), partial(beats, two[1], other, 30))


# Events -----------------------------------------------------------------------------------------


def test_a_reader_of_events_misses_none(
    store: PostgresStore, clock: ServerClock, connect: Connect, postgres_schema: str
) -> None:
    """Whoever reads on behind `next_after` gets each event once, also one whose transaction began
    before, and committed after, another one whose event was read."""
    slow = connect()
    slow.begin()
    slow.execute(postgres_schema, c.Enqueue("slow"))
    store.execute(c.Enqueue("quick"))
    first = store.execute(c.ReadEvents())
    slow.commit()
    second = store.execute(c.ReadEvents(after=first.next_after))
    read = [event.job_id for event in (*first.events, *second.events)]
    assert sorted(read) == ["quick", "slow"]


def evicted_long_ago(store: PostgresStore, clock: ServerClock, *job_ids: str) -> None:
    """Jobs of which only three events each are left, which are past their retention."""
    for job_id in job_ids:
        store.execute(c.Enqueue(job_id))
        store.execute(c.RequestCancel(job_id))
    clock.now += RETENTION + 1
    holds = tuple(c.Hold(job_id, 1) for job_id in job_ids)
    assert {answer.refusal for answer in store.execute(c.Evict(holds, RETENTION)).answers} == {None}
    store.execute(c.Enqueue("newer"))
    clock.now += RETENTION + 1


def test_events_are_removed_once(
    stores: list[PostgresStore], connect: Connect, postgres_schema: str
) -> None:
    """Of several who remove the same at once, in whichever order, one says of each that it did."""
    ids = [f"j{number:02}" for number in range(40)]
    evicted_long_ago(stores[0], ServerClock(connect(), postgres_schema), *ids)
    removals = [c.ForgetEvents(tuple(order), RETENTION) for order in (ids, ids[::-1]) * 2]
    said = at_once(
        *(partial(store.execute, each) for store, each in zip(stores, removals, strict=True))
    )
    assert sum(reply.count for reply in said) == len(ids)
    assert [event.job_id for event in events_of(stores[0])] == ["newer"]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_event_under_way_is_not_lost_while_others_are_removed(
    end: str, store: PostgresStore, clock: ServerClock, connect: Connect, postgres_schema: str
) -> None:
    """Its number is lower than theirs, and its transaction has been open for longer than they are
    kept; whoever reads finds it as soon as it is committed."""
    slow = connect()
    slow.begin()
    slow.execute(postgres_schema, c.Enqueue("slow"))
    evicted_long_ago(store, clock, "j")
    assert store.execute(c.ForgetEvents(("j", "slow"), RETENTION)).count == 1
    assert store.execute(c.ReadEvents()).events == ()
    getattr(slow, end)()
    committed = ["slow"] if end == "commit" else []
    assert [event.job_id for event in events_of(store)] == [*committed, "newer"]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_removal_goes_by_what_consumers_have_acknowledged(
    end: str, store: PostgresStore, clock: ServerClock, connect: Connect, postgres_schema: str
) -> None:
    """An acknowledgement that is not committed counts for nothing, and is not waited for."""
    evicted_long_ago(store, clock, "j")
    store.execute(c.LeaseEvents("mail", "a", Ms(1_000)))
    forget = c.ForgetEvents(("j",), RETENTION)
    other = connect()
    other.begin()
    other.execute(postgres_schema, c.Acknowledge("mail", 1, 4))
    assert store.execute(forget).count == 0
    getattr(other, end)()
    assert store.execute(forget).count == (end == "commit")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_lease_that_meets_its_consumers_end_begins_anew(
    end: str,
    store: PostgresStore,
    clock: ServerClock,
    connect: Connect,
    observer: Observer,
    postgres_schema: str,
) -> None:
    """Or goes on where the consumer was, if it was not forgotten after all. (F4)"""
    store.execute(c.Enqueue("j"))
    store.execute(c.LeaseEvents("mail", "a", Ms(1)))
    store.execute(c.Acknowledge("mail", 1, 1, last=True))
    other = connect()
    other.begin()
    assert other.execute(postgres_schema, c.ForgetConsumer("mail")) == Forgotten(clock(), 1)
    work = Meanwhile(lambda: store.execute(c.LeaseEvents("mail", "b", Ms(1_000))))
    assert observer.sees_wait(work, other)
    getattr(other, end)()
    leased = work.result()
    assert isinstance(leased, EventsLeased)
    assert (leased.token, leased.position) == ((1, 0) if end == "commit" else (2, 1))
    refused = store.execute(c.ForgetConsumer("mail"))
    assert isinstance(refused, Refused)
    assert refused.reason is Refusal.LEASED


# Everything at once -----------------------------------------------------------------------------


SHORT = Terms(Ms(10), Ms(20), Ms(10), Ms(5))


def draw(random: Random, store: PostgresStore, job_id: str, owner: str) -> c.Command[Any]:
    """Some command on this job, by what stands or under an old stamp."""
    found = store.execute(c.Find(job_id))
    epoch, beats = 1, 1
    if isinstance(found, Found):
        epoch, beats = max(1, found.job.lease.epoch), found.job.lease.beats
        owner = found.job.lease.owner or owner
    epoch = max(1, epoch - random.choice((0, 0, 0, 1)))
    hold, allowed = c.Hold(job_id, epoch), RequeueRule.ALLOWED
    request = Request(b"", "p", job_id)
    commands: dict[c.Command[Any], int] = {
        c.Admit(job_id, owner, SHORT, requeue=allowed, request=request): 2,
        c.Enqueue(job_id, requeue=allowed): 2,
        c.Withdraw(job_id, owner): 1,
        c.Claim(owner, random.randint(1, 1_000_000_000), SHORT, limit=2): 4,
        c.Start(job_id, owner, epoch, SHORT): 4,
        c.Heartbeat(owner, SHORT, (hold,), watched=(job_id,)): 4,
        c.Output(job_id, owner, epoch, Chunk(beats, Stream.STDOUT, b"x"), Ms(50)): 4,
        c.Complete(job_id, owner, epoch, Status.COMPLETED): 2,
        c.Release(job_id, owner, epoch): 2,
        c.RequestCancel(job_id): 1,
        c.Requeue(job_id, epoch): 8,
        c.Settle(job_id, epoch, Status.FAILED): 1,
        c.Delay(job_id, epoch, beats, "s"): 2,
        c.Sweep("s", (c.Target(job_id, epoch, beats, StoreMs(1)),)): 12,
        c.Evict((hold,), Ms(5)): 4,
    }
    return random.choices(list(commands), weights=list(commands.values()))[0]


def test_whatever_many_do_at_once_the_events_tell_one_story(
    stores: list[PostgresStore], connect: Connect, postgres_schema: str
) -> None:
    """Four hammer on a few jobs for a while. Then the events of each job are a path through the
    table of moves, each under the epoch that the move gives, and end where its row stands; no sweep
    took a lease that was not past. (L1, L3, L4, L5, L6)"""
    for owner in ("o1", "o2"):
        stores[0].execute(c.Register(owner))
    drawn = count()

    def hammer(store: PostgresStore, seed: int) -> None:
        random = Random(seed)
        while (number := next(drawn)) < 900:
            # A new id from time to time: one that was evicted is of no more use.
            job_id, owner = f"j{number // 50}", f"o{random.randint(1, 2)}"
            store.execute(draw(random, store, job_id, owner))

    at_once(*(partial(hammer, store, seed) for seed, store in enumerate(stores)))

    rows = tables_of(connect(), postgres_schema)
    stories: dict[str, list[Event]] = {}
    for event in rows["events"]:
        stories.setdefault(event.job_id, []).append(event)
    assert set(stories) >= set(rows["jobs"])
    for job_id, story in stories.items():
        status, epoch, beats = None, 0, 0
        for event in story:
            if event.kind is Kind.STALE_RESULT:
                continue
            told = f"{event} in {story}"
            if event.kind in (Kind.ADMIT, Kind.ENQUEUE):
                assert status is None, told
                status, epoch = Status.QUEUED, int(event.kind is Kind.ADMIT)
            else:
                move = MOVES[event.kind]
                assert status in move.leaves, told
                epoch += move.epoch_step
                assert event.kind is Kind.EVICT or event.status in move.reaches, told
                status = event.status
            assert (event.status, event.epoch) == (status, epoch), told
            assert event.beats >= beats, told
            beats = event.beats
            if event.kind is Kind.ORPHAN:
                assert event.deadline is not None
                assert event.deadline < event.at, told
        job = rows["jobs"].get(job_id)
        if story[-1].kind is Kind.EVICT:
            assert job is None
            assert not {job_id} & {*rows["requests"], *rows["results"], *rows["output"]}
        else:
            assert (job.lease.status, job.lease.epoch) == (status, epoch), story
        assert job_id in rows["ids"]
