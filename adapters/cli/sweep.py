"""`unswept sweep`: an instance that does nothing but sweep, for as long as it takes."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Final

import typer
from attrs import asdict
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress as Bar

from unswept.adapters.cli.check_config import Config
from unswept.adapters.cli.common import progress_bar, rows_console, rows_table
from unswept.adapters.cli.db import AsJson, Schema, StoreUrl
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.stores import looking, opened
from unswept.adapters.doctor.suspects import Sighting, look_for_suspects, window_of
from unswept.adapters.gateway.config import load
from unswept.adapters.gateway.signals import signals
from unswept.adapters.gateway.sweeping import Fate, Outcome, Progress, SweepingInstance, Swept
from unswept.core.commands import Store
from unswept.core.errors import MisuseError
from unswept.core.heart import Phase
from unswept.core.policy import LeasePolicy
from unswept.core.units import Ms

MAX_SECONDS: Final = 1_000_000
ONE_LOOK: Final = (
    "One look proves nothing: after an outage or a step of the store's clock every lease looks like"
    " this, and live owners renew within a heartbeat. `unswept sweep` waits and looks again."
)


def sweep(
    store: StoreUrl,
    schema: Schema = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the suspects by one look, and change nothing.")
    ] = False,
    config: Config = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="SECONDS",
            help="How long at most; by default until no suspect is left.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Sweep what dead owners have left, as an instance that does nothing else.

    It registers, beats, and looks for suspects; it sweeps one only if it was seen again, unrenewed,
    after its whole window, during which its own heart never missed. It ends when no suspect that it
    saw is left, and deregisters, also on SIGINT and SIGTERM.

    Exit code: 0 no suspect is left, or listed; 2 usage; 3 it ended before every suspect was
    decided, or the store cannot be asked.
    """
    policy = load(config).policy
    if dry_run:
        if seconds is not None:
            raise MisuseError("--for is for a sweep; --dry-run looks once")
        with looking(store, schema) as look:
            look.version()
            sighting = look_for_suspects(look)
        _tell_sighting(sighting, policy, as_json)
        return
    limit_ms = _limit_ms(seconds)
    with (
        opened(store, schema, policy.operation_timeout_ms) as place,
        progress_bar(Console(stderr=as_json)) as bar,
    ):
        swept = asyncio.run(_run(place, policy, limit_ms, _Shown(bar)))
    _tell_swept(swept, as_json)


# A sweep ------------------------------------------------------------------------------------------


async def _run(store: Store, policy: LeasePolicy, limit_ms: Ms | None, shown: _Shown) -> Swept:
    with signals() as stop:
        return await SweepingInstance(store, policy).run(stop, limit_ms, shown)


class _Shown:
    """What is waited for, and for how long at most, in one line."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._task = bar.add_task("registering", total=None)

    def __call__(self, progress: Progress) -> None:
        """How it stands now."""
        total = progress.seen if progress.looked else None
        words = escape(_waits_for(progress))  # an error's words may hold brackets
        self._bar.update(self._task, description=words, total=total, completed=progress.decided)


def _waits_for(progress: Progress) -> str:
    if progress.phase is not Phase.STEADY:
        why = "" if progress.last_error is None else f": {progress.last_error}"
        return f"the heart is {progress.phase}{why}"
    left = progress.seen - progress.decided
    if not left:
        return f"looking for suspects within {progress.look_every_ms / 1000:.1f} s"
    longest = (progress.left_ms or 0) / 1000
    return f"suspects: {left}, the last ripens within {longest:.1f} s unless it is renewed"


def _limit_ms(seconds: float | None) -> Ms | None:
    if seconds is None:
        return None
    if not 0 < seconds <= MAX_SECONDS:
        raise MisuseError(f"--for must be above 0 and at most {MAX_SECONDS}, got {seconds:g}")
    return Ms(max(1, round(seconds * 1000)))


def _tell_swept(swept: Swept, as_json: bool) -> None:
    decided = swept.looked and not swept.left
    code = ExitCode.HELD if decided else ExitCode.UNDETERMINED
    if as_json:
        verdict = {**code.verdict, "left": swept.left}
        print(json.dumps({**verdict, **asdict(swept)}, indent=2))
        raise typer.Exit(code)
    console = rows_console()
    if swept.fates:
        table = rows_table("job", "came of it", "by", "stands as", "owner", "epoch")
        for each in swept.fates:
            table.add_row(*_fate_words(each))
        console.print(table)
    console.print(_summary(swept), soft_wrap=True)
    raise typer.Exit(code)


def _fate_words(fate: Fate) -> tuple[str, ...]:
    return (
        fate.job_id,
        "still waiting" if fate.outcome is Outcome.WAITING else fate.outcome.value,
        "this sweep" if fate.swept_here else "",
        "" if fate.status is None else fate.status.value,
        fate.owner or "",
        str(fate.epoch),
    )


def _summary(swept: Swept) -> str:
    if not swept.looked:
        why = "" if swept.last_error is None else f": {swept.last_error}"
        return f"It ended before its first look at the suspects was over{why}"
    if not swept.fates:
        return "There is no suspect: nothing to sweep."
    counted = f"Suspects seen: {len(swept.fates)}, left undecided: {swept.left}."
    if swept.left:
        return f"{counted} Sweep again, for longer: every run begins its suspicions anew."
    return counted


# A dry run ----------------------------------------------------------------------------------------


def _tell_sighting(sighting: Sighting, policy: LeasePolicy, as_json: bool) -> None:
    windows = [window_of(each, policy) for each in sighting.suspects]
    if as_json:
        rows = [
            {**asdict(each), "window_ms": window}
            for each, window in zip(sighting.suspects, windows, strict=True)
        ]
        print(json.dumps({"at": sighting.at, "note": ONE_LOOK, "suspects": rows}, indent=2))
        return
    console = rows_console()
    if not sighting.suspects:
        console.print("There is no suspect.")
        return
    table = rows_table(
        "suspect", "owner", "epoch", "beats", "deadline past for", "window", "requeue"
    )
    for each, window in zip(sighting.suspects, windows, strict=True):
        table.add_row(
            each.job_id,
            each.owner,
            str(each.epoch),
            str(each.beats),
            f"{(sighting.at - each.deadline) / 1000:.1f} s",
            f"{window / 1000:.1f} s",
            each.requeue.value,
        )
    console.print(table)
    console.print(ONE_LOOK, soft_wrap=True)
