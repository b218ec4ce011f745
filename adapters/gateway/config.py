"""Finds the configuration, whichever form it has, and says in words what it comes to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from unswept.adapters.gateway.errors import ConfigError
from unswept.adapters.gateway.reference_config import is_reference, reference_settings
from unswept.adapters.gateway.settings import (
    LIMIT_KEYS,
    POLICY_KEYS,
    VARIABLES,
    Settings,
    Value,
    own_values,
    read_toml,
    settings_from,
)
from unswept.adapters.urls import without_password

_FILE_NAMED_BY: Final = ("UNSWEPT_CONFIG", "LLM_GATEWAY_CONFIG")
_READ_ELSEWHERE: Final = ("UNSWEPT_CONFIG", "UNSWEPT_STORE", "UNSWEPT_EVIDENCE")
_ALIKE: Final = 0.75
"""How much alike two names are of which one may be the other, misspelt."""
_OF_TESTS: Final = ("UNSWEPT_TEST_", "UNSWEPT_CHAOS_")


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | os.PathLike[str] = ".",
) -> Settings:
    """The settings that hold here.

    From `path`, or the file that UNSWEPT_CONFIG or LLM_GATEWAY_CONFIG names, or `unswept.toml` or
    `[tool.unswept]` of `pyproject.toml` in `folder`; without any of them the defaults.
    `ConfigError` where a file is named and not there, or is broken. What looks like a variable of
    this library and is not read is a warning.
    """
    environment = os.environ if environment is None else environment
    document, source = _document(path, environment, Path(folder))
    if is_reference(document):
        settings = reference_settings(document, source, environment)
        unread = [
            f"{name} is not read beside {source}" for name in VARIABLES if name in environment
        ]
    else:
        settings = settings_from(own_values(document, source, environment))
        unread = []
    return evolve(settings, warnings=(*settings.warnings, *unread, *_not_read(environment)))


def _not_read(environment: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(environment):
        read = name in VARIABLES or name in _READ_ELSEWHERE or name.startswith(_OF_TESTS)
        if name.startswith("UNSWEPT_") and not read:
            alike = get_close_matches(name, VARIABLES, 1, _ALIKE)
            hint = "".join(f"; there is {meant}" for meant in alike)
            yield f"there is no variable {name}, and it is not read{hint}"


def effective(settings: Settings) -> dict[str, Value]:
    """Every setting by its table and key, defaults included; a store's URL without its password."""
    url = None if settings.store_url is None else without_password(settings.store_url)
    values: dict[str, Any] = {"max_output_bytes": settings.max_output_bytes}
    values |= {key: getattr(settings.policy, key) for key in POLICY_KEYS}
    values |= {key: getattr(settings.limits, key) for key in LIMIT_KEYS if key not in values}
    rows = {"store.url": Value(url, settings.source("store_url"))}
    for table, keys in (("policy", POLICY_KEYS), ("limits", LIMIT_KEYS)):
        rows |= {f"{table}.{key}": Value(values[key], settings.source(key)) for key in keys}
    return rows


def describe(settings: Settings) -> str:
    """The effective settings, where each came from, and what they mean."""
    return "\n".join(_lines(settings))


def _document(
    path: str | os.PathLike[str] | None, environment: Mapping[str, str], folder: Path
) -> tuple[Mapping[str, Any], str]:
    by_variable = (environment[name] for name in _FILE_NAMED_BY if environment.get(name))
    named = path or next(by_variable, None)
    if named is not None:
        return _read(Path(named))
    if (own := folder / "unswept.toml").exists():
        return _read(own)
    if (project := folder / "pyproject.toml").exists():
        return _read(project)
    return {}, "default"


def _read(path: Path) -> tuple[Mapping[str, Any], str]:
    document = read_toml(path)
    if path.name != "pyproject.toml":
        return document, str(path)
    tool = document.get("tool", {})
    own = tool.get("unswept", {}) if isinstance(tool, dict) else {}
    if not isinstance(own, dict):
        raise ConfigError(f"{path}: [tool.unswept] must be a table, got {own!r}")
    return own, f"{path} [tool.unswept]"


def _lines(settings: Settings) -> Iterator[str]:
    rows = effective(settings)
    width = max(map(len, rows))
    for name, row in rows.items():
        shown = "none" if row.value is None else row.value
        yield f"{name:{width}} = {shown}  ({row.source})"
    policy = settings.policy
    yield ""
    yield f"A process job's lease survives {policy.missed_beats()} missed heartbeats."
    flaps = policy.flaps_survived()
    yield f"A clock step or an outage is survived, with {flaps} flaps beside it."
    yield f"A dead owner's process job is orphaned within {policy.detection_ms()} ms,"
    http_ms = policy.detection_ms(policy.http_grace_ms)
    yield f"its http job within {http_ms} ms; evidence of a living process adds one delay."
    for warning in settings.warnings:
        yield f"warning: {warning}"
