"""The list of tests that the package brings is that of the tests there are."""

from __future__ import annotations

from tests.laws_of_tests import FILE, ROOT, as_text, found, laws_by_test
from unswept.adapters.evidence import naming
from unswept.adapters.evidence.verdicts import Kind
from unswept.spec.laws import LAWS


def test_the_list_is_up_to_date() -> None:
    """Else: python -m tests.laws_of_tests, and commit it."""
    assert FILE.read_text(encoding="utf-8") == as_text()


def test_a_test_names_a_law_in_its_text_or_in_its_modules_tables() -> None:
    """test_laws.py has one test for a table of offences, which names every law about steps."""
    named = dict(laws_by_test(ROOT / "tests/spec/test_laws.py"))
    offences = named["test_each_law_catches_its_offence_and_passes_the_lawful_step"]
    assert {"L1", "L9", "F2", "WF"} <= offences
    assert "L16" not in offences


def test_every_law_has_a_test_and_a_race_is_called_one() -> None:
    """By the files in which sessions and processes meet."""
    for law in LAWS:
        assert naming.tests(law.id).kind is Kind.NAMED
    races = found()["L1"]["races"]
    assert (
        "tests/adapters/postgres/test_races.py::test_two_at_once_come_to_one_after_the_other"
        in (races)
    )
    assert "race" in {row.cells[0] for row in naming.tests("L1").rows}


def test_a_law_without_a_test_is_a_hole() -> None:
    """An id that nobody names."""
    assert naming.tests("L99").is_hole
