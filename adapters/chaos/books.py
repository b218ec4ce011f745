"""The files of evidence: each line is an attrs value, by the name of its class.

A line is appended by one write. So a process that is killed leaves whole lines, but perhaps for the
last, and whatever it had acted on is written. The files outlive every process, not the host.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from attrs import AttrsInstance, asdict

L = TypeVar("L")


class Notebook:
    """A file that only grows. For any number of threads: one line is one write."""

    def __init__(self, path: Path) -> None:
        """Append to this file, made where there is none."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, line: AttrsInstance) -> None:
        """Returns when the line is where no death of this process can take it back."""
        told = {"is": type(line).__name__, **asdict(line, recurse=False)}
        os.write(self._file, json.dumps(told).encode() + b"\n")

    def close(self) -> None:
        """Nothing more is written."""
        os.close(self._file)


def read_book(path: Path, kinds: Mapping[str, Callable[..., L]]) -> list[L]:
    """All whole lines, in the order in which they were written."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return parsed(whole.splitlines(), kinds)


def parsed(lines: Iterable[bytes], kinds: Mapping[str, Callable[..., L]]) -> list[L]:
    """The values that these lines tell."""
    told = (json.loads(line) for line in lines)
    return [kinds[each.pop("is")](**each) for each in told]
