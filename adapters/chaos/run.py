"""One run from its plan to its verdict: opens the place, drives, reads the files, and tidies up."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from attrs import field, frozen

from unswept.adapters.chaos.coverage import faults_done, missing
from unswept.adapters.chaos.driver import WORKER, Driver, Progress, all_events
from unswept.adapters.chaos.evidence import Evidence
from unswept.adapters.chaos.history import Deeds, History
from unswept.adapters.chaos.places import open_place
from unswept.adapters.chaos.plan import FEWEST, Fault, plan
from unswept.adapters.chaos.processes import ended_by_signals, open_pipe
from unswept.adapters.chaos.records import HoldName, read
from unswept.adapters.chaos.verdict import Violation, judged
from unswept.adapters.urls import without_password
from unswept.core.checks import check_whole
from unswept.core.commands import Deregister, Find, ListInstances, ReadOutput, Store
from unswept.core.errors import MisuseError
from unswept.core.lease import Kind
from unswept.core.replies import Found

LONGEST_MINUTES: Final = 24 * 60.0
_BOOKS: Final = "gateway-*.jsonl"


@frozen
class Settings:
    """What is to be run."""

    url: str = field(repr=without_password)
    minutes: float = 2.0
    """Of faults; coming up and coming to rest take some twenty seconds more."""
    instances: int = 4
    seed: int = 1
    schema: str | None = None
    """On Postgres: one that is not there yet; None: a name of its own."""
    keep: bool = False
    """Do not drop that schema."""
    restart: Callable[[], None] | None = None
    """Restarts the server; None: it is not restarted."""
    evidence: Path | None = None
    """An empty folder for the files, which stay; None: a temporary one."""
    program: str = WORKER
    """The module that runs one gateway."""

    def __attrs_post_init__(self) -> None:
        """Bounds."""
        if not 0 < self.minutes <= LONGEST_MINUTES:
            raise MisuseError(
                f"minutes must be above 0 and at most {LONGEST_MINUTES:g}, got {self.minutes}"
            )
        check_whole("instances", self.instances, FEWEST, 100)
        check_whole("seed", self.seed, 0, 2**63 - 1)


@frozen
class Report:
    """What a run has found."""

    place: str
    violations: tuple[Violation, ...]
    missing: tuple[str, ...]
    """What there was none of."""
    faults: Counter[Fault]
    counts: Counter[str]
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
            open_place(
                settings.url,
                folder,
                schema=settings.schema,
                keep=settings.keep,
                restart=settings.restart,
            )
        )
        pipe = stack.enter_context(open_pipe(folder / "pipe"))
        faults = place.faults()
        length_ms = round(settings.minutes * 60_000)
        steps = plan(settings.seed, length_ms, settings.instances, faults)
        driver = Driver(place, store, folder, pipe, settings.seed, settings.program, on_progress)
        stack.callback(driver.close)
        driver.run(steps, length_ms, settings.instances)
        on_progress("judging", 0.0)
        evidence = collect(folder, store)
        _deregister(store, evidence)
        violations, counts = judged(evidence)
        done = faults_done(evidence.deeds)
        counts["healed after a sweep"] = sum(e.kind is Kind.HEAL for e in evidence.events)
        counts["delays by process evidence"] = sum(e.kind is Kind.DELAY for e in evidence.events)
        planned = {step.fault for step in steps}
        return Report(
            place.name,
            violations,
            tuple(missing(planned, done, counts)),
            done,
            counts,
            time.monotonic() - began,
        )


def collect(folder: Path, store: Store) -> Evidence:
    """The files of a run, and what the store has."""
    histories = {}
    for book in folder.glob(_BOOKS):
        number = int(book.stem.rpartition("-")[2])
        histories[number] = History(number, tuple(read(book)))
    events = tuple(all_events(store))
    ours = {history.instance for history in histories.values()}
    known = {event.job_id for event in events if event.owner in ours}
    for history in histories.values():
        known |= history.granted
        known |= {job_id for answer in history.answers() for job_id in answer.withdrawn}
    found = {job_id: store.execute(Find(job_id)) for job_id in sorted(known)}
    rows = {job_id: each if isinstance(each, Found) else None for job_id, each in found.items()}
    written = {
        hold
        for history in histories.values()
        for exchange in history.exchanges
        if exchange.answer is not None and exchange.answer.chunks
        for hold in exchange.sent.holds
    }
    chunks = {hold: _chunks(store, hold) for hold in written}
    at = store.execute(ListInstances()).at
    deeds = Deeds(tuple(read(folder / "driver.jsonl")))
    mine = tuple(event for event in events if event.job_id in known)
    return Evidence(deeds, histories, rows, chunks, mine, at)


def _chunks(store: Store, hold: HoldName) -> frozenset[int]:
    """The first page has them all: the output of these jobs is a line or two."""
    page = store.execute(ReadOutput(hold.job_id, hold.epoch))
    return frozenset(chunk.chunk for chunk in getattr(page, "chunks", ()))


def _deregister(store: Store, evidence: Evidence) -> None:
    """The killed leave a row behind that says so; a run leaves nothing but its jobs."""
    for history in evidence.histories.values():
        if history.instance is not None:
            store.execute(Deregister(history.instance))


@contextmanager
def evidence_folder(given: Path | None) -> Iterator[Path]:
    """The folder that was given, which must be empty, or a temporary one."""
    if given is None:
        with tempfile.TemporaryDirectory(prefix="unswept-chaos-") as folder:
            yield Path(folder)
        return
    given.mkdir(parents=True, exist_ok=True)
    if any(given.iterdir()):
        raise MisuseError(f"--evidence must be an empty folder, got {given}")
    yield given
