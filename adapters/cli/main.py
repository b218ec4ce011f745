"""The `unswept` command."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

from unswept.adapters.cli import db, operate
from unswept.adapters.cli.audit import audit
from unswept.adapters.cli.chaos import chaos
from unswept.adapters.cli.chart import chart
from unswept.adapters.cli.check_config import check_config
from unswept.adapters.cli.doctor import doctor
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.explore import explore
from unswept.adapters.cli.fleet import fleet
from unswept.adapters.cli.merge import merge
from unswept.adapters.cli.mutants import mutants
from unswept.adapters.cli.orphans import orphans
from unswept.adapters.cli.prove import prove
from unswept.adapters.cli.query import query
from unswept.adapters.cli.replay import replay
from unswept.adapters.cli.report import report
from unswept.adapters.cli.scenarios import scenarios
from unswept.adapters.cli.simulate import simulate
from unswept.adapters.cli.sweep import sweep
from unswept.adapters.urls import without_password
from unswept.core.errors import MisuseError, UnsweptError


class _Commands(TyperGroup):
    """Typer quotes a word that it did not expect, and that may be a URL with a password; and where
    nobody reads any more what is printed, it would end with 1, as if something were refuted."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            # What is still to be written must not fail at the interpreter's end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.UNDETERMINED) from None
        except SystemExit:  # rich's way to say the same; a command raises `typer.Exit`
            raise typer.Exit(ExitCode.UNDETERMINED) from None
        except Exception as error:
            if isinstance(said := getattr(error, "message", None), str):
                error.message = without_password(said)  # type: ignore[attr-defined]
            raise


app = typer.Typer(
    cls=_Commands,
    name="unswept",
    help="Durable job leases: no heartbeated job is ever swept.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(simulate)
app.command()(merge)
app.command()(query)
app.command()(mutants)
app.command()(replay)
app.command()(scenarios)
app.command()(report)
app.command()(prove)
app.command()(explore)
app.command()(chart)
app.command()(chaos)
app.command()(fleet)
app.command()(audit)
app.command()(doctor)
app.command()(check_config)
app.command()(operate.job)
app.command()(operate.jobs)
app.command()(operate.instances)
app.command()(orphans)
app.command()(sweep)
app.command()(operate.cancel)
app.command()(operate.requeue)
app.command()(operate.settle)
app.add_typer(db.app)


@app.callback()
def _root() -> None:
    """Durable job leases: no heartbeated job is ever swept."""


def main() -> None:
    """Run the command; what the caller or the outside world did wrong is said in one line."""
    try:
        app()
    except MisuseError as error:
        _end(error, ExitCode.USAGE)
    except UnsweptError as error:  # the outside world did it
        _end(error, ExitCode.UNDETERMINED)
    except Exception:  # a harness that fails has found nothing out: exit 1 would say it had
        Console(stderr=True).print_exception()
        sys.exit(ExitCode.UNDETERMINED)


def _end(error: UnsweptError, code: ExitCode) -> NoReturn:
    """An error quotes what was asked for, and that may be a URL in a wrong place. Who asked for one
    JSON object gets one."""
    # Word by word: between the example of a URL and the URL that was given stands what to do.
    said = " ".join(without_password(word) for word in str(error).split(" "))
    Console(stderr=True).print(f"unswept: {said}", markup=False, soft_wrap=True)
    if "--json" in sys.argv[1:]:
        verdict = {**code.verdict, "why": said}
        print(json.dumps(verdict, indent=2))
    sys.exit(code)
