"""What a campaign came to, for people: its verdict, and the tables that it prints."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from rich.console import Console
from rich.table import Table

from unswept.adapters.cli.designs_table import add_verdict, designs_table
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.simulate_options import Campaign
from unswept.simulations.campaign import DEFAULT_SEEDS, Totals
from unswept.simulations.coverage import Matrix
from unswept.simulations.designs import DESIGNS
from unswept.simulations.faults import FAULTS
from unswept.simulations.headline import Cell
from unswept.simulations.mutants import Verdict
from unswept.simulations.profiles import PROFILES
from unswept.simulations.run import Found
from unswept.spec.laws import LAWS, Judges


@frozen
class Report:
    """All that a campaign came to. It does not depend on how the seeds were spread."""

    campaign: Campaign
    totals: Totals
    designs: tuple[Verdict, ...] = ()
    table: tuple[Cell, ...] = ()
    """The headline table; empty where the campaign is too small for it."""
    canary: Verdict | None = None
    """The design that fails on purpose; the shards of a campaign have each tried it."""

    @property
    def code(self) -> ExitCode:
        """The exit code. A refutation outranks a shortfall."""
        if self.totals.violation is not None:
            return ExitCode.REFUTED
        if self.totals.unequal_seed is not None:
            return ExitCode.NOT_DETERMINISTIC
        if not all(verdict.caught for verdict in self.designs):
            return ExitCode.COVERAGE_SHORT
        return ExitCode.COVERAGE_SHORT if self.shortfall() else ExitCode.HELD

    def shortfall(self) -> list[str]:
        """What a whole campaign owes and did not show."""
        if self.campaign.shard is not None:
            return []
        enough = self.campaign.is_whole() and self.totals.seeds >= DEFAULT_SEEDS
        if not enough and not self.campaign.require_coverage:
            return []
        return self.totals.missing() + self.matrix.thin(self.totals.coverage)

    @property
    def stands_for_all(self) -> bool:
        """Is it of a whole campaign, as far as it came?"""
        asked = self.campaign
        ran = self.totals.seeds >= DEFAULT_SEEDS or self.totals.ended
        return asked.is_whole() and asked.shard is None and ran

    @property
    def matrix(self) -> Matrix:
        """The transitions and faults that can meet in this campaign."""
        settings = self.campaign.settings
        return Matrix.of(settings.faults, fleet=settings.runners > 0)

    def empty_cells(self) -> list[str]:
        """The cells of transition x fault in which nothing happened, where that is asked for."""
        if not self.campaign.require_coverage and not self.shortfall():
            return []
        return self.matrix.empty(self.totals.coverage)

    @property
    def verdict(self) -> str:
        """The last sentence."""
        return {
            ExitCode.HELD: "Every law held: no heartbeated job was swept.",
            ExitCode.REFUTED: "A law was broken.",
            ExitCode.COVERAGE_SHORT: "Nothing was broken, but not everything was put to the test: "
            f"{self._short_of}.",
            ExitCode.NOT_DETERMINISTIC: f"Seed {self.totals.unequal_seed} gave two different runs.",
        }[self.code]

    @property
    def _short_of(self) -> str:
        """What it is short of, as far as a sentence goes."""
        missed = [verdict.design for verdict in self.designs if not verdict.caught]
        said = [f"{name} was not caught as it must be" for name in missed]
        if (owed := len(self.shortfall())) > 0:
            said.append(f"{owed} of what must sometimes happen never did, or too seldom")
        return "; ".join(said)

    @property
    def counted(self) -> str:
        """How much was run, of how much."""
        totals, shard = self.totals, self.campaign.shard
        asked = len(self.campaign.all_seeds())
        if shard is not None:
            mine = len(shard.of(self.campaign.all_seeds()))
            whole = f" of {mine} in shard {shard.index} of {shard.count} of {asked} seeds"
        else:
            whole = f" of {asked}" if totals.seeds < asked else ""
        hours = totals.simulated_ms / 3_600_000
        seeds = f"{totals.seeds}{whole}" if shard else f"{totals.seeds}{whole} seeds"
        return (
            f"{seeds}, {hours:.1f} simulated hours, {totals.commands} commands, "
            f"{totals.checked['LOCKSTEP']} replies compared with {self.campaign.store}"
        )

    @property
    def replay(self) -> str | None:
        """The command that replays the violation, or the seed that was not the same twice."""
        broken, unequal = self.totals.violated_seed, self.totals.unequal_seed
        seed = unequal if broken is None else broken
        return None if seed is None else self.campaign.replay_command(seed)


def sentence_of(law_id: str) -> str:
    """What a law says; empty for a difference between two stores, which is none."""
    return next((law.sentence for law in LAWS if law.id == law_id), "")


def explained(found: Found, seed: int, replay: str) -> str:
    """A violation as plain text: offence, law, last events, replay."""
    lines = [f"{found.law} was broken by seed {seed}: {found.offence}"]
    if sentence := sentence_of(found.law):
        lines.append(f"The law: {sentence}")
    lines += ["", "The last events before it, in simulated seconds:", *found.last_lines]
    return "\n".join((*lines, "", "Replay it:", f"  {replay}"))


def print_report(console: Console, report: Report, elapsed_s: float | None = None) -> None:
    """The tables, and the verdict; where a law was broken, that alone, and last."""
    totals = report.totals
    if totals.violation is None:
        _print_tables(console, report)
    took = "" if elapsed_s is None else f", in {elapsed_s:.1f} s"
    console.print(f"{report.counted}{took}", soft_wrap=True)
    if report.canary is not None:
        console.print(f"The canary {report.canary.design} was caught by {report.canary.law}.")
    if report.campaign.shard is not None:
        console.print("What must sometimes happen is owed by all shards: see unswept merge.")
    console.print(f"[bold]{report.verdict}[/bold]")
    if totals.violation is not None:
        _print_violation(console, report)


def _print_tables(console: Console, report: Report) -> None:
    totals = report.totals
    _print_counts(console, "Faults injected", totals.faults)
    _print_counts(console, "What must sometimes happen", totals.sometimes, totals.missing())
    _print_coverage(console, report)
    _print_laws(console, totals)
    if report.designs:
        _print_designs(console, report)
    if report.table:
        console.print(_headline(report.table))


def _print_violation(console: Console, report: Report) -> None:
    """What happened before it comes first: the offence and the commands are what is left to see."""
    found, seed = report.totals.violation, report.totals.violated_seed
    assert found is not None
    plain: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}
    console.print("\nThe last events before it, in simulated seconds:", **plain)
    for line in found.last_lines:
        console.print(f"  {line}", **plain)
    console.print(f"\n[bold red]{found.law} was broken[/bold red] by seed {seed}:", highlight=False)
    console.print(f"  {found.offence}", **plain)
    if sentence := sentence_of(found.law):
        console.print(f"  The law: {sentence}", **plain)
    console.print(f"\nRun the seed again:\n  {report.replay}", **plain)


def _print_counts(
    console: Console, title: str, counts: dict[str, int], missing: list[str] | None = None
) -> None:
    table = Table(title=title, title_justify="left", box=None, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        story = FAULTS[name].story if name in FAULTS else name
        if count:
            table.add_row(str(count), story)
    for name in missing or ():
        table.add_row("[yellow]never[/yellow]", name)
    console.print(table)


def _print_coverage(console: Console, report: Report) -> None:
    """How full the matrix of transition x fault is, and its empty cells where that matters."""
    matrix, counted = report.matrix, report.totals.coverage
    cells = len(matrix.cells())
    met = cells - len(matrix.empty(counted))
    console.print(f"{met} of {cells} cells of transition x fault were met.", highlight=False)
    for owed in matrix.thin(counted) if report.shortfall() else ():
        console.print(f"  [yellow]too few[/yellow]  {owed}", highlight=False)
    for name in report.empty_cells():
        console.print(f"  [yellow]empty[/yellow]  {name}", highlight=False)


def _print_laws(console: Console, totals: Totals) -> None:
    table = Table(title="Laws checked", title_justify="left", box=None)
    table.add_column("law")
    table.add_column("times", justify="right")
    table.add_column("what it says")
    for law in LAWS:
        if law.judges is not Judges.CODE:
            table.add_row(law.id, str(totals.checked[law.id]), law.sentence)
    console.print(table)


def _print_designs(console: Console, report: Report) -> None:
    design, totals = report.campaign.settings.design, report.totals
    table = designs_table()
    table.add_row(design, "held", f"1-{totals.seeds}", DESIGNS[design].sentence)
    for verdict in report.designs:
        add_verdict(table, verdict)
    console.print(table)


def by_design(cells: tuple[Cell, ...]) -> dict[str, dict[str, int]]:
    """Heartbeated jobs swept, by design and profile."""
    rows: dict[str, dict[str, int]] = {}
    for cell in cells:
        rows.setdefault(cell.design, {})[cell.profile] = cell.heartbeated_jobs_swept
    return rows


def _headline(cells: tuple[Cell, ...]) -> Table:
    table = Table(title="Heartbeated jobs swept", title_justify="left", box=None)
    table.add_column("design")
    for profile in PROFILES:
        table.add_column(profile, justify="right")
    for design, counts in by_design(cells).items():
        table.add_row(design, *(str(counts.get(profile, "")) for profile in PROFILES))
    return table
