"""The facts that transitions stamp beside the lease, and what is left of them afterwards."""

from __future__ import annotations

from typing import Any

from tests.core.story import TERMS
from unswept.core import commands as c
from unswept.core import lease as rules
from unswept.core import replies as r
from unswept.core.job import Job, Process
from unswept.core.lease import RequeueRule, Status
from unswept.core.memory import MemoryStore
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.core.world import may_claim
from unswept.simulations.conformance import Clock

PROCESS = Process(7, 5_000, "boot")
FACTS = (
    *("attempts", "claim_no", "beat_at", "started_at", "orphaned_at", "finished_at"),
    *("queue_deadline", "not_before", "process"),
)


class Life:
    """One job, and what each command changes of its facts."""

    def __init__(self) -> None:
        self.clock = Clock(0)
        self.store = MemoryStore(self.clock)

    def facts(self) -> dict[str, Any]:
        """The facts that are neither None nor 0."""
        job = self.store.world.jobs.get("j")
        values = {name: getattr(job, name, None) for name in FACTS}
        return {name: value for name, value in values.items() if value}

    def at(self, now: int, command: c.Command[Any]) -> dict[str, Any]:
        """The facts after a command; a refusal fails the test."""
        self.clock.now = StoreMs(now)
        reply = self.store.execute(command)
        assert not isinstance(reply, r.Refused), reply
        return self.facts()


def test_the_facts_of_a_job_that_goes_round() -> None:
    """A claim, a sweep and a requeue stamp their facts; the queue keeps only the attempts."""
    life = Life()
    life.at(1, c.Register("A"))
    enqueued = c.Enqueue("j", requeue=RequeueRule.ALLOWED, queue_deadline=StoreMs(50))
    assert life.at(5, enqueued) == {"queue_deadline": 50}
    claimed = {"attempts": 1, "claim_no": 4, "beat_at": 10, "started_at": 10}
    assert life.at(10, c.Claim("A", 4, TERMS)) == claimed
    started = claimed | {"process": PROCESS}
    assert life.at(11, c.Start("j", "A", 1, TERMS, PROCESS)) == started
    beaten = started | {"beat_at": 20}
    assert life.at(20, c.Heartbeat("A", TERMS, (c.Hold("j", 1),))) == beaten
    assert life.at(121, c.Delay("j", 1, 2, "B")) == beaten
    swept = beaten | {"orphaned_at": 222}
    assert life.at(222, c.Sweep("B", (c.Target("j", 1, 3, StoreMs(200)),))) == swept
    requeued = {"attempts": 1, "not_before": 240}
    assert life.at(230, c.Requeue("j", 1, not_before=StoreMs(240))) == requeued
    again = {"attempts": 2, "claim_no": 5, "beat_at": 240, "started_at": 240, "not_before": 240}
    assert life.at(240, c.Claim("A", 5, TERMS)) == again
    ended = again | {"finished_at": 250}
    assert life.at(250, c.Complete("j", "A", 3, Status.COMPLETED)) == ended


def test_the_facts_of_a_job_that_its_owner_runs() -> None:
    """An admit is the first attempt; a heal keeps the time of the sweep that it mends. (L4)"""
    life = Life()
    assert life.at(5, c.Admit("j", "A", TERMS)) == {"attempts": 1, "beat_at": 5}
    started = {"attempts": 1, "beat_at": 9, "started_at": 9, "process": PROCESS}
    assert life.at(9, c.Start("j", "A", 1, TERMS, PROCESS)) == started
    life.at(110, c.Sweep("B", (c.Target("j", 1, 2, StoreMs(110)),)))
    healed = started | {"orphaned_at": 110, "finished_at": 120}
    assert life.at(120, c.Complete("j", "A", 1, Status.FAILED)) == healed


def test_a_job_that_is_canceled_on_its_way_back_keeps_its_history() -> None:
    """A release under a pending cancel ends the job, and nothing of what it was is cleared. (L7)"""
    life = Life()
    life.at(5, c.Admit("j", "A", TERMS, requeue=RequeueRule.ALLOWED))
    before = life.at(9, c.Start("j", "A", 1, TERMS, PROCESS))
    life.at(10, c.RequestCancel("j"))
    released = life.at(20, c.Release("j", "A", 1, not_before=StoreMs(90)))
    assert released == before | {"finished_at": 20}


def test_an_instance_is_known_since_it_first_registered() -> None:
    """Registering again, beating and claiming show the instance; none makes it new."""
    life = Life()
    seen = []
    for now, command in (
        (1, c.Register("A", "runner", "host-1", 7)),
        (2, c.Heartbeat("A", TERMS)),
        (3, c.Claim("A", 1, TERMS)),
        (4, c.Claim("A", 1, TERMS)),
        (5, c.Register("A", "gateway")),
    ):
        life.at(now, command)
        row = life.store.world.instances["A"]
        seen.append((row.registered_at, row.seen_at, row.role))
    assert seen == [
        (1, 1, "runner"),
        (1, 2, "runner"),
        (1, 3, "runner"),
        (1, 3, "runner"),
        (1, 5, "gateway"),
    ]


def test_no_claim_takes_a_job_that_was_to_be_canceled() -> None:
    """A row that is waiting with a pending cancel is not had, however it came to be so. (L7)"""
    lease = changed(rules.enqueue(RequeueRule.NEVER), cancel_requested_at=StoreMs(5))
    outcome = rules.claim(lease, "A", Ms(50), Ms(30), StoreMs(10))
    assert outcome is Refusal.CANCEL_PENDING
    life = Life()
    life.at(5, c.Enqueue("j"))
    job = life.store.world.jobs["j"]
    assert isinstance(job, Job)
    assert may_claim(job, "", StoreMs(10))
    assert not may_claim(changed(job, lease=lease), "", StoreMs(10))
