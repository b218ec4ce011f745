"""The commands by name; a command's module is imported when it is asked for, since all of them
together take a second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

import typer
import typer.main

_MODULES: Final[Mapping[str, str]] = {
    "simulate": "simulate",
    "merge": "merge",
    "query": "query",
    "mutants": "mutants",
    "replay": "replay",
    "scenarios": "scenarios",
    "report": "report",
    "prove": "prove",
    "explore": "explore",
    "chart": "chart",
    "chaos": "chaos",
    "fleet": "fleet",
    "audit": "audit",
    "doctor": "doctor",
    "check-config": "check_config",
    "job": "operate",
    "jobs": "operate",
    "instances": "operate",
    "orphans": "orphans",
    "sweep": "sweep",
    "cancel": "operate",
    "requeue": "operate",
    "settle": "operate",
    "db": "db",
}
"""In which module of this package each is, under its own name; in the order of the help."""


class Commands(Mapping[str, Any]):
    """What typer's group has as a dict of commands."""

    def __init__(self) -> None:
        """None is imported yet."""
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _command(name, _MODULES[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


def _command(name: str, module: str) -> Any:
    found = getattr(import_module(f"{__package__}.{module}"), name.replace("-", "_"))
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    single = typer.Typer(add_completion=False)
    single.command(name)(found)
    return typer.main.get_command(single)
