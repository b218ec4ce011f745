"""Copies of the library without one guard, and processes that import them."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from attrs import frozen

from tests.spec.guards import Guard
from unswept.core import commands as c
from unswept.core.units import StoreMs

R = TypeVar("R")
ROOT = Path(__file__).resolve().parents[2]
RUN = "from tests.spec.roads import main; main()"


@frozen
class Mutant:
    """A library without one guard, to be imported by another process."""

    folder: Path
    guard: Guard

    def judged(self, roads: Sequence[str]) -> dict[str, str | None]:
        """What these roads of `roads.py` found; None: nothing."""
        asked = json.dumps([roads, self.guard.theorems])
        done = subprocess.run(
            self._command(asked), cwd=ROOT, env=self._env(), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, str | None] = json.loads(done.stdout)
        assert Path(found.pop("core") or "").is_relative_to(self.folder), "another core was judged"
        return found

    @contextmanager
    def stores(self) -> Iterator[Callable[[Callable[[], StoreMs]], Piped]]:
        """Makes pure stores of the mutant, one after the other, in a process of their own."""
        pipe = subprocess.PIPE
        with subprocess.Popen(
            self._command("serve"), cwd=ROOT, env=self._env(), stdin=pipe, stdout=pipe
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            to, back = process.stdin, process.stdout
            yield lambda clock: Piped(to, back, clock)

    def _command(self, argument: str) -> list[str]:
        return [sys.executable, "-c", RUN, argument]

    def _env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder)}


class Piped:
    """A pure store of another process, and so of another core."""

    def __init__(self, to: IO[bytes], back: IO[bytes], clock: Callable[[], StoreMs]) -> None:
        self._to = to
        self._back = back
        self._clock = clock
        self._ask(None)

    def execute(self, command: c.Command[R]) -> R:
        reply = self._ask((self._clock(), command))
        if isinstance(reply, Exception):
            raise reply
        return cast(R, reply)

    def _ask(self, question: object) -> Any:
        pickle.dump(question, self._to)
        self._to.flush()
        return pickle.load(self._back)

    def close(self) -> None:
        """The process goes on: it makes the next store."""


def mutant(folder: Path, guard: Guard) -> Mutant:
    """A copy of `core/` without the guard, beside links to all else."""
    top = folder / "unswept"
    top.mkdir()
    for name in ("spec", "simulations", "adapters"):
        (top / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "core", top / "core")  # with what is compiled: it fits by its times
    file = top / "core" / guard.file
    text = file.read_text("utf-8")
    found = text.count(guard.stands)
    assert found == 1, f"core/{guard.file} has the guard {guard.name!r} {found} times, not once"
    file.write_text(text.replace(guard.stands, guard.removed), "utf-8")
    return Mutant(folder, guard)
