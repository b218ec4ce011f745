"""How a runner without work learns of some: it looks, it is woken, and a lost word costs little."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import PATIENCE_S, Faulty, run, status
from tests.adapters.runner.helpers import ended, enqueue, open_store, runner, soon
from unswept.adapters.runner import Polling, RunnerJob, open_queue, open_runner
from unswept.adapters.runner.waking import Idleness
from unswept.core import commands as c
from unswept.core.errors import MisuseError
from unswept.core.lease import RequeueRule, Status
from unswept.core.units import Ms

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("psycopg_pool")

from unswept.adapters.postgres import PostgresStore  # noqa: E402
from unswept.adapters.postgres.announce import Announcer, channel_of, makes_work  # noqa: E402
from unswept.adapters.runner.listener import Listener  # noqa: E402

NEVER_LOOKS = Polling(first_ms=Ms(100_000), max_ms=Ms(100_000), listening_ms=Ms(100_000))
"""Longer than a test lasts: what is found was told."""


async def nothing(job: RunnerJob) -> None:
    return None


def test_a_runner_that_is_told_nothing_looks(tmp_path: Path) -> None:
    """More and more seldom while it finds nothing, and at once when there is a lot."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            line = Faulty(store)
            polling = Polling(first_ms=Ms(20), max_ms=Ms(400), listening_ms=Ms(400))
            async with runner(line, nothing, polling=polling) as mine:
                await soon(lambda: line.count(c.Claim) > 0)
                await asyncio.sleep(1.0)
                seen = line.count(c.Claim)
                await asyncio.sleep(1.0)
                assert line.count(c.Claim) - seen < 10
                enqueue(store, "a", "b", "c", "d")
                await ended(store, "a", "b", "c", "d")
                assert mine.health().listening is False

    run(scenario)


def test_a_producer_of_the_same_process_wakes_it(tmp_path: Path) -> None:
    """On SQLite too: `wake` is for any thread."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            line = Faulty(store)
            async with runner(line, nothing, polling=NEVER_LOOKS) as mine:
                await soon(lambda: line.count(c.Claim) == 1)
                enqueue(store, "a")
                await asyncio.to_thread(mine.wake)
                await ended(store, "a")

    run(scenario)


class Ear:
    """A waker that the test controls."""

    listening = False

    async def listen(self, wake: Callable[[], None]) -> None:
        return None


async def passed_s(idle: Idleness, count: int = 1) -> float:
    """How long so many waits take."""
    began = time.monotonic()
    for _ in range(count):
        await idle.wait()
        idle.look()
    return time.monotonic() - began


def test_pauses_double_up_to_a_bound() -> None:
    """Which is another one for who listens; work that was found begins them anew."""

    async def scenario() -> None:
        ear = Ear()
        idle = Idleness(Polling(first_ms=Ms(1), max_ms=Ms(8), listening_ms=Ms(4_000)), ear)
        assert await passed_s(idle, 10) < 1
        ear.listening = True
        assert idle.listening
        assert await passed_s(idle, 8) > 0.5
        idle.found()
        assert await passed_s(idle) < 0.5

    run(scenario)


def test_words_of_work_for_others_are_heeded_less_and_less() -> None:
    """Each wakes the whole fleet, and one runner gets the job; the others do not look at every
    word. The first word after a while is heeded at once, and one that has come to nothing later."""

    async def scenario() -> None:
        waker = Ear()
        waker.listening = True
        idle = Idleness(NEVER_LOOKS, waker)
        looks = 0
        until = time.monotonic() + 3.0
        while time.monotonic() < until:
            idle.wake()
            await passed_s(idle)
            looks += 1
        assert looks < 30  # and not as many as there were words
        idle.found()
        idle.wake()
        assert await passed_s(idle) < 10
        idle.wake()
        idle.urge()
        assert await passed_s(idle, 10) < 10  # whoever ends waits for nothing

    run(scenario)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"first_ms": 0}, "first_ms must be 1 to"),
        ({"first_ms": 10, "max_ms": 9}, r"max_ms \(9\) must be at least first_ms \(10\)"),
    ],
)
def test_polling_that_cannot_work_is_refused(values: dict[str, int], message: str) -> None:
    """With the name, the value and the bound."""
    with pytest.raises(MisuseError, match=message):
        Polling(**values)  # type: ignore[arg-type]


# On Postgres ------------------------------------------------------------------------------------


def test_a_listening_runner_is_told(postgres_url: str, postgres_schema: str) -> None:
    """It would not look for longer than the test lasts."""

    async def scenario() -> None:
        with open_queue(postgres_url, schema=postgres_schema) as queue:
            async with open_runner(
                postgres_url, nothing, schema=postgres_schema, polling=NEVER_LOOKS
            ) as mine:
                await soon(lambda: mine.health().listening and mine.health().claiming)
                for number in range(5):
                    await asyncio.sleep(0.1)
                    enqueue(queue, f"job-{number}")
                    await ended(queue, f"job-{number}")

    run(scenario)


def test_work_of_a_transaction_of_ones_own_is_announced_by_hand(
    postgres_url: str, postgres_schema: str
) -> None:
    """After its commit, which the store does not see."""

    async def scenario() -> None:
        with PostgresStore(postgres_url, schema=postgres_schema, announce=True) as queue:
            async with open_runner(
                postgres_url, nothing, schema=postgres_schema, polling=NEVER_LOOKS
            ) as mine:
                await soon(lambda: mine.health().listening and mine.health().claiming)
                with psycopg.connect(postgres_url) as own:
                    queue.execute_within(own, c.Enqueue("a"))
                queue.announce()
                await ended(queue, "a")
        with (
            PostgresStore(postgres_url, schema=postgres_schema) as silent,
            pytest.raises(MisuseError, match="announce=True"),
        ):
            silent.announce()

    run(scenario)


def test_a_listener_whose_connection_is_killed_comes_back(
    postgres_url: str, postgres_schema: str
) -> None:
    """And looks at once, for it may have missed something."""

    async def scenario() -> None:
        with open_queue(postgres_url, schema=postgres_schema) as queue:
            async with open_runner(
                postgres_url, nothing, schema=postgres_schema, polling=NEVER_LOOKS
            ) as mine:
                await soon(lambda: mine.health().listening and mine.health().claiming)
                channel = channel_of(postgres_schema)
                with psycopg.connect(postgres_url, autocommit=True) as killer:
                    killed = killer.execute(
                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                        " WHERE query LIKE %s OR (query LIKE '%%listening_channels%%'"
                        " AND application_name = 'unswept' AND pid <> pg_backend_pid())",
                        [f'LISTEN "{channel}"%'],
                    ).fetchone()
                assert killed is not None
                assert killed[0] >= 1
                await soon(lambda: not mine.health().listening)
                with PostgresStore(postgres_url, schema=postgres_schema) as silent:
                    enqueue(silent, "missed")
                await ended(queue, "missed")
                await soon(lambda: mine.health().listening)
                enqueue(queue, "told")
                await ended(queue, "told")

    run(scenario)


def test_without_a_listener_it_looks(postgres_url: str, postgres_schema: str) -> None:
    """As behind a pooler that keeps notifications away."""

    async def scenario() -> None:
        with PostgresStore(postgres_url, schema=postgres_schema) as store:
            enqueue(store, "a")
            async with runner(store, nothing) as mine:
                await ended(store, "a")
                enqueue(store, "b")
                await ended(store, "b")
                assert not mine.health().listening

    run(scenario)


def test_a_listener_notices_that_it_does_not_listen(
    postgres_url: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pooler takes the LISTEN, and asks another connection what it listens to."""

    async def scenario() -> None:
        listener = Listener(postgres_url, schema=postgres_schema)
        waked: list[None] = []
        execute = psycopg.AsyncConnection.execute

        async def pooled(self: object, query: object, *rest: object) -> object:
            listens = "LISTEN" in str(query) and "listening" not in str(query)
            return await execute(self, "SELECT 1" if listens else query, *rest)

        monkeypatch.setattr(psycopg.AsyncConnection, "execute", pooled)
        listening = asyncio.ensure_future(listener.listen(lambda: waked.append(None)))
        await asyncio.sleep(0.5)
        assert not listener.listening
        assert waked == []
        assert not listening.done()
        listening.cancel()

    run(scenario)


def test_a_server_that_is_not_there_is_no_reason_to_stop(postgres_schema: str) -> None:
    """Neither for the ear nor for the voice, and no password is told."""

    async def scenario() -> None:
        url = "postgresql://somebody:secret@127.0.0.1:1/nowhere"
        listener = Listener(url, schema=postgres_schema)
        listening = asyncio.ensure_future(listener.listen(lambda: None))
        announcer = Announcer(url, schema=postgres_schema)
        announcer.ring()
        await asyncio.sleep(0.5)
        assert not listening.done()
        listening.cancel()
        await asyncio.to_thread(announcer.close)

    run(scenario)


def test_what_makes_work_is_announced(postgres_url: str, postgres_schema: str) -> None:
    """Enqueues, releases, requeues and sweeps that were done now; nothing else."""
    with PostgresStore(postgres_url, schema=postgres_schema) as store:
        enqueued = c.Enqueue("a", requeue=RequeueRule.ALLOWED)
        assert makes_work(enqueued, store.execute(enqueued))
        assert not makes_work(enqueued, store.execute(enqueued))
        cancel = c.RequestCancel("a")
        assert not makes_work(cancel, store.execute(cancel))
        assert status(store, "a") is Status.CANCELED
        absent = c.Requeue("nobody", 1)
        assert not makes_work(absent, store.execute(absent))
        sweep = c.Sweep("me", (c.Target("nobody", 1, 1, store.execute(c.Count()).at),))
        assert not makes_work(sweep, store.execute(sweep))


def test_many_words_are_few_notifications(postgres_url: str, postgres_schema: str) -> None:
    """One says all that has come since the last; the last is sent before the end."""
    with psycopg.connect(postgres_url, autocommit=True) as ear:
        ear.execute(f'LISTEN "{channel_of(postgres_schema)}"'.encode())
        announcer = Announcer(postgres_url, schema=postgres_schema)
        for _ in range(2_000):
            announcer.ring()
        announcer.close()
        first = ear.notifies(timeout=PATIENCE_S, stop_after=1)
        heard = [notify.channel for part in (first, ear.notifies(timeout=1.0)) for notify in part]
    assert set(heard) == {channel_of(postgres_schema)}
    assert len(heard) < 1_000
