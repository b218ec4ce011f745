"""One run of a fleet from its start to its verdict."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from attrs import field, frozen

from unswept.adapters.chaos.driver import Progress
from unswept.adapters.chaos.fleet.driver import RUNNER, Driver
from unswept.adapters.chaos.fleet.evidence import collect
from unswept.adapters.chaos.fleet.verdict import MUST, judged
from unswept.adapters.chaos.places import open_place
from unswept.adapters.chaos.processes import ended_by_signals
from unswept.adapters.chaos.run import evidence_folder
from unswept.adapters.chaos.verdict import Violation
from unswept.adapters.urls import without_password
from unswept.core.checks import check_whole
from unswept.core.commands import Deregister, ListInstances, ReadEvents
from unswept.core.errors import MisuseError

FEWEST: Final = 2
"""With one runner alone nobody would be there to sweep."""
FEWEST_JOBS: Final = 100
MOST_JOBS: Final = 999_999


@frozen
class Settings:
    """What is to be run."""

    url: str = field(repr=without_password)
    runners: int = 16
    jobs: int = 50_000
    seed: int = 1
    schema: str | None = None
    """On Postgres: one that is not there yet; None: a name of its own."""
    keep: bool = False
    """Do not drop that schema."""
    evidence: Path | None = None
    """An empty folder for the files, which stay; None: a temporary one."""
    program: str = RUNNER
    """The module that runs one runner."""

    def __attrs_post_init__(self) -> None:
        """Bounds."""
        check_whole("runners", self.runners, FEWEST, 100)
        check_whole("jobs", self.jobs, FEWEST_JOBS, MOST_JOBS)
        check_whole("seed", self.seed, 0, 2**63 - 1)


@frozen
class Report:
    """What a run has found."""

    place: str
    violations: tuple[Violation, ...]
    missing: tuple[str, ...]
    """What there was none of."""
    counts: Counter[str]
    working_s: float
    """From the first start until all jobs were over and all runners had ended."""
    seconds: float


def run(settings: Settings, on_progress: Progress = lambda doing, part: None) -> Report:
    """Run, and judge. Whatever happens, no process of the run is left, and no temporary file.

    For the main thread, since SIGTERM has to end it in order. Raises `RunFailedError` or a
    `StoreError` where the run itself failed.
    """
    began = time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        folder = stack.enter_context(evidence_folder(settings.evidence))
        place, store = stack.enter_context(
            open_place(settings.url, folder, schema=settings.schema, keep=settings.keep)
        )
        if store.execute(ReadEvents(limit=1)).events:
            raise MisuseError(f"--store must be one without jobs, got {place.name}")
        driver = Driver(
            place,
            store,
            folder,
            settings.seed,
            settings.runners,
            settings.jobs,
            settings.program,
            on_progress,
        )
        stack.callback(driver.close)
        driver.run()
        working_s = time.monotonic() - began
        on_progress("judging", 0.0)
        evidence = collect(folder, store, settings.seed, settings.jobs)
        for instance in store.execute(ListInstances()).instances:
            store.execute(Deregister(instance.id))  # the killed leave a row behind
        violations, counts = judged(evidence)
        return Report(
            place.name,
            violations,
            tuple(name for name in MUST if not counts[name]),
            counts,
            working_s,
            time.monotonic() - began,
        )
