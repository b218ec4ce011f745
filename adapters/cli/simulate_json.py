"""A campaign as JSON, for machines, and a shard of one as it is written, read and put together."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

from attrs import asdict, define, evolve, field, fields

from unswept.adapters.cli.simulate_options import Campaign, checked
from unswept.adapters.cli.simulate_report import Report
from unswept.adapters.json_file import read_json
from unswept.core.errors import MisuseError
from unswept.simulations.campaign import Checked, Shard, Totals, broken_designs, up_to_the_end
from unswept.simulations.headline import Cell, cells
from unswept.simulations.mutants import Verdict
from unswept.simulations.run import Found, Outcome, Settings

C = TypeVar("C")


def as_json_object(report: Report) -> dict[str, Any]:
    """What a campaign, or a shard, came to."""
    campaign, totals = report.campaign, report.totals
    found = asdict(totals)
    if report.replay is not None:
        found["replay"] = report.replay
    return {
        **report.code.verdict,
        "store": campaign.store,
        "settings": {**asdict(campaign.settings), "seed": campaign.seed},
        "seeds_asked": len(campaign.all_seeds()),
        **found,
        "never": totals.missing(),
        "short": report.shortfall(),
        "empty_cells": report.empty_cells(),
        "designs": [asdict(verdict) for verdict in report.designs],
        "table": [asdict(cell) for cell in report.table],
    }


@define
class Part:
    """What was run of a campaign; of a shard also each outcome, so that shards can be put together
    just as if they had been one run."""

    campaign: Campaign
    outcomes: list[Checked] = field(factory=list)
    designs: list[Verdict] = field(factory=list)
    table: list[Cell] = field(factory=list)

    def keep(self, outcome: Checked) -> None:
        """Keep an outcome, if it will be asked for."""
        if self.campaign.shard is not None:
            self.outcomes.append(outcome)

    def as_json(self) -> dict[str, Any]:
        """What `merge` needs beside what everybody wants to know."""
        if self.campaign.shard is None:
            return {}
        return {
            "shard": asdict(self.campaign.shard),
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
        }


def read_part(path: Path) -> Part:
    """The shard that a file holds, as `unswept simulate --shard I/N --json` prints it."""
    found = read_json(path, path.name)
    if not isinstance(found, dict) or "shard" not in found:
        raise MisuseError(
            f"{path.name} is no shard of a campaign: unswept simulate --shard I/N --json prints one"
        )
    try:
        return _part(found)
    except MisuseError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MisuseError(f"{path.name} is damaged, or of another version: {error!r}") from None


def _part(found: dict[str, Any]) -> Part:
    settings = {**found["settings"], "seed": 1, "faults": tuple(found["settings"]["faults"])}
    campaign = Campaign(
        Settings(**settings),
        str(found["store"]),
        found["seeds_asked"],
        shard=Shard(**found["shard"]),
    )
    return Part(
        checked(campaign),
        [Checked(_outcome(each["outcome"]), each["same"]) for each in found["outcomes"]],
        [_verdict(verdict) for verdict in found["designs"]],
        [Cell(**cell) for cell in found["table"]],
    )


def _outcome(found: dict[str, Any]) -> Outcome:
    violation = found["violation"]
    return _made(Outcome, {**found, "violation": violation and _made(Found, violation)})


def _verdict(found: dict[str, Any]) -> Verdict:
    return _made(Verdict, {**found, "found": found["found"] and _made(Found, found["found"])})


def _made(kind: type[C], found: dict[str, Any]) -> C:
    """JSON has no counters and no tuples."""
    known = {name.name for name in fields(kind)}  # type: ignore[arg-type]
    if set(found) != known:
        raise ValueError(f"{kind.__name__} has {sorted(set(found) ^ known)}")
    return kind(**{name: _native(value) for name, value in found.items()})


def _native(value: Any) -> Any:
    if isinstance(value, dict):
        return Counter(value)
    return tuple(value) if isinstance(value, list) else value


def put_together(parts: list[Part]) -> Report:
    """The report of the whole campaign, just as if it had been one run."""
    parts = sorted(parts, key=lambda part: part.campaign.part().index)
    first = parts[0].campaign
    for part in parts:
        if evolve(part.campaign, shard=first.shard) != first:
            raise MisuseError("the files are of different campaigns: their settings differ")
        if part.campaign.part().count != first.part().count:
            raise MisuseError(
                f"the files are of campaigns cut into {first.part().count} and into "
                f"{part.campaign.part().count} shards"
            )
    _check_complete([part.campaign.part() for part in parts])
    outcomes = sorted(
        (outcome for part in parts for outcome in part.outcomes), key=lambda o: o.outcome.seed
    )
    totals = Totals()
    for outcome in up_to_the_end(outcomes):
        totals.add(outcome)
    whole = evolve(first, shard=None)
    if totals.ended:
        return Report(whole, totals)
    names, places = broken_designs(), cells()
    designs = (verdict for part in parts for verdict in part.designs)
    table = (cell for part in parts for cell in part.table)
    return Report(
        whole,
        totals,
        tuple(sorted(designs, key=lambda verdict: names.index(verdict.design))),
        tuple(sorted(table, key=lambda cell: places.index((cell.design, cell.profile)))),
    )


def _check_complete(shards: list[Shard]) -> None:
    count = shards[0].count
    given = Counter(shard.index for shard in shards)
    missing = [str(index) for index in range(1, count + 1) if not given[index]]
    if missing:
        raise MisuseError(f"of {count} shards these are missing: {', '.join(missing)}")
    twice = [str(index) for index, times in given.items() if times > 1]
    if twice:
        raise MisuseError(f"these shards were given twice: {', '.join(twice)}")
