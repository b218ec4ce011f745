"""`unswept chaos` as it is called: what it refuses, what it prints, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.adapters.chaos.real_runs import holders
from unswept.adapters.chaos.plan import Fault
from unswept.adapters.chaos.processes import RunFailedError
from unswept.adapters.chaos.records import Act, Deed, read
from unswept.adapters.chaos.run import Report, Settings
from unswept.adapters.chaos.verdict import Violation
from unswept.adapters.cli import chaos as command
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app
from unswept.core.errors import MisuseError

PATIENCE_S = 60.0
MAIN = "from unswept.adapters.cli.main import main; main()"


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["chaos", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "memory:"], "--store must be"),
        (["--store", "sqlite::memory:"], "--store must be"),
        (["--minutes", "0"], "minutes must be above 0"),
        (["--instances", "1"], "instances must be"),
        (["--seed", "-1"], "seed must be"),
        (["--schema", "mine"], "for Postgres"),
        (["--restart-command", "true"], "for Postgres"),
        (["--restart-command", " "], "must be a command"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments: list[str], message: str) -> None:
    """In one sentence, before anything is started."""
    with pytest.raises(MisuseError, match=message):
        invoke(*arguments)


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    """Files of another run would be judged with this one's."""
    (tmp_path / "gateway-1.jsonl").touch()
    with pytest.raises(MisuseError, match="empty folder"):
        invoke("--evidence", str(tmp_path))


def test_a_schema_that_is_there_is_refused(postgres_url: str, postgres_schema: str) -> None:
    """It may be somebody's, and a run drops its own."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {postgres_schema}".encode())
    with pytest.raises(MisuseError, match="not there yet"):
        invoke("--store", postgres_url, "--schema", postgres_schema)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {postgres_schema}".encode())  # it was left alone


# The verdict ------------------------------------------------------------------------------------

BROKEN = Violation("no job is lost", "job-1 was admitted by gateway 2, and there is no such job")


@pytest.mark.parametrize(
    ("violations", "missing", "code", "said"),
    [
        ((), (), ExitCode.HELD, "Every promise held"),
        ((), ("fault: kill",), ExitCode.COVERAGE_SHORT, "fault: kill"),
        ((BROKEN,), (), ExitCode.REFUTED, BROKEN.offence),
        ((BROKEN,), ("fault: kill",), ExitCode.REFUTED, "broken 1 times"),
    ],
)
def test_the_exit_code_says_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
    violations: tuple[Violation, ...],
    missing: tuple[str, ...],
    code: ExitCode,
    said: str,
) -> None:
    """A broken promise outranks what was not put to the test."""
    report = Report(
        "sqlite:jobs.db", violations, missing, Counter({Fault.KILL: 3}), Counter(jobs=2), 30.0
    )
    monkeypatch.setattr(command, "run", lambda settings, show: report)
    found, output = invoke()
    assert found == code
    assert said in output
    found, output = invoke("--json")
    told = json.loads(output)
    assert (found, told["exit_code"]) == (code, code)
    assert told["never"] == list(missing)
    assert told["promises"]["no job is lost"] == [each.offence for each in violations]
    assert told["faults"]["kill"] == 3


@pytest.mark.parametrize(
    "failure", [RunFailedError("gateway 3 has ended by itself"), KeyboardInterrupt()]
)
def test_a_run_that_failed_has_found_nothing(
    monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    """That is no pass, and no refutation either."""

    def fail(settings: Settings, show: Callable[[str, float], None]) -> Report:
        raise failure

    monkeypatch.setattr(command, "run", fail)
    assert invoke()[0] == ExitCode.UNDETERMINED


# What is left behind ----------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    """Nor a job of its gateways; its exit code says that it found nothing out."""
    evidence = tmp_path / "evidence"
    arguments = ["chaos", "--evidence", str(evidence), "--minutes", "5", "--instances", "3"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: _deeds(evidence, Act.STOP) > 0 and holders(evidence) > 0)
        ran.send_signal(number)
        assert ran.wait(PATIENCE_S) == ExitCode.UNDETERMINED
    finally:
        ran.kill()
        ran.wait()
    until(lambda: holders(evidence) == 0)
    assert not (evidence / "pipe").exists()


def until(what: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < give_up_at, "it did not come to pass"
        time.sleep(0.05)


def _deeds(evidence: Path, act: Act) -> int:
    book = evidence / "driver.jsonl"
    lines = read(book) if book.exists() else []
    return sum(isinstance(line, Deed) and line.act is act for line in lines)
