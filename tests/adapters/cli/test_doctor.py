"""`unswept doctor` finds each fault that is planted, changes nothing, and says what to do."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.cli.doctors import POLICY, Doctor
from tests.adapters.cli.places import Place
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import main
from unswept.adapters.cli.stores import looking
from unswept.adapters.doctor import file_checks, server_checks, store_checks
from unswept.core import commands as c
from unswept.core.errors import MisuseError
from unswept.core.job import OnOrphan, Terms
from unswept.core.policy import LeasePolicy
from unswept.core.replies import Acknowledged, EventsLeased
from unswept.core.units import Ms

TERMS = Terms(Ms(60_000), Ms(60_000), Ms(60_000), Ms(800))
LONG = "100000"
"""Longer ago than any bound of the policy."""


@pytest.fixture
def place(store_place: Place) -> Place:
    """A store with an instance that was just seen, and a job that it holds."""
    with store_place.opened() as store:
        store.execute(c.Register("i1", host="h1", role="gateway"))
        store.execute(c.Admit("j1", "i1", TERMS))
    return store_place


@pytest.fixture
def doctor(place: Place, doctors_config: str) -> Doctor:
    return Doctor(place, doctors_config)


# Both kinds of store ------------------------------------------------------------------------------


def test_a_sound_store_is_left_as_it_is(doctor: Doctor) -> None:
    """Nothing amiss is found, and nothing changes by the look."""
    before = doctor.place.state()
    assert doctor.look() == {}
    assert doctor.found("jobs") == "0 waiting, 1 queued, 0 running, 0 orphaned"
    assert doctor.found("instances") == "1 registered, 0 silent"
    shown = doctor.place.run("doctor", "--config", doctor.config)
    assert "oldest suspect" in shown.output
    assert f" ok, {0 if doctor.place.schema is None else 2} warn" in shown.output
    assert doctor.place.state() == before


def test_a_suspect_that_nobody_sweeps_is_bad(doctor: Doctor) -> None:
    """A young one is no more than a warning."""
    doctor.place.do("UPDATE {}jobs SET deadline = deadline - 60001")
    assert doctor.look() == {"suspects": "warn"}
    assert doctor.found("oldest suspect").startswith("j1, lapsed for ")
    doctor.place.do(f"UPDATE {{}}jobs SET deadline = deadline - {LONG}")
    assert doctor.look() == {"suspects": "warn", "oldest suspect": "bad"}
    assert "Nobody sweeps" in doctor.rows["oldest suspect"]["advice"]


def test_silent_instances_are_told(doctor: Doctor) -> None:
    """By name; where all are silent, nobody beats."""
    doctor.place.do(f"UPDATE {{}}instances SET seen_at = seen_at - {LONG}")
    assert doctor.look() == {"instances": "warn"}
    assert doctor.found("instances") == "1 registered, 1 silent: i1 (gateway on h1)"
    assert "Nobody beats" in doctor.rows["instances"]["advice"]
    with doctor.place.opened() as store:
        store.execute(c.Register("i2", host="h1", role="gateway"))
    assert doctor.look() == {"instances": "warn"}
    assert "Nobody beats" not in doctor.rows["instances"]["advice"]
    doctor.place.do("DELETE FROM {}instances")
    assert doctor.look() == {"instances": "warn"}


def test_orphans_wait_for_somebody(doctor: Doctor) -> None:
    """The one that waits longest is named."""
    with doctor.place.opened() as store:
        store.execute(c.Admit("held", "i1", TERMS, on_orphan=OnOrphan.HOLD))
        doctor.place.do("UPDATE {}jobs SET deadline = deadline - 60001 WHERE id = 'held'")
        [seen] = store.execute(c.Suspects()).suspects
        store.execute(c.Sweep("i2", (c.Target("held", 1, 1, seen.deadline),)))
    assert doctor.look() == {"orphans": "warn"}
    assert doctor.found("orphans").startswith("1, held for 0 s")
    assert "unswept orphans" in doctor.rows["orphans"]["advice"]


def test_a_consumer_that_lags_is_told(doctor: Doctor) -> None:
    """Bad where nobody reads; a warning where somebody does; events of this moment are no lag."""
    with doctor.place.opened() as store:
        leased = store.execute(c.LeaseEvents("mailer", "reader", Ms(3_600_000)))
        assert isinstance(leased, EventsLeased)
        assert doctor.look() == {}
        doctor.place.do(f"UPDATE {{}}events SET at = at - {LONG}")
        assert doctor.look() == {"consumers of events": "warn"}
        doctor.place.do("UPDATE {}consumers SET expires_at = 1")
        assert doctor.look() == {"consumers of events": "bad"}
        assert "mailer 1 events behind" in doctor.found("consumers of events")
        assert "read by nobody" in doctor.found("consumers of events")
        done = store.execute(c.Acknowledge("mailer", leased.token, 1, last=True))
        assert isinstance(done, Acknowledged)
    assert doctor.look() == {}


def test_dead_letters_are_told(doctor: Doctor) -> None:
    """With the last of them, and why it was given up."""
    with doctor.place.opened() as store:
        leased = store.execute(c.LeaseEvents("mailer", "reader", Ms(3_600_000)))
        assert isinstance(leased, EventsLeased)
        store.execute(c.Acknowledge("mailer", leased.token, 1, error="no such [address]"))
    assert doctor.look() == {"dead letters": "warn"}
    assert doctor.found("dead letters") == "mailer: 1, event 1: no such [address]"
    assert "no such [address]" in doctor.place.run("doctor").output


def test_a_schema_that_is_not_the_newest_is_bad(doctor: Doctor) -> None:
    """Then its rows are not asked, for nobody knows what they mean."""
    doctor.place.do("INSERT INTO {}migrations VALUES (99, 'from_the_future')")
    assert doctor.look() == {"schema": "bad"}
    assert "found 99" in doctor.found("schema")
    assert "jobs" not in doctor.rows


def test_a_tight_policy_is_told(doctor: Doctor) -> None:
    """The warnings of `check-config`."""
    Path(doctor.config).write_text(POLICY.replace("60000", "20000"))
    found = doctor.look()
    assert found["policy"] == "warn"
    assert "lease_ttl_ms (20000) is under 3 x" in doctor.found("policy")


def test_a_look_takes_no_command_that_writes(place: Place) -> None:
    """Not by mistake either."""
    with looking(place.url, place.schema) as look, pytest.raises(MisuseError, match="that reads"):
        look.execute(c.Enqueue("waits"))


@pytest.mark.parametrize(("trip_ms", "verdict"), [(0, "ok"), (30, "warn"), (60, "bad")])
def test_a_store_that_answers_slowly_is_told(trip_ms: int, verdict: str) -> None:
    """A heartbeat's three round trips must fit into the operation timeout, with room."""
    answer = store_checks.latency(Slow(trip_ms), LeasePolicy(operation_timeout_ms=Ms(150)))
    assert answer.verdict == verdict
    assert answer.expected.startswith("at most 50 ms")


class Slow:
    """A store far away."""

    where = "far away"

    def __init__(self, trip_ms: int) -> None:
        self._trip_ms = trip_ms

    def version(self) -> int:
        raise NotImplementedError

    def execute(self, command: c.Command[Any]) -> Any:
        raise NotImplementedError

    def write_lock_ms(self, most_ms: int) -> float:
        raise NotImplementedError

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        time.sleep(self._trip_ms / 1000)
        return [(1,)]


def test_every_check_is_on_the_page() -> None:
    """And the page names none that is not there."""
    page = (Path(__file__).parents[3] / "docs" / "operating.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([a-z ]+)` \| (?:SQLite|Postgres|both) \|", page, re.MULTILINE)
    tables = (
        *(file_checks.OF_THE_FILE, file_checks.OF_THE_DATABASE),
        *(server_checks.CHECKS, store_checks.CHECKS),
    )
    assert sorted(named) == sorted({check.name for table in tables for check in table})


# Out of reach -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:none.db", "none.db: expected a SQLite database, found no file"),
        ("postgresql://ann:hush@/jobs?host=/nowhere", "cannot connect"),
    ],
)
@pytest.mark.usefixtures("elsewhere")
def test_a_store_out_of_reach_is_undetermined(
    url: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Exit 3: it says which store, and no password; no file is made."""
    monkeypatch.setattr("sys.argv", ["unswept", "doctor", "--store", url])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ExitCode.UNDETERMINED
    err = capsys.readouterr().err
    assert said in err
    assert "hush" not in err
    assert not list(tmp_path.iterdir())
