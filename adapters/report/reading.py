"""Reads the trace of a run: JSON Lines, as the simulator writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from unswept.adapters.report.records import fault_of
from unswept.core.errors import MisuseError

FORMAT: Final = 1
"""The format of traces that this version reads; who only reads them needs not what writes them."""
_TAIL: Final = 65_536
"""Bytes at the end of a trace that hold its verdict: its last two lines."""

Line = dict[str, Any]


@frozen
class Shrunk:
    """What a trace is of that is no run: a script that was carried out."""

    steps: int
    law: str
    """The law that it was made for."""


@frozen
class Trace:
    """One run as it was written down."""

    file: Path
    run: Line
    """The first line: version, seed, settings, store."""
    lines: tuple[Line, ...]
    """What happened, in order."""
    violation: Line | None
    end: Line | None
    """The last line; None where the run was cut short."""
    shrunk: Shrunk | None = None


@frozen
class Listed:
    """One run of a folder, by its first and last lines."""

    file: Path
    seed: int
    law: str | None
    """The law that it broke."""
    ended: bool = True
    """The trace has its last line; without it, no law that was broken is no law that held."""


def find(path: Path, seed: int | None) -> tuple[Path, tuple[Listed, ...]]:
    """The trace that is meant, and all that lie beside it.

    Of a folder it is the one of `seed`; without a seed the first that broke a law, or the first.
    """
    try:
        if path.is_file():
            return path, ()
        there = path.exists()
    except OSError as error:
        raise MisuseError(f"{path} cannot be read: {error.strerror}") from None
    if not there:
        raise MisuseError(f"{path} is not there: expected a trace (.jsonl), or a folder of traces")
    files = (file for file in path.glob("*.jsonl") if file.is_file() and not is_script(file))
    listed = sorted(map(_listed, files), key=lambda each: (each.seed, each.file))
    if not listed:
        raise MisuseError(f"{path} has no trace: expected files that end in .jsonl")
    if seed is not None:
        named = [each for each in listed if each.seed == seed]
        if not named:
            raise MisuseError(f"{path} has no trace of seed {seed}, only of {_seeds(listed)}")
        return named[0].file, tuple(listed)
    broken = [each for each in listed if each.law is not None]
    return (broken or listed)[0].file, tuple(listed)


def is_script(file: Path) -> bool:
    """Does the file hold a script, which has to be carried out before there is a trace of it?"""
    return next(_lines(file), {}).get("type") == "script"


def read(file: Path) -> Trace:
    """A whole trace."""
    return trace_of(file, _lines(file))


def trace_of(file: Path, lines: Iterator[Line], shrunk: Shrunk | None = None) -> Trace:
    """A whole trace, of the lines that the file holds, or that were made of it."""
    run = _first(file, lines)
    told: list[Line] = []
    violation = end = None
    for line in lines:
        if line["type"] == "violation":
            violation = line
        elif line["type"] == "end":
            end = line
        else:
            told.append(line)
    return Trace(file, run, tuple(told), violation, end, shrunk)


def _seeds(listed: list[Listed]) -> str:
    first = ", ".join(str(each.seed) for each in listed[:10])
    return first if len(listed) <= 10 else f"{first} and {len(listed) - 10} more"


def _first(file: Path, lines: Iterator[Line]) -> Line:
    run = next(lines, None)
    if run is None or run["type"] != "run":
        raise MisuseError(f"{file} is no trace: its first line is not of type run")
    if run.get("format") != FORMAT:
        raise MisuseError(
            f"{file} has format {run.get('format')}, and this version reads {FORMAT}: "
            f"it was written by unswept {run.get('version')}"
        )
    _check(file, 1, run)
    return run


def _lines(file: Path) -> Iterator[Line]:
    """The first is checked by whoever knows what it must be."""
    try:
        with file.open("rb") as raw:
            for number, text in enumerate(raw, start=1):
                line = _object(text)
                if line is None:
                    said = "expected a JSON object with a type"
                    raise MisuseError(f"{file}, line {number}: {said}")
                if number > 1:
                    _check(file, number, line)
                yield line
    except OSError as error:
        raise MisuseError(f"{file} cannot be read: {error.strerror}") from None


def _object(text: bytes) -> Line | None:
    try:
        line = json.loads(text.decode())
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and isinstance(line.get("type"), str) else None


def _check(file: Path, number: int, line: Line) -> None:
    if (wrong := fault_of(line)) is not None:
        raise MisuseError(f"{file}, line {number}: {wrong}")


def _listed(file: Path) -> Listed:
    run = _first(file, _lines(file))
    with file.open("rb") as raw:
        raw.seek(max(0, file.stat().st_size - _TAIL))
        tail = raw.read().splitlines()[-2:]
    ended = any(_object(text) for text in tail if text.startswith(b'{"type":"end"'))
    for text in tail:
        if text.startswith(b'{"type":"violation"'):
            line = _object(text)
            if line is None or fault_of(line) is not None:
                raise MisuseError(f"{file}: its line of type violation is cut, or lacks its law")
            return Listed(file, run["seed"], line["law"], ended)
    return Listed(file, run["seed"], None, ended)
