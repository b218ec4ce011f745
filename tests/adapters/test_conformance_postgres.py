"""The Postgres stores conform, blocking and asynchronous, and one with a wrong guard does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.adapters.postgres.shared_schema import BROKEN, Lent, SharedSchema, broken_schema
from unswept.core.units import StoreMs
from unswept.simulations.conformance import (
    NonconformanceError,
    conformance_case,
    effort,
    search,
)

SHARED: dict[str, SharedSchema] = {}


@pytest.fixture(scope="module", autouse=True)
def shared(postgres_url: str) -> Iterator[None]:
    SHARED["sync"] = SharedSchema(postgres_url)
    SHARED["async"] = SharedSchema(postgres_url, asynchronous=True)
    yield
    for schema in SHARED.values():
        schema.close()
    SHARED.clear()


def make_store(clock: Callable[[], StoreMs]) -> Lent:
    return SHARED["sync"].make_store(clock)


def make_async_store(clock: Callable[[], StoreMs]) -> Lent:
    return SHARED["async"].make_store(clock)


TestPostgresStore = conformance_case(make_store)
# The statements are the same: what may differ is how they are sent.
TestAsyncPostgresStore = conformance_case(make_async_store, how=effort(15), required=())
del TestAsyncPostgresStore.test_every_command_in_every_situation  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_guard_is_caught(name: str, postgres_url: str) -> None:
    """A store whose SQL differs from the rule by one comparison fails the kit: its search, which
    finds it in a tenth of the time. That the tour finds it as well is seen on SQLite. (L1, L3)"""
    with broken_schema(name, postgres_url) as broken, pytest.raises(NonconformanceError):
        search(broken.make_store, effort(25))
