"""The way of writes to the store: what waits goes together, and one that fails spoils no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.adapters.gateway.helpers import Faulty, open_store, run
from unswept.adapters.gateway.lane import MOST_TOGETHER, Call, Lane, NotNowError, Sent
from unswept.adapters.gateway.sender import Sender, StoppedError
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.errors import StoreError, StoreUnavailableError
from unswept.core.heart import Act
from unswept.core.lease import Status
from unswept.core.policy import LeasePolicy
from unswept.core.replies import Accepted, Refused
from unswept.core.units import Ms

R = TypeVar("R")
TERMS = LeasePolicy().terms()


class Batches:
    """The real store; notes what came together, and fails where it is told to."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.alone: list[str] = []
        self.together: list[int] = []
        self.poisoned: str | None = None
        """The job whose commands the store cannot carry out."""
        self.away = False
        self.open = threading.Event()
        """Until it is set, nothing goes on."""
        self.open.set()

    def execute(self, command: c.Command[R]) -> R:
        self.alone.append(getattr(command, "job_id", ""))
        self._fail([command])
        return self.store.execute(command)

    def execute_all(self, commands: Sequence[c.Command[Any]]) -> Sequence[Any]:
        self.together.append(len(commands))
        self._fail(commands)
        return self.store.execute_all(commands)

    def _fail(self, commands: Sequence[c.Command[Any]]) -> None:
        self.open.wait()
        if self.away:
            raise StoreUnavailableError("the store is away")
        if any(isinstance(each, c.Admit) and each.job_id == self.poisoned for each in commands):
            raise StoreError("the store refuses this one")


def admit(number: int, act: Act | None = None) -> Call[Any]:
    return Call(c.Admit(f"job-{number}", "a", TERMS), act, None)


def admitted(answer: object) -> bool:
    return isinstance(answer, Sent) and isinstance(answer.reply, Accepted)


def test_what_waits_goes_together(tmp_path: Path) -> None:
    """Also what comes while the store is busy; but never more than a bounded number."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            batches = Batches(store)
            lane = Lane(batches, lambda act: True)
            batches.open.clear()
            first = lane.post(admit(0))
            while not batches.alone:
                await asyncio.sleep(0.001)
            rest = [lane.post(admit(number)) for number in range(1, MOST_TOGETHER + 4)]
            await asyncio.sleep(0)
            batches.open.set()
            answers = await asyncio.gather(first, *rest)
            await lane.close()
            assert all(map(admitted, answers))
            assert batches.alone == ["job-0"]
            assert batches.together == [MOST_TOGETHER, 3]

    run(scenario)


def test_one_that_fails_spoils_no_other(tmp_path: Path) -> None:
    """It has its error for itself, and the others take effect."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            batches = Batches(store)
            batches.poisoned = "job-1"
            lane = Lane(batches, lambda act: True)
            posted = [lane.post(admit(number)) for number in range(3)]
            answers = await asyncio.gather(*posted, return_exceptions=True)
            await lane.close()
            assert [admitted(answer) for answer in answers] == [True, False, True]
            assert str(answers[1]) == "the store refuses this one"

    run(scenario)


def test_a_store_that_is_away_is_waited_for_once(tmp_path: Path) -> None:
    """Not once for each of those that wait."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            batches = Batches(store)
            batches.away = True
            lane = Lane(batches, lambda act: True)
            posted = [lane.post(admit(number)) for number in range(3)]
            answers = await asyncio.gather(*posted, return_exceptions=True)
            await lane.close()
            assert all(isinstance(answer, StoreUnavailableError) for answer in answers)
            assert (batches.alone, batches.together) == ([], [3])

    run(scenario)


def test_what_may_not_be_sent_now_is_not_and_what_was_taken_back_neither(tmp_path: Path) -> None:
    """Each by itself, in the midst of others. (L10)"""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            batches = Batches(store)
            lane = Lane(batches, lambda act: act is not Act.START)
            posted = [lane.post(admit(1)), lane.post(admit(2, Act.START)), lane.post(admit(3))]
            posted[2].cancel()
            answers = await asyncio.gather(*posted, return_exceptions=True)
            await lane.close()
            assert admitted(answers[0])
            assert isinstance(answers[1], NotNowError)
            assert batches.alone == ["job-1"]

    run(scenario)


@pytest.mark.parametrize("batching", [True, False])
def test_closing_answers_all_that_was_posted(tmp_path: Path, batching: bool) -> None:
    """By whatever kind of store; what is told of a reply is told before the answer."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            lane = Lane(Batches(store) if batching else Faulty(store), lambda act: True)
            heard: list[str] = []
            calls = [admit(number) for number in range(20)]
            for call in calls:
                call.on_reply = lambda sent: heard.append(sent.reply.standing.job_id)
            posted = [lane.post(call) for call in calls]
            await lane.close()
            assert len(heard) == 20
            assert all(map(admitted, await asyncio.gather(*posted)))

    run(scenario)


def test_an_error_of_who_is_told_is_the_answer(tmp_path: Path) -> None:
    """And the lane goes on."""

    def failing(sent: Sent[Any]) -> None:
        raise ZeroDivisionError

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            lane = Lane(store, lambda act: True)
            call = admit(1)
            call.on_reply = failing
            with pytest.raises(ZeroDivisionError):
                await lane.post(call)
            assert admitted(await lane.post(admit(2)))
            await lane.close()

    run(scenario)


@pytest.mark.parametrize("away", [False, True])
def test_who_sends_is_stopped_at_once(tmp_path: Path, away: bool) -> None:
    """While the store works, and in the pause after it was found away; what waited in the lane is
    taken back."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            batches = Batches(store)
            batches.away = away
            if not away:
                batches.open.clear()
            sender = Sender(batches, LeasePolicy(), lambda act: True)
            stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            first, second = (
                asyncio.ensure_future(
                    sender.send(c.Admit(f"job-{number}", "a", TERMS), unless=stopped)
                )
                for number in (1, 2)
            )
            await asyncio.sleep(0.05)
            stopped.set_result(None)
            for sending in (first, second):
                with pytest.raises(StoppedError):
                    await asyncio.wait_for(sending, 1)
            with pytest.raises(StoppedError):
                await sender.send(c.Admit("job-3", "a", TERMS), unless=stopped)
            batches.away = False
            batches.open.set()
            await sender.close()
            assert isinstance(store.execute(c.Find("job-3")), Refused)

    run(scenario)


def test_a_write_that_does_not_land_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With its job and its cause, once the pauses are as long as they get: it may go on so for a
    day, and nobody would know why the job does not end."""
    policy = LeasePolicy(heartbeat_interval_ms=Ms(80), lease_ttl_ms=Ms(160))

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            store.down = (c.Complete,)
            sender = Sender(store, policy, lambda act: True)
            complete = c.Complete("job-1", "a", 1, Status.COMPLETED)
            sending = asyncio.ensure_future(sender.send(complete))
            while store.count(c.Complete) < 6:
                await asyncio.sleep(0.01)
            store.down = ()
            await sending
            await sender.close()

    run(scenario)
    [said] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said.startswith("Complete of job-1 is still not stored, and is tried again: ")
    assert "cannot reach the store" in said
