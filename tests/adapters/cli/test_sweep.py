"""`unswept sweep` as an operator calls it: it takes its window, and looks by one glance if told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.cli.places import Place
from tests.adapters.cli.usage import refusal
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.core import commands as c
from unswept.core.job import OnOrphan, Terms
from unswept.core.lease import RequeueRule, Status
from unswept.core.replies import Accepted, Beaten, Found
from unswept.core.units import Ms

POLICY = """
[policy]
heartbeat_interval_ms = 200
operation_timeout_ms = 150
lease_ttl_ms = 800
confirm_after_ms = 600
"""
PATIENCE_S = 30.0
LAPSED = Terms(Ms(20), Ms(20), Ms(20), Ms(20))
TERMS = Terms(Ms(2_000), Ms(2_000), Ms(2_000), Ms(400))


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "short.toml"
    file.write_text(POLICY)
    return str(file)


@pytest.fixture
def place(store_place: Place) -> Place:
    """Two jobs of owners that are dead, one of which may run anew."""
    with store_place.opened() as store:
        store.execute(c.Admit("dead", "i1", LAPSED))
        again = c.Admit(
            "again",
            "i1",
            LAPSED,
            requeue=RequeueRule.ALLOWED,
            on_orphan=OnOrphan.REQUEUE,
            max_attempts=3,
        )
        assert isinstance(store.execute(again), Accepted)
    time.sleep(0.03)
    return store_place


def find(store: c.Store, job_id: str) -> Found:
    found = store.execute(c.Find(job_id))
    assert isinstance(found, Found)
    return found


def stands(place: Place, job_id: str) -> Status:
    with place.opened() as store:
        return find(store, job_id).job.lease.status


def instances(place: Place) -> list[str]:
    with place.opened() as store:
        return [each.role for each in store.execute(c.ListInstances()).instances]


def until(true: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


@contextmanager
def beating(place: Place, job_id: str, *, once_swept_for: bool = False) -> Iterator[list[Any]]:
    """An owner that renews a job every tenth of a second: at once, or only when somebody who sweeps
    has registered and has had the time to see its job lapsed. Gives the answers."""
    over = threading.Event()
    answers: list[Any] = []

    def beat() -> None:
        with place.opened() as store:
            if once_swept_for:
                until(lambda: bool(store.execute(c.ListInstances()).instances))
                over.wait(1.2)
            while not over.wait(0.1):
                beaten = store.execute(c.Heartbeat("i2", TERMS, (c.Hold(job_id, 1),)))
                assert isinstance(beaten, Beaten)
                answers.append(beaten.answers[0].answer.value)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()


def outcomes(told: dict[str, Any]) -> dict[str, str]:
    return {each["job_id"]: each["outcome"] for each in told["fates"]}


def test_the_dead_are_swept_and_the_living_are_not(place: Place, config: str) -> None:
    """After a window, by an instance that deregisters; what may run anew is queued."""
    with place.opened() as store:
        store.execute(c.Admit("lives", "i2", TERMS))
    with beating(place, "lives") as answers:
        began = time.monotonic()
        result = place.run("sweep", "--config", config, "--json")
        took = time.monotonic() - began
    assert result.exit_code == ExitCode.HELD, result.output
    told = json.loads(result.stdout)
    assert (told["verdict"], told["left"]) == ("held", 0)
    assert outcomes(told) == {"dead": "orphaned", "again": "requeued"}
    assert all(each["swept_here"] for each in told["fates"])
    assert took > 0.6, "it swept before the window was over"
    assert stands(place, "dead") is Status.ORPHANED
    assert stands(place, "again") is Status.QUEUED
    assert stands(place, "lives") is Status.QUEUED
    assert set(answers) == {"renewed"}
    assert instances(place) == []
    with place.opened() as store:
        [swept] = {e.actor for e in store.execute(c.ReadEvents()).events if e.kind == "orphan"}
        assert swept == told["instance"]


def test_who_is_renewed_meanwhile_is_not_swept(store_place: Place, config: str) -> None:
    """Its lease had lapsed when it was seen, as after a clock step; then its owner came back."""
    with store_place.opened() as store:
        store.execute(c.Admit("late", "i2", LAPSED))
    Path(config).write_text(POLICY.replace("600", "5000"))
    with beating(store_place, "late", once_swept_for=True) as answers:
        result = store_place.run("sweep", "--config", config)
    assert result.exit_code == ExitCode.HELD, result.output
    assert "renewed" in result.output
    assert "Suspects seen: 1, left undecided: 0." in result.output
    assert set(answers) == {"renewed"}
    assert stands(store_place, "late") is Status.QUEUED


def test_a_sweep_that_ends_too_soon_has_swept_nobody(place: Place, config: str) -> None:
    """Exit 3, undetermined: the window was not over. It deregisters all the same."""
    result = place.run("sweep", "--config", config, "--for", "0.6")
    assert result.exit_code == ExitCode.UNDETERMINED, result.output
    assert stands(place, "dead") is Status.QUEUED
    assert instances(place) == []
    short = place.run("sweep", "--config", config, "--for", "0.001", "--json")
    assert short.exit_code == ExitCode.UNDETERMINED
    assert json.loads(short.stdout)["looked"] is False


def test_where_there_is_no_suspect_it_ends_at_once(store_place: Place, config: str) -> None:
    """Having looked once, under a heart that was steady."""
    result = store_place.run("sweep", "--config", config)
    assert (result.exit_code, "nothing to sweep" in result.output) == (ExitCode.HELD, True)


def test_a_signal_ends_it_cleanly(place: Place, tmp_path: Path) -> None:
    """SIGTERM: it deregisters, says what is left, and has found nothing out."""
    code = "from unswept.adapters.cli.main import main; main()"
    own = {name: text for name, text in os.environ.items() if not name.startswith("UNSWEPT_")}
    with subprocess.Popen(
        [sys.executable, "-c", code, "sweep", *place.words],
        cwd=tmp_path,  # no configuration: with the default policy it takes its time
        env={**own, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        until(lambda: instances(place) == ["sweeper"])
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == ExitCode.UNDETERMINED, said
    assert "ended before its first look" in said
    assert instances(place) == []


def test_a_dry_run_lists_and_changes_nothing(place: Place, config: str) -> None:
    """And says that one look proves nothing."""
    before = place.state()
    shown = place.run("sweep", "--dry-run", "--config", config)
    assert shown.exit_code == ExitCode.HELD, shown.output
    assert "One look proves nothing" in shown.output
    assert "dead" in shown.output
    told = json.loads(place.run("sweep", "--dry-run", "--config", config, "--json").stdout)
    assert [each["job_id"] for each in told["suspects"]] == ["again", "dead"]
    assert all(each["window_ms"] == 600 for each in told["suspects"])
    assert told["at"] > told["suspects"][0]["deadline"]
    assert place.state() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--for", "0"), "--for must be above 0"),
        (("--for", "nan"), "--for must be above 0"),
        (("--dry-run", "--for", "5"), "--dry-run looks once"),
        (("--config", "none.toml"), "none.toml: cannot be read"),
    ],
)
@pytest.mark.usefixtures("elsewhere")
def test_words_that_cannot_be_are_refused(
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before the store is opened."""
    assert said in refusal(monkeypatch, capsys, "sweep", "--store", "sqlite:none.db", *words)
