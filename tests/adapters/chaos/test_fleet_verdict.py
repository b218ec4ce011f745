"""Made-up evidence of a fleet's run: an honest one holds, and each broken promise is noticed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from typer.testing import CliRunner

from unswept.adapters.chaos.fleet.evidence import Evidence, Notes
from unswept.adapters.chaos.fleet.load import Task, Wish, tasks
from unswept.adapters.chaos.fleet.records import (
    Begun,
    Born,
    Canceled,
    Deed,
    Done,
    Enqueued,
    Line,
    Taken,
    Wrote,
)
from unswept.adapters.chaos.fleet.run import Report, Settings
from unswept.adapters.chaos.fleet.verdict import CHECKS, MUST, judged
from unswept.adapters.chaos.processes import RunFailedError
from unswept.adapters.chaos.verdict import Violation
from unswept.adapters.cli import fleet as command
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app
from unswept.core.lease import Kind, RequeueRule, Status
from unswept.core.units import StoreMs
from unswept.core.values import Event


def event(
    job_id: str, kind: Kind, at: int, epoch: int, status: Status, owner: str | None = None
) -> Event:
    return Event(job_id, epoch, kind, StoreMs(at), status, owner)


def story(job_id: str, owner: str) -> list[Event]:
    """Enqueued, claimed, completed."""
    return [
        event(job_id, Kind.ENQUEUE, 10, 0, Status.QUEUED),
        event(job_id, Kind.CLAIM, 20, 1, Status.RUNNING, owner),
        event(job_id, Kind.COMPLETE, 30, 1, Status.COMPLETED, owner),
    ]


PLAIN = Task(1, b"", RequeueRule.ALLOWED, Wish.NEVER, False)
SWEPT = Task(2, b"", RequeueRule.ALLOWED, Wish.NEVER, True)
SPENT = Task(3, b"", RequeueRule.ALLOWED, Wish.BEFORE, False)
GONE = Task(4, b"", RequeueRule.ALLOWED, Wish.AFTER, False)
a, b, c, d = (task.job_id for task in (PLAIN, SWEPT, SPENT, GONE))

ONE = Notes(
    1,
    (
        Born("one"),
        Taken(1, 20, False, ((a, 1), (b, 1))),
        Begun(a, 1),
        Begun(b, 1),
        Done(a, 1),
        Wrote("Complete", a, 1, "fresh"),
    ),
)
"""Was killed with the second job."""
TWO = Notes(
    2,
    (
        Born("two"),
        Taken(5, 60, False, ((b, 3),)),
        Taken(5, 60, True, ((b, 3),)),
        Begun(b, 3),
        Done(b, 3),
        Wrote("Complete", b, 3, "fresh"),
    ),
)
HONEST = Evidence(
    (PLAIN, SWEPT, SPENT, GONE),
    (ONE, TWO),
    (
        Enqueued(a, "fresh", False),
        Enqueued(b, "fresh", False),
        Enqueued(c, "spent", False),
        Enqueued(d, "fresh", False),
        Enqueued(b, "repeated", True),
    ),
    {c: Canceled(c, 5), d: Canceled(d, 12)},
    (Deed(1, "kill", 1),),
    (
        *story(a, "one"),
        event(b, Kind.ENQUEUE, 10, 0, Status.QUEUED),
        event(b, Kind.CLAIM, 20, 1, Status.RUNNING, "one"),
        event(b, Kind.ORPHAN, 50, 1, Status.ORPHANED, "one"),
        event(b, Kind.REQUEUE, 50, 2, Status.QUEUED, "one"),
        event(b, Kind.CLAIM, 60, 3, Status.RUNNING, "two"),
        event(b, Kind.STALE_RESULT, 65, 1, Status.RUNNING, "one"),
        event(b, Kind.COMPLETE, 70, 3, Status.COMPLETED, "two"),
        event(d, Kind.ENQUEUE, 11, 0, Status.QUEUED),
        event(d, Kind.CANCEL, 12, 1, Status.CANCELED),
    ),
    {a: "completed", b: "completed", c: None, d: "canceled"},
)


def broken(evidence: Evidence) -> set[str]:
    return {violation.check for violation in judged(evidence)[0]}


def test_an_honest_run_holds() -> None:
    """And is counted."""
    violations, counts = judged(HONEST)
    assert violations == ()
    assert counts["jobs completed"] == 2
    assert counts["jobs canceled before they were enqueued"] == 1
    assert not [name for name in MUST if not counts[name]]


def with_lines(notes: Notes, *lines: Line) -> Notes:
    return Notes(notes.number, (*notes.lines, *lines))


def events(*more: Event) -> Evidence:
    return evolve(HONEST, events=(*HONEST.events, *more))


def without(kind: Kind, job_id: str) -> Evidence:
    kept = tuple(e for e in HONEST.events if (e.kind, e.job_id) != (kind, job_id))
    return evolve(HONEST, events=kept)


ACCOUNTED, ONCE, CANCELED, EPOCH, WORK, STANDS, REPEATED = CHECKS

CASES: list[tuple[str, str, Evidence]] = [
    ("an enqueue without an answer", ACCOUNTED, evolve(HONEST, enqueued=HONEST.enqueued[1:])),
    ("a job that never ended", ACCOUNTED, without(Kind.CANCEL, d)),
    ("a job without an event", ACCOUNTED, without(Kind.ENQUEUE, a)),
    (
        "a spent id with a story",
        ACCOUNTED,
        events(event(c, Kind.ENQUEUE, 10, 0, Status.QUEUED)),
    ),
    ("a row that differs", ACCOUNTED, evolve(HONEST, rows={a: "running"})),
    ("two ends", ONCE, events(event(a, Kind.COMPLETE, 31, 1, Status.COMPLETED, "one"))),
    ("two fresh answers", ONCE, evolve(HONEST, runners=(ONE, with_lines(TWO, ONE.lines[-1])))),
    (
        "an end without work",
        ONCE,
        evolve(HONEST, runners=(evolve(ONE, lines=(*ONE.lines[:4], ONE.lines[5])), TWO)),
    ),
    (
        "a claim after a cancel",
        CANCELED,
        events(event(d, Kind.CLAIM, 13, 2, Status.RUNNING, "two")),
    ),
    (
        "a grant after a cancel",
        CANCELED,
        evolve(HONEST, runners=(ONE, with_lines(TWO, Taken(6, 13, False, ((d, 1),))))),
    ),
    (
        "an epoch for two runners",
        EPOCH,
        evolve(HONEST, runners=(ONE, with_lines(TWO, Taken(6, 21, False, ((a, 1),))))),
    ),
    (
        "an epoch under two claims",
        EPOCH,
        evolve(HONEST, runners=(ONE, with_lines(TWO, Taken(6, 61, False, ((b, 3),))))),
    ),
    ("an epoch claimed twice", EPOCH, events(event(a, Kind.CLAIM, 21, 1, Status.RUNNING, "one"))),
    (
        "a handler begun twice",
        EPOCH,
        evolve(HONEST, runners=(with_lines(ONE, Begun(a, 1)), TWO)),
    ),
    (
        "a grant that the store does not know",
        WORK,
        evolve(HONEST, runners=(ONE, with_lines(TWO, Taken(6, 61, False, ((c, 1),))))),
    ),
    (
        "work without a grant",
        WORK,
        evolve(HONEST, runners=(ONE, with_lines(TWO, Begun(d, 1)))),
    ),
    (
        "a fenced end that was acknowledged",
        STANDS,
        evolve(HONEST, runners=(with_lines(ONE, Wrote("Complete", b, 1, "repeated")), TWO)),
    ),
    (
        "a late enqueue that was taken",
        REPEATED,
        evolve(HONEST, enqueued=(*HONEST.enqueued, Enqueued(a, "fresh", True))),
    ),
    ("a job born twice", REPEATED, events(event(a, Kind.ENQUEUE, 90, 2, Status.QUEUED))),
]


@pytest.mark.parametrize(("name", "promise", "evidence"), CASES, ids=[case[0] for case in CASES])
def test_what_breaks_a_promise_is_noticed(name: str, promise: str, evidence: Evidence) -> None:
    """Under the very promise that it breaks."""
    assert promise in broken(evidence)


def test_every_promise_has_a_case() -> None:
    """A check that never fails proves nothing."""
    assert {promise for _, promise, _ in CASES} == set(CHECKS)


def test_even_a_short_run_has_jobs_of_each_kind() -> None:
    """The same for the same seed."""
    every = list(tasks(1, 100))
    assert every == list(tasks(1, 100))
    assert {task.cancel for task in every} == set(Wish)
    assert {task.requeue for task in every} == set(RequeueRule)
    assert {task.again for task in every} == {True, False}
    assert len({task.payload for task in tasks(1, 1_000)}) == 3


# The command ------------------------------------------------------------------------------------

BROKEN = Violation(ONCE, "job-000001: it ended 2 times")


@pytest.mark.parametrize(
    ("violations", "missing", "code", "said"),
    [
        ((), (), ExitCode.HELD, "Every promise held"),
        ((), ("runners killed",), ExitCode.COVERAGE_SHORT, "never runners killed"),
        ((BROKEN,), (), ExitCode.REFUTED, BROKEN.offence),
        ((BROKEN,), ("runners killed",), ExitCode.REFUTED, "broken 1 times"),
    ],
)
def test_the_exit_code_says_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
    violations: tuple[Violation, ...],
    missing: tuple[str, ...],
    code: ExitCode,
    said: str,
) -> None:
    """A broken promise outranks what was not put to the test."""
    report = Report("sqlite:jobs.db", violations, missing, Counter({"jobs": 500}), 30.0, 31.0)
    monkeypatch.setattr(command, "run", lambda settings, show: report)
    result = CliRunner().invoke(app, ["fleet"])
    assert result.exit_code == code
    assert said in result.output
    result = CliRunner().invoke(app, ["fleet", "--json"])
    told: dict[str, Any] = json.loads(result.output)
    assert (result.exit_code, told["exit_code"]) == (code, code)
    assert told["promises"][ONCE] == [each.offence for each in violations]
    assert (told["never"], told["counts"]) == (list(missing), {"jobs": 500})


@pytest.mark.parametrize("failure", [RunFailedError("runner 3 has ended"), KeyboardInterrupt()])
def test_a_run_that_failed_has_found_nothing(
    monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    """That is no pass, and no refutation either."""

    def fail(settings: Settings, show: Callable[[str, float], None]) -> Report:
        raise failure

    monkeypatch.setattr(command, "run", fail)
    assert CliRunner().invoke(app, ["fleet"]).exit_code == ExitCode.UNDETERMINED


def test_what_was_settled_by_authority_is_accounted_for() -> None:
    """Work of a killed runner that nobody may run again: it is over, and counted apart."""
    lone = Task(9, b"", RequeueRule.NEVER, Wish.NEVER, False)
    settled = evolve(
        HONEST,
        tasks=(*HONEST.tasks, lone),
        enqueued=(*HONEST.enqueued, Enqueued(lone.job_id, "fresh", False)),
        events=(
            *HONEST.events,
            *story(lone.job_id, "one")[:2],
            event(lone.job_id, Kind.ORPHAN, 50, 1, Status.ORPHANED, "one"),
            event(lone.job_id, Kind.SETTLE, 90, 2, Status.FAILED, "one"),
        ),
    )
    violations, counts = judged(settled)
    assert violations == ()
    assert counts["jobs orphaned, and settled as failed by authority"] == 1
