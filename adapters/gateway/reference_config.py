"""Reads the configuration of llm-cli-gateway as it is: its keys, its rules, its deprecations.

Three things are not as they were there, on purpose: a file that cannot be read is refused, an
explicit backend is not overridden by a variable (they changed that later themselves), and a
relation that would not work is refused where theirs was not checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from unswept.adapters.gateway.errors import ConfigError
from unswept.adapters.gateway.settings import LIMIT_KEYS, Settings, Value, settings_from
from unswept.core.checks import shown
from unswept.core.errors import MisuseError

DAY_MS: Final = 24 * 60 * 60 * 1000
DEFAULT_PATH: Final = "~/.llm-cli-gateway/logs.db"
BACKENDS: Final = ("sqlite", "postgres", "memory", "none")
IN_MEMORY: Final = "sqlite::memory:"

EPHEMERAL: Final = (
    "[persistence].backend = 'memory' is ephemeral — async job results are lost on gateway exit. "
    "Set [persistence].acknowledgeEphemeral = true (or LLM_GATEWAY_ACKNOWLEDGE_EPHEMERAL=1) to "
    "confirm this is intentional."
)
NO_DSN: Final = (
    "[persistence].backend = 'postgres' requires a non-empty 'dsn' "
    "(e.g. postgresql://user:pw@host/db)"
)
DISABLED: Final = (
    "Async job persistence is DISABLED (backend = 'none'). *_request_async tools will NOT be "
    "registered on this gateway."
)
DEPRECATED_RECOVERY: Final = (
    "[persistence].ownsOrphanRecovery is deprecated and no longer used; the durable per-job lease "
    "recovery (#139) runs safely from every instance. Remove it from config.toml."
)
NO_MEMORY_TTL: Final = (
    "[limits].completed_job_memory_ttl_ms has no effect: results are read from the store"
)

Check = Callable[[Any], bool]


def _whole(low: int) -> Check:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= low


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_days(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > 0


_PERSISTENCE: Final[Mapping[str, tuple[Check, str]]] = {
    "backend": (lambda value: value in BACKENDS, f"one of {', '.join(BACKENDS)}"),
    "path": (_is_text, "a string"),
    "dsn": (_is_text, "a string"),
    "retentionDays": (_is_days, "a number above 0"),
    "dedupWindowMs": (_whole(0), "a whole number, at least 0"),
    "acknowledgeEphemeral": (_is_bool, "true or false"),
    "ownsOrphanRecovery": (_is_bool, "true or false"),
    "instanceHeartbeatMs": (_whole(1), "a whole number above 0"),
    "instanceLeaseTtlMs": (_whole(1), "a whole number above 0"),
    "httpJobGraceMs": (_whole(1), "a whole number above 0"),
    "orphanSweepIntervalMs": (_whole(1), "a whole number above 0"),
    "instanceGcMs": (_whole(1), "a whole number above 0"),
}
_LIMITS: Final[Mapping[str, tuple[Check, str]]] = {
    key: (_whole(1), "a whole number above 0")
    for key in (
        "max_running_jobs",
        "max_running_jobs_per_provider",
        "max_queued_jobs",
        "queue_timeout_ms",
        "completed_job_memory_ttl_ms",
        "max_job_output_bytes",
    )
}
_HTTP: Final = ("max_sessions", "session_idle_ttl_ms", "session_reaper_interval_ms")

_NAMES: Final[Mapping[str, str]] = {
    "dedupWindowMs": "dedup_window_ms",
    "instanceHeartbeatMs": "heartbeat_interval_ms",
    "instanceLeaseTtlMs": "lease_ttl_ms",
    "httpJobGraceMs": "http_grace_ms",
    "orphanSweepIntervalMs": "sweep_interval_ms",
    "instanceGcMs": "instance_gc_ms",
    "max_running_jobs": "max_running",
    "max_running_jobs_per_provider": "max_running_per_provider",
    "max_queued_jobs": "max_queued",
    "queue_timeout_ms": "queue_timeout_ms",
    "max_job_output_bytes": "max_output_bytes",
}
"""Their keys, and what the same is called here."""


def is_reference(document: Mapping[str, Any]) -> bool:
    """Is this the other gateway's file? Both may have [limits]; other keys tell them apart."""
    limits = document.get("limits")
    theirs = set(limits) & set(_LIMITS) - set(LIMIT_KEYS) if isinstance(limits, dict) else set()
    return "persistence" in document or "http" in document or bool(theirs)


def reference_settings(
    document: Mapping[str, Any], source: str, environment: Mapping[str, str]
) -> Settings:
    """The settings that their file and their variables give."""
    warnings: list[str] = []
    persistence = _table(document, "persistence", _PERSISTENCE, "Invalid [persistence] config: ")
    limits = _table(document, "limits", _LIMITS, "Invalid [limits] config: ")
    _check_http(document)
    values = {key: Value(value, source) for key, value in {**persistence, **limits}.items()}
    _apply_environment(values, environment, warnings)
    if "ownsOrphanRecovery" in values:
        warnings.append(DEPRECATED_RECOVERY)
    if "completed_job_memory_ttl_ms" in values:
        warnings.append(NO_MEMORY_TTL)
    _check_relations({key: each.value for key, each in values.items()})
    given = {ours: values[theirs] for theirs, ours in _NAMES.items() if theirs in values}
    if "retentionDays" in values:
        days = values["retentionDays"]
        given["retention_ms"] = Value(max(1, round(days.value * DAY_MS)), days.source)
    given["store_url"] = _store_url(values, warnings)
    try:
        return settings_from(given, tuple(warnings))
    except MisuseError as error:
        raise ConfigError(f"Invalid [persistence] config: {error}") from error


def _table(
    document: Mapping[str, Any], name: str, keys: Mapping[str, tuple[Check, str]], prefix: str
) -> Mapping[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{prefix}must be a table, got {shown(table)}")
    for key, value in table.items():
        if key not in keys:
            raise ConfigError(f"{prefix}unknown key {key!r}; known are {', '.join(keys)}")
        check, expected = keys[key]
        if not check(value):
            raise ConfigError(f"{prefix}{key} must be {expected}, got {shown(value)}")
    return table


def _check_http(document: Mapping[str, Any]) -> None:
    """Settings of their server, which this library does not have; other keys pass."""
    table = document.get("http", {})
    for key in _HTTP:
        if isinstance(table, dict) and key in table and not _whole(1)(table[key]):
            raise ConfigError(
                f"Invalid [http] session-limit config: {key} must be a whole number above 0, "
                f"got {shown(table[key])}"
            )


def _check_relations(values: Mapping[str, Any]) -> None:
    beat = values.get("instanceHeartbeatMs", 15_000)
    ttl = values.get("instanceLeaseTtlMs", 90_000)
    grace = values.get("httpJobGraceMs", 300_000)
    gc = values.get("instanceGcMs", 3_600_000)
    for name, value, bound, meaning in (
        ("instanceLeaseTtlMs", ttl, 2 * beat, "2 * instanceHeartbeatMs"),
        ("httpJobGraceMs", grace, ttl, "instanceLeaseTtlMs"),
        ("instanceGcMs", gc, ttl, "instanceLeaseTtlMs"),
    ):
        if value < bound:
            raise ConfigError(
                f"Invalid [persistence] config: {name} ({value}) must be >= {meaning} ({bound})"
            )


def _apply_environment(
    values: dict[str, Value], environment: Mapping[str, str], warnings: list[str]
) -> None:
    for name in ("LLM_GATEWAY_JOBS_DB", "LLM_GATEWAY_LOGS_DB"):
        if environment.get(name):
            warnings.append(f"{name} is deprecated; use [persistence].path or .backend instead")
            _override_store(values, name, environment[name], warnings)
            break  # the first of them that is set counts
    for name, key, check, number in (
        ("LLM_GATEWAY_JOB_RETENTION_DAYS", "retentionDays", _is_days, float),
        ("LLM_GATEWAY_DEDUP_WINDOW_MS", "dedupWindowMs", _whole(0), int),
    ):
        if environment.get(name):
            warnings.append(f"{name} is deprecated; use [persistence].{key} instead")
            value = _number(environment[name], number)
            if check(value):
                values[key] = Value(value, name)
            else:
                warnings.append(f"{name} is ignored: {shown(environment[name])} does not do")
    name = "LLM_GATEWAY_ACKNOWLEDGE_EPHEMERAL"
    if environment.get(name, "").lower() in ("1", "true", "yes"):
        warnings.append(f"{name} is deprecated; use [persistence].acknowledgeEphemeral instead")
        values["acknowledgeEphemeral"] = Value(True, name)


def _override_store(values: dict[str, Value], name: str, text: str, warnings: list[str]) -> None:
    if text == "none":
        values["backend"] = Value("none", name)  # a switch that turns all off, whatever else is set
    elif values.get("backend", Value("sqlite", "")).value != "sqlite":
        backend = values["backend"].value
        warnings.append(f"{name} is refused: [persistence].backend = '{backend}' is explicit")
    else:
        values["backend"] = Value("sqlite", name)
        values["path"] = Value(text, name)


def _number(text: str, number: type) -> Any:
    try:
        return number(text)
    except ValueError:
        return None


def _store_url(values: Mapping[str, Value], warnings: list[str]) -> Value:
    backend = values.get("backend", Value("sqlite", "default"))
    if backend.value == "none":
        warnings.append(DISABLED)
        return Value(None, backend.source)
    if backend.value == "memory":
        if not values.get("acknowledgeEphemeral", Value(False, "")).value:
            raise ConfigError(EPHEMERAL)
        return Value(IN_MEMORY, backend.source)
    if backend.value == "postgres":
        dsn = values.get("dsn")
        if dsn is None or not dsn.value:
            raise ConfigError(NO_DSN)
        return dsn
    path = values.get("path", Value(DEFAULT_PATH, "default"))
    return Value(f"sqlite:{Path(path.value).expanduser()}", path.source)
