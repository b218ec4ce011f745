"""The `unswept` command."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

from unswept.adapters.cli.commands import Commands
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.urls import without_password
from unswept.adapters.version import version
from unswept.core.errors import MisuseError, UnsweptError


class _Commands(TyperGroup):
    """Typer quotes a word that it did not expect, and that may be a URL with a password; and where
    nobody reads any more what is printed, it would end with 1, as if something were refuted."""

    def __init__(self, **settings: Any) -> None:
        """Typer's own way to find commands imports them all."""
        super().__init__(**settings)
        self.commands: Any = Commands()

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(self.commands)

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


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"unswept {version()}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
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
    # What it quotes came from files and stores, and must not steer the terminal.
    said = "".join(ch if ch.isprintable() or ch == "\n" else repr(ch)[1:-1] for ch in said)
    Console(stderr=True).print(f"unswept: {said}", markup=False, soft_wrap=True)
    if "--json" in sys.argv[1:]:
        verdict = {**code.verdict, "why": said}
        print(json.dumps(verdict, indent=2))
    sys.exit(code)
