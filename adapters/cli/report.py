"""`unswept report`: a run, or a script, as a page, its timeline as SVG or PNG; and the evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from attrs import fields_dict
from rich.console import Console

from unswept.adapters.cli.common import need_cattrs
from unswept.adapters.cli.evidence import PAGE, write_evidence
from unswept.adapters.cli.keep_script import replay_command
from unswept.adapters.cli.simulate_options import Campaign
from unswept.adapters.cli.targets import check_file, write
from unswept.adapters.evidence.records import folder
from unswept.adapters.report.composing import compose
from unswept.adapters.report.drawing import draw
from unswept.adapters.report.page import Subject, page
from unswept.adapters.report.png import png
from unswept.adapters.report.reading import Trace, find, is_script, read
from unswept.adapters.report.svg import svg
from unswept.adapters.report.words import counted, verdict
from unswept.core.checks import check_whole
from unswept.core.errors import MisuseError
from unswept.simulations.run import Settings


def report(
    run: Annotated[
        Path | None,
        typer.Argument(
            help="A trace (.jsonl), a folder of traces, or a script; with --evidence the folder of "
            "records.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page; by default report-seed-S.html, or that of a script, report-NAME.html, "
            "if no picture is asked for."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Which run of a folder; by default the first that broke a law."),
    ] = None,
    svg_file: Annotated[Path | None, typer.Option("--svg", help="The timeline as SVG.")] = None,
    png_file: Annotated[
        Path | None, typer.Option("--png", help="The timeline as PNG; needs the extra `report`.")
    ] = None,
    campaign: Annotated[
        Path | None,
        typer.Option(help="What `unswept simulate --json` printed: adds its table of designs."),
    ] = None,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence",
            help="Instead: each law with what proofs, explorer, simulator and others have shown of "
            "it, from their records, as evidence.html and evidence.md.",
        ),
    ] = False,
) -> None:
    """Write one page that needs no network: verdict, laws, and a timeline to look into. A script
    is carried out on a fresh store, and drawn.

    Exit code: 0 the files are written, 2 usage. The verdict is the page's, not this command's.
    With --evidence: 0 there are no holes, 1 something was refuted, 3 something was not found out, 4
    something was not put to the test.
    """
    if evidence:
        if any(each is not None for each in (seed, svg_file, png_file, campaign)):
            raise MisuseError("--evidence is of no one run: it goes with --out alone")
        if run is not None and not run.is_dir():
            raise MisuseError(f"{run} is no folder: expected one with the records of runs")
        raise typer.Exit(write_evidence(run or folder(), out or PAGE))
    if run is None:
        raise MisuseError("RUN is missing: a trace, or a folder of traces; or else --evidence")
    if seed is not None:
        check_whole("--seed", seed, 0, 2**63 - 1)
    for option, asked in (("--out", out), ("--svg", svg_file), ("--png", png_file)):
        if asked is not None:
            check_file(option, asked)
    file, listed = find(run, seed)
    trace = _played(file) if is_script(file) else read(file)
    if seed is not None and trace.run["seed"] != seed:
        raise MisuseError(f"--seed {seed}: {file} is of seed {trace.run['seed']}")
    picture = compose(trace)
    written: dict[Path, tuple[str, bytes]] = {}
    if svg_file is not None or png_file is not None:
        drawing = draw(picture, *_titles(trace))
        if svg_file is not None:
            written[svg_file] = ("--svg", svg(drawing).encode())
        if png_file is not None:
            written[png_file] = ("--png", png(drawing))
    elif out is None:
        out = Path(f"report-{_name(trace)}.html")
    if out is not None:
        campaigned = None if campaign is None else _campaign(campaign)
        subject = Subject(trace, picture, listed, campaigned, _replay(trace))
        written[out] = ("--out", page(subject).encode())
    console = Console()
    for target, (option, content) in written.items():
        write(option, target, content)
        console.print(f"{target}, {len(content) / 1024:.0f} kB", highlight=False, soft_wrap=True)
    console.print(f"[bold]{verdict(trace)[1]}[/bold]")


def _played(file: Path) -> Trace:
    need_cattrs()
    from unswept.adapters.report.playing import played

    return played(file)


def _name(trace: Trace) -> str:
    """What the files are called that are made of it."""
    if trace.shrunk is None:
        return f"seed-{trace.run['seed']}"
    return trace.file.name.removesuffix(".jsonl").removesuffix(".script")


def _titles(trace: Trace) -> tuple[str, str]:
    run, (_, words) = trace.run, verdict(trace)
    told = f"seed {run['seed']}, {run['settings'].get('design')}, unswept {run['version']}"
    if trace.shrunk is not None:
        told = f"{counted(trace.shrunk.steps, 'step')} of {told}"
    if trace.violation is None:
        return words, told
    return f"{words}: {told}", trace.violation["offence"]


def _campaign(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MisuseError(f"--campaign {file} cannot be read: {error}") from None
    if not isinstance(found, dict) or not {"designs", "settings", "violation"} <= found.keys():
        raise MisuseError(f"--campaign {file} is not what `unswept simulate --json` prints")
    return found


def _replay(trace: Trace) -> str | None:
    """The command that runs it again; None if this version has other settings."""
    run = trace.run
    if trace.shrunk is not None:
        return replay_command(trace.file)
    told: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in run["settings"].items()
    }
    if told.keys() != fields_dict(Settings).keys():
        return None
    return Campaign(Settings(**told), str(run["store"])).replay_command(int(run["seed"]))
