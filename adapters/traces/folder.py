"""The folder that a campaign's traces are written into: a file per seed while it runs, Parquet when
it is over."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import field, frozen

from unswept.adapters.duck import in_memory
from unswept.adapters.traces.store import load_files, parquet_files
from unswept.adapters.version import version
from unswept.core.errors import MisuseError
from unswept.simulations.trace import Trace

_NAME: Final = re.compile(r"seed-(\d+)\.jsonl")


@frozen
class TraceFolder:
    """Opens the trace of a seed, in whichever process runs it."""

    path: Path
    store: str
    """The store under test, as traces name it."""
    version: str = field(factory=version)

    def prepare(self) -> None:
        """Make the folder, and remove the traces of an earlier campaign; refuse one with anything
        else in it."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MisuseError(
                f"--trace must name a folder, {self.path} cannot be one: {error.strerror}"
            ) from None
        own = set(parquet_files(self.path).values())
        entries = sorted(self.path.iterdir())
        for entry in entries:
            known = entry in own or _NAME.fullmatch(entry.name) is not None
            if not known or entry.is_dir():
                raise MisuseError(
                    f"--trace must name a new folder, or one with nothing but traces, and "
                    f"{self.path} has {entry.name}"
                )
        for entry in entries:
            entry.unlink()

    @contextmanager
    def __call__(self, seed: int) -> Iterator[Trace]:
        """The trace of a seed, written as it comes."""
        with self._file(seed).open("w", encoding="utf-8", newline="\n") as file:
            yield Trace(file.write, self.version, self.store)

    def finish(self, seeds: Collection[int]) -> None:
        """Keep the traces of these seeds, and keep them as Parquet too.

        Workers may have run ahead of the seed that ended the campaign: how far is chance.
        """
        for entry in sorted(self.path.iterdir()):
            found = _NAME.fullmatch(entry.name)
            if found is not None and int(found[1]) not in seeds:
                entry.unlink()
        if not seeds:
            return
        with in_memory() as connection:
            load_files(connection, [self._file(seed) for seed in seeds])
            for name, file in parquet_files(self.path).items():
                connection.execute(
                    f"COPY trace.{name} TO $file (FORMAT parquet)", {"file": str(file)}
                )

    def _file(self, seed: int) -> Path:
        return self.path / f"seed-{seed}.jsonl"
