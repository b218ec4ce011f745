"""The Postgres stores conform, blocking and asynchronous, and one with a wrong guard does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest import mock

import pytest

from tests.adapters.postgres.shared_schema import Lent, SharedSchema
from tests.adapters.test_conformance_sqlite import WRONG_GUARDS, queries_with
from unswept.adapters.postgres import settings as settings_module
from unswept.core.units import StoreMs
from unswept.simulations.conformance import conformance_case, effort, refute

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


@pytest.mark.parametrize(
    "name",
    ["L1: the sweep takes a deadline equal to now", "L3: complete drops the epoch"],
)
def test_a_wrong_guard_is_caught(name: str, postgres_url: str) -> None:
    """A store whose SQL differs from the rule by one comparison fails the kit."""
    fault = WRONG_GUARDS[name]
    with mock.patch.object(settings_module, "Queries", lambda d: queries_with(fault, d)):
        broken = SharedSchema(postgres_url)
    try:
        assert refute(broken.make_store)
    finally:
        broken.close()
