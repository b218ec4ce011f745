"""What `simulate` does with a violation: it cuts the run down to a script, and keeps it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from attrs import evolve, frozen
from rich.console import Console

from unswept.adapters.cli.common import need_cattrs
from unswept.adapters.cli.simulate_report import Report
from unswept.adapters.report.words import counted
from unswept.adapters.urls import SimulatedStore, reopened
from unswept.adapters.version import version
from unswept.core.errors import UnsweptError
from unswept.simulations.shrinking import shrink

FOLDER: Final = Path("unswept-violations")


@frozen
class Kept:
    """The script of a violation, or why there is none."""

    path: Path | None
    sentence: str


def keep_script(
    report: Report, opener: SimulatedStore, folder: Path, console: Console
) -> Kept | None:
    """Shrink the violation, if there is one, and write its script into the folder."""
    seed, asked = report.totals.violated_seed, report.campaign
    if seed is None:
        return None
    settings = evolve(asked.settings, seed=seed)
    try:
        need_cattrs()
        from unswept.simulations.script_file import SUFFIX, lines_of

        with console.status("shrinking"):
            small = shrink(settings, SimulatedStore(reopened(opener.url)), asked.store, version())
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{settings.design}-{small.script.law}-seed-{seed}{SUFFIX}"
        path = folder / name
        text = "".join(f"{line}\n" for line in lines_of(small.script))
        path.write_text(text, encoding="utf-8", newline="\n")
    except (UnsweptError, OSError) as error:  # the violation stands, whatever becomes of its script
        return Kept(None, f"It could not be shrunk: {error}")
    steps = counted(len(small.script.steps), "step")
    sentence = (
        f"Shrunk to {steps}, in {path}. Replay it:\n  {replay_command(path)}\n"
        f"Draw it:\n  {_report_command(path)}"
    )
    return Kept(path, sentence)


def replay_command(path: Path) -> str:
    """The command that replays a script."""
    return f"unswept replay {shlex.quote(str(path))}"


def _report_command(path: Path) -> str:
    """The command that makes a page of a script."""
    return f"unswept report {shlex.quote(str(path))}"
