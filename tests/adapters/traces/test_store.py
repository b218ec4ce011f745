"""Recorded runs in SQL: what the views say is what happened, and nothing but traces is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.traces.recorded import Recorded, record
from unswept.adapters.traces.store import TraceStore
from unswept.adapters.traces.tables import TABLES
from unswept.adapters.traces.views import VIEWS
from unswept.core.errors import MisuseError
from unswept.simulations.examiner import NAME as EXAMINER
from unswept.simulations.faults import FAULTS


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces") / "run.jsonl"


@pytest.fixture(scope="module")
def run(file: Path) -> Recorded:
    return record(file, seed=6, hours=1.0)


@pytest.fixture(scope="module")
def traces(file: Path, run: Recorded) -> Iterator[TraceStore]:
    with TraceStore(file) as opened:
        yield opened


def count(traces: TraceStore, source: str) -> int:
    ((found,),) = traces.query(f"SELECT count(*) FROM {source}").rows
    return int(found)


def test_every_view_has_the_columns_that_it_describes(traces: TraceStore) -> None:
    """In their order, each in a few words; and so has every table."""
    for relation in VIEWS:
        assert traces.query(f"FROM {relation.name} LIMIT 0").columns == tuple(relation.columns)
    for relation in TABLES:
        found = traces.query(f"FROM trace.{relation.name} LIMIT 0").columns
        assert found == tuple(relation.columns)
    assert {"jobs", "leases", "heartbeats", "sweeps", "faults", "events"} <= {
        view.name for view in VIEWS
    }
    assert {table.name for table in TABLES} <= {view.name for view in VIEWS}


def test_the_views_count_what_the_run_counted(traces: TraceStore, run: Recorded) -> None:
    """Commands, events of each kind (not the examiner's), strikes of each fault, and the end."""
    outcome = run.outcome
    assert count(traces, "commands") == outcome.commands
    kinds = dict(
        traces.query(
            f"SELECT kind, count(*) FROM events WHERE sender <> '{EXAMINER}' GROUP BY kind"
        ).rows
    )
    assert kinds == dict(outcome.events)
    strikes = dict(
        traces.query(
            "SELECT name, count(*) FROM trace.faults WHERE event = 'strikes'"
            " AND name <> 'store-clock' GROUP BY name"
        ).rows
    )
    struck = {name for name, fault in FAULTS.items() if fault.per_hour}
    assert strikes == {name: n for name, n in outcome.faults.items() if name in struck}
    assert len(strikes) > 2
    ((digest, checked, at),) = traces.query("SELECT digest, checked, at_ms FROM ends").rows
    assert (digest, checked, at) == (outcome.digest, dict(outcome.checked), 3_600_000)
    ((seed, version, design),) = traces.query("SELECT seed, version, design FROM runs").rows
    assert (seed, version, design) == (6, "1.2.3", "unswept")


def test_jobs_tell_their_lives(traces: TraceStore) -> None:
    """A row per job; born, begun, swept, healed, requeued, ended and evicted as its events say."""
    assert count(traces, "jobs") == count(traces, "(SELECT DISTINCT job FROM changes)")
    assert count(traces, "jobs WHERE born_by NOT IN ('admit', 'enqueue')") == 0
    for column, kind in (("orphaned", "orphan"), ("healed", "heal"), ("requeued", "requeue")):
        ((total,),) = traces.query(f"SELECT sum({column}) FROM jobs").rows
        assert total == count(traces, f"events WHERE kind = '{kind}'")
    assert count(traces, "jobs WHERE evicted_ms IS NOT NULL") == count(
        traces, "events WHERE kind = 'evict'"
    )
    assert count(traces, "jobs WHERE ended_ms < started_ms OR started_ms < born_ms") == 0
    over = "status IN ('completed', 'failed', 'canceled', 'expired')"
    assert count(traces, f"jobs WHERE ({over}) <> (ended_ms IS NOT NULL)") == 0
    assert count(traces, f"jobs WHERE {over}") > 20


def test_leases_are_intervals(traces: TraceStore) -> None:
    """One per grant; they neither overlap nor end before they begin, and one that goes on is that
    of a job which is still held."""
    grants = "events WHERE kind IN ('admit', 'claim')"
    assert count(traces, "leases") == count(traces, grants)
    assert count(traces, "leases WHERE until_ms < from_ms") == 0
    assert (
        count(
            traces,
            "leases a JOIN leases b USING (job) WHERE a.epoch < b.epoch AND a.until_ms > b.from_ms",
        )
        == 0
    )
    open_ones = traces.query("SELECT job FROM leases WHERE until_ms IS NULL ORDER BY job").rows
    held = traces.query(
        "SELECT job FROM jobs WHERE status IN ('queued', 'running') AND owner IS NOT NULL"
        " AND evicted_ms IS NULL ORDER BY job"
    ).rows
    assert open_ones == held
    ((stamps,),) = traces.query("SELECT sum(stamps) FROM leases").rows
    ((beats,),) = traces.query("SELECT sum(beats) FROM jobs").rows
    assert stamps == beats
    ended = {row[0] for row in traces.query("SELECT DISTINCT ended_by FROM leases").rows}
    assert {"complete", "orphan"} <= ended <= {"complete", "orphan", "release", "withdraw", None}


def test_heartbeats_and_sweeps_say_what_became_of_them(traces: TraceStore) -> None:
    """Renewed holds are stamps; a target that was swept is one that left an orphan."""
    ((renewed,),) = traces.query("SELECT sum(renewed) FROM heartbeats").rows
    assert renewed == count(traces, "changes WHERE transition = 'renew'")
    assert count(traces, "heartbeats") == count(traces, "commands WHERE verb = 'Heartbeat'")
    assert count(traces, "heartbeats WHERE renewed + orphaned + ended > holds") == 0
    orphans = count(traces, "events WHERE kind = 'orphan'")
    assert count(traces, "sweeps WHERE swept") == orphans > 0
    assert (
        count(traces, "sweeps WHERE swept AND (refusal IS NOT NULL OR deadline >= store_at)") == 0
    )
    assert count(traces, "sweeps WHERE swept AND becomes IS NULL") == 0


def test_a_suspicion_comes_before_its_sweep(traces: TraceStore) -> None:
    """What is confirmed was suspected by the same instance, under the same stamp."""
    confirmed = count(traces, "sights WHERE event = 'confirmed'")
    assert confirmed >= count(traces, "sweeps WHERE swept") > 0
    assert (
        count(
            traces,
            "sights c SEMI JOIN sights s ON s.instance = c.instance AND s.job = c.job"
            " AND s.beats = c.beats AND s.line < c.line AND s.event = 'suspected'"
            " WHERE c.event = 'confirmed'",
        )
        == confirmed
    )


def test_faults_that_last_have_an_end(traces: TraceStore) -> None:
    """Each begins and ends, but for those that the run's end cut short."""
    began = count(traces, "trace.faults WHERE event = 'begins'")
    ended = count(traces, "trace.faults WHERE event = 'ends'")
    assert began >= ended > 0
    assert count(traces, "faults WHERE end_ms IS NULL") == began - ended
    assert count(traces, "faults WHERE end_ms > begin_ms") > 0
    assert count(traces, "faults WHERE end_ms < begin_ms") == 0


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT * FROM read_text('/etc/hostname')", "disabled by configuration"),
        ("COPY (SELECT 1) TO 'stolen.csv'", "one SELECT"),
        ("DROP VIEW jobs", "one SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("SET enable_external_access = true", "one SELECT"),
        ("", "one SELECT"),
        ("SELECT colour FROM jobs", '"colour" not found.*\n*There are: jobs, leases, heartbeats'),
        ("SELEKT", "syntax error"),
        ("SELECT CAST('x' AS INTEGER)", "Could not convert"),
    ],
)
def test_what_is_no_question_is_refused(traces: TraceStore, sql: str, says: str) -> None:
    """Traces are read, and nothing else is; the message says what there is to ask."""
    with pytest.raises(MisuseError, match=f"(?s){says}"):
        traces.query(sql)


def write(file: Path, *lines: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


RUN = {
    "type": "run",
    "format": 1,
    "version": "0.9",
    "seed": 7,
    "settings": {"design": "unswept"},
    "store": "memory:",
    "store_clock_ms": 0,
    "excused": [],
}


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([{"type": "end", "at": 1}], "its first line is not of type run"),
        ([{**RUN, "format": 2}], "has format 2, and this version reads 1.*written by unswept 0.9"),
        ([{**RUN, "seed": "seven"}], "this is no trace"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(
    tmp_path: Path, lines: list[dict[str, Any]], says: str
) -> None:
    """With its name, and why."""
    with pytest.raises(MisuseError, match=says):
        TraceStore(write(tmp_path / "run.jsonl", *lines))


@pytest.mark.usefixtures("run")
def test_a_line_without_one_of_its_keys_is_refused(file: Path, tmp_path: Path) -> None:
    """Each type of line, whichever key it lacks: nulls would be judged as what happened."""
    seen: set[str] = set()
    first, *lines = map(json.loads, file.read_text("utf-8").splitlines())
    for line in (first, *lines):
        if line["type"] in seen:
            continue
        seen.add(line["type"])
        optional = {"on", "ms", "job", "epoch", "refusal", "phase", "stamped_from", "ttl_ms"}
        optional |= {"heartbeat_interval_ms", "lease_ttl_ms", "outbox", "left_behind", "type"}
        if line["type"] in ("sight", "work", "send"):
            optional -= {"job", "epoch", "phase"}
        needed = line.keys() - optional - {"format", "seed"}
        for key in needed if line is not first else needed - {"type"}:
            less = {name: value for name, value in line.items() if name != key}
            told = [less] if line is first else [first, less]
            with pytest.raises(MisuseError, match=rf"line {len(told)} of type .* has no '{key}'"):
                TraceStore(write(tmp_path / "run.jsonl", *told))
    assert {"run", "instance", "command", "sight", "send", "work", "delivery", "end"} <= seen


def test_where_there_is_no_trace_says_so(tmp_path: Path) -> None:
    """No folder, an empty one, and one with two traces of a seed."""
    with pytest.raises(MisuseError, match="gone is not there"):
        TraceStore(tmp_path / "gone")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(MisuseError, match="has no trace"):
        TraceStore(tmp_path)
    write(tmp_path / "a.jsonl", RUN)
    write(tmp_path / "b.jsonl", RUN)
    with pytest.raises(MisuseError, match=r"a\.jsonl and .*b\.jsonl are both of seed 7"):
        TraceStore(tmp_path)


def test_what_a_later_version_adds_is_skipped(tmp_path: Path) -> None:
    """New records and new keys of the same format."""
    file = write(tmp_path / "run.jsonl", {**RUN, "mood": "good"}, {"type": "weather", "at": 1})
    with TraceStore(file) as traces:
        assert traces.query("SELECT seed, version FROM runs").rows == ((7, "0.9"),)


def test_a_run_that_was_cut_short_can_be_asked(file: Path, run: Recorded, tmp_path: Path) -> None:
    """It has no end, and all that was written before it."""
    lines = file.read_text().splitlines(keepends=True)
    short = tmp_path / "short.jsonl"
    short.write_text("".join(lines[:500]))
    with TraceStore(short) as traces:
        assert count(traces, "ends") == 0
        assert 0 < count(traces, "commands") < 500
