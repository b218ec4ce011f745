"""The rows of the table of faults, and the search for their seeds.

    python -m tests.fault_seeds          # says which rows show no more what they say
    python -m tests.fault_seeds --write  # finds other seeds and jobs for them, and renews the page

Whatever makes simulated runs draw other numbers makes other runs of all seeds.
"""

from __future__ import annotations

import re
import shlex
import sys
from functools import cache
from pathlib import Path
from typing import Any

import typer.main
from attrs import evolve, frozen

from tests.job_story import stories
from unswept.adapters.cli.main import app
from unswept.simulations.marks import Mark
from unswept.simulations.profiles import faults_of
from unswept.simulations.run import Outcome, Settings

PAGE = Path(__file__).resolve().parents[1] / "docs/reliability.md"
_ROW = re.compile(
    r"^\| `([a-z-]+)` \| [^|]+ \| `(unswept replay [^`]+)` \| ([^|]+) \| ([^|]*) \|$", re.MULTILINE
)
_SEEDS = 60
"""So many are tried for a row."""

Story = list[tuple[int, str]]


@frozen
class Row:
    """One fault of the table."""

    fault: str
    settings: Settings
    options: str
    """All that makes the run but the seed, as it stands in the command."""
    job: str
    begin: int
    """In simulated seconds, as `end`."""
    end: int
    words: tuple[str, ...]
    """What the job goes through, in this order."""
    marks: tuple[Mark, ...]
    """What happens in the run besides."""
    told: tuple[str, ...]
    """Scenarios of the same kind."""

    @property
    def command(self) -> str:
        """What a reader pastes."""
        return (
            f"unswept replay {self.settings.seed} {self.options} --job {self.job}"
            f" --from {self.begin} --to {self.end}"
        )

    def run(self) -> tuple[Outcome, dict[str, Story]]:
        """The run, with the story of each of its jobs."""
        outcome, told = stories(self.settings, self.fault)
        return outcome, told.of

    def seen(self, story: Story) -> tuple[int, int] | None:
        """The shortest stretch, in milliseconds, that ends with the first end of these words."""
        index = -1
        for word in self.words:
            later = (k for k in range(index + 1, len(story)) if story[k][1] == word)
            index = next(later, len(story))
            if index == len(story):
                return None
        begin = end = story[index][0]
        for word in reversed(self.words):
            index = max(k for k in range(index + 1) if story[k][1] == word)
            begin, index = story[index][0], index - 1
        return begin, end


def rows(page: str) -> list[Row]:
    """The table's."""
    return [_row(*found.groups()) for found in _ROW.finditer(page)]


def _row(fault: str, command: str, seen: str, told: str) -> Row:
    _, name, *words = shlex.split(command)
    given = _commands()[name].make_context(name, list(words)).params
    assert given["store"] == "memory:", command
    settings = Settings(
        int(given["target"]),
        given["hours"],
        given["instances"],
        faults_of(given["faults"]),
        runners=given["runners"],
    )
    story, _, marks = seen.partition(";")
    return Row(
        fault,
        settings,
        command.split(" ", 3)[3].split(" --job ")[0],
        given["job"],
        int(given["begin"]),
        int(given["end"]),
        tuple(story.split(", ")),
        tuple(Mark(mark) for mark in re.findall(r"\*(.+?)\*", marks)),
        tuple(filter(None, told.split(", "))),
    )


@cache
def _commands() -> dict[str, Any]:
    """Made once: it takes a moment, and every process of a test run reads the table."""
    group: Any = typer.main.get_command(app)
    commands: dict[str, Any] = group.commands
    return commands


def what_is_wrong(row: Row) -> str | None:
    """Why a reader of this row would not see what it says."""
    outcome, told = row.run()
    if outcome.violation is not None:
        return f"{outcome.violation.law} is broken: {outcome.violation.offence}"
    if not outcome.faults[row.fault]:
        return f"{row.fault} does not strike"
    missing = [mark.value for mark in row.marks if not outcome.sometimes[mark.value]]
    if missing:
        return f"it never comes to this: {missing[0]}"
    begin, end = 1000 * row.begin, 1000 * row.end
    shown = [(at, word) for at, word in told.get(row.job, []) if begin <= at <= end]
    if row.seen(shown) is None:
        return f"{row.job} goes through: {', '.join(word for _, word in shown)}"
    return None


def found_anew(row: Row) -> Row | None:
    """The same row with the first seed and job that show it."""
    for seed in range(1, _SEEDS + 1):
        tried = evolve(row, settings=evolve(row.settings, seed=seed))
        for job, story in tried.run()[1].items():
            seen = row.seen(story)
            if seen is not None:
                begin, end = seen[0] // 1000, -(-seen[1] // 1000)
                shows = evolve(tried, job=job, begin=begin, end=end)
                if what_is_wrong(shows) is None:
                    return shows
    return None


def main(write: bool) -> int:
    """Say which rows are wrong, or mend them."""
    page, wrong = PAGE.read_text(encoding="utf-8"), 0
    for row in rows(page):
        why = what_is_wrong(row)
        if why is None:
            continue
        print(f"{row.fault}: {why}")
        other = found_anew(row) if write else None
        if other is None:
            wrong += 1
        else:
            page = page.replace(f"`{row.command}`", f"`{other.command}`")
            print(f"  instead: {other.command}")
    if write:
        PAGE.write_text(page, encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
