"""The part of `unswept explore` that compares the least windows with the formula."""

from __future__ import annotations

import json
import time
from typing import Any

from attrs import frozen
from rich.console import Console
from rich.table import Table

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.keep_record import Keep
from unswept.adapters.cli.searching import COLOURS, in_processes, without_collector
from unswept.core.errors import MisuseError
from unswept.spec.explorer.designs import REAL
from unswept.spec.explorer.search import Search
from unswept.spec.explorer.windows import CASES, Bracket, Case, bracket


@frozen
class _WindowTask:
    case: Case
    limit: int


def compare_windows(
    design: str, workers: int, limit: int, console: Console, as_json: bool, keep: Keep
) -> ExitCode:
    """Search on both sides of the formula, print what came of it, and say how to end."""
    if design != REAL:
        raise MisuseError(f"--windows has designs of its own, so --design {design} says nothing")
    # The largest first, so that the processes end together.
    tasks = [_WindowTask(case, limit) for case in reversed(CASES)]
    began = time.monotonic()
    done = in_processes(_bracketed, tasks, workers, console, "windows")[::-1]
    code = _windows_verdict(done)
    result = _windows_as_json(done, code)
    keep(result)
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _print_windows(console, done, code, time.monotonic() - began)
    return code


def _bracketed(task: _WindowTask) -> Bracket:
    with without_collector():
        return bracket(task.case, task.limit)


def _windows_verdict(done: list[Bracket]) -> ExitCode:
    if any(found.complete and not found.agrees for found in done):
        return ExitCode.REFUTED
    return ExitCode.HELD if all(found.agrees for found in done) else ExitCode.UNDETERMINED


_WINDOWS_SAID = {
    ExitCode.HELD: "The formula is exact to one tick.",
    ExitCode.REFUTED: "The formula is wrong.",
    ExitCode.UNDETERMINED: "A search was given up before it had seen every state; that is no pass.",
}


_WINDOW_COLUMNS = ("retry", "pause", "k", "beat", "timeout", "too short", "least", "policy", "s")
_WINDOW_LEGEND = """
retry     of the owner, after a failed beat; pause: of the sweeper, between two beats; in heartbeats
k         flaps that come with the clock step
beat      the heartbeat, and timeout the operation timeout, in ticks
too short the greatest window that must be refuted by the formula, and least the next one, in ticks
policy    the window that a policy takes for too short (LeasePolicy.flaps_survived)"""


def _print_windows(console: Console, done: list[Bracket], code: ExitCode, elapsed: float) -> None:
    table = Table(title="Windows", title_justify="left", box=None)
    for heading in _WINDOW_COLUMNS:
        table.add_column(heading, justify="right")
    for found in done:
        case = found.case
        seconds = found.too_short.seconds + found.least.seconds
        table.add_row(
            case.row.retry,
            case.row.pause,
            str(case.flaps),
            str(case.heartbeat),
            str(case.timeout),
            _window(case.too_short, found.too_short),
            _window(case.too_short + 1, found.least),
            str(case.safe_side),
            f"{seconds:.1f}",
        )
    console.print(table, highlight=False)
    console.print(_WINDOW_LEGEND, highlight=False)
    states = sum(found.too_short.states + found.least.states for found in done)
    console.print(f"\n{states} states, in {elapsed:.1f} s", highlight=False)
    console.print(f"[bold]{_WINDOWS_SAID[code]}[/bold]")


def _window(ticks: int, found: Search) -> str:
    return f"[{COLOURS[found.verdict]}]{ticks}: {found.verdict}[/]"


def _windows_as_json(done: list[Bracket], code: ExitCode) -> dict[str, Any]:
    return {
        **code.verdict,
        "windows": [
            {
                "owner_retry": found.case.row.retry,
                "sweeper_pause": found.case.row.pause,
                "flaps": found.case.flaps,
                "heartbeat": found.case.heartbeat,
                "timeout": found.case.timeout,
                "too_short": found.case.too_short,
                "too_short_verdict": found.too_short.verdict,
                "least": found.case.too_short + 1,
                "least_verdict": found.least.verdict,
                "policy_bound": found.case.safe_side,
                "agrees": found.agrees,
            }
            for found in done
        ],
    }
