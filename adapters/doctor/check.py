"""What a check is: a name, one question to a store, and one answer with what to do next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Generic, TypeVar

from attrs import frozen

from unswept.core.errors import OutcomeUnknownError, StoreError, StoreUnavailableError
from unswept.core.policy import LeasePolicy

L = TypeVar("L")
L_contra = TypeVar("L_contra", contravariant=True)


class Verdict(StrEnum):
    """What an operator has to think of an answer."""

    OK = "ok"
    WARN = "warn"
    """It works; somebody should know, or decide."""
    BAD = "bad"
    """Jobs are lost, stand still, or can be judged by nobody."""


@frozen
class Answer:
    """What was found."""

    verdict: Verdict
    found: str
    expected: str = ""
    """Or the bound."""
    advice: str = ""
    """What to do next, where there is something to do."""


@frozen
class Check(Generic[L_contra]):
    """One question."""

    name: str
    ask: Callable[[L_contra, LeasePolicy], Answer]


@frozen
class Finding:
    """One row of what a doctor says."""

    check: str
    verdict: Verdict
    found: str
    expected: str
    advice: str


def ok(found: str, expected: str = "") -> Answer:
    """As it should be."""
    return Answer(Verdict.OK, found, expected)


def judged(verdict: Verdict | None, found: str, expected: str, advice: str) -> Answer:
    """The verdict, and advice only where it is not ok; None: it is ok."""
    if verdict is None:
        return ok(found, expected)
    return Answer(verdict, found, expected, advice)


def findings(checks: Iterable[Check[L]], place: L, policy: LeasePolicy) -> Iterator[Finding]:
    """Each check's answer. A question that the store refuses is bad in itself; a store that is out
    of reach is raised as its error."""
    for check in checks:
        try:
            answer = check.ask(place, policy)
        except (StoreUnavailableError, OutcomeUnknownError):
            raise
        except StoreError as error:
            answer = Answer(Verdict.BAD, str(error), "an answer")
        yield Finding(check.name, answer.verdict, answer.found, answer.expected, answer.advice)
