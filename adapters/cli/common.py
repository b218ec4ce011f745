"""What the long-running commands share: how many processes, which library, and
a bar that shows progress."""

from __future__ import annotations

import os

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from unswept.adapters.extras import need
from unswept.core.checks import check_whole


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
