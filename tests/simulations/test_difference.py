"""How two stores differ, as people read it."""

from __future__ import annotations

from attrs import evolve

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Process
from unswept.core.lease import RequeueRule, Status
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.simulations.difference import difference, raised

AT = StoreMs(1_000)
SWEEP = c.Sweep("i5", tuple(c.Target(f"q{n}", 1, 4, AT) for n in range(9)))
SEEN = r.Suspect(
    "q1", "i1", 1, 4, AT, Ms(90), Ms(15), RequeueRule.ALLOWED, delayed=False, process=None
)


def swept(*refusals: Refusal | None) -> r.Swept:
    return r.Swept(AT, tuple(r.SweepAnswer(f"q{n}", each) for n, each in enumerate(refusals)))


def page(*suspects: r.Suspect) -> r.SuspectsPage:
    return r.SuspectsPage(AT, suspects, more=False)


def test_only_the_field_that_differs_is_said_and_whose_it_is() -> None:
    """In the words of the values; the command names its first targets, and counts the others."""
    moved, alive = Refusal.BEATS_MOVED, Refusal.NOT_EXPIRED
    assert difference(SWEEP, swept(None, moved), swept(None, alive)) == (
        "Sweep sweeper=i5, targets=[q0/1/4/1000, q1/1/4/1000, q2/1/4/1000, and 6 more]: "
        "q1 answers[1].refusal: the store under test says beats_moved, the pure store not_expired"
    )


def test_no_more_than_three_differences_are_shown() -> None:
    """Where nearly all differs, the number says so."""
    said = difference(SWEEP, swept(*[None] * 9), swept(*[Refusal.NOT_EXPIRED] * 9))
    assert said.count("the store under test says none, the pure store not_expired") == 3
    assert said.endswith("; and 6 more")
    assert len(said) < 400


def test_replies_of_two_kinds_are_named_and_a_refusal_says_why() -> None:
    """Their fields have nothing in common."""
    standing = r.Standing("q1", Status.RUNNING, "i1", 1, 4, AT, None)
    refused = r.Refused(AT, Refusal.STALE_EPOCH, standing)
    accepted = r.Accepted(AT, standing, None)
    start = c.Withdraw("q1", "i1")
    assert difference(start, refused, accepted).endswith(
        ": the store under test answered Refused (stale_epoch), the pure store Accepted"
    )
    assert difference(start, accepted, refused).endswith(
        ": the store under test answered Accepted, the pure store Refused (stale_epoch)"
    )
    assert raised(start, "IntegrityError: NOT NULL", refused).endswith(
        ": the store under test raised IntegrityError: NOT NULL, the pure store answered Refused "
        "(stale_epoch)"
    )


def test_what_only_one_of_two_lists_has_is_said_once() -> None:
    """Those behind it have moved by a place, and do not differ."""
    other = evolve(SEEN, job_id="q2", process=Process(7, 8, "boot"))
    said = difference(c.Suspects(), page(SEEN, other), page(other))
    assert said == (
        "Suspects: suspects: the store under test says 2 of them, the pure store 1; "
        "only the store under test says q1/i1/1/4/1000/90/15/allowed/false/none"
    )
    said = difference(c.Suspects(), page(other), page(SEEN, other))
    assert said.endswith("only the pure store says q1/i1/1/4/1000/90/15/allowed/false/none")


def test_what_lies_deep_is_found_and_what_is_long_is_cut() -> None:
    """A record inside a record by its path; no value floods the line."""
    assert "q1 suspects[0].process.pid: the store under test says 7, the pure store 9" in (
        difference(
            c.Suspects(),
            page(evolve(SEEN, process=Process(7, 8, "boot"))),
            page(evolve(SEEN, process=Process(9, 8, "boot"))),
        )
    )
    long, longer = evolve(SEEN, owner="i" * 190), evolve(SEEN, owner="i" * 191)
    said = difference(c.Suspects(), page(long), page(longer))
    assert "both stores say iiii" in said
    assert said.endswith("..., and go on differently")
    assert len(said) < 200
