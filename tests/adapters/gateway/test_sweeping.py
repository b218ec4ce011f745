"""An instance that only sweeps: what it sends, what it tells while it waits, what it waits for."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from tests.adapters.gateway.helpers import Faulty, find, open_store, policy
from unswept.adapters.gateway import evidence
from unswept.adapters.gateway.sweeping import Outcome, Progress, SweepingInstance, Swept
from unswept.core import commands as c
from unswept.core.job import Terms
from unswept.core.lease import Kind, Status
from unswept.core.units import Ms

LAPSED = Terms(Ms(20), Ms(20), Ms(20), Ms(20))
LONGER = Terms(Ms(800), Ms(800), Ms(800), Ms(20))


def sweep(store: c.Store, told: list[Progress], limit_ms: int | None = None) -> Swept:
    async def run() -> Swept:
        limit = None if limit_ms is None else Ms(limit_ms)
        return await SweepingInstance(store, policy()).run(asyncio.Event(), limit, told.append)

    return asyncio.run(run())


def test_it_keeps_no_house_and_tells_how_long_it_waits(tmp_path: Path) -> None:
    """Its policy is an operator's, whose retention may be shorter than the fleet's."""
    told: list[Progress] = []
    with open_store(tmp_path) as opened:
        opened.execute(c.Admit("dead", "i1", LAPSED))
        store = Faulty(opened)
        swept = sweep(store, told)
        assert find(opened, "dead").job.lease.status is Status.ORPHANED
    assert [fate.outcome for fate in swept.fates] == [Outcome.ORPHANED]
    kinds = {type(command) for command in store.sent}
    assert kinds == {c.Register, c.Heartbeat, c.Suspects, c.Sweep, c.Find, c.Deregister}
    waits = [each.left_ms for each in told if each.left_ms is not None]
    assert 0 <= min(waits) < max(waits) <= policy().confirm_after_ms
    assert (told[-1].seen, told[-1].decided, told[-1].looked) == (1, 1, True)


def test_a_delay_is_no_renewal(tmp_path: Path) -> None:
    """The process lives, so that the job gets one more ttl; its owner does not beat, and it is
    swept after that. (L9)"""
    process = evidence.process_of(os.getpid())
    assert process is not None
    with open_store(tmp_path) as store:
        store.execute(c.Admit("hangs", "i1", LONGER))
        store.execute(c.Start("hangs", "i1", 1, LONGER, process))
        time.sleep(0.85)
        swept = sweep(store, [])
        kinds = [event.kind for event in store.execute(c.ReadEvents()).events]
    assert [fate.outcome for fate in swept.fates] == [Outcome.ORPHANED]
    assert kinds == [Kind.ADMIT, Kind.START, Kind.DELAY, Kind.ORPHAN]


def test_a_store_that_takes_no_beat_is_never_swept(tmp_path: Path) -> None:
    """It says why, and that it has not even looked."""
    told: list[Progress] = []
    with open_store(tmp_path) as opened:
        opened.execute(c.Admit("dead", "i1", LAPSED))
        store = Faulty(opened)
        store.down = (c.Heartbeat,)
        swept = sweep(store, told, limit_ms=600)
        assert find(opened, "dead").job.lease.status is Status.QUEUED
        assert opened.execute(c.ListInstances()).instances == ()
    assert (swept.looked, swept.fates) == (False, ())
    assert "Heartbeat cannot reach the store" in (swept.last_error or "")
    assert store.count(c.Suspects) == 0
    assert told[-1].last_error == swept.last_error


def test_what_became_of_it_is_asked_again(tmp_path: Path) -> None:
    """A question that failed leaves the suspect undecided, and no longer."""
    with open_store(tmp_path) as opened:
        opened.execute(c.Admit("dead", "i1", LAPSED))
        store = Faulty(opened)
        store.down = (c.Find,)
        swept = sweep(store, [], limit_ms=4_000)
        assert [fate.outcome for fate in swept.fates] == [Outcome.WAITING]
        assert store.count(c.Find) > 1
        assert find(opened, "dead").job.lease.status is Status.ORPHANED
