"""Asks CrossHair about one theorem, and says what came of it.

Only "confirmed over all paths" is a proof. CrossHair draws each parameter by its type; the types
below are the library's own, and are drawn as `unswept.spec.theorems.drawn` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import Enum, StrEnum
from inspect import BoundArguments
from typing import Any, Final, get_type_hints

from attrs import fields_dict, frozen, has

from unswept.adapters.proofs.cases import Carried, Case
from unswept.core.lease import Lease, Status
from unswept.core.policy import LeasePolicy
from unswept.spec.theorems.drawn import Asked, Name, lease_of, least_epoch
from unswept.spec.theorems.theorem import Claim, Edit, Reading, Theorem

SECONDS: Final = 120.0
"""The processor time that one theorem may take; each needs a small part of it."""


class Verdict(StrEnum):
    """What became of a claim."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNDETERMINED = "undetermined"


@frozen
class Finding:
    """The verdict on one claim; if it is not proved, `why` is the counterexample or the reason."""

    verdict: Verdict
    why: str
    seconds: float


@frozen
class Shown:
    """What a theorem's witness and its twin came to; both must be refuted."""

    witness: Finding
    twin: Finding


def prove(theorem: Theorem) -> Finding:
    """Is there an input for which the claim is False?"""
    return _search(theorem.claim, _holds)


def show(theorem: Theorem) -> Shown:
    """A case to which the claim applies, and a case that its broken twin gets wrong."""
    witness = _search(theorem.claim, _says_nothing)
    twin = theorem.twin
    if isinstance(twin, Edit):
        with twin.made():
            return Shown(witness, _search(theorem.claim, _holds))
    return Shown(witness, _search(twin.claim, _holds))


def _holds(verdict: bool | None) -> bool:
    return verdict is None or bool(verdict)


def _says_nothing(verdict: bool | None) -> bool:
    return verdict is None


def _contract(__return__: bool | None) -> bool:
    """What a claim is registered with; the question that is asked stands in its place."""
    return True


def _search(claim: Claim | Reading, expected: Callable[[Any], bool]) -> Finding:
    if isinstance(claim, Reading):
        return _read(claim, expected)
    from crosshair.core_and_libs import MessageType, analyze_function, run_checkables
    from crosshair.options import AnalysisKind, AnalysisOptionSet
    from crosshair.register_contract import clear_contract_registrations, register_contract

    _teach(claim)
    options = AnalysisOptionSet(
        report_all=True,
        per_condition_timeout=SECONDS,
        analysis_kind=[AnalysisKind.PEP316],
    )
    began = time.perf_counter()
    register_contract(claim, post=_contract, skip_body=False)
    try:
        checkables: list[Any] = list(analyze_function(claim, options))
        for checkable in checkables:
            (post,) = checkable.conditions.post
            question = replace(post, evaluate=lambda names: expected(names["__return__"]))
            checkable.conditions = replace(
                checkable.conditions,
                post=[question],
                counterexample_description_maker=_teller(claim),
            )
        messages = run_checkables(checkables)
    finally:
        clear_contract_registrations()  # type: ignore[no-untyped-call]
    seconds = time.perf_counter() - began
    refuting = (MessageType.POST_FAIL, MessageType.POST_ERR, MessageType.EXEC_ERR)
    found = [message for message in messages if message.state in refuting]
    if found:
        return Finding(Verdict.REFUTED, _example(found[0].message), seconds)
    if [message.state for message in messages] == [MessageType.CONFIRMED]:
        return Finding(Verdict.PROVED, "", seconds)
    reasons = "; ".join(message.message for message in messages)
    return Finding(Verdict.UNDETERMINED, reasons or "nothing could be checked", seconds)


def _read(claim: Reading, expected: Callable[[Any], bool]) -> Finding:
    began = time.perf_counter()
    offence = claim.offence()
    verdict = Verdict.PROVED if expected(offence is None) else Verdict.REFUTED
    return Finding(verdict, offence or claim.subject, time.perf_counter() - began)


# What is drawn ----------------------------------------------------------------------------------

_KNOWN: Final[set[object]] = set()
"""The types that CrossHair has been told of, in this process."""


def _teach(claim: Claim) -> None:
    """Tell CrossHair how the parameters of a claim are drawn: a type may say so itself."""
    from crosshair import core
    from crosshair.core import register_type
    from crosshair.core_and_libs import _make_registrations
    from crosshair.options import AnalysisOptionSet

    if not _KNOWN:
        # CrossHair looks for directives in the comments of every package above a function, and
        # fails on `unswept`, a namespace that in an editable install has no folder.
        core.collect_options = lambda thing: AnalysisOptionSet()  # type: ignore[attr-defined]
        _make_registrations()  # type: ignore[no-untyped-call]
        register_type(Name, lambda draw: draw(int))
        register_type(Lease, _draw_lease)
        _KNOWN.update((Name, Lease))
    for kind in get_type_hints(claim).values():
        if hasattr(kind, "drawn") and kind not in _KNOWN:
            register_type(kind, kind.drawn)
            _KNOWN.add(kind)


def _draw_lease(draw: Any) -> Lease:
    drawn = lease_of(
        status=draw(Status, "_status"),
        owned=draw(bool, "_owned"),
        owner=draw(int, "_owner"),
        epoch=draw(int, "_epoch"),
        beats=draw(int, "_beats"),
        deadline=draw(int, "_deadline"),
        asked=draw(bool, "_asked"),
        asked_at=draw(int, "_asked_at"),
        delayed=draw(bool, "_delayed"),
        delayed_at=draw(int, "_delayed_at"),
        ttl_ms=draw(int, "_ttl_ms"),
        confirm_ms=draw(int, "_confirm_ms"),
        requeueable=draw(bool, "_requeueable"),
    )
    _at_least(draw, drawn.epoch, least_epoch(drawn))
    _at_least(draw, drawn.beats, 0)
    return drawn


def _at_least(draw: Any, number: Any, bound: int) -> None:
    """Lets the solver take only such numbers, which costs nothing; a test would be two paths."""
    from crosshair.util import IgnoreAttempt

    if hasattr(number, "var"):
        draw.space.add(number.var >= bound)
    elif number < bound:  # now and then a plain number is tried beside the symbolic one
        raise IgnoreAttempt


# What is told -----------------------------------------------------------------------------------


def _teller(claim: Claim) -> Callable[[BoundArguments, object, object], tuple[str, str]]:
    """Says a counterexample in words: the drawn values that the claim looked at."""

    def told(arguments: BoundArguments, result: object, _: object) -> tuple[str, str]:
        drawn = dict(arguments.arguments)
        said = "; ".join(f"{name}: {_words(value)}" for name, value in _noted(claim, drawn).items())
        return said, "None"  # CrossHair would add what the claim returned

    return told


class _Noted:
    """What a caller says, as far as it was read."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.read: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._asked, name)
        self.read[name] = value
        return value


def _noted(claim: Claim, drawn: dict[str, Any]) -> dict[str, Any]:
    """The drawn values, without what nobody read of what a caller says."""
    noted = {name: _Noted(value) for name, value in drawn.items() if isinstance(value, Asked)}
    with suppress(Exception):
        claim(**{**drawn, **noted})
    return {**drawn, **{name: each.read for name, each in noted.items() if each.read}}


def _words(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(each)}" for name, each in value.items())
    if isinstance(value, LeasePolicy):
        return f"heartbeat {value.heartbeat_interval_ms}, timeout {value.operation_timeout_ms}"
    if isinstance(value, Case):
        said = {name: each for name, each in value.params.items() if not has(type(each))}
        return f"{_words(value.job)}; {_words(said)}"
    if isinstance(value, tuple):
        return ", ".join(map(_words, value))
    if not has(type(value)):
        return str(value)
    kind: Any = type(value)
    named = {name: getattr(value, name) for name in fields_dict(kind)}
    told = {name: each for name, each in named.items() if not isinstance(each, Carried | None)}
    if isinstance(value, Lease):
        return f"{told.pop('status').value} ({_words(told)})"
    return f"({_words(told)})"


def _example(message: str) -> str:
    """CrossHair's sentence without its own words."""
    return message.removeprefix("false when calling ")
