"""Admission fails closed: no row, no run; and every slot that was taken is given back."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import (
    Faulty,
    eventually,
    find,
    open_store,
    policy,
    run,
    sh,
    status,
)
from unswept.adapters.gateway import (
    AdmissionError,
    Gateway,
    SaturationError,
)
from unswept.core import commands as c
from unswept.core.lease import Status
from unswept.core.limiter import Limits
from unswept.core.refusal import Refusal
from unswept.core.replies import Refused
from unswept.core.units import Ms


def admitted_ids(store: Faulty) -> list[str]:
    return [command.job_id for command in store.sent if isinstance(command, c.Admit)]


def test_an_admit_that_fails_runs_nothing_and_spends_its_id(tmp_path: Path) -> None:
    """The request fails, its slot is free again, and the id cannot come to life later. (W-21)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy()) as gateway:
                store.down = (c.Admit,)
                with pytest.raises(AdmissionError, match="Durable job admission failed for shell"):
                    await gateway.submit(sh(f"touch {tmp_path}/ran"), provider="shell")
                [job_id] = set(admitted_ids(store))
                await eventually(lambda: gateway.health().finishing == 0)
                assert gateway.health().running == gateway.health().held == 0
                found = real.execute(c.Find(job_id))
                assert isinstance(found, Refused)
                assert found.reason is Refusal.SPENT
        assert not (tmp_path / "ran").exists()

    run(scenario)


def test_an_admit_whose_answers_are_lost_is_taken_back(tmp_path: Path) -> None:
    """The row that it made without anybody knowing ends as failed, and nothing beats for it."""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy()) as gateway:
                store.lossy = (c.Admit,)
                with pytest.raises(AdmissionError):
                    await gateway.submit(sh(f"touch {tmp_path}/ran"), provider="shell")
                [job_id] = set(admitted_ids(store))
                await eventually(lambda: status(real, job_id) is Status.FAILED)
                assert gateway.health().held == 0
        assert not (tmp_path / "ran").exists()

    run(scenario)


def test_an_admit_whose_answer_is_lost_once_is_repeated(tmp_path: Path) -> None:
    """Under its own id, so that there is one job."""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy()) as gateway:
                store.lossy = (c.Admit,)
                submitting = asyncio.ensure_future(gateway.submit(sh("true"), provider="shell"))
                await eventually(lambda: store.count(c.Admit) == 1)
                store.lossy = ()
                assert (await (await submitting).wait()).status is Status.COMPLETED
                assert len(set(admitted_ids(store))) == 1

    run(scenario)


def test_a_start_that_the_store_does_not_take_kills_the_child(tmp_path: Path) -> None:
    """It never gets its input, and the job fails with 126."""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            # The lease is never renewed, so that the start has the time of one ttl.
            async with Gateway(store, policy=policy()) as gateway:
                store.down = (c.Start, c.Heartbeat)
                work = sh(f"read line && touch {tmp_path}/ran; sleep 100", stdin=b"go\n")
                job = await gateway.submit(work, provider="shell")
                await eventually(lambda: gateway.health().running == 0)
                store.down = ()
                snapshot = await job.wait()
                assert (snapshot.status, snapshot.exit_code) == (Status.FAILED, 126)
        assert not (tmp_path / "ran").exists()

    run(scenario)


def test_a_job_that_is_canceled_before_its_start_never_starts(tmp_path: Path) -> None:
    """The store refuses the first start under a pending cancel. (L7)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            # Beats so seldom that only the start can hear of the wish.
            async with Gateway(store, policy=policy()) as gateway:
                store.down = (c.Start,)
                work = sh(f"read line && touch {tmp_path}/ran", stdin=b"go\n")
                job = await gateway.submit(work, provider="shell")
                await eventually(lambda: store.count(c.Start) > 0)
                real.execute(c.RequestCancel(job.id))
                store.down = ()
                snapshot = await job.wait()
                assert snapshot.status is Status.CANCELED
        assert not (tmp_path / "ran").exists()

    run(scenario)


def test_a_caller_who_goes_away_during_admission_leaves_nothing_behind(tmp_path: Path) -> None:
    """Nobody knows the job's id, so that it is canceled before it begins. (C90)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy()) as gateway:
                store.down = (c.Admit,)
                submitting = asyncio.ensure_future(
                    gateway.submit(sh(f"touch {tmp_path}/ran"), provider="shell")
                )
                await eventually(lambda: store.count(c.Admit) == 1)
                submitting.cancel()
                store.down = ()
                with pytest.raises(asyncio.CancelledError):
                    await submitting
                [job_id] = set(admitted_ids(store))
                await eventually(lambda: status(real, job_id) is Status.CANCELED)
                await eventually(lambda: gateway.health().held == 0)
                assert gateway.health().running == 0
        assert not (tmp_path / "ran").exists()

    run(scenario)


def test_what_finds_no_slot_and_no_place_in_the_queue_is_refused(tmp_path: Path) -> None:
    """With an error that may be retried, and without a row."""
    limits = Limits(max_running=1, max_running_per_provider=1, max_queued=1)

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy(), limits=limits) as gateway:
                first = await gateway.submit(sh("sleep 100"), provider="shell")
                second = await gateway.submit(sh("exit 0"), provider="shell")
                assert gateway.health().saturated
                with pytest.raises(SaturationError, match="1 global / 1 per provider") as refused:
                    await gateway.submit(sh("exit 1"), provider="shell")
                assert refused.value.retryable
                assert len(admitted_ids(store)) == 2
                await first.cancel()
                assert (await second.wait()).status is Status.COMPLETED
                health = gateway.health()
                assert (health.running, health.queued, health.rejected) == (0, 0, 1)

    run(scenario)


def test_who_waits_too_long_for_a_slot_fails_with_75(tmp_path: Path) -> None:
    """Its row says why; it never ran."""
    limits = Limits(1, 1, 5, queue_timeout_ms=Ms(300))

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy(), limits=limits) as gateway:
                await gateway.submit(sh("sleep 100"), provider="shell")
                late = await gateway.submit(sh(f"touch {tmp_path}/ran"), provider="shell")
                snapshot = await late.wait()
                assert (snapshot.status, snapshot.exit_code) == (Status.FAILED, 75)
                assert snapshot.error is not None
                assert "queue wait timed out" in snapshot.error
                assert gateway.health().queue_timeouts == 1
        assert not (tmp_path / "ran").exists()

    run(scenario)


def test_a_full_provider_does_not_hold_up_the_others(tmp_path: Path) -> None:
    """First come, first served, but whose provider is full is passed over."""
    limits = Limits(max_running=2, max_running_per_provider=1, max_queued=5)

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy(), limits=limits) as gateway:
                busy = await gateway.submit(sh("sleep 100"), provider="a")
                behind = await gateway.submit(sh("exit 0"), provider="a")
                other = await gateway.submit(sh("exit 0 "), provider="b")
                assert (await other.wait()).status is Status.COMPLETED
                assert (await behind.snapshot()).status is Status.QUEUED
                await busy.cancel()
                assert (await behind.wait()).status is Status.COMPLETED

    run(scenario)


def test_a_job_that_waits_is_held(tmp_path: Path) -> None:
    """It outlives many ttls in the queue, although it has done nothing yet. (W-32)"""
    limits = Limits(max_running=1, max_running_per_provider=1, max_queued=5)

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with (
                Gateway(store, policy=policy(), limits=limits) as gateway,
                Gateway(store, policy=policy()),
            ):
                first = await gateway.submit(sh("sleep 5"), provider="shell")
                second = await gateway.submit(sh("exit 0"), provider="shell")
                assert (await second.wait()).status is Status.COMPLETED
                assert (await first.wait()).status is Status.COMPLETED
                assert find(store, second.id).job.orphaned_at is None

    run(scenario)


def test_a_canceled_waiter_never_runs_and_leaves_its_place(tmp_path: Path) -> None:
    """Its slot is free for the next at once. (F-29)"""
    limits = Limits(max_running=1, max_running_per_provider=1, max_queued=5)

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy(), limits=limits) as gateway:
                first = await gateway.submit(sh("sleep 100"), provider="shell")
                second = await gateway.submit(sh(f"touch {tmp_path}/ran"), provider="shell")
                await second.cancel()
                snapshot = await second.wait()
                assert (snapshot.status, snapshot.exit_code) == (Status.CANCELED, None)
                assert gateway.health().queued == 0
                await first.cancel()
        assert not (tmp_path / "ran").exists()

    run(scenario)


def test_work_that_is_no_job_shares_the_caps(tmp_path: Path) -> None:
    """A slot for it counts, waits in the same queue, and is given back whatever happens."""
    limits = Limits(1, 1, 1, queue_timeout_ms=Ms(200))

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy(), limits=limits) as gateway:
                with contextlib.suppress(ValueError):
                    async with gateway.slot("shell"):
                        waits = await gateway.submit(sh("exit 0"), provider="shell")
                        assert (gateway.health().running, gateway.health().queued) == (1, 1)
                        with pytest.raises(SaturationError, match="the queue is full"):
                            async with gateway.slot("shell"):
                                pass
                        raise ValueError("it went wrong")
                assert (await waits.wait()).status is Status.COMPLETED
                async with gateway.slot("shell"):
                    with pytest.raises(SaturationError, match="queue wait timed out"):
                        async with gateway.slot("shell"):
                            pass
                assert (gateway.health().running, gateway.health().queued) == (0, 0)

    run(scenario)
