"""Several commands in one transaction: each reply as if alone, and all of them or none."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.errors import MisuseError, StoreUnavailableError
from unswept.core.job import Process, Terms
from unswept.core.lease import Status
from unswept.core.replies import Refused
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Request

TERMS = Terms(Ms(100), Ms(160), Ms(80), Ms(60))


def life(job_id: str) -> list[c.Command[Any]]:
    """All that an owner says of a job, with a repetition and a refusal in it."""
    request = Request(b"payload", "me", "key")
    return [
        c.Admit(job_id, "a", TERMS, request=request, dedup_window_ms=Ms(1_000), fresh=True),
        c.Start(job_id, "a", 1, TERMS, Process(7, 7, "boot")),
        c.Start(job_id, "a", 1, TERMS, Process(7, 7, "boot")),
        c.Complete(job_id, "b", 1, Status.COMPLETED),
        c.Complete(job_id, "a", 1, Status.COMPLETED),
    ]


def test_each_has_the_reply_that_it_would_have_alone(tmp_path: Path) -> None:
    """Those of different jobs, mixed, each at the time at which it was its turn."""
    now = [StoreMs(1_000)]

    def clock() -> StoreMs:
        now[0] = StoreMs(now[0] + 1)
        return now[0]

    commands = [each for pair in zip(life("one"), life("two"), strict=True) for each in pair]
    with SqliteStore(tmp_path / "alone.db", clock=clock) as alone:
        replies = [alone.execute(command) for command in commands]
        events = alone.execute(c.ReadEvents())
    assert any(isinstance(reply, Refused) for reply in replies)
    now[0] = StoreMs(1_000)
    with SqliteStore(tmp_path / "together.db", clock=clock) as together:
        assert list(together.execute_all(commands)) == replies
        assert together.execute(c.ReadEvents()) == events


def test_nobody_sees_any_of_them_before_the_commit(tmp_path: Path) -> None:
    """What is not durable is neither answered nor seen."""
    seen: list[object] = []
    with SqliteStore(tmp_path / "jobs.db") as other:

        def clock() -> StoreMs:
            seen.append(other.execute(c.Find("one")))
            return StoreMs(1_000)

        with SqliteStore(tmp_path / "jobs.db", clock=clock) as store:
            store.execute_all(life("one"))
        assert len(seen) == len(life("one"))
        assert all(isinstance(found, Refused) for found in seen)
        assert not isinstance(other.execute(c.Find("one")), Refused)


def test_one_that_fails_undoes_those_before_it(tmp_path: Path) -> None:
    """And the store goes on."""
    times = iter([StoreMs(1_000), StoreMs(-1)])
    with SqliteStore(tmp_path / "jobs.db", clock=lambda: next(times, StoreMs(2_000))) as store:
        with pytest.raises(MisuseError, match="clock"):
            store.execute_all(life("one"))
        assert isinstance(store.execute(c.Find("one")), Refused)
        assert store.execute(c.ReadEvents()).events == ()
        assert len(store.execute_all(life("one"))) == len(life("one"))


def test_they_wait_no_longer_than_one_would(tmp_path: Path) -> None:
    """Another writer keeps all of them out, once."""
    with SqliteStore(tmp_path / "jobs.db", busy_timeout_ms=50) as store:
        blocker = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match="busy timeout"):
            store.execute_all(life("one"))
        blocker.execute("ROLLBACK")
        blocker.close()
        assert isinstance(store.execute(c.Find("one")), Refused)


def test_reads_are_no_part_of_it(tmp_path: Path) -> None:
    """They would wait for a writer that they need not wait for."""
    with SqliteStore(tmp_path / "jobs.db") as store:
        with pytest.raises(MisuseError, match="Find"):
            store.execute_all([*life("one"), c.Find("one")])
        assert isinstance(store.execute(c.Find("one")), Refused)
        assert list(store.execute_all([])) == []
