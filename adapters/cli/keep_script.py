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
from unswept.simulations.run import Settings
from unswept.simulations.script import Script
from unswept.simulations.shrinking import shrink

FOLDER: Final = Path("unswept-violations")
AS_RECORDED: Final = "What an instance did stands in the script as it was recorded."
"""Where a script breaks a law of conduct: it says nothing of an instance that was repaired."""


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
    return Kept(path, _sentence(small.script, path, settings))


def _sentence(script: Script, path: Path, whole: Settings) -> str:
    """Where the script is, how far it shows what was found, and what to do with it."""
    lines = [f"Shrunk to {counted(len(script.steps), 'step')}, in {path}."]
    if evolve(script.settings, hours=whole.hours) != whole:
        lines.append(
            "It is cut out of a smaller run that breaks the same law: it is another incident than "
            "the one that was found, with jobs and instances of its own."
        )
    lines += ["Replay it:", f"  {replay_command(path)}", "Draw it:", f"  {_report_command(path)}"]
    if script.is_of_conduct:
        lines += [AS_RECORDED, "Only the seed, run again, judges a repaired instance."]
    return "\n".join(lines)


def replay_command(path: Path) -> str:
    """The command that replays a script."""
    return f"unswept replay {shlex.quote(str(path))}"


def _report_command(path: Path) -> str:
    """The command that makes a page of a script."""
    return f"unswept report {shlex.quote(str(path))}"
