"""The parts that the gateway is made of, each by itself."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.gateway.helpers import eventually, open_store, policy, run
from unswept.adapters.gateway import Gateway, evidence
from unswept.adapters.gateway.capture import MAX_CHUNK_BYTES, Capture, whole_characters
from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.hold_table import HoldTable
from unswept.adapters.gateway.identity import Identity
from unswept.adapters.gateway.loop_watch import LoopWatch
from unswept.adapters.gateway.slots import Slots
from unswept.core.commands import Hold
from unswept.core.heart import Act
from unswept.core.job import Transport
from unswept.core.lease import RequeueRule
from unswept.core.limiter import Limits, Verdict
from unswept.core.records import changed
from unswept.core.replies import Answer, HoldAnswer
from unswept.core.units import MonoMs, Ms, StoreMs
from unswept.core.values import Stream

# Evidence ---------------------------------------------------------------------------------------


def test_a_process_is_known_by_more_than_its_number() -> None:
    """Another start time, boot or namespace is another process. (W-10, C62)"""
    mine = evidence.process_of(os.getpid())
    assert mine is not None
    assert evidence.lives(mine)
    assert not evidence.lives(evolve(mine, start=mine.start + 1))
    assert not evidence.lives(evolve(mine, boot_id="another"))
    namespace = os.readlink("/proc/self/ns/pid")
    assert mine.boot_id.endswith(namespace)
    assert not evidence.lives(evolve(mine, boot_id=mine.boot_id.replace(namespace, "pid:[1]")))


def test_a_zombie_is_dead() -> None:
    """It has ended, and waits only to be asked how."""
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{child.pid}").exists()
        assert evidence.process_of(child.pid) is None


def test_an_instance_is_new_at_every_boot() -> None:
    """Never derived from a host name or a pid. (C60a)"""
    assert Identity().instance != Identity().instance


# Capture ----------------------------------------------------------------------------------------


@given(st.text(), st.data())
def test_chunks_end_between_characters(text: str, data: st.DataObject) -> None:
    """However the bytes arrive, each chunk can be read by itself, and together they are all."""
    capture = Capture(10_000, lambda: None)
    rest, pieces = text.encode("utf-8", "replace"), []
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        capture.add(Stream.STDOUT, rest[:size])
        rest = rest[size:]
        pieces += capture.take(last=not rest)
    assert (
        "".join(chunk.data.decode() for chunk in pieces) == text.encode("utf-8", "replace").decode()
    )
    assert [chunk.chunk for chunk in pieces] == list(range(len(pieces)))


@given(st.binary(max_size=12))
def test_bytes_that_are_no_text_are_not_held_back_for_long(data: bytes) -> None:
    """At most three bytes wait for the end of a character that may never come."""
    assert len(data) - 3 <= whole_characters(data) <= len(data)


def test_a_flood_comes_in_chunks_of_a_bounded_size() -> None:
    """And a piece that crosses the cap is dropped, with all that follows it, told once."""
    told: list[str] = []
    capture = Capture(3 * MAX_CHUNK_BYTES, lambda: told.append("overflow"))
    capture.add(Stream.STDERR, b"x" * (2 * MAX_CHUNK_BYTES + 1))
    chunks = capture.take(last=False)
    assert [len(chunk.data) for chunk in chunks] == [MAX_CHUNK_BYTES, MAX_CHUNK_BYTES, 1]
    capture.add(Stream.STDOUT, b"y" * MAX_CHUNK_BYTES)
    capture.add(Stream.STDOUT, b"z")
    assert told == ["overflow"]
    assert capture.take(last=True) == []


# Holds ------------------------------------------------------------------------------------------


class Work:
    """The work behind a hold, which notes what it hears."""

    def __init__(self, alive: bool = True) -> None:
        self.alive = alive
        self.heard: list[str] = []

    def vouched(self) -> bool:
        return self.alive

    def hear(self, answer: Answer) -> None:
        self.heard.append(answer)

    def hear_cancel(self) -> None:
        self.heard.append("cancel")

    def expire(self) -> None:
        self.heard.append("expire")


def table() -> HoldTable:
    return HoldTable(policy(lease_ttl_ms=1_500).terms(), Ms(100))


def test_a_hold_that_nobody_vouches_for_is_not_named() -> None:
    """It lapses; the others are renewed."""
    holds, living, dead = table(), Work(), Work(alive=False)
    for name, work in (("a", living), ("b", dead)):
        holds.begin(Hold(name, 1), Transport.PROCESS, RequeueRule.NEVER, MonoMs(0), work)
    assert holds.vouched() == (Hold("a", 1),)
    assert holds.ids() == {"a", "b"}


def test_each_answer_reaches_the_work_of_its_own_epoch() -> None:
    """An answer about another epoch is about another hold. (L8)"""
    holds, work = table(), Work()
    holds.begin(Hold("a", 2), Transport.PROCESS, RequeueRule.NEVER, MonoMs(0), work)
    wish = StoreMs(5)
    answers = (
        HoldAnswer("a", 1, Answer.FENCED),
        HoldAnswer("a", 2, Answer.BUSY),
        HoldAnswer("a", 2, Answer.RENEWED, StoreMs(9), cancel_requested_at=wish),
        HoldAnswer("a", 2, Answer.ORPHANED, cancel_requested_at=wish),
        HoldAnswer("b", 1, Answer.ABSENT),
        HoldAnswer("a", 2, Answer.FENCED),
    )
    holds.hear(answers, MonoMs(10))
    assert work.heard == ["cancel", "orphaned", "cancel", "fenced"]


def test_the_local_deadline_runs_from_the_first_send_of_the_last_stamp() -> None:
    """Work that may be requeued may step until then, other work for ever. (L11)"""
    holds, work, other = table(), Work(), Work()
    hold = Hold("a", 1)
    holds.begin(hold, Transport.PROCESS, RequeueRule.ALLOWED, MonoMs(1_000), work)
    holds.begin(Hold("b", 1), Transport.PROCESS, RequeueRule.NEVER, MonoMs(1_000), other)
    assert holds.deadline(hold) == 1_000 + 1_500 - 100
    assert holds.may_step(hold, MonoMs(2_399))
    assert not holds.may_step(hold, MonoMs(2_400))
    assert holds.may_step(Hold("b", 1), MonoMs(10**9))
    holds.stamp(hold, MonoMs(900))  # a repeat was first sent earlier: it moves nothing
    assert holds.deadline(hold) == 2_400
    holds.hear([HoldAnswer("a", 1, Answer.RENEWED, StoreMs(1))], MonoMs(2_000))
    assert holds.expire(MonoMs(3_399)) == 3_400
    assert work.heard == []
    assert holds.expire(MonoMs(3_400)) is None
    assert (work.heard, other.heard) == (["expire"], [])
    holds.end("a")
    assert holds.deadline(hold) is None
    assert not holds.may_step(hold, MonoMs(0))


# The loop and its slots -------------------------------------------------------------------------


def test_a_loop_is_stalled_for_as_long_as_the_watcher_saw_it() -> None:
    """A time in which the watcher stood still too, in a suspension, says nothing of the loop."""

    async def scenario() -> None:
        watch = LoopWatch(asyncio.get_running_loop(), longest_look_ms=100)
        watch.look(MonoMs(0))
        watch.look(MonoMs(50))
        watch.look(MonoMs(100))
        assert watch.stalled_ms == 100
        watch.look(MonoMs(3_600_000))
        assert watch.stalled_ms == 200
        await asyncio.sleep(0)
        watch.look(MonoMs(3_600_050))
        assert watch.stalled_ms == 0

    run(scenario)


def test_a_slot_is_released_once_however_often_it_is_asked() -> None:
    """And the next in the queue has it."""

    async def scenario() -> None:
        slots = Slots(Limits(1, 1, 2, Ms(60_000)))
        assert slots.acquire("a", "x") is Verdict.GRANTED
        assert slots.acquire("b", "x") is Verdict.QUEUED
        assert slots.acquire("c", "x") is Verdict.QUEUED
        assert slots.acquire("d", "x") is Verdict.SATURATED
        waiting = slots.granted("b")
        slots.release("a")
        slots.release("a")
        assert await waiting
        assert (slots.running, slots.queued, slots.rejected) == (1, 1, 1)
        slots.release("c")
        slots.release("b")
        assert (slots.running, slots.queued, slots.saturated) == (0, 0, False)

    run(scenario)


def test_the_clock_is_boot_time() -> None:
    """It runs on in a suspension, so it is never behind the monotonic one."""
    before = time.monotonic_ns() // 1_000_000
    assert boot_ms() >= before


def test_a_sweep_that_was_held_up_is_sent_only_if_the_heart_has_not_missed(tmp_path: Path) -> None:
    """What was ripe when it was decided is not any more after a gap. (L12)"""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy()) as gateway:
                pulse = gateway._pulse

                def proves() -> bool:
                    return pulse._still_proves(decided_by)

                await eventually(lambda: pulse.may(Act.SWEEP))
                # The sweeper's pass hurries the heart, so that it beats closely again and again.
                decided_by = pulse.heart
                await eventually(lambda: pulse._still_proves(pulse.heart))
                assert decided_by.pulse is not None
                gap = evolve(decided_by.pulse, close_since=MonoMs(decided_by.pulse.close_since - 1))
                decided_by = changed(decided_by, pulse=gap)
                assert not proves()
                decided_by = changed(decided_by, pulse=None)
                assert not proves()
            assert not pulse._still_proves(pulse.heart)

    run(scenario)
