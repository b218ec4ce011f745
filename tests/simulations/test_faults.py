"""Faults, each at the one thing that makes it different."""

from __future__ import annotations

from typing import Any

import pytest

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.refusal import Refusal
from unswept.core.units import MonoMs
from unswept.simulations.campaign import EPOCH
from unswept.simulations.faults import FAULTS
from unswept.simulations.network import Envelope
from unswept.simulations.run import Run, Settings
from unswept.simulations.timeline import StoreClock, Timeline


def world(minutes: int, **settings: Any) -> Run:
    """A run without faults of its own, some minutes old."""
    clock = StoreClock(Timeline(), EPOCH)
    run = Run(Settings(1, faults=(), **settings), None, clock)
    run.timeline.run(minutes * 60_000)
    return run


def ask(run: Run, command: c.Command[Any]) -> list[Any]:
    """Let a command arrive now, and let twenty seconds pass; its answers, if any."""
    answers: list[Any] = []
    run.server.receive(Envelope("somebody", command, MonoMs(0), answers.append))
    run.timeline.run(run.timeline.now + 20_000)
    return answers


def held(run: Run) -> str:
    """A job that somebody holds."""
    return sorted(run.server.pure.world.owned)[0]


def test_a_read_only_store_answers_reads_alone() -> None:
    """Writes are refused without an answer, reads are answered, and it ends."""
    run = world(5)
    FAULTS["read-only"].strike(run)
    assert ask(run, c.RequestCancel("x")) == []
    assert len(ask(run, c.Count())) == 1
    run.timeline.run(run.timeline.now + 300_000)
    assert len(ask(run, c.RequestCancel("x"))) == 1


def test_a_poisoned_row_is_busy_to_sweeps_and_judges_alone() -> None:
    """Its owner still renews it; a sweep says busy, a settlement is not answered."""
    run = world(20)
    FAULTS["poison-row"].strike(run)
    [job_id] = run.server.poisoned
    lease = run.server.pure.world.jobs[job_id].lease
    target = c.Target(job_id, lease.epoch, lease.beats, run.server.clock())
    [swept] = ask(run, c.Sweep("somebody", (target,)))
    assert [answer.refusal for answer in swept.answers] == [Refusal.BUSY]
    assert ask(run, c.Requeue(job_id, lease.epoch)) == []


def test_a_slow_commit_holds_its_row_and_its_answer() -> None:
    """Until the commit the row is locked, whoever else asks waits, and the answer is late."""
    run = world(20)
    job_id = held(run)
    FAULTS["slow-commit"].strike(run)
    answers: list[Any] = []
    cancel = c.RequestCancel(job_id)
    run.server.receive(Envelope("somebody", cancel, MonoMs(0), answers.append))
    assert job_id in run.server.locked_rows
    run.timeline.run(run.timeline.now)
    assert answers == []
    run.server.commit = None
    run.timeline.run(run.timeline.now + 25_000)
    assert job_id not in run.server.locked_rows
    assert len(answers) == 1


def test_a_broken_connection_loses_what_is_under_way() -> None:
    """What was sent before is gone, both ways; what is sent after arrives."""
    run = world(1)
    answers: list[Any] = []
    envelope = Envelope("i1", c.Count(), MonoMs(0), answers.append)
    run.network.send(envelope)
    run.network.reset(["i1"])
    run.timeline.run(run.timeline.now + 1_000)
    assert answers == []
    run.network.send(envelope)
    run.timeline.run(run.timeline.now + 1_000)
    assert len(answers) == 1


def test_an_exhausted_pool_lets_heartbeats_through_alone() -> None:
    """They have a connection of their own."""
    run = world(1)
    run.network.exhausted.add("i1")
    answers: list[Any] = []
    beat = c.Heartbeat("i1", run.instances[0].terms)
    for command in (c.Count(), beat):
        run.network.send(Envelope("i1", command, MonoMs(0), answers.append))
    run.timeline.run(run.timeline.now + 1_000)
    assert [type(answer) for answer in answers] == [r.Beaten]


def test_a_dead_heart_lets_the_work_go_on() -> None:
    """No beat goes out until it is started again, and its owner is known to be at fault."""
    run = world(5)
    FAULTS["heart-killed"].strike(run)
    [victim] = [instance for instance in run.living() if instance.heart_dead]
    number = victim.heart.last_number
    assert run.truth.own[victim.name][-1].name == "heart-killed"
    run.timeline.run(run.timeline.now + 9_000)
    assert victim.heart.last_number == number
    run.timeline.run(run.timeline.now + 600_000)
    assert not victim.heart_dead
    assert victim.heart.last_number > number


def test_nothing_boots_on_a_host_that_sleeps() -> None:
    """While all hosts sleep, nobody could renew, and nobody else appears."""
    run = world(5, instances=2, runners=0)
    everybody = run.living()
    while not all(host.asleep for host in run.hosts):
        FAULTS["suspend-all"].strike(run)
        run.timeline.run(run.timeline.now + 60_000)
    assert all(instance.frozen for instance in everybody)
    run.kill(everybody[0])
    run.boot_like(everybody[0])
    assert len(run.living()) == 1
    run.timeline.run(run.timeline.now + 1_500_000)
    assert len(run.living()) == 2


def test_two_sweepers_pass_at_the_same_moment() -> None:
    """All passes are due with the soonest."""
    run = world(5)
    FAULTS["two-sweepers"].strike(run)
    due = {i.next_pass_in() for i in run.living() if i.sweeper.pass_began_at is None}
    assert len(due) == 1


@pytest.mark.parametrize("name", ["cancel-at-step", "clock-edge", "crash-at-step"])
def test_a_fault_that_lies_in_wait_gives_up(name: str) -> None:
    """A step that never comes is not waited for for ever."""
    run = world(1, runners=0)
    for _ in range(30):
        FAULTS[name].strike(run)
    run.timeline.run(run.timeline.now + 25 * 60_000)
    assert run.server.ambushes == []
