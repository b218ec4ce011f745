"""`unswept replay`: step through a seed, carry out a script again, or a trace's recipe."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Final

import typer
from attrs import frozen
from rich.console import Console
from rich.text import Text

from unswept.adapters.cli.common import need_cattrs
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.keep_script import AS_RECORDED
from unswept.adapters.cli.replay_view import moment_lines, shown_lines
from unswept.adapters.cli.simulate_options import DEFAULT, Campaign, checked
from unswept.adapters.report.words import counted
from unswept.adapters.urls import TEMPORARY, SimulatedStore, reopened, without_password
from unswept.core.errors import MisuseError
from unswept.simulations.campaign import EPOCH
from unswept.simulations.designs import DESIGNS
from unswept.simulations.playback import Moment, PlayedRun
from unswept.simulations.profiles import faults_of
from unswept.simulations.run import Settings
from unswept.simulations.script import Broken, Script, Shown, carried_out
from unswept.simulations.timeline import StoreClock, Timeline

_AROUND: Final = 25
"""How many moments before the end are shown where nothing else is asked for."""


@frozen
class Window:
    """Which moments are wanted."""

    begin: float | None
    end: float | None
    """In simulated seconds."""
    instance: str | None
    job: str | None

    def wants(self, moment: Moment) -> bool:
        """Is this one of them?"""
        if self.begin is not None and moment.at < self.begin * 1000:
            return False
        if self.end is not None and moment.at > self.end * 1000:
            return False
        if self.job is not None and self.job not in moment.jobs:
            return False
        return self.instance is None or self.instance in moment.instances

    @property
    def is_around_the_end(self) -> bool:
        """Only what came last is wanted."""
        return self.begin is None and self.end is None


def replay(
    target: Annotated[
        str, typer.Argument(metavar="SEED|FILE", help="A seed, a script or a trace.")
    ],
    store: Annotated[
        str | None,
        typer.Option(help="The store under test; by default sqlite:, or the file's own."),
    ] = None,
    hours: Annotated[float | None, typer.Option(help="Of a seed: simulated hours.")] = None,
    instances: Annotated[int | None, typer.Option(help="Of a seed: gateways at a time.")] = None,
    runners: Annotated[int | None, typer.Option(help="Of a seed: runners at a time.")] = None,
    faults: Annotated[str | None, typer.Option(help="Of a seed: all, none or a list.")] = None,
    design: Annotated[
        str | None, typer.Option(help="The design under test; by default the file's own.")
    ] = None,
    begin: Annotated[
        float | None, typer.Option("--from", help="Of a seed: from this simulated second on.")
    ] = None,
    end: Annotated[
        float | None, typer.Option("--to", help="Of a seed: up to this simulated second.")
    ] = None,
    instance: Annotated[
        str | None, typer.Option(help="Of a seed: only what this instance takes part in.")
    ] = None,
    job: Annotated[str | None, typer.Option(help="Of a seed: only what concerns this job.")] = None,
    specification: Annotated[
        bool,
        typer.Option(
            "--specification",
            help="Of a trace: instead judge each command by the protocol's specification.",
        ),
    ] = False,
    step: Annotated[
        bool, typer.Option("--step", help="Wait for Enter before each step, in a terminal.")
    ] = False,
) -> None:
    """Step through a seed: what each instance believed, what the store held, which law looked at
    what. A script (*.script.jsonl) is carried out on a fresh store; a trace is run again and
    compared, or, with --specification, judged.

    Exit code: 0 no law was broken, 1 one was, 2 usage, 3 it could not be found out, 5 a trace of
    this version came out differently.
    """
    printer = _Printer(Console(), step)
    if specification:
        raise typer.Exit(_judge(Path(target), printer))
    of_a_seed = {
        "--hours": hours,
        "--instances": instances,
        "--runners": runners,
        "--faults": faults,
        "--from": begin,
        "--to": end,
        "--instance": instance,
        "--job": job,
    }
    if target.isascii() and target.isdigit():
        settings = Settings(
            int(target),
            DEFAULT.hours if hours is None else hours,
            DEFAULT.instances if instances is None else instances,
            faults_of("all" if faults is None else faults),
            DEFAULT.design if design is None else design,
            DEFAULT.runners if runners is None else runners,
        )
        checked(Campaign(settings, "", seed=settings.seed))
        window = Window(begin, end, instance, job)
        code = _replay_seed(settings, SimulatedStore(store or TEMPORARY), window, printer)
    else:
        for name, value in of_a_seed.items():
            if value is not None:
                raise MisuseError(f"{name} is for the replay of a seed, and {target} is a file")
        code = _replay_file(Path(target), store, design, printer)
    raise typer.Exit(code)


# A seed -------------------------------------------------------------------------------------------


def _replay_seed(
    settings: Settings, opener: SimulatedStore, window: Window, printer: _Printer
) -> ExitCode:
    last: deque[Moment] = deque(maxlen=_AROUND)
    shown = False

    def show(moment: Moment) -> None:
        nonlocal shown
        if not window.wants(moment):
            return
        shown = True
        if window.is_around_the_end:
            last.append(moment)
        else:
            printer.print(moment_lines(moment))

    clock = StoreClock(Timeline(), EPOCH)
    with opener(clock, settings.seed) as under_test:
        outcome = PlayedRun(settings, under_test, clock, show).outcome()
    printer.pages(moment_lines(moment) for moment in last)
    found = outcome.violation
    if not shown:
        printer.say("There was nothing of what --instance, --job, --from and --to ask for.")
    if found is None:
        printer.say(f"Seed {settings.seed}: every law held, up to {outcome.simulated_ms / 1000} s.")
        return ExitCode.HELD
    printer.say(f"{found.law} was broken at {found.at_ms / 1000} s: {found.offence}")
    return ExitCode.REFUTED


# A file -------------------------------------------------------------------------------------------


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"neither a seed nor a file that can be read: {path} ({error})") from None
    need_cattrs()
    return text.splitlines()


def _judge(path: Path, printer: _Printer) -> ExitCode:
    lines = _lines(path)
    from unswept.adapters.cli.replay_trace import ends_early
    from unswept.simulations.behaviours import judged

    if not lines:
        raise MisuseError(f"{path} is no trace: its first line is not of type run")
    try:
        found = judged(lines)
    except MisuseError as error:
        raise MisuseError(f"{path}, {error}") from None
    if found.offence is None:
        if (early := ends_early(lines)) is not None:
            printer.say(f"{path} {early}. Up to there each command is a step.")
            return ExitCode.UNDETERMINED
        printer.say(f"Each of {found.commands} commands is a step of the specification.")
        return ExitCode.HELD
    printer.say(f"Line {found.line} is no step of the specification: {found.offence}")
    return ExitCode.REFUTED


def _replay_file(path: Path, store: str | None, design: str | None, printer: _Printer) -> ExitCode:
    lines = _lines(path)
    from unswept.adapters.cli.replay_trace import compared
    from unswept.simulations.script_file import object_of, script_of

    try:
        kind = object_of(lines[0] if lines else "").get("type")
    except MisuseError as error:
        raise MisuseError(f"{path}, line 1: {error}") from None
    if kind == "run":
        if design is not None:
            raise MisuseError(f"--design is for a seed or a script, and {path} is a trace")
        verdict = compared(lines, str(path), store)
        for line in verdict.lines:
            printer.say(line)
        return verdict.code
    return _replay_script(script_of(lines, str(path)), store, design, printer)


def _replay_script(
    script: Script, store: str | None, design: str | None, printer: _Printer
) -> ExitCode:
    design = script.settings.design if design is None else design
    if design not in DESIGNS:
        raise MisuseError(f"--design must be one of {', '.join(DESIGNS)}, got {design}")
    opener = SimulatedStore(reopened(script.store) if store is None else store)
    url = without_password(opener.url)
    steps = counted(len(script.steps), "step")
    printer.say(f"{steps} that broke {script.law}, told to the design {design} on {url}\n")
    began_at = script.steps[0].store_at

    def show(shown: Shown) -> None:
        printer.print(shown_lines(shown, began_at))

    broken = carried_out(script.steps, design, opener, watch=show)
    return _script_verdict(script, broken, printer)


def _script_verdict(script: Script, broken: Broken | None, printer: _Printer) -> ExitCode:
    if broken is None:
        printer.say(f"\nNo law was broken; {script.law} holds here.")
        printer.say(f"Where the script was made: {script.offence}")
        return ExitCode.HELD
    where = f"step {broken.index + 1}"
    if broken.index == len(script.steps):
        where = "the comparison of all rows at the end"
    other = "" if broken.law == script.law else f" (the script was made for {script.law})"
    printer.say(f"\n{broken.law} was broken by {where}{other}: {broken.offence}")
    if script.is_of_conduct:
        seed = Campaign(script.settings, script.store).replay_command(script.settings.seed)
        printer.say(f"{AS_RECORDED} Only its seed judges a repaired instance:\n  {seed}")
    return ExitCode.REFUTED


class _Printer:
    """Prints step after step, a page at a time or at every Enter."""

    def __init__(self, console: Console, step: bool) -> None:
        self._console = console
        self._waits = step and console.is_terminal and sys.stdin.isatty()

    def say(self, sentence: str) -> None:
        """A line of its own."""
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def print(self, lines: Iterable[Text]) -> None:
        """One step."""
        for line in lines:
            self._console.print(line, soft_wrap=True)
        if self._waits:
            self._console.input()

    def pages(self, steps: Iterable[Iterable[Text]]) -> None:
        """Many steps."""
        paged = self._console.is_terminal and not self._waits
        with self._console.pager(styles=True) if paged else nullcontext():
            for lines in steps:
                self.print(lines)
