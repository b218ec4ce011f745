"""What a run leaves behind for the page: its result, of which sources, when, and how long it took.

Only whole runs stand for a law. A run of a part, say of one theorem or one seed, is kept only
where it refutes, under a name of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen

from unswept.adapters.evidence.sources import JUDGED, hashes
from unswept.adapters.json_file import read_json
from unswept.adapters.version import version
from unswept.core.errors import MisuseError

FOLDER: Final = Path("unswept-evidence")
VARIABLE: Final = "UNSWEPT_EVIDENCE"
"""Names another folder."""
_FORMAT: Final = 1


@frozen
class Record:
    """What one run came to."""

    name: str
    """Of the kind of run, as in `sources.JUDGED`; `explore --windows` is `windows`."""
    of: str
    """What tells several records of one kind apart: a store, a place; empty where there is one."""
    whole: bool
    """Did it range over all that its kind ranges over?"""
    command: str
    """What runs it again."""
    version: str
    """Of the package."""
    sources: Mapping[str, str]
    """The hashes of what it judged."""
    python: str
    began: str
    """UTC, in ISO 8601."""
    seconds: float
    weight: float
    """How much was tried, where a run may try more or less: a lesser run of the same sources does
    not replace a greater one."""
    result: Mapping[str, Any]
    """What the command prints with `--json`."""

    @property
    def stem(self) -> str:
        """The name of its file, without the suffix."""
        parts = (self.name, self.of, "" if self.whole else "refuted")
        return "-".join(part for part in parts if part)

    @property
    def exit_code(self) -> int:
        """What the command ended with."""
        return int(self.result["exit_code"])

    @property
    def digest(self) -> str:
        """Of its result: two records with one digest say the same, byte for byte."""
        return sha256(json.dumps(self.result, sort_keys=True).encode()).hexdigest()

    def changed(self) -> tuple[str, ...]:
        """What it judged that is not now as it was then; empty: the record is fresh."""
        now = hashes(self.name)
        other = tuple(part for part in now if self.sources.get(part) != now[part])
        return (*(("version",) if self.version != version() else ()), *other)


def folder() -> Path:
    """Where records are kept: in this directory, or where the variable says."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else FOLDER


def write(record: Record, where: Path) -> Path:
    """Put the record into the folder, whole or not at all."""
    where.mkdir(parents=True, exist_ok=True)
    path = where / f"{record.stem}.json"
    beside = where / f".{record.stem}.{os.getpid()}.tmp"
    text = json.dumps({"format": _FORMAT, **asdict(record)}, indent=1)
    beside.write_text(f"{text}\n", encoding="utf-8", newline="\n")
    beside.replace(path)
    return path


def read(path: Path) -> Record:
    """The record in a file; raises `MisuseError` where it holds none."""
    found = read_json(path, str(path))
    if not isinstance(found, dict) or found.pop("format", None) != _FORMAT:
        raise MisuseError(f"{path} is no record of format {_FORMAT}; remove it, or run again")
    try:
        record = Record(**found)
        record.result["exit_code"]
    except (TypeError, KeyError) as error:
        raise MisuseError(f"{path} is damaged: {error}") from None
    if record.name not in JUDGED:
        raise MisuseError(f"{path} is of {record.name}, must be of {', '.join(JUDGED)}")
    return record


def read_all(where: Path) -> Sequence[Record]:
    """Every record in the folder, in the order of their files' names."""
    return [read(path) for path in sorted(where.glob("*.json"))]
