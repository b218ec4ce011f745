"""Settings from files and the environment: what wins, what is refused, and what it means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from unswept.adapters.gateway import reference_config
from unswept.adapters.gateway.config import describe, load
from unswept.adapters.gateway.errors import ConfigError
from unswept.adapters.gateway.settings import Settings
from unswept.core.limiter import Limits
from unswept.core.policy import Breaker, LeasePolicy

NOTHING: Mapping[str, str] = {}


def read(folder: Path, text: str, name: str = "unswept.toml", **variables: str) -> Settings:
    (folder / name).write_text(text, encoding="utf-8")
    return load(folder / name, environment=variables)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    """And say that they are defaults."""
    found = load(environment=NOTHING, folder=tmp_path)
    assert (found.policy, found.limits) == (LeasePolicy(), Limits())
    assert found.store_url == "sqlite:unswept.db"
    assert found.source("lease_ttl_ms") == "default"


def test_a_variable_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    """Each value knows where it came from."""
    text = """
        [store]
        url = "sqlite:jobs.db"
        [policy]
        heartbeat_interval_ms = 1000
        lease_ttl_ms = 6000
        [limits]
        max_running = 3
        max_output_bytes = 1000
    """
    found = read(tmp_path, text, UNSWEPT_LEASE_TTL_MS="8000", UNSWEPT_STORE_URL="sqlite:other.db")
    assert found.policy == LeasePolicy(heartbeat_interval_ms=1000, lease_ttl_ms=8000)  # type: ignore[arg-type]
    assert (found.limits.max_running, found.max_output_bytes) == (3, 1000)
    assert found.store_url == "sqlite:other.db"
    assert found.source("lease_ttl_ms") == "UNSWEPT_LEASE_TTL_MS"
    assert found.source("max_running") == str(tmp_path / "unswept.toml")


def test_the_file_is_found_in_the_folder_or_by_a_variable(tmp_path: Path) -> None:
    """`unswept.toml` before `[tool.unswept]`; a variable before both."""
    project = '[project]\nname = "x"\n[tool.unswept.limits]\nmax_running = 5\n'
    (tmp_path / "pyproject.toml").write_text(project)
    assert load(environment=NOTHING, folder=tmp_path).limits.max_running == 5
    (tmp_path / "unswept.toml").write_text("[limits]\nmax_running = 6\n")
    assert load(environment=NOTHING, folder=tmp_path).limits.max_running == 6
    (tmp_path / "named.toml").write_text("[limits]\nmax_running = 7\n")
    named = {"UNSWEPT_CONFIG": str(tmp_path / "named.toml")}
    assert load(environment=named, folder=tmp_path).limits.max_running == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[policy]\nlease_ttl = 5\n", "has no key 'lease_ttl'"),
        ("[polcy]\n", r"there is no \[polcy\]"),
        ("policy = 5\n", "must be a table"),
        ("[policy\n", "is no TOML"),
        ("[policy]\nlease_ttl_ms = 20000\n", r"lease_ttl_ms \(20000\) must be >= 2 x"),
        ("[policy]\nlease_ttl_ms = true\n", "must be a whole number"),
        ("[limits]\nmax_running = 0\n", "max_running must be 1"),
        ("[limits]\nmax_output_bytes = 1.5\n", "max_output_bytes must be a whole number"),
        ('[store]\nurl = ""\n', "must be the URL of a store"),
        ('[policy]\nbreaker = "on"\n', "breaker must be off, shadow, defer, got 'on'"),
        ("[policy]\nbreaker = true\n", "breaker must be off, shadow, defer, got True"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Never defaulted: a typing error must not change the store or the lease."""
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text)


def test_the_breaker_is_named_by_its_word(tmp_path: Path) -> None:
    """In the file and in its variable; the description says it so."""
    found = read(tmp_path, '[policy]\nbreaker = "shadow"\n')
    assert found.policy == LeasePolicy(breaker=Breaker.SHADOW)
    found = read(tmp_path, '[policy]\nbreaker = "shadow"\n', UNSWEPT_BREAKER="defer")
    assert found.policy == LeasePolicy(breaker=Breaker.DEFER)
    assert "= defer  (UNSWEPT_BREAKER)" in describe(found)
    with pytest.raises(ConfigError, match="breaker must be off, shadow, defer, got '1'"):
        read(tmp_path, "", UNSWEPT_BREAKER="1")


def test_events_are_kept_for_ever_unless_it_says_how_long(tmp_path: Path) -> None:
    """In the file or its variable; the description says `none` where it says nothing."""
    found = read(tmp_path, "[policy]\nevent_retention_ms = 86400000\n")
    assert found.policy.event_retention_ms == 86_400_000
    found = read(tmp_path, "", UNSWEPT_EVENT_RETENTION_MS="300000")
    assert "= 300000  (UNSWEPT_EVENT_RETENTION_MS)" in describe(found)
    page = describe(read(tmp_path, ""))
    assert re.search(r"policy\.event_retention_ms += none  \(default\)", page)
    with pytest.raises(ConfigError, match=r"event_retention_ms \(1000\) must be >= the"):
        read(tmp_path, "[policy]\nevent_retention_ms = 1000\n")


def test_a_named_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """And so is a variable that is no number."""
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "nowhere.toml", environment=NOTHING)
    with pytest.raises(ConfigError, match="UNSWEPT_MAX_RUNNING must be a whole number"):
        load(environment={"UNSWEPT_MAX_RUNNING": "many"}, folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("UNSWEPT_LEASE_TTL", "UNSWEPT_LEASE_TTL_MS"),
        ("UNSWEPT_STORE_URI", "UNSWEPT_STORE_URL"),
        ("UNSWEPT_LIMITS_MAX_RUNNING", "UNSWEPT_MAX_RUNNING"),
        ("UNSWEPT_ZZZ", ""),
        ("UNSWEPT_STORE", None),
        ("UNSWEPT_TEST_POSTGRES", None),
        ("LEASE_TTL_MS", None),
    ],
)
def test_a_variable_that_is_misspelt_is_warned_of(
    tmp_path: Path, name: str, meant: str | None
) -> None:
    """With the one that is most like it; those of other parts are nobody's business here."""
    found = read(tmp_path, "", **{name: "60000"})
    assert found.policy.lease_ttl_ms == 90_000
    hint = f"; there is {meant}" if meant else ""
    expected = f"there is no variable {name}, and it is not read{hint}"
    assert list(found.warnings) == ([] if meant is None else [expected])


def test_a_variable_is_not_read_beside_the_other_gateways_file(tmp_path: Path) -> None:
    """Which has variables of its own; and says so."""
    path = tmp_path / "config.toml"
    path.write_text(THEIRS)
    found = load(path, environment={"UNSWEPT_LEASE_TTL_MS": "60000"})
    assert f"UNSWEPT_LEASE_TTL_MS is not read beside {path}" in found.warnings


def test_the_description_says_values_sources_and_consequences(tmp_path: Path) -> None:
    """Missed heartbeats, flaps, worst detection time, and what is tight."""
    text = "[policy]\nheartbeat_interval_ms = 40000\n"
    page = describe(read(tmp_path, text, UNSWEPT_MAX_RUNNING="9"))
    assert "limits.max_running" in page
    assert "= 9  (UNSWEPT_MAX_RUNNING)" in page
    assert f"= 40000  ({tmp_path / 'unswept.toml'})" in page
    assert "survives 1 missed heartbeats" in page
    assert "orphaned within" in page
    assert "warning: lease_ttl_ms (90000) is under 3 x" in page


# The other gateway's file -----------------------------------------------------------------------

THEIRS = """
[persistence]
backend = "sqlite"
path = "/data/logs.db"
retentionDays = 0.5
dedupWindowMs = 0
instanceHeartbeatMs = 10000
instanceLeaseTtlMs = 60000
httpJobGraceMs = 200000
orphanSweepIntervalMs = 20000
instanceGcMs = 4000000

[limits]
max_running_jobs = 4
max_running_jobs_per_provider = 2
max_queued_jobs = 8
queue_timeout_ms = 1000
completed_job_memory_ttl_ms = 1000
max_job_output_bytes = 2000

[http]
max_sessions = 7
anything = "else"
"""


def test_the_other_gateways_file_is_read_as_it_is(tmp_path: Path) -> None:
    """Every key finds its place; one without a meaning here says so."""
    found = read(tmp_path, THEIRS, "config.toml")
    policy = found.policy
    assert found.store_url == "sqlite:/data/logs.db"
    assert (policy.retention_ms, policy.dedup_window_ms) == (43_200_000, 0)
    assert (policy.heartbeat_interval_ms, policy.lease_ttl_ms) == (10_000, 60_000)
    assert (policy.http_grace_ms, policy.sweep_interval_ms) == (200_000, 20_000)
    assert policy.instance_gc_ms == 4_000_000
    assert found.limits == Limits(4, 2, 8, 1000)  # type: ignore[arg-type]
    assert found.max_output_bytes == 2000
    assert reference_config.NO_MEMORY_TTL in found.warnings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[persistence]\ninstanceLeaseTtlMs = 20000\n",
            r"Invalid \[persistence\] config: instanceLeaseTtlMs \(20000\) must be >= "
            r"2 \* instanceHeartbeatMs \(30000\)",
        ),
        (
            "[persistence]\nhttpJobGraceMs = 80000\n",
            r"httpJobGraceMs \(80000\) must be >= instanceLeaseTtlMs \(90000\)",
        ),
        (
            "[persistence]\ninstanceGcMs = 80000\n",
            r"instanceGcMs \(80000\) must be >= instanceLeaseTtlMs \(90000\)",
        ),
        ("[persistence]\norphanSweepIntervalMs = 100000\n", "sweep_interval_ms"),
        ("[persistence]\nretention = 5\n", "unknown key 'retention'"),
        ("[persistence]\nretentionDays = 0\n", "retentionDays must be a number above 0"),
        ("[persistence]\nbackend = 'mysql'\n", "backend must be one of"),
        ("[persistence]\nbackend = 'postgres'\n", "requires a non-empty 'dsn'"),
        ("[persistence]\nbackend = 'memory'\n", "is ephemeral"),
        ("[limits]\nmax_running_jobs = 0\n", r"Invalid \[limits\] config: max_running_jobs"),
        ("[http]\nmax_sessions = 0\n", r"Invalid \[http\] session-limit config: max_sessions"),
    ],
)
def test_their_rules_are_kept(tmp_path: Path, text: str, message: str) -> None:
    """With their messages; and relations that they did not check are refused too. (W-26, F-10)"""
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text, "config.toml")


def test_their_backends_name_a_store(tmp_path: Path) -> None:
    """Memory needs an acknowledgement, none keeps nothing."""
    dsn = "[persistence]\nbackend = 'postgres'\ndsn = 'postgresql://host/db'\n"
    assert read(tmp_path, dsn, "config.toml").store_url == "postgresql://host/db"
    memory = "[persistence]\nbackend = 'memory'\nacknowledgeEphemeral = true\n"
    assert read(tmp_path, memory, "config.toml").store_url == "sqlite::memory:"
    nothing = read(tmp_path, "[persistence]\nbackend = 'none'\n", "config.toml")
    assert nothing.store_url is None
    assert reference_config.DISABLED in nothing.warnings
    default = read(tmp_path, "[persistence]\n", "config.toml")
    assert default.store_url == f"sqlite:{Path('~/.llm-cli-gateway/logs.db').expanduser()}"


def test_their_deprecated_key_is_told(tmp_path: Path) -> None:
    """Whenever it is set, to whatever."""
    found = read(tmp_path, "[persistence]\nownsOrphanRecovery = false\n", "config.toml")
    assert reference_config.DEPRECATED_RECOVERY in found.warnings


def test_their_variables_override_but_not_an_explicit_backend(tmp_path: Path) -> None:
    """`none` turns all off, whatever else is set. (F-36)"""
    plain = "[persistence]\n"
    found = read(tmp_path, plain, "c.toml", LLM_GATEWAY_JOBS_DB="/j.db", LLM_GATEWAY_LOGS_DB="/l")
    assert (found.store_url, found.source("store_url")) == ("sqlite:/j.db", "LLM_GATEWAY_JOBS_DB")
    dsn = "[persistence]\nbackend = 'postgres'\ndsn = 'postgresql://host/db'\n"
    found = read(tmp_path, dsn, "c.toml", LLM_GATEWAY_LOGS_DB="/l.db")
    assert found.store_url == "postgresql://host/db"
    assert any("LLM_GATEWAY_LOGS_DB is refused" in warning for warning in found.warnings)
    assert read(tmp_path, dsn, "c.toml", LLM_GATEWAY_JOBS_DB="none").store_url is None
    found = read(
        tmp_path,
        plain,
        "c.toml",
        LLM_GATEWAY_JOB_RETENTION_DAYS="2",
        LLM_GATEWAY_DEDUP_WINDOW_MS="-1",
        LLM_GATEWAY_ACKNOWLEDGE_EPHEMERAL="yes",
    )
    assert found.policy.retention_ms == 172_800_000
    assert found.policy.dedup_window_ms == LeasePolicy().dedup_window_ms
    assert any("LLM_GATEWAY_DEDUP_WINDOW_MS is ignored" in each for each in found.warnings)


def test_their_file_is_known_by_its_limits_alone(tmp_path: Path) -> None:
    """Both forms have a table of that name."""
    found = read(tmp_path, "[limits]\nmax_queued_jobs = 3\n", "config.toml")
    assert found.limits.max_queued == 3
