"""What an audit reads, how it leaves what it reads, and what it says where it cannot."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner, Result

from tests.adapters.audit.plants import PLANTS
from tests.adapters.audit.story import sqlite_story
from unswept.adapters.audit import sqlite_place
from unswept.adapters.audit.place import audit
from unswept.adapters.audit.unseen import UNSEEN
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.urls import SimulatedStore
from unswept.core import commands as c
from unswept.core.errors import MisuseError, StoreError
from unswept.simulations.campaign import run_seed
from unswept.simulations.run import Settings
from unswept.spec.laws import LAWS

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def story(tmp_path: Path) -> Path:
    return sqlite_story(tmp_path / "jobs.db")


def broken(place: object, schema: str | None = None) -> list[str]:
    found = audit(str(place), schema, 10)
    return [verdict.law for verdict in found.verdicts if verdict.count]


def plant(story: Path, name: str) -> None:
    with closing(sqlite3.connect(story, isolation_level=None)) as connection:
        for statement in PLANTS[name].sql:
            connection.execute(statement.format("unswept_"))


def command(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["audit", *words])


@pytest.mark.parametrize("seed", [3, 4, 20])
def test_what_the_simulator_leaves_has_no_offence(seed: int, tmp_path: Path) -> None:
    """Faults of every kind, clocks set back among them, and nothing that is held against anyone."""
    path = tmp_path / "sim.db"
    run_seed(Settings(seed, hours=0.3), SimulatedStore(f"sqlite:{path}"))
    assert broken(f"{path}.{seed}") == []


def test_a_design_that_sweeps_at_first_sight_is_convicted(tmp_path: Path) -> None:
    """By the database that it leaves, without the simulator's knowledge of who lived."""
    path = tmp_path / "sim.db"
    settings = Settings(2, hours=0.5, faults=("flaps",), design="single-observation")
    run_seed(settings, SimulatedStore(f"sqlite:{path}"))
    assert broken(f"{path}.2") == ["L12a"]


def test_a_file_is_read_beside_its_writer(story: Path) -> None:
    """A transaction that is open keeps nobody out, and what it has not committed is not seen."""
    before = audit(str(story), None, 1).events
    with closing(sqlite3.connect(story, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM unswept_events")
        assert audit(str(story), None, 1).events == before
        writer.execute("ROLLBACK")


def test_two_readers_see_one_moment(story: Path) -> None:
    """What is committed after it is seen by neither, though the second began later."""
    count = "SELECT count(*) FROM unswept_events"
    with (
        sqlite_place._moment(str(story)) as (first, second),
        closing(sqlite3.connect(story, isolation_level=None)) as writer,
    ):
        writer.execute("DELETE FROM unswept_events")
        assert first.execute(count).fetchone() == second.execute(count).fetchone() != (0,)


def test_where_somebody_writes_all_the_time_one_reader_reads_it_all(
    story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two readers would see two moments; one finds everything too."""
    before, begin = audit(str(story), None, 1), sqlite_place._begin

    def busy(connection: sqlite3.Connection) -> None:
        begin(connection)
        with closing(sqlite3.connect(story, isolation_level=None)) as writer:
            writer.execute("UPDATE unswept_instances SET seen_at = seen_at + 1")

    monkeypatch.setattr(sqlite_place, "_begin", busy)
    with sqlite_place._moment(str(story)) as connections:
        assert len(connections) == 1
    assert audit(str(story), None, 1).verdicts == before.verdicts


def test_events_with_numbers_far_apart_are_all_read(story: Path) -> None:
    """Numbers may be skipped, by the million, and the shares of two readers differ."""
    before = audit(str(story), None, 1).events
    with closing(sqlite3.connect(story, isolation_level=None)) as connection:
        connection.execute("UPDATE unswept_events SET seq = seq + 1000000000 WHERE seq > 9")
    found = audit(str(story), None, 1)
    assert found.events == before
    assert not any(verdict.count for verdict in found.verdicts if verdict.law != "F5")


def test_a_file_is_left_as_it_was(story: Path) -> None:
    """Byte for byte, also the one that the audit finds guilty."""
    plant(story, "an attempt too many")
    with closing(sqlite3.connect(story)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = story.read_bytes()
    assert broken(story) == ["F1"]
    assert story.read_bytes() == before


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_exported_events_are_judged_as_the_database_was(
    suffix: str, story: Path, tmp_path: Path
) -> None:
    """An offence that events alone can show is found in both, and nothing else in either."""
    plant(story, "a stranger's completion")
    export = tmp_path / f"events{suffix}"
    told = command(f"sqlite:{story}", "--export", str(export))
    assert told.exit_code == ExitCode.REFUTED, told.output
    assert broken(export) == broken(story) == ["L3"]
    live, exported = audit(str(story), None, 10), audit(str(export), None, 10)
    assert exported.events == live.events
    (shown,) = (v.offences for v in exported.verdicts if v.count)
    assert shown[0].events == next(v.offences for v in live.verdicts if v.count)[0].events


def test_a_history_that_was_exported_twice_over_is_no_history(story: Path, tmp_path: Path) -> None:
    """Every job of it was born twice, which no database would have let in."""
    export = tmp_path / "events.csv"
    command(str(story), "--export", str(export))
    head, *lines = export.read_text(encoding="utf-8").splitlines()
    again = [re.sub("^[0-9]+", lambda seq: str(int(seq[0]) + 1_000), line) for line in lines]
    export.write_text("\n".join([head, *lines, *again]), encoding="utf-8")
    assert "L6" in broken(export)


def test_a_file_of_events_says_which_tables_it_lacks(story: Path, tmp_path: Path) -> None:
    """A law that needs more than events is not judged, and says so."""
    export = tmp_path / "events.parquet"
    command(str(story), "--export", str(export))
    verdicts = {verdict.law: verdict for verdict in audit(str(export), None, 1).verdicts}
    assert [*verdicts] == [law.id for law in LAWS]
    assert verdicts["F5"].looked_at == ()
    assert "without the table(s) consumers, dead_letters" in verdicts["F5"].unseen
    assert verdicts["L11"].unseen == UNSEEN["L11"]


def test_the_command_shows_the_rows_up_to_the_limit(story: Path) -> None:
    """Of many offences the first, with its events and its row, and how many there are."""
    with closing(sqlite3.connect(story, isolation_level=None)) as connection:
        connection.execute("UPDATE unswept_jobs SET attempts = attempts + 7")
    told = command(str(story), "--limit", "1")
    assert told.exit_code == ExitCode.REFUTED
    assert "F1: A claim takes what waits" in told.stdout
    assert re.search(r"done was admitted or claimed 1 times, and its row says 8", told.stdout)
    assert re.search(r"event seq=1 job_id=done epoch=1 kind=admit", told.stdout)
    assert re.search(r"row id=done status=completed", told.stdout)
    assert re.search(r"and \d+ more", told.stdout)
    told = command(str(story), "--json", "--limit", "1")
    verdict = json.loads(told.stdout)
    assert (
        (verdict["verdict"], verdict["exit_code"]) == ("refuted", told.exit_code) == ("refuted", 1)
    )
    (f1,) = (v for v in verdict["verdicts"] if v["law"] == "F1")
    assert f1["count"] > len(f1["offences"]) == 1


def test_the_command_says_that_nothing_was_found(story: Path) -> None:
    """And which laws it could not judge."""
    told = command(str(story))
    assert told.exit_code == ExitCode.HELD
    assert "15 of 23 laws judged: no offence." in told.stdout
    assert "not judged" in told.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("{folder}/none.db",), "found no file"),
        (("{folder}/none.parquet",), "found no file"),
        (("{folder}/text.csv",), "expected exported events"),
        (("{folder}/text.db",), "expected a SQLite database"),
        (("{folder}/empty.db",), "expected schema version"),
    ],
)
def test_what_cannot_be_read_is_an_error(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """Never a pass, and no file is made."""
    (tmp_path / "text.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (tmp_path / "text.db").write_text("no database at all, whatever its name\n" * 99, "utf-8")
    (tmp_path / "empty.db").touch()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StoreError, match=said):
        audit(words[0].format(folder=tmp_path), None, 10)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("export", "said"),
    [("x.txt", "must end in"), ("jobs.db", "must end in"), ("here.csv", "not there")],
)
def test_an_export_overwrites_nothing(export: str, said: str, story: Path) -> None:
    """And its name says its format."""
    (story.parent / "here.csv").touch()
    with pytest.raises(MisuseError, match=said):
        audit(str(story), None, 10, str(story.parent / export))
    with pytest.raises(MisuseError, match="--schema is for Postgres"):
        audit(str(story), "unswept", 10)


def test_a_server_is_asked_in_a_transaction_that_may_not_write(
    postgres_url: str, postgres_schema: str
) -> None:
    """And waits for nobody: rows that somebody has locked are read all the same."""
    with PostgresStore(postgres_url, schema=postgres_schema) as store:
        store.execute(c.Enqueue("j"))
    with psycopg.connect(postgres_url) as locker:
        locker.execute(f"SELECT * FROM {postgres_schema}.jobs FOR UPDATE".encode())
        found = audit(postgres_url, postgres_schema, 10)
    assert found.events == 1
    assert not any(verdict.count for verdict in found.verdicts)


def test_no_password_is_told() -> None:
    """Neither where the server is out of reach, nor where the URL cannot be read."""
    for url in ("postgresql://me:hush@127.0.0.1:1/x", "postgresql://me:hu@sh@127.0.0.1:1/x"):
        told = command(url, "--json")
        assert told.exit_code != ExitCode.HELD
        assert "hush" not in f"{told.output}{told.exception}"
        assert "hu@sh" not in f"{told.output}{told.exception}"


def test_the_example_of_the_page_is_what_is_printed(tmp_path: Path) -> None:
    """The page's command, on the page's database, ends as the page says."""
    page = (ROOT / "docs/audit.md").read_text(encoding="utf-8")
    (example,) = re.findall(
        r"```console\n\$ unswept audit (\S+) --limit 1\n(.*?)```", page, re.DOTALL
    )
    place = tmp_path / example[0]
    shutil.copy(sqlite_story(tmp_path / "story.db"), place)
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        connection.execute("UPDATE unswept_jobs SET attempts = 3 WHERE id = 'back'")
    told = command(str(place), "--limit", "1").stdout.replace(f"{tmp_path}/", "")
    assert example[1] in told
    with SqliteStore(place):
        pass  # it is as good as before
