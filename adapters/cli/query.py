"""`unswept query`: ask recorded runs in SQL, or judge them by the laws as SQL."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.traces import need_traces
from unswept.core.errors import MisuseError

if TYPE_CHECKING:
    from unswept.adapters.traces.laws import Judgement
    from unswept.adapters.traces.store import Rows, TraceStore


def query(
    run: Annotated[
        Path,
        typer.Argument(help="A folder that `unswept simulate --trace` made, or one trace of it."),
    ],
    sql: Annotated[
        str | None, typer.Argument(help="One SELECT, of DuckDB; without it the views are listed.")
    ] = None,
    laws: Annotated[
        bool, typer.Option("--laws", help="Judge the runs by the laws as SQL instead.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
) -> None:
    """Ask recorded runs in SQL.

    Exit code: 0 answered, or no law was broken; 1 a law was broken; 2 usage, also of SQL; 3 the
    laws as SQL and the simulator judge a run differently, or a trace ends early and no law was
    broken up to there.
    """
    if as_json and as_csv:
        raise MisuseError("--json and --csv: name one of them")
    if laws and sql is not None:
        raise MisuseError("--laws judges by SQL of its own: leave yours out")
    need_traces()
    from unswept.adapters.traces.store import TraceStore

    with TraceStore(run) as traces:
        if laws:
            code = _judge(traces, as_json, as_csv)
        else:
            _print_rows(_views(traces) if sql is None else traces.query(sql), as_json, as_csv)
            code = ExitCode.HELD
    raise typer.Exit(code)


def _views(traces: TraceStore) -> Rows:
    from unswept.adapters.traces.store import Rows

    return Rows(
        ("view", "column", "what it says"),
        tuple(
            row
            for view in traces.relations()
            for row in (
                (view.name, "", view.sentence),
                *((view.name, column, words) for column, words in view.columns.items()),
            )
        ),
    )


def _judge(traces: TraceStore, as_json: bool, as_csv: bool) -> ExitCode:
    from unswept.adapters.traces.laws import disagreements, ended_early, judge

    judgements = judge(traces)
    early = ended_early(traces)
    differ = disagreements(judgements, early)
    if as_json:
        print(json.dumps(_as_json(judgements, differ, early), indent=2))
    else:
        _print_rows(_verdicts(judgements, bool(early)), as_json, as_csv)
        for problem in (*differ, *map(_ends_early, early)):
            Console(stderr=True).print(problem, markup=False, highlight=False, soft_wrap=True)
    if differ:
        return ExitCode.UNDETERMINED
    if any(each.broken for each in judgements):
        return ExitCode.REFUTED
    return ExitCode.UNDETERMINED if early else ExitCode.HELD


def _ends_early(seed: int) -> str:
    return f"The trace of seed {seed} ends early: it has no line of type end"


def _verdicts(judgements: tuple[Judgement, ...], early: bool) -> Rows:
    from unswept.adapters.traces.store import Rows

    return Rows(
        ("law", "judged", "offences", "by the simulator", "verdict"),
        tuple(
            (
                each.law.id,
                each.judged if each.why_not is None else None,
                len(each.offences) if each.why_not is None else None,
                len(each.reported),
                _verdict(each, early),
            )
            for each in judgements
        ),
    )


def _verdict(each: Judgement, early: bool) -> str:
    if each.offences:
        first = each.offences[0]
        job = "" if first.job is None else f"{first.job}: "
        return f"broken: seed {first.seed}, command {first.n}: {job}{first.offence}"
    if each.reported:
        return f"broken in seed {each.reported[0]}, by the simulator's judgement"
    if each.why_not is not None:
        return f"not judged: {each.why_not}"
    if early:
        return "undetermined: not broken, and a trace ends early"
    return "held" if each.judged else "held: there was nothing to judge"


def _as_json(
    judgements: tuple[Judgement, ...], differ: list[str], early: tuple[int, ...]
) -> dict[str, Any]:
    return {
        "laws": [
            {
                "law": each.law.id,
                "sentence": each.law.sentence,
                "judged": each.judged if each.why_not is None else None,
                "offences": [
                    {"seed": o.seed, "n": o.n, "job": o.job, "offence": o.offence}
                    for o in each.offences
                ],
                "reported_for_seeds": list(each.reported),
                "why_not": each.why_not,
            }
            for each in judgements
        ],
        "disagreements": differ,
        "ends_early": list(early),
    }


def _print_rows(rows: Rows, as_json: bool, as_csv: bool) -> None:
    if as_json:
        found = [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]
        print(json.dumps(found, indent=2, default=str))
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(rows.columns)
        writer.writerows(rows.rows)
    else:
        table = Table(box=None)
        for column in rows.columns:
            table.add_column(column)
        for row in rows.rows:
            table.add_row(*("" if value is None else str(value) for value in row))
        Console(markup=False, highlight=False).print(table)
