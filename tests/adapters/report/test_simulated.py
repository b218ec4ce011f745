"""A real run, from the simulator through its trace to the picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from unswept.adapters.report.composing import compose
from unswept.adapters.report.page import Subject, page
from unswept.adapters.report.picture import Picture
from unswept.adapters.report.reading import read
from unswept.simulations.campaign import EPOCH
from unswept.simulations.run import Outcome, Run, Settings
from unswept.simulations.timeline import StoreClock, Timeline
from unswept.simulations.trace import Trace


def simulated(settings: Settings, file: Path) -> tuple[Run, Outcome]:
    clock = StoreClock(Timeline(), EPOCH)
    with file.open("w", encoding="utf-8") as text:
        run = Run(settings, None, clock, Trace(text.write, "0.1.0", "memory:"))
        return run, run.outcome()


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Outcome, Path]:
    file = tmp_path_factory.mktemp("trace") / "seed-2.jsonl"
    return *simulated(Settings(2, faults=("flaps",), design="single-observation"), file), file


def picture_of(file: Path) -> Picture:
    return compose(read(file))


def test_the_violation_and_its_job_are_in_the_picture(broken: tuple[Run, Outcome, Path]) -> None:
    """The job was orphaned at that very moment, and its lane is shown."""
    _, outcome, file = broken
    picture = picture_of(file)
    assert outcome.violation is not None
    assert picture.violation is not None
    assert (picture.violation.at, picture.violation.law) == (outcome.violation.at_ms, "L12")
    (job,) = (lane for lane in picture.jobs if lane.id == picture.violation.job)
    assert job.touched
    assert ("orphaned", picture.violation.at) in [(bar.status, bar.begins) for bar in job.bars]


def test_the_page_counts_what_the_run_counted(broken: tuple[Run, Outcome, Path]) -> None:
    """Its digest, its commands, and each law's checks."""
    _, outcome, file = broken
    trace = read(file)
    text = page(Subject(trace, compose(trace)))
    assert outcome.digest in text
    assert f"<dd>{outcome.commands:,}</dd>" in text
    for law, count in outcome.checked.items():
        assert law == "LOCKSTEP" or f'>{count:,}</td><td role="cell" class="words">' in text


def test_every_job_ends_in_the_picture_as_it_ends_in_the_store(tmp_path: Path) -> None:
    """Status, owner and epoch of those that are there; no bar at the end for those that are not."""
    run, outcome = simulated(Settings(2, hours=0.4), tmp_path / "run.jsonl")
    picture = picture_of(tmp_path / "run.jsonl")
    assert outcome.violation is None
    shown = {}
    for lane in picture.jobs:
        if lane.changes[-1].after is not None:
            last = lane.bars[-1]
            shown[lane.id] = (last.status, last.owner, last.epoch)
            assert last.ends == outcome.simulated_ms
    jobs = run.server.pure.world.jobs
    assert shown == {
        job.id: (job.lease.status.value, job.lease.owner, job.lease.epoch) for job in jobs.values()
    }
    assert len(shown) > 10
