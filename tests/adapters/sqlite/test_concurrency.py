"""Threads and forks on one store, what is large, and the holds of one heartbeat."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.adapters.sqlite.helpers import TERMS, Clock, environment
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.checks import MAX_BYTES
from unswept.core.errors import MisuseError
from unswept.core.job import Process
from unswept.core.lease import Kind, Status
from unswept.core.replies import (
    Accepted,
    Answer,
    Claimed,
    Found,
    OutputPage,
    Refused,
    RequestRead,
)
from unswept.core.units import Ms
from unswept.core.values import Chunk, Request, Result, Stream

LATE = Ms(1_000)


def finish(store: SqliteStore, job_id: str, owner: str) -> None:
    for command in (
        c.Admit(job_id, owner, TERMS),
        c.Start(job_id, owner, 1, TERMS),
        c.Complete(job_id, owner, 1, Status.COMPLETED),
    ):
        done = store.execute(command)
        assert isinstance(done, Accepted), done
        assert not done.repeated


def test_threads_share_a_store(tmp_path: Path) -> None:
    """Two threads run jobs while a third beats; nobody's command is lost or mixed up."""
    jobs, failed = 60, []
    with SqliteStore(tmp_path / "jobs.db", durability="normal") as store:
        over = threading.Event()
        beats = []

        def work(owner: str) -> None:
            try:
                for number in range(jobs):
                    finish(store, f"{owner}-{number}", owner)
            except BaseException as error:
                failed.append(error)

        def beat() -> None:
            while not over.is_set():
                beats.append(store.execute(c.Heartbeat("c", TERMS, (c.Hold("nobody's", 1),))))

        threads = [threading.Thread(target=work, args=(owner,)) for owner in "ab"]
        beater = threading.Thread(target=beat)
        for thread in (*threads, beater):
            thread.start()
        for thread in threads:
            thread.join()
        over.set()
        beater.join()
        assert failed == []
        assert {beat.answers[0].answer for beat in beats} == {Answer.ABSENT}
        events = store.execute(c.ReadEvents(limit=10_000)).events
        for owner in "ab":
            kinds = [event.kind for event in events if event.owner == owner]
            assert kinds == [Kind.ADMIT, Kind.START, Kind.COMPLETE] * jobs


def test_a_claimed_job_is_claimed_once(tmp_path: Path) -> None:
    """However many threads and stores claim at once, no job goes to two of them. (F1)"""
    path = tmp_path / "jobs.db"
    taken: list[str] = []
    with SqliteStore(path, durability="normal") as store:
        for number in range(40):
            store.execute(c.Enqueue(f"j{number:02}"))

    def claim_all(owner: str) -> None:
        with SqliteStore(path, durability="normal") as mine:
            mine.execute(c.Register(owner))
            for claim_no in range(1, 41):
                got = mine.execute(c.Claim(owner, claim_no, TERMS, limit=2))
                assert isinstance(got, Claimed)
                taken.extend(grant.standing.job_id for grant in got.grants)

    threads = [threading.Thread(target=claim_all, args=(owner,)) for owner in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [f"j{number:02}" for number in range(40)]


def test_a_heartbeat_waits_for_no_other_command_of_its_process(tmp_path: Path) -> None:
    """It has a connection of its own, so a slow read holds no beat up."""
    with SqliteStore(tmp_path / "jobs.db") as store, store._main.lock:
        done: list[object] = []
        beating = threading.Thread(
            target=lambda: done.append(store.execute(c.Heartbeat("a", TERMS)))
        )
        beating.start()
        beating.join(timeout=10)
        assert done


def test_the_clock_is_read_with_the_write_lock_held(tmp_path: Path) -> None:
    """A command that had to wait stamps the time after its wait. (L1, L16)"""
    path = tmp_path / "jobs.db"
    clock = Clock(100)
    with SqliteStore(path, clock=clock) as store:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        got: list[object] = []
        admitting = threading.Thread(
            target=lambda: got.append(store.execute(c.Admit("j1", "a", TERMS)))
        )
        admitting.start()
        time.sleep(0.05)
        clock.now = 500
        other.execute("COMMIT")
        admitting.join()
        other.close()
        (admitted,) = got
        assert isinstance(admitted, Accepted)
        assert admitted.standing.deadline == 500 + TERMS.lease_ttl_ms


HAMMER = """
import sys
from unswept.adapters.sqlite import SqliteStore
from unswept.core.commands import Register
print("ready", flush=True)
with SqliteStore(sys.argv[1]) as store:
    while True:
        store.execute(Register("hammer"))
"""


def test_a_heartbeat_gets_its_turn_beside_one_that_always_writes(tmp_path: Path) -> None:
    """SQLite's own way of waiting lets a process that writes all the time keep others out."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path, busy_timeout_ms=3_000) as store:
        hammering = subprocess.Popen(
            [sys.executable, "-c", HAMMER, str(path)],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert hammering.stdout is not None
            assert hammering.stdout.readline() == "ready\n"
            for _ in range(50):
                store.execute(c.Heartbeat("a", TERMS))
                time.sleep(0.01)
            assert hammering.poll() is None
        finally:
            hammering.kill()
            hammering.communicate()


def test_a_deferred_transaction_fails_at_once_and_ours_does_not(tmp_path: Path) -> None:
    """Whoever reads first and then writes has lost as soon as another has written between, however
    long the timeout; a command takes the write lock before it reads."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path) as store:
        store.execute(c.Register("a"))
        naive = sqlite3.connect(path, timeout=30, isolation_level=None)
        naive.execute("BEGIN")
        naive.execute("SELECT * FROM unswept_instances").fetchall()
        store.execute(c.Register("b"))
        begin = time.monotonic()
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            naive.execute("DELETE FROM unswept_instances")
        assert time.monotonic() - begin < 5
        # The reader's transaction is still open, and holds up no command.
        assert len(store.execute(c.ListInstances()).instances) == 2
        store.execute(c.Deregister("b"))
        naive.close()


# Forks ------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def in_child(work: object) -> int:
    """Run `work` in a forked child, and give its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()  # type: ignore[operator]
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_store_goes_on_in_both_after_a_fork(tmp_path: Path) -> None:
    """No connection is carried across: parent and child each connect anew."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path) as store:
        finish(store, "before", "a")
        store.execute(c.Heartbeat("a", TERMS))
        over = threading.Event()

        def write() -> None:
            number = 0
            while not over.wait(0.002):
                finish(store, f"thread-{number}", "c")
                number += 1

        writing = threading.Thread(target=write)
        writing.start()
        for number in range(5):
            assert in_child(lambda number=number: finish(store, f"child-{number}", "b")) == 0
            finish(store, f"parent-{number}", "a")
        over.set()
        writing.join()
        for number in range(5):
            for who in ("child", "parent"):
                found = store.execute(c.Find(f"{who}-{number}"))
                assert isinstance(found, Found)
                assert found.job.lease.status is Status.COMPLETED
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_store_in_memory_stays_with_the_parent() -> None:
    """A child would write to a copy that nobody else sees; it is told so."""
    with SqliteStore(":memory:") as store:

        def ask() -> None:
            with pytest.raises(MisuseError, match="is in its parent's memory"):
                store.execute(c.Find("j1"))

        assert in_child(ask) == 0
        finish(store, "j1", "a")


# What is large ----------------------------------------------------------------------------------


def test_fifty_mebibytes_come_back_as_they_were(tmp_path: Path) -> None:
    """A payload, a chunk of output and a result, each as large as commands allow."""
    payload, data, body = (bytes([byte]) * MAX_BYTES for byte in (0, 128, 255))
    with SqliteStore(tmp_path / "jobs.db", durability="normal") as store:
        store.execute(c.Admit("j1", "a", TERMS, request=Request(payload)))
        store.execute(c.Output("j1", "a", 1, Chunk(0, Stream.STDOUT, data), LATE))
        store.execute(c.Complete("j1", "a", 1, Status.COMPLETED, Result(body=body)))
        read = store.execute(c.ReadRequest("j1"))
        assert isinstance(read, RequestRead)
        assert read.request.payload == payload
        page = store.execute(c.ReadOutput("j1"))
        assert isinstance(page, OutputPage)
        assert [chunk.data for chunk in page.chunks] == [data]
        found = store.execute(c.Find("j1"))
        assert isinstance(found, Found)
        assert found.result is not None
        assert found.result.body == body


def test_a_heartbeat_touches_no_payload(tmp_path: Path) -> None:
    """Beside a large payload and large output it writes a few pages."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path) as store:
        store.execute(c.Admit("j1", "a", TERMS, request=Request(b"x" * 10_000_000)))
        store.execute(c.Output("j1", "a", 1, Chunk(0, Stream.STDOUT, b"y" * 10_000_000), LATE))
        database = store._beats.open()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.execute(c.Heartbeat("a", TERMS, (c.Hold("j1", 1),)))
        assert (tmp_path / "jobs.db-wal").stat().st_size < 10 * 4_096


# The holds of one heartbeat ---------------------------------------------------------------------


def test_any_printable_id_is_renewed_and_no_other(tmp_path: Path) -> None:
    """Quotes, backslashes, what looks like a path or a number, and every script."""
    ids = (
        '"',
        "\\",
        "\\u0061",
        "$.a",
        "1",
        "1.0",
        "true",
        "null",
        "ä",
        "日本",
        "🦉",
        "'; --",
        "x" * 200,
    )
    with SqliteStore(tmp_path / "jobs.db", clock=Clock(5)) as store:
        for job_id in ids:
            store.execute(c.Admit(job_id, "a", TERMS))
        store.execute(c.Admit("a", "a", TERMS))
        beaten = store.execute(c.Heartbeat("a", TERMS, tuple(c.Hold(job_id, 1) for job_id in ids)))
        assert [answer.job_id for answer in beaten.answers] == list(ids)
        assert {answer.answer for answer in beaten.answers} == {Answer.RENEWED}
        found = store.execute(c.Find("a"))
        assert isinstance(found, Found)
        assert found.job.lease.beats == 1


def test_the_greatest_epoch_is_no_other(tmp_path: Path) -> None:
    """2^63 - 1 is compared as a whole number, not as the double next to it."""
    path = tmp_path / "jobs.db"
    greatest = 2**63 - 1
    with SqliteStore(path, clock=Clock(5)) as store:
        store.execute(c.Admit("j1", "a", TERMS))
        database = sqlite3.connect(path)
        database.execute("UPDATE unswept_jobs SET epoch = ?", (greatest,))
        database.commit()
        database.close()
        for epoch, answer in ((greatest - 1, Answer.FENCED), (greatest, Answer.RENEWED)):
            beaten = store.execute(c.Heartbeat("a", TERMS, (c.Hold("j1", epoch),)))
            assert [answered.answer for answered in beaten.answers] == [answer]


def test_a_process_is_recorded_once_on_a_claimed_job(tmp_path: Path) -> None:
    """The start of a job that runs already stamps nothing, and a second process changes nothing."""
    clock = Clock(5)
    first, second = Process(1, 2, "boot"), Process(3, 4, "boot")
    with SqliteStore(tmp_path / "jobs.db", clock=clock) as store:
        store.execute(c.Register("a"))
        store.execute(c.Enqueue("j1"))
        claimed = store.execute(c.Claim("a", 1, TERMS))
        assert isinstance(claimed, Claimed)
        clock.now = 9
        for process in (first, second):
            started = store.execute(c.Start("j1", "a", 1, TERMS, process))
            assert isinstance(started, Accepted)
            assert started.repeated
            assert started.standing == claimed.grants[0].standing
        found = store.execute(c.Find("j1"))
        assert isinstance(found, Found)
        assert found.job.process == first
        assert not isinstance(found, Refused)
