"""Asks CrossHair about one theorem, and says what came of it.

Only "confirmed over all paths" is a proof. CrossHair draws each parameter by its type; the types
below are the library's own, and are drawn as `unswept.spec.theorems.drawn` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from functools import cache
from inspect import BoundArguments
from typing import Any, Final

from attrs import fields_dict, frozen, has

from unswept.core.lease import Lease, RequeueRule, Status
from unswept.spec.theorems.drawn import Asked, Name, lease_of, least_epoch
from unswept.spec.theorems.theorem import Claim, Edit, Theorem

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


def _search(claim: Claim, expected: Callable[[Any], bool]) -> Finding:
    from crosshair.core_and_libs import MessageType, analyze_function, run_checkables
    from crosshair.options import AnalysisKind, AnalysisOptionSet
    from crosshair.register_contract import clear_contract_registrations, register_contract

    _draw_our_types()
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
                checkable.conditions, post=[question], counterexample_description_maker=_told
            )
        messages = run_checkables(checkables)
    finally:
        clear_contract_registrations()
    seconds = time.perf_counter() - began
    refuting = (MessageType.POST_FAIL, MessageType.POST_ERR, MessageType.EXEC_ERR)
    found = [message for message in messages if message.state in refuting]
    if found:
        return Finding(Verdict.REFUTED, _example(found[0].message), seconds)
    if [message.state for message in messages] == [MessageType.CONFIRMED]:
        return Finding(Verdict.PROVED, "", seconds)
    reasons = "; ".join(message.message for message in messages)
    return Finding(Verdict.UNDETERMINED, reasons or "nothing could be checked", seconds)


# What is drawn ----------------------------------------------------------------------------------


@cache
def _draw_our_types() -> None:
    """Tell CrossHair, once per process, how leases, ids and policies are drawn."""
    from crosshair.core import register_type
    from crosshair.core_and_libs import _make_registrations

    _make_registrations()
    register_type(Name, lambda draw: draw(int))  # type: ignore[arg-type]
    register_type(Lease, _draw_lease)
    register_type(Asked, _draw_asked)


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
    draw.space.add(number.var >= bound)


def _draw_asked(draw: Any) -> Asked:
    whole = ("owner", "epoch", "beats", "ttl_ms", "confirm_ms", "choice")
    return Asked(
        **{name: draw(int, f"_{name}") for name in whole},
        force=draw(bool, "_force"),
        queue_deadline_at=draw(int, "_queue_deadline_at"),
        now=draw(int, "_now"),
    )


# What is told -----------------------------------------------------------------------------------


def _told(arguments: BoundArguments, result: object, _: object) -> tuple[str, str]:
    """The drawn values in words."""
    said = [f"{name} = {_words(value)}" for name, value in arguments.arguments.items()]
    return "; ".join(said), "None"


def _words(value: object) -> str:
    if isinstance(value, (Status, RequeueRule)):
        return value.value
    if has(type(value)):
        inner = [(name, getattr(value, name)) for name in fields_dict(type(value))]
        return "(" + ", ".join(f"{name} {_words(field)}" for name, field in inner) + ")"
    return str(value)


def _example(message: str) -> str:
    """CrossHair's sentence without its own words."""
    return message.removeprefix("false when calling ")
