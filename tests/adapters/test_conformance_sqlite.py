"""The SQLite store conforms, and one with a wrong guard in its statement table does not."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from unittest import mock

import pytest
from attrs import evolve, frozen

from unswept.adapters.sql import queries
from unswept.adapters.sql.dialect import Dialect
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.statements import TRANSITIONS
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.sqlite import store as store_module
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.core.units import StoreMs
from unswept.simulations.conformance import conformance_case, refute


def make_store(clock: Callable[[], StoreMs]) -> SqliteStore:
    return SqliteStore("sqlite::memory:", clock=clock)


TestSqliteStore = conformance_case(make_store)


@frozen
class WrongGuard:
    """Words of one transition's guard, and what stands in their place."""

    transition: str
    right: str
    wrong: str


WRONG_GUARDS = {
    "L1: the sweep takes a deadline equal to now": WrongGuard(
        "orphan", "deadline < :now", "deadline <= :now"
    ),
    "L2: the sweep ignores the beats": WrongGuard("orphan", "beats = :beats AND ", ""),
    "L3: complete drops the epoch": WrongGuard("complete", "epoch = :epoch AND ", ""),
    "L3: complete drops the owner": WrongGuard("complete", " AND owner = :owner", ""),
    "L3: a heal drops the epoch": WrongGuard("heal", "epoch = :epoch AND ", ""),
    "L7: a start goes through under a cancel": WrongGuard(
        "start", " AND cancel_requested_at IS NULL", ""
    ),
    "L9: a delay comes twice": WrongGuard("delay", " AND delayed_at IS NULL", ""),
}


def queries_with(fault: WrongGuard, dialect: Dialect | None = None) -> Queries:
    """The statements, assembled from a copy of the table with the fault in it."""
    sound = TRANSITIONS[fault.transition]
    assert fault.right in sound.guard, "the fault changes nothing: the guard has other words now"
    broken = evolve(sound, guard=sound.guard.replace(fault.right, fault.wrong))
    table = MappingProxyType({**TRANSITIONS, fault.transition: broken})
    with mock.patch.object(queries, "TRANSITIONS", table):
        return Queries(dialect or SqliteDialect())


@pytest.mark.parametrize("fault", WRONG_GUARDS.values(), ids=WRONG_GUARDS.keys())
def test_a_wrong_guard_is_caught(fault: WrongGuard) -> None:
    """A store whose SQL differs from the rule by one comparison fails the kit."""
    with mock.patch.object(store_module, "QUERIES", queries_with(fault)):
        assert refute(make_store)
