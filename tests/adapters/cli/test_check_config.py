"""`unswept check-config` as an operator calls it, before a gateway starts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app, main
from unswept.core.policy import LeasePolicy

OURS = """
[store]
url = "postgresql://me:hunter2@host/jobs"
[policy]
heartbeat_interval_ms = 40000
"""
THEIRS = """
[persistence]
backend = "sqlite"
path = "/data/logs.db"
instanceHeartbeatMs = 10000
ownsOrphanRecovery = true
[limits]
max_running_jobs = 4
"""


@pytest.fixture(autouse=True)
def _nothing_else_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("UNSWEPT_CONFIG", "LLM_GATEWAY_CONFIG", "LLM_GATEWAY_LOGS_DB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def check(*words: str) -> Result:
    return CliRunner().invoke(app, ["check-config", *words])


def found(*words: str) -> dict[str, Any]:
    ran = check(*words, "--json")
    said: dict[str, Any] = json.loads(ran.stdout)
    assert said["exit_code"] == ran.exit_code
    return said


def test_it_says_values_sources_meaning_and_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For people; and no password is in it."""
    Path("unswept.toml").write_text(OURS)
    monkeypatch.setenv("UNSWEPT_MAX_RUNNING", "9")
    ran = check("unswept.toml")
    assert ran.exit_code == ExitCode.HELD
    assert "= 40000  (unswept.toml)" in ran.stdout
    assert "= 9  (UNSWEPT_MAX_RUNNING)" in ran.stdout
    assert "= 90000  (default)" in ran.stdout
    assert "survives 1 missed heartbeats" in ran.stdout
    assert "flaps beside it" in ran.stdout
    assert "orphaned within" in ran.stdout
    assert "warning: lease_ttl_ms (90000) is under 3 x" in ran.stdout
    assert "hunter2" not in ran.stdout


def test_the_same_for_machines() -> None:
    """Every setting, with its source, and the consequences as numbers."""
    Path("unswept.toml").write_text(OURS)
    said = found("unswept.toml")
    policy = LeasePolicy(heartbeat_interval_ms=40_000)  # type: ignore[arg-type]
    assert said["verdict"] == "held"
    beat = {"value": 40_000, "source": "unswept.toml"}
    assert said["settings"]["policy.heartbeat_interval_ms"] == beat
    assert said["settings"]["limits.max_output_bytes"]["source"] == "default"
    assert (said["missed_beats"], said["flaps_survived"]) == (1, policy.flaps_survived())
    assert said["detection_ms"]["process"] == policy.detection_ms()
    assert said["detection_ms"]["http"] == policy.detection_ms(policy.http_grace_ms)
    assert len(said["warnings"]) == 1
    assert "hunter2" not in json.dumps(said)


def test_the_other_gateways_file_is_read_as_it_is() -> None:
    """Its values under our names, its deprecations as warnings."""
    Path("config.toml").write_text(THEIRS)
    said = found("config.toml")
    assert said["settings"]["store.url"]["value"] == "sqlite:/data/logs.db"
    assert said["settings"]["policy.heartbeat_interval_ms"]["value"] == 10_000
    assert said["settings"]["limits.max_running"]["value"] == 4
    assert any("ownsOrphanRecovery is deprecated" in each for each in said["warnings"])
    Path("config.toml").write_text("[persistence]\nbackend = 'none'\n")
    said = found("config.toml")
    assert said["settings"]["store.url"]["value"] is None
    assert any("DISABLED" in each for each in said["warnings"])


def test_without_a_name_it_reads_what_a_gateway_would() -> None:
    """From this folder, and from the defaults where nothing is there."""
    assert found()["settings"]["limits.max_running"]["source"] == "default"
    Path("pyproject.toml").write_text("[tool.unswept.limits]\nmax_running = 5\n")
    assert found()["settings"]["limits.max_running"] == {
        "value": 5,
        "source": "pyproject.toml [tool.unswept]",
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[policy]\nlease_ttl = 5\n", "has no key 'lease_ttl'"),
        ("[policy]\nlease_ttl_ms = 20000\n", "lease_ttl_ms (20000) must be >= 2 x"),
        ("[policy\n", "is no TOML"),
        ('[store]\nurl = "mysql://me:hunter2@host/db"\n', "store.url: expected sqlite:PATH"),
        ("[persistence]\ninstanceLeaseTtlMs = 20000\n", "must be >= 2 * instanceHeartbeatMs"),
        (None, "cannot be read"),
        ('[store]\nurl = "sqlite:"', "store.url: expected sqlite:PATH"),
        ('[store]\nurl = "sqlite:a\\u0000b"', "store.url: expected sqlite:PATH"),
        ('[store]\nurl = "postgresql://me:hunter2@h:badport/d"', "store.url: "),
        ("[lease]\nlease_ttl_ms = " + "9" * 5_000, "is no TOML that can be read"),
        ("a = " + "[" * 100_000, "is no TOML that can be read"),
    ],
)
def test_what_cannot_work_is_usage(
    text: str | None,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line for people, the same in JSON for machines; the exit code is 2 for both."""
    if text is not None:
        Path("config.toml").write_text(text)
    said = found("config.toml")
    assert (said["verdict"], said["exit_code"]) == ("usage", ExitCode.USAGE)
    assert why in said["why"]
    monkeypatch.setattr(sys, "argv", ["unswept", "check-config", "config.toml"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == ExitCode.USAGE
    told = capsys.readouterr().err
    assert why in told
    assert "hunter2" not in told + said["why"]
