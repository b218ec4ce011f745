"""What the long-running commands share: how many processes, which library, and
a bar that shows progress; and how an operator's rows are printed."""

from __future__ import annotations

import os
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from unswept.adapters.extras import need
from unswept.core.checks import check_whole

_AS_LONG_AS_IT_IS: Final = 10_000


def processes(workers: int | None) -> int:
    """The number of processes that `--workers` asks for; by default one per core."""
    if workers is None:
        return os.cpu_count() or 1
    check_whole("--workers", workers, 1, 1_000)
    return workers


def need_cattrs() -> None:
    """Refuse to read or write commands where the library that does it is not installed."""
    need("scripts and traces need cattrs", "simulate", "cattrs")


def progress_bar(console: Console) -> Progress:
    """A bar per task, gone when the work is done."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def rows_console() -> Console:
    """Prints words as they are, and rows as long as they are where no terminal says how wide it is:
    whatever reads them there finds an id whole, in one line."""
    told = Console(markup=False, highlight=False)
    if not told.is_terminal and "COLUMNS" not in os.environ:
        told.width = _AS_LONG_AS_IT_IS
    return told


def rows_table(*headers: str) -> Table:
    """What is too long for its column goes on below: an id that is cut is good for nothing."""
    return Table(*(Column(header, overflow="fold") for header in headers))
