"""A campaign as JUnit XML: a suite each for the laws, the broken designs and the coverage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as Xml

from attrs import frozen

from unswept.adapters.cli.simulate_report import Report, explained
from unswept.simulations.marks import Mark
from unswept.spec.laws import LAWS, Judges

_ILLEGAL: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped."""


@frozen
class _Case:
    """One test; it passed where it neither failed nor was skipped."""

    name: str
    failed: str | None = None
    details: str = ""
    skipped: str | None = None


def document(report: Report) -> str:
    """The whole file."""
    suites = {
        "unswept.laws": list(_laws(report)),
        "unswept.designs": list(_designs(report)),
        "unswept.coverage": list(_coverage(report)),
    }
    root = Xml.Element("testsuites", name="unswept simulate")
    for name, cases in suites.items():
        if cases:
            _suite(root, name, cases, report)
    _count(root, [case for cases in suites.values() for case in cases])
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _laws(report: Report) -> Iterator[_Case]:
    totals = report.totals
    for law in LAWS:
        if law.judges is not Judges.CODE:
            yield _judged(report, law.id, f"{law.id}: {law.sentence}")
    yield _judged(report, "LOCKSTEP", "LOCKSTEP: The store answers as the pure store does.")
    unequal = totals.unequal_seed
    name = "The same seed gives the same run."
    if unequal is None:
        yield _Case(name)
    else:
        yield _Case(name, f"seed {unequal} gave two different runs", f"Run it:\n{report.replay}")


def _judged(report: Report, law_id: str, name: str) -> _Case:
    totals = report.totals
    found = totals.violation
    if found is not None and found.law == law_id:
        failed = f"{law_id} was broken by seed {totals.violated_seed}: {found.offence}"
        details = explained(found, totals.violated_seed or 0, f"{report.replay}")
        return _Case(name, failed, details)
    if totals.checked[law_id]:
        return _Case(name)
    return _Case(name, skipped="nothing was judged by it")


def _designs(report: Report) -> Iterator[_Case]:
    for verdict in report.designs:
        name = f"{verdict.design} is caught: {verdict.sentence}"
        if not verdict.caught:
            said = f"{verdict.law or 'no law'} caught the broken design {verdict.design}"
            yield _Case(name, said, verdict.sentence)
        else:
            yield _Case(name)


def _coverage(report: Report) -> Iterator[_Case]:
    owed = report.shortfall()
    for mark in Mark:
        if report.totals.sometimes[mark.value]:
            yield _Case(mark.value)
        elif mark.value in owed:
            yield _Case(mark.value, "it never happened in a whole campaign", mark.value)
        else:
            yield _Case(mark.value, skipped="it did not happen, and was not owed")
    for each in owed:
        if each not in set(Mark):
            yield _Case("transitions under faults", each)


def _suite(root: Xml.Element, name: str, cases: list[_Case], report: Report) -> None:
    suite = Xml.SubElement(root, "testsuite", name=name)
    _count(suite, cases)
    properties = Xml.SubElement(suite, "properties")
    Xml.SubElement(properties, "property", name="campaign", value=_legal(report.counted))
    for case in cases:
        element = Xml.SubElement(suite, "testcase", classname=name, name=_legal(case.name))
        if case.failed is not None:
            failure = Xml.SubElement(
                element, "failure", message=_legal(case.failed), type="violation"
            )
            failure.text = _legal(case.details)
        elif case.skipped is not None:
            Xml.SubElement(element, "skipped", message=case.skipped)


def _count(element: Xml.Element, cases: list[_Case]) -> None:
    element.set("tests", str(len(cases)))
    element.set("failures", str(sum(case.failed is not None for case in cases)))
    element.set("errors", "0")
    element.set("skipped", str(sum(case.skipped is not None for case in cases)))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
