"""Every offence that is planted is found, under its law and under no other."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.adapters.audit.plants import PLANTS, Plant
from tests.adapters.audit.story import Clock, sqlite_story, tell
from tests.conftest import drop_schema
from unswept.adapters.audit.judge import CHECKS, Verdict
from unswept.adapters.audit.place import audit
from unswept.adapters.audit.unseen import UNSEEN
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.postgres.simulated import GivenClockStore
from unswept.spec.laws import LAWS

ON_POSTGRES = [name for name, plant in PLANTS.items() if not plant.only_sqlite]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sqlite_story(tmp_path_factory.mktemp("story") / "jobs.db")


@pytest.fixture(scope="module")
def told(postgres_url: str) -> Iterator[str]:
    name, clock = "unswept_test_audit", Clock()
    drop_schema(postgres_url, name)
    connection = psycopg.connect(postgres_url, autocommit=True)
    store = GivenClockStore(PostgresStore(postgres_url, schema=name), clock, connection)
    tell(store, clock)
    yield name
    store.close()


def broken(verdicts: tuple[Verdict, ...]) -> dict[str, Verdict]:
    return {verdict.law: verdict for verdict in verdicts if verdict.count}


def check(verdicts: tuple[Verdict, ...], plant: Plant) -> None:
    found = broken(verdicts)
    assert [*found] == [plant.law], found
    (verdict,) = found.values()
    assert plant.says in verdict.offences[0].said
    assert verdict.count == len(verdict.offences) == 1


def test_each_law_is_judged_or_it_is_said_why_not() -> None:
    """Nothing is passed over in silence, and each law that is judged has an offence planted."""
    judged = {law.law for law in CHECKS}
    laws = {law.id for law in LAWS}
    assert judged <= laws
    assert laws - judged <= {*UNSEEN} <= laws
    assert {plant.law for plant in PLANTS.values()} == judged


def test_a_sound_history_has_no_offence(story: Path) -> None:
    """Everything has happened in it, and every check has something to look at."""
    found = audit(f"sqlite:{story}", None, 10)
    assert broken(found.verdicts) == {}
    assert found.events > 30


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_offence_is_found_in_a_copied_file(
    name: str, story: Path, tmp_path: Path
) -> None:
    """That law is broken and no other, and what is said of it names what was done."""
    copy = tmp_path / "copy.db"
    shutil.copy(story, copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        for statement in PLANTS[name].sql:
            assert connection.execute(statement.format("unswept_")).rowcount > 0
    check(audit(str(copy), None, 10).verdicts, PLANTS[name])


@pytest.mark.parametrize("name", ON_POSTGRES[::4])
def test_a_planted_offence_is_found_on_postgres(name: str, told: str, postgres_url: str) -> None:
    """The same on a server, of which the audit sees one snapshot."""
    assert broken(audit(postgres_url, told, 10).verdicts) == {}
    saved = f"{told}_saved"
    tables = ("jobs", "events", "job_ids", "requests", "results", "output", "dedup_keys",
              "instances", "consumers", "dead_letters")  # fmt: skip
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {saved}".encode())
        try:
            for table in tables:
                connection.execute(f"CREATE TABLE {saved}.{table} AS TABLE {told}.{table}".encode())
            for statement in PLANTS[name].sql:
                assert connection.execute(statement.format(f"{told}.").encode()).rowcount > 0
            check(audit(postgres_url, told, 10).verdicts, PLANTS[name])
        finally:
            for table in tables:
                connection.execute(f"DELETE FROM {told}.{table}".encode())
                value = "OVERRIDING SYSTEM VALUE" if table == "events" else ""
                connection.execute(
                    f"INSERT INTO {told}.{table} {value} TABLE {saved}.{table}".encode()
                )
            connection.execute(f"DROP SCHEMA {saved} CASCADE".encode())
