"""The heart beside the work: what keeps a lease, what does not, and what each answer does. (L8)"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.gateway.helpers import (
    Faulty,
    eventually,
    find,
    open_store,
    policy,
    run,
    sh,
)
from unswept.adapters.gateway import (
    AdmissionError,
    Answer,
    CallWork,
    CancelVerdict,
    Gateway,
    OnOrphaned,
    SyncGateway,
)
from unswept.core import commands as c
from unswept.core.heart import Phase
from unswept.core.lease import Kind, RequeueRule, Status
from unswept.core.policy import Breaker
from unswept.core.replies import Accepted


def kinds(store: c.Store, job_id: str) -> list[Kind]:
    """What has happened to a job, in order; its child's process may have delayed a sweep."""
    events = store.execute(c.ReadEvents()).events
    return [e.kind for e in events if e.job_id == job_id and e.kind is not Kind.DELAY]


async def until_orphaned(store: c.Store, job_id: str) -> None:
    await eventually(lambda: find(store, job_id).job.lease.status is Status.ORPHANED)


def test_a_blocked_event_loop_loses_no_process_job(tmp_path: Path) -> None:
    """Its process lives, so it is vouched for, however long the loop stands still. (C31)"""
    with (
        open_store(tmp_path) as store,
        open_store(tmp_path) as other,
        SyncGateway(other, policy=policy()),
        SyncGateway(store, policy=policy()) as gateway,
    ):
        job = gateway.submit(sh("sleep 100"), provider="shell")
        gateway._loop.call_soon_threadsafe(time.sleep, 2 * policy().stall_limit_ms / 1_000)
        gateway.cancel(job.id)  # returns once the loop turns again
        assert gateway.wait(job.id).status is Status.CANCELED
        assert Kind.ORPHAN not in kinds(store, job.id)


def test_a_call_is_vouched_for_only_while_its_loop_turns(tmp_path: Path) -> None:
    """A loop that stands still for longer than `stall_limit_ms` loses it; the job heals."""

    async def call() -> Answer:
        time.sleep(policy().stall_limit_ms / 1_000 + 6)
        return Answer(b"late", 200)

    with (
        open_store(tmp_path) as store,
        open_store(tmp_path) as other,
        SyncGateway(other, policy=policy()),
        SyncGateway(store, policy=policy()) as gateway,
    ):
        job = gateway.submit(CallWork(call=call), provider="api")
        assert gateway.wait(job.id).status is Status.COMPLETED
        assert kinds(store, job.id) == [Kind.ADMIT, Kind.START, Kind.ORPHAN, Kind.HEAL]


def test_a_store_that_is_locked_past_the_ttl_loses_no_job(tmp_path: Path) -> None:
    """All hearts miss, quiesce and recover; nobody is swept, for nobody could renew. (W-04, L12)"""

    async def scenario() -> None:
        with open_store(tmp_path) as store, open_store(tmp_path) as other:
            async with Gateway(store, policy=policy()) as one, Gateway(other, policy=policy()):
                job = await one.submit(sh("sleep 8"), provider="shell")
                await asyncio.sleep(0.5)
                locker = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
                locker.execute("BEGIN IMMEDIATE")
                await eventually(lambda: one.health().phase is Phase.QUIESCED)
                with pytest.raises(AdmissionError, match="Retry after the gateway recovers"):
                    await one.submit(sh("true"), provider="shell")
                await asyncio.sleep(policy().lease_ttl_ms / 1000 + 0.5)
                locker.execute("ROLLBACK")
                locker.close()
                await eventually(lambda: one.health().phase is Phase.STEADY)
                again = await one.submit(sh("true"), provider="shell")
                assert (await again.wait()).status is Status.COMPLETED
                assert (await job.wait()).status is Status.COMPLETED
                assert Kind.ORPHAN not in kinds(store, job.id)

    run(scenario)


def test_a_quiesced_instance_sends_nothing_that_it_must_not(tmp_path: Path) -> None:
    """Neither starts nor looks; and a job that waits begins when the heart has recovered. (L10)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            # A start needs a heart that may send it, so the ttl must outlast the trouble.
            calm = policy(lease_ttl_ms=60_000, http_grace_ms=60_000, local_margin_ms=200)
            async with Gateway(store, policy=calm) as gateway:
                store.down = (c.Start, c.Heartbeat)
                job = await gateway.submit(sh("exit 0"), provider="shell")
                await eventually(lambda: gateway.health().phase is Phase.QUIESCED)
                assert not gateway.health().admitting
                await asyncio.sleep(0.3)
                starts, looks = store.count(c.Start), store.count(c.Suspects)
                await asyncio.sleep(0.6)
                assert (store.count(c.Start), store.count(c.Suspects)) == (starts, looks)
                store.down = ()
                assert (await job.wait()).status is Status.COMPLETED

    run(scenario)


def test_a_store_that_is_away_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """However often an errand fails; once a beat was accepted, a new failure is news."""

    def warned() -> int:
        told = (record.getMessage() for record in caplog.records)
        return sum("Register cannot reach the store" in message for message in told)

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy()) as gateway:
                for outage in (1, 2):
                    store.sent.clear()
                    store.down = (c.Register, c.Heartbeat)
                    await eventually(lambda: store.count(c.Register) >= 3)
                    store.down = ()
                    await eventually(lambda: gateway.health().phase is Phase.STEADY)
                    assert warned() == outage

    run(scenario)


@pytest.mark.parametrize(
    ("breaker", "told"),
    [
        (Breaker.SHADOW, ["swept all the same"]),
        (Breaker.DEFER, ["their sweeps wait", "have waited for long enough"]),
    ],
)
def test_the_log_tells_what_the_breaker_notices(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, breaker: Breaker, told: list[str]
) -> None:
    """Three owners that died at once are swept in the end, whatever it took them for."""
    watchful = policy(breaker=breaker, breaker_max_ms=500)
    jobs = [f"j{number}" for number in range(3)]
    with open_store(tmp_path) as store:
        for job in jobs:
            store.execute(c.Admit(job, f"the owner of {job}", watchful.terms()))

        async def scenario() -> None:
            async with Gateway(store, policy=watchful):
                for job in jobs:
                    await until_orphaned(store, job)

        run(scenario)
    noticed = [r.getMessage() for r in caplog.records if "3 suspects of 3 leases" in r.getMessage()]
    assert len(noticed) == len(told)
    assert all(words in line for words, line in zip(told, noticed, strict=True))


def test_work_that_was_swept_goes_on_and_heals(tmp_path: Path) -> None:
    """Requeue = never: nobody else runs it, so that finishing is right. (L11, L12)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real, open_store(tmp_path) as other:
            store = Faulty(real)
            async with (
                Gateway(store, policy=policy()) as gateway,
                Gateway(other, policy=policy()),
            ):
                job = await gateway.submit(
                    sh("cat; read x < " + str(fifo(tmp_path)), stdin=b"in"), provider="shell"
                )
                await eventually(lambda: find(real, job.id).job.lease.status is Status.RUNNING)
                store.down = (c.Heartbeat,)
                await until_orphaned(real, job.id)
                store.down = ()
                await eventually(lambda: gateway.health().phase is Phase.STEADY)
                await asyncio.sleep(0.5)
                assert gateway.health().held == 1
                release(tmp_path)
                snapshot = await job.wait()
                assert snapshot.status is Status.COMPLETED
                assert snapshot.orphaned_at is not None
                assert (await job.output()).stdout == "in"
                assert kinds(real, job.id)[2:] == [Kind.ORPHAN, Kind.HEAL]

    run(scenario)


def test_work_that_was_swept_stops_where_that_is_wanted(tmp_path: Path) -> None:
    """Then it heals as failed."""

    async def scenario() -> None:
        with open_store(tmp_path) as real, open_store(tmp_path) as other:
            store = Faulty(real)
            async with (
                Gateway(store, policy=policy()) as gateway,
                Gateway(other, policy=policy()),
            ):
                job = await gateway.submit(
                    sh("sleep 100"), provider="shell", on_orphaned=OnOrphaned.STOP
                )
                await eventually(lambda: find(real, job.id).job.lease.status is Status.RUNNING)
                store.down = (c.Heartbeat,)
                await until_orphaned(real, job.id)
                store.down = ()
                assert (await job.wait()).status is Status.FAILED
                assert kinds(real, job.id)[2:] == [Kind.ORPHAN, Kind.HEAL]

    run(scenario)


def test_work_that_is_fenced_stops_and_writes_nothing(tmp_path: Path) -> None:
    """Somebody has settled the orphan: its old owner learns of it by the next beat. (L3)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real, open_store(tmp_path) as other:
            store = Faulty(real)
            async with (
                Gateway(store, policy=policy()) as gateway,
                Gateway(other, policy=policy()),
            ):
                script = f"trap '' TERM; while true; do date > {tmp_path}/pulse; sleep 0.05; done"
                job = await gateway.submit(sh(script), provider="shell")
                await eventually(lambda: find(real, job.id).job.lease.status is Status.RUNNING)
                store.down = (c.Heartbeat,)
                await until_orphaned(real, job.id)
                settled = real.execute(c.Settle(job.id, 1, Status.FAILED))
                assert isinstance(settled, Accepted)
                store.down = ()
                await eventually(lambda: gateway.health().held == 0)
                before = store.count(c.Complete)
                assert before == 0
                assert (await job.wait()).status is Status.FAILED
                assert kinds(real, job.id)[2:] == [Kind.ORPHAN, Kind.SETTLE]
                assert gateway.health().running == 0
                stamp = (tmp_path / "pulse").stat().st_mtime_ns
                await asyncio.sleep(0.3)
                assert (tmp_path / "pulse").stat().st_mtime_ns == stamp

    run(scenario)


def test_work_that_may_be_requeued_stops_at_its_local_deadline(tmp_path: Path) -> None:
    """Even with a blocked loop it is dead before anybody else may run it. (L11)"""
    with open_store(tmp_path) as real:
        store = Faulty(real)
        with SyncGateway(store, policy=policy(local_margin_ms=500)) as gateway:
            script = f"while true; do date > {tmp_path}/pulse; sleep 0.02; done"
            job = gateway.submit(sh(script), provider="shell", requeue=RequeueRule.ALLOWED)
            while find(real, job.id).job.lease.status is not Status.RUNNING:
                time.sleep(0.01)
            blocked = threading.Event()
            gateway._loop.call_soon_threadsafe(lambda: blocked.wait(30))
            store.down = (c.Heartbeat,)
            # Not one step after the deadline that the store has: what the clocks drift, and what
            # this machine keeps a thread waiting, is less than the margin.
            deadline = find(real, job.id).job.lease.deadline
            assert deadline is not None
            while time.time() * 1000 < deadline + 2_000:
                time.sleep(0.05)
                deadline = find(real, job.id).job.lease.deadline or deadline
            assert (tmp_path / "pulse").stat().st_mtime_ns // 1_000_000 <= deadline
            store.down = ()
            blocked.set()
            # The job is given back, for somebody else to run.
            give_up_at = time.monotonic() + 60
            while find(real, job.id).job.lease.owner is not None:
                assert time.monotonic() < give_up_at
                time.sleep(0.02)
            assert kinds(real, job.id)[2:] == [Kind.RELEASE]


def test_work_that_nobody_else_runs_goes_on_past_its_deadline(tmp_path: Path) -> None:
    """A laptop wakes, the lease has run out, the job is renewed and completes."""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy()) as gateway:
                job = await gateway.submit(sh("sleep 4"), provider="shell")
                store.down = (c.Heartbeat,)
                await asyncio.sleep(2.5)
                store.down = ()
                assert (await job.wait()).status is Status.COMPLETED
                assert Kind.ORPHAN not in kinds(real, job.id)

    run(scenario)


def test_a_wish_from_afar_comes_with_the_next_heartbeat(tmp_path: Path) -> None:
    """The owner stops the job; the store, not the asker, has the last word. (W-23)"""

    async def scenario() -> None:
        with open_store(tmp_path) as store, open_store(tmp_path) as other:
            async with (
                Gateway(store, policy=policy()) as one,
                Gateway(other, policy=policy()) as two,
            ):
                job = await one.submit(sh("sleep 100"), provider="shell")
                assert await two.cancel(job.id) is CancelVerdict.REQUESTED
                assert (await two.wait(job.id)).status is Status.CANCELED
                assert await two.cancel(job.id) is CancelVerdict.OVER

    run(scenario)


def test_a_wish_from_within_is_kept_by_the_store(tmp_path: Path) -> None:
    """If the owner dies before it could write the end, nobody runs the job again. (L7)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy()) as gateway:
                store.down = (c.Complete,)
                job = await gateway.submit(sh("sleep 100"), provider="shell")
                assert await job.cancel() is CancelVerdict.STOPPING
                assert find(real, job.id).job.lease.cancel_requested_at is not None
                # And a store that is away does not keep a job from being stopped.
                other = await gateway.submit(sh("sleep 1000"), provider="shell")
                store.down = (c.Complete, c.RequestCancel)
                assert await other.cancel() is CancelVerdict.STOPPING
                store.down = ()
                assert (await job.wait()).status is Status.CANCELED
                assert (await other.wait()).status is Status.CANCELED

    run(scenario)


def test_a_terminal_write_is_repeated_until_it_is_stored(tmp_path: Path) -> None:
    """The job stays held meanwhile, and nobody sweeps it. (W-16, F-25, C37)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real, open_store(tmp_path) as other:
            store = Faulty(real)
            async with (
                Gateway(store, policy=policy()) as gateway,
                Gateway(other, policy=policy()),
            ):
                store.down = (c.Complete,)
                job = await gateway.submit(sh("exit 0"), provider="shell")
                await eventually(lambda: gateway.health().finishing == 1)
                assert gateway.health().running == 0
                await asyncio.sleep(4)
                store.down, store.lossy = (), (c.Complete,)
                await eventually(lambda: find(real, job.id).job.lease.status is Status.COMPLETED)
                store.lossy = ()
                assert (await job.wait()).status is Status.COMPLETED
                await eventually(lambda: gateway.health().held == 0)
                assert kinds(real, job.id) == [Kind.ADMIT, Kind.START, Kind.COMPLETE]

    run(scenario)


def test_who_stops_waiting_stops_no_end(tmp_path: Path) -> None:
    """A caller may give up while the work runs, and while its end is being written. (C64)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy()) as gateway:
                goes_on = asyncio.Event()

                async def call() -> Answer:
                    await goes_on.wait()
                    return Answer(b"done", 200)

                job = await gateway.submit(CallWork(call=call), provider="api")
                store.down = (c.Complete,)
                for _ in ("runs", "ends"):
                    waits = asyncio.ensure_future(job.wait())
                    await asyncio.sleep(0.1)
                    waits.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await waits
                    goes_on.set()
                    await eventually(lambda: gateway.health().finishing == 1)
                await job.cancel()
                store.down = ()
                assert (await job.wait()).status is Status.COMPLETED
                await eventually(lambda: gateway.health().held == 0)
                assert gateway.health().running == 0

    run(scenario)


def test_a_terminal_write_that_never_lands_is_given_up(tmp_path: Path) -> None:
    """Then the job is let go, and its lease lapses: nothing stays running for ever. (C37)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real, open_store(tmp_path) as other:
            store = Faulty(real)
            brief = policy(outbox_give_up_ms=500)
            async with Gateway(store, policy=brief) as gateway, Gateway(other, policy=policy()):
                store.down = (c.Complete,)
                job = await gateway.submit(sh("exit 0"), provider="shell")
                await eventually(lambda: gateway.health().held == 0)
                await until_orphaned(real, job.id)

    run(scenario)


def test_a_beat_that_fails_in_any_way_ends_no_heart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even by an exception that no store should raise: it beats again. (C34)"""
    errors = [MemoryError(), RuntimeError("no store raises this")]

    async def scenario() -> None:
        with open_store(tmp_path) as store, open_store(tmp_path) as beats:
            real = beats.execute

            def broken(command: c.Command[Any]) -> Any:
                if errors:
                    raise errors.pop()
                return real(command)

            async with Gateway(store, beat_store=beats, policy=policy()) as gateway:
                job = await gateway.submit(sh("sleep 3"), provider="shell")
                monkeypatch.setattr(beats, "execute", broken)
                await eventually(lambda: not errors and gateway.health().failures == 0)
                assert (await job.wait()).status is Status.COMPLETED
                assert kinds(store, job.id) == [Kind.ADMIT, Kind.START, Kind.COMPLETE]

    run(scenario)


def test_heartbeats_can_have_a_store_of_their_own(tmp_path: Path) -> None:
    """For stores that keep no connection for them: nothing else goes that way. (C42)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real, open_store(tmp_path) as other:
            store, beats = Faulty(real), Faulty(other)
            async with Gateway(store, beat_store=beats, policy=policy()) as gateway:
                await (await gateway.submit(sh("sleep 1"), provider="shell")).wait()
            assert store.count(c.Heartbeat) == 0
            assert {type(command) for command in beats.sent} == {c.Heartbeat}

    run(scenario)


def test_a_forgotten_instance_registers_anew(tmp_path: Path) -> None:
    """Its row was cleaned up while it was away; its next beat finds out. (W-05)"""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy()) as gateway:
                store.execute(c.Deregister(gateway.identity.instance))

                def known() -> bool:
                    rows = store.execute(c.ListInstances()).instances
                    return any(row.id == gateway.identity.instance for row in rows)

                await eventually(known)
                await eventually(lambda: gateway.health().admitting)

    run(scenario)


def test_a_store_that_is_not_there_at_the_start_is_waited_for(tmp_path: Path) -> None:
    """Nothing is admitted, health says so, and the gateway comes to life by itself. (F-08, F-11)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            store.down = (c.Heartbeat, c.Register)
            async with Gateway(store, policy=policy()) as gateway:
                health = gateway.health()
                assert (health.phase, health.admitting) == (Phase.REGISTERING, False)
                with pytest.raises(AdmissionError):
                    await gateway.submit(sh("true"), provider="shell")
                await eventually(lambda: gateway.health().last_error is not None)
                store.down = ()
                await eventually(lambda: gateway.health().admitting)

    run(scenario)


def fifo(folder: Path) -> Path:
    """A pipe that holds a script until `release`."""
    import os

    path = folder / "fifo"
    os.mkfifo(path)
    return path


def release(folder: Path) -> None:
    (folder / "fifo").write_text("go\n")
