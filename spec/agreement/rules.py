"""The specification's lease rules, and the core's words in its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from unswept.core.lease import Lease, RequeueRule, Status
from unswept.spec.agreement.quint import UNIT, Definitions

Row = Mapping[str, Any]
"""A lease as the specification says it."""
Write = tuple[str, Any]
"""What is asked about one job: the tag of a Write in `spec/lease.qnt`, and its fields."""

RULES: Final = Definitions(
    json.loads(files("unswept.spec.agreement").joinpath("lease.json").read_text("utf-8"))
)
"""The definitions of `spec/lease.qnt`; `.ci/quint` fails where lease.json is older."""


def option(value: Any) -> tuple[str, Any]:
    """A value that may be missing."""
    return ("None", UNIT) if value is None else ("Some", value)


def status(value: Status) -> tuple[str, Any]:
    """A status."""
    return (value.capitalize(), UNIT)


def row(lease: Lease) -> Row:
    """A lease of the core."""
    return {
        "status": status(lease.status),
        "owner": option(lease.owner),
        "epoch": lease.epoch,
        "beats": lease.beats,
        "deadline": option(lease.deadline),
        "cancelAt": option(lease.cancel_requested_at),
        "delayedAt": option(lease.delayed_at),
        "ttl": option(lease.ttl_ms),
        "confirm": option(lease.confirm_ms),
        "requeueable": lease.requeue is RequeueRule.ALLOWED,
    }


def written(before: Row | None, write: Write, now: int) -> tuple[str, Any]:
    """What a write makes of a row, or of an id that no job has: `Done` with the row, or `Refused`
    with the name of the core's refusal."""
    rule = RULES["born"] if before is None else RULES["written"]
    arguments = (write, now) if before is None else (before, write, now)
    answer: tuple[str, Any] = rule(*arguments)
    return answer


def after(before: Row | None, write: Write, now: int) -> Row | None:
    """The row after a write; a refused one changes nothing."""
    tag, value = written(before, write, now)
    return value if tag == "Done" else before
