"""The catalogue of theorems: every name its own, every twin an edit that can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from unswept.adapters.proofs.cases import names_in, values_of
from unswept.adapters.sql.rows import JOB_COLUMNS, job_of, labels_text
from unswept.core import job as jobs
from unswept.core import lease as rules
from unswept.core.errors import MisuseError
from unswept.core.job import Job, Process, Transport
from unswept.core.lease import Kind, RequeueRule
from unswept.core.units import Ms, StoreMs
from unswept.spec.laws import LAWS
from unswept.spec.theorems.catalogue import THEOREMS
from unswept.spec.theorems.scope import ASSUMED, NOT_COVERED
from unswept.spec.theorems.steps import MOVES
from unswept.spec.theorems.theorem import Edit, Theorem, by_name

ROOT = Path(__file__).resolve().parents[2]


def test_every_theorem_has_a_name_of_its_own() -> None:
    """Findings are counted by name, so that a name that two share would hide one."""
    assert len(by_name(THEOREMS)) == len(THEOREMS)
    with pytest.raises(MisuseError, match="two theorems"):
        by_name([THEOREMS[0], THEOREMS[0]])


def test_every_law_that_one_job_can_show_has_theorems() -> None:
    """L12 b and c, L16, and L13 but for a breaker's wait, are for the explorer, the simulator and a
    test of the source."""
    proved = {theorem.law for theorem in THEOREMS}
    laws = {law.id for law in LAWS}
    assert {law for law in laws if law.startswith("L")} - proved == {"L12", "L16"}


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.name)
def test_every_twin_is_an_edit_that_can_be_made(theorem: Theorem) -> None:
    """The text that a twin edits still stands in its function, and the edit is undone."""
    twin = theorem.twin
    assert isinstance(twin, Edit)
    whole = twin.function.__code__
    with twin.made():
        assert twin.function.__code__ is not whole
    assert twin.function.__code__ is whole


def test_the_page_says_what_is_assumed_and_not_covered() -> None:
    """What the command prints under its table stands in the documentation too."""
    page = " ".join((ROOT / "docs/proofs.md").read_text(encoding="utf-8").split())
    for sentence in (*ASSUMED, *NOT_COVERED):
        assert sentence in page


def test_an_edit_of_text_that_is_gone_says_so() -> None:
    """A twin does not rot in silence."""
    with pytest.raises(MisuseError, match="exactly once"), Edit(rules.renew, "gone", "x").made():
        pass


def test_every_row_of_the_status_table_is_asked() -> None:
    """The moves that theorems range over are all that the table has, but for eviction."""
    names = {
        Kind.HEAL: "complete",
        Kind.CANCEL: "request_cancel",
    }
    asked = {names.get(kind, kind.value) for kind in rules.MOVES} - {"evict"}
    assert {move.name for move in MOVES} == asked


def test_a_row_and_its_job_are_one() -> None:
    """The row that the SQL theorems evaluate is the one that the store reads a job from."""
    lease = rules.admit("o", Ms(1), Ms(2), RequeueRule.ALLOWED, StoreMs(3))
    job = Job(
        "j",
        lease,
        Transport.HTTP,
        StoreMs(4),
        "p",
        ("a", "b"),
        6,
        7,
        8,
        process=Process(9, 10, "boot"),
    )
    for each in (job, Job("k", rules.enqueue(RequeueRule.NEVER), Transport.PROCESS, StoreMs(1))):
        row = dict(zip(JOB_COLUMNS, values_of(each), strict=True))
        row["label_set"] = labels_text(each.labels)
        assert job_of(tuple(row.values())) == each


def test_what_a_function_can_test_is_among_its_names() -> None:
    """A column that the core's function reads is drawn with NULL, also where a helper reads it."""
    assert {"not_before", "cancel_requested_at"} <= names_in(jobs.claim)
    assert {"delayed_at", "deadline", "beats"} <= names_in(jobs.delay)
    assert "requeue" in names_in(jobs.release)
    assert "not_before" not in names_in(jobs.orphan)
