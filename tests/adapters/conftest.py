"""What the tests of several adapters share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.postgres.helpers import PATIENT_MS
from unswept.adapters.postgres import PostgresStore


@pytest.fixture
def postgres_store(postgres_url: str, postgres_schema: str) -> Iterator[PostgresStore]:
    """A store with so much patience that a slow machine is no failure."""
    with PostgresStore(
        postgres_url, schema=postgres_schema, operation_timeout_ms=PATIENT_MS
    ) as opened:
        yield opened
