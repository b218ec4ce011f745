"""A trace carried out again: its first line is the recipe, and every other line must come again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final

from attrs import frozen

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.urls import SimulatedStore, reopened
from unswept.adapters.version import version
from unswept.core.errors import MisuseError
from unswept.simulations.campaign import run_seed
from unswept.simulations.script_file import object_of, settings_of
from unswept.simulations.trace import FORMAT, Trace


@frozen
class Compared:
    """What came of it, in words, and the exit code."""

    lines: tuple[str, ...]
    code: ExitCode


def compared(lines: Sequence[str], name: str, store: str | None) -> Compared:
    """Run the recipe in a trace's first line on this version, and compare what is written."""
    recipe = object_of(lines[0])
    if recipe.get("format") != FORMAT:
        said = f"the format is {recipe.get('format')!r}, and this version writes {FORMAT}"
        raise MisuseError(f"{name}, line 1: {said}")
    if (early := ends_early(lines)) is not None:
        raise MisuseError(f"{name} {early}: only a whole trace can come again")
    try:
        settings = settings_of(recipe.get("settings"))
    except MisuseError as error:
        return Compared((f"{name} cannot be run again: {error}",), ExitCode.UNDETERMINED)
    opener = SimulatedStore(reopened(str(recipe.get("store"))) if store is None else store)
    comparison = _Comparison(lines)
    made_by = str(recipe.get("version"))
    outcome = run_seed(
        settings, opener, lambda seed: nullcontext(Trace(comparison.take, made_by, opener.url))
    )
    if (difference := comparison.difference()) is not None:
        return _differs(difference, name, made_by)
    found = outcome.violation
    said = f"Seed {settings.seed} is the same again, line for line, digest {outcome.digest}"
    if found is None:
        return Compared((f"{said}: every law held.",), ExitCode.HELD)
    return Compared((f"{said}: {found.law} was broken: {found.offence}",), ExitCode.REFUTED)


def ends_early(lines: Sequence[str]) -> str | None:
    """How a trace falls short of the line that every run ends with; None: it has it."""
    if any(_type(line) == _LAST for line in lines if f'"{_LAST}"' in line):
        return None
    if _type(lines[-1]) is None:
        return f"is cut in line {len(lines)}"
    return f"ends early: line {len(lines)}, its last, is not of type {_LAST}"


def _type(line: str) -> object:
    """None: it is no line of a trace."""
    try:
        return object_of(line).get("type")
    except MisuseError:
        return None


def _differs(difference: tuple[int, str, str], name: str, made_by: str) -> Compared:
    number, was, now = difference
    said = (f"{name}, line {number} is now another.", f"  was: {was}", f"  now: {now}")
    if made_by == version():
        return Compared(
            (*said, f"Both were made by version {made_by}: a run must come again byte for byte."),
            ExitCode.NOT_DETERMINISTIC,
        )
    why = f"It was made by version {made_by}, this is {version()}: that promises another run."
    return Compared((*said, why), ExitCode.UNDETERMINED)


class _Comparison:
    """Takes the lines of a new trace one after the other, and keeps where they leave the old."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._taken = 0
        self._found: tuple[int, str, str] | None = None

    def take(self, line: str) -> None:
        """The next line; the first holds the recipe, and the name of a store."""
        number = self._taken
        self._taken += 1
        line = line.rstrip("\n")
        if not number or self._found is not None:
            return
        was = self._lines[number] if number < len(self._lines) else _NOTHING
        if was != line:
            self._found = (number + 1, was, line)

    def difference(self) -> tuple[int, str, str] | None:
        """The number of the first line that differs, and what it was and is."""
        if self._found is None and self._taken < len(self._lines):
            return self._taken + 1, self._lines[self._taken], _NOTHING
        return self._found


_LAST: Final = "end"
_NOTHING: Final = "(nothing: it ends here)"
