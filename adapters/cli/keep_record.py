"""What the commands that show something do at their end: they keep it for the evidence page."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.evidence.records import Record, folder, read, write
from unswept.adapters.evidence.sources import hashes
from unswept.adapters.urls import without_password
from unswept.adapters.version import version
from unswept.core.errors import MisuseError

Keep = Callable[[dict[str, Any]], None]
"""Keeps what a command came to, for the evidence page."""


class Keeper:
    """Made when a run begins, and asked to keep what it came to when it has ended."""

    def __init__(self, name: str, command: str, of: str = "") -> None:
        self._name = name
        self._command = without_password(command)
        self._of = _plain(of)
        self._sources = hashes(name)
        self._began = datetime.now(UTC).isoformat(timespec="seconds")
        self._monotonic = time.monotonic()

    def keep(self, result: Mapping[str, Any], whole: bool = True, weight: float = 0.0) -> None:
        """Keep what `--json` prints, if it stands for something; the fields of `Record` say what
        the rest means. Whatever hinders it is said, and is no failure of the command."""
        if not whole and result["exit_code"] != ExitCode.REFUTED:
            return
        record = Record(
            name=self._name,
            of=self._of,
            whole=whole,
            command=self._command,
            version=version(),
            sources=self._sources,
            python=platform.python_version(),
            began=self._began,
            seconds=round(time.monotonic() - self._monotonic, 1),
            weight=weight,
            result=json.loads(json.dumps(result)),
        )
        where = folder()
        if self._sources != hashes(self._name):
            _say("the sources changed while it ran, so that it is no evidence and was not kept")
        elif _outweighed(record, where):
            _say(f"{where / record.stem}.json tried more of the same sources, and stays")
        else:
            try:
                write(record, where)
            except OSError as error:
                _say(f"it could not be kept for the evidence page: {error}")


def _outweighed(record: Record, where: Path) -> bool:
    """Did more of the same sources hold before? What breaks a law outweighs all that held."""
    try:
        old = read(Path(where, f"{record.stem}.json"))
    except MisuseError:
        return False
    broken = record.exit_code in (ExitCode.REFUTED, ExitCode.NOT_DETERMINISTIC)
    same = (record.version, record.sources) == (old.version, old.sources)
    held = old.exit_code == ExitCode.HELD
    return held and same and not broken and record.weight < old.weight


def _plain(words: str) -> str:
    """Fit for the name of a file, which says where it is from."""
    return re.sub(r"[^a-z0-9]+", "-", without_password(words).lower())[-60:].strip("-")


def _say(words: str) -> None:
    Console(stderr=True).print(f"unswept: {words}", markup=False, highlight=False, soft_wrap=True)
