"""Commands per second on the pure store, alone and in the simulator with every law judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture

from unswept.core import commands as c
from unswept.core.lease import Status
from unswept.core.memory import MemoryStore
from unswept.core.policy import LeasePolicy
from unswept.core.units import MonoMs, StoreMs
from unswept.core.values import Chunk, Stream
from unswept.simulations.campaign import run_seed
from unswept.simulations.designs import DESIGNS
from unswept.simulations.network import Envelope, Network, Weather
from unswept.simulations.run import Settings
from unswept.simulations.server import Server
from unswept.simulations.timeline import StoreClock, Timeline

TERMS = LeasePolicy().terms()
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
            c.Output(job_id, "i", 1, chunk, LeasePolicy().late_output_ms),
            c.Complete(job_id, "i", 1, Status.COMPLETED),
        ]
    return commands


def rate(execute: Callable[[c.Command[Any]], object], commands: list[c.Command[Any]]) -> float:
    began = time.perf_counter()
    for command in commands:
        execute(command)
    return len(commands) / (time.perf_counter() - began)


def judged() -> Callable[[c.Command[Any]], object]:
    """The server of a simulated run: the pure store, with every law judged at every step."""
    timeline = Timeline()
    network = Network(timeline, Random(1), Weather(), lambda envelope, reply: None)
    clock = StoreClock(timeline, 1_000)
    server = Server(
        timeline, clock, network, None, DESIGNS["unswept"], 1_000, lambda step, envelope: None
    )
    envelope = Envelope("i", c.ListInstances(), MonoMs(0), lambda reply: None)
    return lambda command: server.execute(command, envelope)


def test_laws_cost_less_than_the_commands_they_judge(benchmark: BenchmarkFixture) -> None:
    """With every law judged, the pure store keeps at least a third of its commands per second."""
    commands = lives()
    bare = max(rate(MemoryStore(lambda: StoreMs(1_000)).execute, commands) for _ in range(3))
    found = benchmark.pedantic(lambda: rate(judged(), commands), rounds=3)  # type: ignore[no-untyped-call]
    benchmark.extra_info["pure store, commands/s"] = round(bare)
    benchmark.extra_info["with every law, commands/s"] = round(found)
    print(f"\npure store {bare:,.0f}/s, with every law {found:,.0f}/s, ratio {found / bare:.2f}")
    assert found / bare >= 1 / 3


def test_a_simulated_hour(benchmark: BenchmarkFixture) -> None:
    """A whole run: gateways, network, faults and laws on the pure store, in commands per second."""

    def hour() -> float:
        began = time.perf_counter()
        outcome = run_seed(Settings(seed=1, hours=1), _pure)
        return outcome.commands / (time.perf_counter() - began)

    found = benchmark.pedantic(hour, rounds=3)  # type: ignore[no-untyped-call]
    benchmark.extra_info["whole run, commands/s"] = round(found)
    print(f"\nwhole simulated run {found:,.0f} commands/s")


class _pure:  # noqa: N801 - used as a function
    """No store under test."""

    def __init__(self, clock: StoreClock, seed: int) -> None:
        pass

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        pass
