"""What the SQL theorems draw: one job, its row, what a caller says, and the parameters that say it.

A column that the SQL or the core's function may test is drawn with every value, NULL included. One
that both only carry along stands as a mark of its own: a comparison of a mark, or a sum with it,
would fail the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from types import FunctionType, SimpleNamespace
from typing import Any, Final

from attrs import fields, frozen

from unswept.adapters.sql import rows
from unswept.adapters.sql.statements import TRANSITIONS
from unswept.core import job as jobs
from unswept.core import lease as rules
from unswept.core.job import Job, Process, Terms, Transport
from unswept.core.lease import Lease, RequeueRule, Status
from unswept.core.records import changed
from unswept.core.units import StoreMs
from unswept.spec.theorems.drawn import Draw, lease_of, unchecked

Said = SimpleNamespace
"""What a caller says, as the core's functions take it: those parts that a transition asks for."""


@frozen
class Case:
    """One job and its row, and what a caller says and the parameters that say it."""

    job: Job
    row: tuple[Any, ...]
    said: Said
    params: dict[str, Any]


def cases(tested: Collection[str], parameters: Collection[str]) -> type[Case]:
    """The type of the cases of one transition, which says how one is drawn."""
    asked = {*parameters, *_SAID.intersection(tested), *(_TERMS if "terms" in tested else ())}

    class Drawn(Case):
        @staticmethod
        def drawn(draw: Draw) -> Case:
            job, said = _job(draw, tested), _said(draw, asked)
            return Case(job, values_of(job), said, _params(said))

    return Drawn


def born(parameters: Collection[str]) -> type[Case]:
    """The type of the cases of one birth: there is no job yet."""

    class Drawn(Case):
        @staticmethod
        def drawn(draw: Draw) -> Case:
            said = _said(draw, parameters)
            said.requeue = draw(RequeueRule, "_requeue")
            said.transport = draw(Transport, "_transport")
            return Case(_NO_JOB, (), said, _params(said))

    return Drawn


def names_in(function: Callable[..., Any]) -> frozenset[str]:
    """Every name that a function and the core's functions under it use: the columns that they can
    test are among them."""
    seen: set[FunctionType] = set()
    waiting: list[Any] = [function]
    names: set[str] = set()
    while waiting:
        each = waiting.pop()
        if not isinstance(each, FunctionType) or each in seen:
            continue
        seen.add(each)
        names.update(each.__code__.co_names)
        homes = (each.__globals__, vars(jobs), vars(rules))
        waiting += [home[name] for name in each.__code__.co_names for home in homes if name in home]
    return frozenset(names)


def values_of(job: Job) -> tuple[Any, ...]:
    """The job's row, in the order of JOB_COLUMNS: the inverse of `rows.job_of`."""
    process = job.process
    three = (None, None, None) if process is None else _OF_A_PROCESS(process)
    return (*_OF_A_JOB(job), *three)


_FACTS: Final = tuple(
    name
    for name in rows.JOB_COLUMNS
    if name not in ("id", *rows.LEASE_COLUMNS, *rows.PROCESS_COLUMNS)
)
_FIELDS: Final[Mapping[str, str]] = {**{name: name for name in _FACTS}, "label_set": "labels"}
"""The job's field of each column: that a set of labels and its number stand for each other is what
interning is for."""
_OF_A_JOB: Final = attrgetter(
    "id", *(f"lease.{name}" for name in rows.LEASE_COLUMNS), *_FIELDS.values()
)
_OF_A_PROCESS: Final = attrgetter("pid", "start", "boot_id")


# The job ----------------------------------------------------------------------------------------


class Carried:
    """What stands in a column that is only carried along."""

    def __repr__(self) -> str:
        return "anything"


_CARRIED: Final[Mapping[str, Any]] = {name: Carried() for name in rows.JOB_COLUMNS}
_NEVER_NULL: Final = frozenset({"admitted_at", "partition", "label_set", "priority", "attempts"})


def _job(draw: Draw, tested: Collection[str]) -> Job:
    facts = {
        field: _fact(draw, name) if name in tested or field in tested else _CARRIED[name]
        for name, field in _FIELDS.items()
    }
    return Job(
        draw(int, "_id") if "id" in tested else _CARRIED["id"],
        _lease(draw, tested),
        process=_process(draw, tested),
        **facts,
    )


def _fact(draw: Draw, name: str) -> Any:
    if name == "transport":
        return draw(Transport, "_transport")
    return draw(int if name in _NEVER_NULL else int | None, f"_{name}")


def _process(draw: Draw, tested: Collection[str]) -> Process | None:
    if not {"process", "pid", "process_start", "boot_id"}.isdisjoint(tested):
        return _a_process(draw) if draw(bool, "_has_process") else None
    pid, start, boot_id = (_CARRIED[name] for name in rows.PROCESS_COLUMNS)
    process: Process = unchecked(Process, pid=pid, start=start, boot_id=boot_id)
    return process


def _a_process(draw: Draw) -> Process:
    numbers = {name: draw(int, f"_{name}") for name in ("pid", "start", "boot_id")}
    process: Process = unchecked(Process, **numbers)
    return process


def _lease(draw: Draw, tested: Collection[str]) -> Lease:
    def drawn(name: str) -> Any:
        return draw(int, f"_{name}") if name in tested else _CARRIED[name]

    def given(name: str) -> bool:
        return name not in tested or bool(draw(bool, f"_has_{name}"))

    lease = lease_of(
        draw(Status, "_status"),
        draw(bool, "_owned"),
        draw(int, "_owner"),
        draw(int, "_epoch"),
        draw(int, "_beats"),
        draw(int, "_deadline"),
        given("cancel_requested_at"),
        drawn("cancel_requested_at"),
        given("delayed_at"),
        drawn("delayed_at"),
        drawn("ttl_ms"),
        drawn("confirm_ms"),
        given("requeue"),
    )
    return lease if "requeue" in tested else changed(lease, requeue=_CARRIED["requeue"])


_NO_JOB: Final = Job("j", rules.enqueue(RequeueRule.NEVER), Transport.PROCESS, StoreMs(0))


# What a caller says -----------------------------------------------------------------------------

_TERMS: Final = tuple(field.name for field in fields(Terms))
_UNSAID: Final = Carried()
_SAID: Final = frozenset().union(*(each.parameters for each in TRANSITIONS.values()))
"""Every parameter that a transition may have; the core's function may ask for one that the SQL
leaves out."""


def _said(draw: Draw, parameters: Collection[str]) -> Said:
    """The transition's parameters, and what the core's functions take in their place."""
    said = Said(**{name: draw(int, f"_{name}") for name in parameters})
    said.terms = unchecked(Terms, **{name: getattr(said, name, _UNSAID) for name in _TERMS})
    if "pid" in parameters or "process" in parameters:
        said.process = _a_process(draw) if draw(bool, "_names_a_process") else None
    if "force" in parameters:
        said.force = draw(bool, "_force")
    if "outcome" in parameters:
        said.outcome = _outcome(draw)
    return said


def _outcome(draw: Draw) -> Status:
    if draw(bool, "_completed"):
        return Status.COMPLETED
    return Status.FAILED if draw(bool, "_failed") else Status.CANCELED


def _params(said: Said) -> dict[str, Any]:
    """A statement's parameters, made as the scripts make them."""
    params = dict(vars(said))
    if "pid" in params:
        params.update(rows.process_params(said.process))
    if "force" in params:
        params["force"] = 1 if said.force else 0
    return params
