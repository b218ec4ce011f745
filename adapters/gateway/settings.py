"""The settings of a gateway, from a file and the environment, each with where it came from.

    [store]
    url = "sqlite:jobs.db"

    [policy]
    heartbeat_interval_ms = 15000

    [limits]
    max_running = 32

stands in `unswept.toml`, or in `pyproject.toml` under `[tool.unswept]`. A variable `UNSWEPT_` +
KEY overrides the key of the file: UNSWEPT_STORE_URL, UNSWEPT_LEASE_TTL_MS, UNSWEPT_MAX_RUNNING.
The configuration of llm-cli-gateway is read as it is (`reference_config`). Unknown keys and files
that cannot be read are refused: a default in their place would be a silent change of store.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import fields, frozen

from unswept.adapters.gateway.errors import ConfigError
from unswept.adapters.gateway.work import MAX_OUTPUT_BYTES
from unswept.adapters.urls import check_store_url
from unswept.core.checks import check_whole, shown
from unswept.core.errors import MisuseError
from unswept.core.limiter import Limits
from unswept.core.policy import Breaker, LeasePolicy

DEFAULT_URL: Final = "sqlite:unswept.db"
DEFAULT: Final = "default"

POLICY_KEYS: Final = tuple(each.name for each in fields(LeasePolicy))
LIMIT_KEYS: Final = (*(each.name for each in fields(Limits)), "max_output_bytes")
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "store": ("url",),
    "policy": POLICY_KEYS,
    "limits": LIMIT_KEYS,
}
"""Every table and its keys."""
VARIABLES: Final[Mapping[str, str]] = {
    f"UNSWEPT_{key.upper()}": key for key in ("store_url", *POLICY_KEYS, *LIMIT_KEYS)
}
"""Every variable that overrides a key of the file, and which."""
TEXT_KEYS: Final = ("store_url", "breaker")
"""Keys whose variables hold a text; those of all others hold a number."""


@frozen
class Value:
    """One setting that was given, and where."""

    value: Any
    source: str


@frozen
class Settings:
    """All that a gateway is opened with."""

    store_url: str | None
    """None: jobs are not kept, so that none is admitted."""
    policy: LeasePolicy
    limits: Limits
    max_output_bytes: int
    sources: Mapping[str, str]
    """Where each setting came from, by its key; what is not named is a default."""
    warnings: tuple[str, ...] = ()

    def source(self, key: str) -> str:
        """A file's name, a variable's, or `default`."""
        return self.sources.get(key, DEFAULT)


def settings_from(given: Mapping[str, Value], warnings: tuple[str, ...] = ()) -> Settings:
    """The settings of these values, with defaults for the rest. `store_url` None means none."""
    try:
        policy = LeasePolicy(**_policy_values(given))
        limits = Limits(**_chosen(given, LIMIT_KEYS[:-1]))
        max_output = given["max_output_bytes"].value if "max_output_bytes" in given else None
        if max_output is not None:
            check_whole("max_output_bytes", max_output, 1, MAX_OUTPUT_BYTES)
    except MisuseError as error:
        raise ConfigError(str(error)) from error
    url = given["store_url"].value if "store_url" in given else DEFAULT_URL
    if url is not None and not (isinstance(url, str) and url):
        raise ConfigError(f"store.url must be the URL of a store, got {shown(url)}")
    if url is not None:
        try:
            check_store_url(url)
        except MisuseError as error:
            raise ConfigError(f"store.url: {error}") from error
    return Settings(
        url,
        policy,
        limits,
        MAX_OUTPUT_BYTES if max_output is None else max_output,
        {key: each.source for key, each in given.items()},
        (*warnings, *policy.warnings()),
    )


def own_values(
    document: Mapping[str, Any], source: str, environment: Mapping[str, str]
) -> dict[str, Value]:
    """What a file of this library's own form and the environment give; the latter wins."""
    given: dict[str, Value] = {}
    for table, content in document.items():
        if table not in KEYS:
            raise ConfigError(f"{source}: there is no [{table}], only {_listed(KEYS)}")
        if not isinstance(content, dict):
            raise ConfigError(f"{source}: [{table}] must be a table, got {shown(content)}")
        for key, value in content.items():
            if key not in KEYS[table]:
                raise ConfigError(
                    f"{source}: [{table}] has no key {key!r}, only {', '.join(KEYS[table])}"
                )
            given["store_url" if table == "store" else key] = Value(value, source)
    for name, key in VARIABLES.items():
        if name in environment:
            text = environment[name]
            given[key] = Value(text if key in TEXT_KEYS else _whole(name, text), name)
    return given


def read_toml(path: Path) -> Mapping[str, Any]:
    """The file's content; `ConfigError` where it is not there or is broken."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    # Of its errors tomllib derives only some from its own; a nest too deep is a RecursionError.
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: is no TOML that can be read: {error}") from error


def _chosen(given: Mapping[str, Value], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: given[key].value for key in keys if key in given}


def _policy_values(given: Mapping[str, Value]) -> dict[str, Any]:
    values = _chosen(given, POLICY_KEYS)
    if "breaker" in values:
        values["breaker"] = _breaker(values["breaker"])
    return values


def _breaker(value: Any) -> Breaker:
    try:
        return Breaker(value)
    except ValueError:
        raise MisuseError(f"breaker must be {', '.join(Breaker)}, got {shown(value)}") from None


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{name} must be a whole number, got {shown(text)}") from None


def _listed(tables: Mapping[str, object]) -> str:
    return ", ".join(f"[{table}]" for table in tables)
