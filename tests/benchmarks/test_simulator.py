"""Commands per second on the pure store, alone and in the simulator with every law judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks.stateful import POLICY, TERMS, Stateful, judged
from unswept.adapters.cli.common import processes
from unswept.core import commands as c
from unswept.core.lease import Status
from unswept.core.memory import MemoryStore
from unswept.core.units import StoreMs
from unswept.core.values import Chunk, Stream
from unswept.simulations.campaign import Totals, pure_alone, run_seed, run_seeds, tasks
from unswept.simulations.run import Settings
from unswept.simulations.timeline import Timeline
from unswept.simulations.workers import Workers
from unswept.simulations.workers import processes as crew

JOBS = 2_000


def lives() -> list[c.Command[Any]]:
    """The commands of many short lives: admit, start, three beats, output, completion."""
    commands: list[c.Command[Any]] = [c.Register("i")]
    for number in range(JOBS):
        job_id = f"j{number}"
        beat = c.Heartbeat("i", TERMS, (c.Hold(job_id, 1),))
        chunk = Chunk(0, Stream.STDOUT, b"x")
        commands += [
            c.Admit(job_id, "i", TERMS),
            c.Start(job_id, "i", 1, TERMS),
            beat,
            beat,
            beat,
            c.Output(job_id, "i", 1, chunk, POLICY.late_output_ms),
            c.Complete(job_id, "i", 1, Status.COMPLETED),
        ]
    return commands


def rate(execute: Callable[[c.Command[Any]], object], commands: list[c.Command[Any]]) -> float:
    began = time.perf_counter()
    for command in commands:
        execute(command)
    return len(commands) / (time.perf_counter() - began)


def test_laws_cost_less_than_the_commands_they_judge(benchmark: BenchmarkFixture) -> None:
    """With every law judged, the pure store keeps at least a third of its commands per second."""
    commands = lives()
    bares: list[float] = []
    founds: list[float] = []

    def both() -> None:
        bares.append(rate(MemoryStore(lambda: StoreMs(1_000)).execute, commands))
        founds.append(rate(judged(Timeline()), commands))

    benchmark.pedantic(both, rounds=5)  # type: ignore[no-untyped-call]
    bare, found = max(bares), max(founds)
    benchmark.extra_info["pure store, commands/s"] = round(bare)
    benchmark.extra_info["with every law, commands/s"] = round(found)
    print(f"\npure store {bare:,.0f}/s, with every law {found:,.0f}/s, ratio {found / bare:.2f}")
    assert found / bare >= 1 / 3


def test_a_simulated_hour(benchmark: BenchmarkFixture) -> None:
    """A whole run: gateways, network, faults and laws on the pure store, in commands per second."""

    def hour() -> float:
        began = time.perf_counter()
        outcome = run_seed(Settings(seed=1, hours=1), pure_alone)
        return outcome.commands / (time.perf_counter() - began)

    found = benchmark.pedantic(hour, rounds=3)  # type: ignore[no-untyped-call]
    benchmark.extra_info["whole run, commands/s"] = round(found)
    print(f"\nwhole simulated run {found:,.0f} commands/s")


BUSY: Final = Settings(seed=1, hours=3, instances=5, runners=0, jobs=20, job_minutes=30.0)
"""Five gateways that run twenty jobs of half an hour, under every fault."""


def test_a_simulated_day(benchmark: BenchmarkFixture) -> None:
    """Of five gateways with twenty long jobs: an eighth of it, in seconds of one core per day."""

    def eighth() -> float:
        began = time.process_time()
        outcome = run_seed(BUSY, pure_alone)
        assert outcome.violation is None
        return 8 * (time.process_time() - began)

    found = benchmark.pedantic(eighth, rounds=1)  # type: ignore[no-untyped-call]
    benchmark.extra_info["a simulated day, CPU seconds"] = round(found, 1)
    print(f"\na simulated day takes {found:.1f} s of one core")


# Beside Hypothesis ------------------------------------------------------------------------------


ROUNDS: Final = 3
SEEDS: Final = range(1, 17)


def test_more_commands_than_a_stateful_test(benchmark: BenchmarkFixture) -> None:
    """On the same store, with every law judged in both: a campaign as `unswept simulate` runs it,
    on every core, against a stateful test, which has one. The simulator's time is also that of its
    hearts, its network, its faults and its second run of the first seed. They take turns, and the
    best of each is compared."""

    def stateful() -> float:
        Stateful.asked = 0
        began = time.perf_counter()
        effort = settings(max_examples=60, stateful_step_count=50, deadline=None, database=None)
        run_state_machine_as_test(Stateful, settings=effort)
        return Stateful.asked / (time.perf_counter() - began)

    def simulated(workers: Workers) -> float:
        totals = Totals()
        began = time.perf_counter()
        for checked in run_seeds(tasks(Settings(seed=1), SEEDS, pure_alone), workers):
            totals.add(checked)
        assert totals.seeds == len(SEEDS)
        return totals.commands / (time.perf_counter() - began)

    cores = processes(None)
    turns: list[tuple[float, float]] = []
    with crew(cores) as workers:
        simulated(workers)  # the processes start
        benchmark.pedantic(  # type: ignore[no-untyped-call]
            lambda: turns.append((stateful(), simulated(workers))), rounds=ROUNDS
        )
    theirs, ours = (max(found) for found in zip(*turns, strict=True))
    benchmark.extra_info["stateful test, commands/s"] = round(theirs)
    benchmark.extra_info["simulator, commands/s"] = round(ours)
    benchmark.extra_info["cores"] = cores
    print(
        f"\nstateful {theirs:,.0f}/s, simulated {ours:,.0f}/s on {cores} cores,"
        f" ratio {ours / theirs:.1f}, {ours / theirs / cores:.1f} for each core"
    )
    assert ours >= 2 * cores * theirs  # aimed at: 5
