"""`unswept db`: make or migrate a store's schema, verify it, or print it as SQL."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer
from attrs import evolve, frozen
from rich.console import Console

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.sqlite import files
from unswept.adapters.sqlite import schema as sqlite_schema
from unswept.adapters.sqlite.opening import Durability, Opener
from unswept.adapters.sqlite.patience import Wait
from unswept.adapters.sqlite.verifying import verify
from unswept.adapters.urls import is_postgres, need_psycopg, without_password
from unswept.core.errors import (
    MisuseError,
    OutcomeUnknownError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)

db = typer.Typer(
    name="db",
    help="A store's schema: create or migrate it, verify it, print it.",
    no_args_is_help=True,
    add_completion=False,
)

_PATIENCE_MS = 60_000
"""How long is waited for whoever has a file locked."""

StoreUrl = Annotated[
    str,
    typer.Option(
        help="sqlite:PATH or postgresql://USER@HOST/DATABASE; a password is best left to PGPASSWORD"
        " or a password file.",
        envvar="UNSWEPT_STORE",
        show_envvar=True,
    ),
]
Schema = Annotated[
    str | None, typer.Option(help="The schema of all tables, on Postgres; by default unswept.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@db.command()
def init(store: StoreUrl, schema: Schema = None, as_json: AsJson = False) -> None:
    """Create the schema, or bring it to the newest version.

    Exit code: 0 it is at the newest version, 1 what is there cannot be used, 2 usage, 3 the
    database is out of reach.
    """
    place = _place(store, schema)

    def work() -> tuple[str, dict[str, Any]]:
        before = place.look(True)
        found = {"version_before": before, "version": place.version}
        if before == place.version:
            return f"{place.name}: is at schema version {before} already", found
        origin = "created at" if before == 0 else f"migrated from schema version {before} to"
        return f"{place.name}: {origin} schema version {place.version}", found

    _tell(place, work, as_json)


@db.command()
def check(store: StoreUrl, schema: Schema = None, as_json: AsJson = False) -> None:
    """Verify that the schema is there, at the newest version; nothing is changed.

    Exit code: 0 it is, 1 it is not, 2 usage, 3 the database is out of reach.
    """
    place = _place(store, schema)

    def work() -> tuple[str, dict[str, Any]]:
        version = place.look(False)
        return f"{place.name}: has schema version {version}, the newest", {"version": version}

    _tell(place, work, as_json)


@db.command()
def sql(store: StoreUrl, schema: Schema = None, as_json: AsJson = False) -> None:
    """Print all migrations as SQL, for whoever may create tables; nothing is connected.

    Exit code: 0, or 2 usage.
    """
    place = _place(store, schema)
    if as_json:
        _print_json(place, ExitCode.HELD, {"version": place.version, "sql": place.sql})
    else:
        print(place.sql, end="")


def _tell(place: _Place, work: Callable[[], tuple[str, dict[str, Any]]], as_json: bool) -> None:
    """Print what the work came to; what is refused is the answer too."""
    try:
        said, found = work()
        code = ExitCode.HELD
    except StoreError as error:
        said = str(error)
        found = {"why": said}
        code = ExitCode.UNDETERMINED if isinstance(error, _OUT_OF_REACH) else ExitCode.REFUTED
    if as_json:
        _print_json(place, code, found)
    else:
        held = code is ExitCode.HELD
        Console(stderr=not held).print(
            said if held else f"unswept: {said}", markup=False, highlight=False, soft_wrap=True
        )
    raise typer.Exit(code)


_OUT_OF_REACH = (StoreUnavailableError, OutcomeUnknownError, StoreFullError)


def _print_json(place: _Place, code: ExitCode, found: dict[str, Any]) -> None:
    verdict = {**code.verdict, "store": place.name}
    print(json.dumps({**verdict, **found}, indent=2))


# The two kinds of database ----------------------------------------------------------------------


@frozen
class _Place:
    """Where a schema is, or is to be."""

    name: str
    """For messages; no password is in it."""
    version: int
    """The newest."""
    look: Callable[[bool], int]
    """Gives the version that is found; migrates if told so."""
    sql: str


def _place(store: str, schema: str | None) -> _Place:
    if is_postgres(store):
        need_psycopg()
        return _on_postgres(store, schema)
    return _in_file(file_of(store, schema))


def file_of(store: str, schema: str | None) -> str:
    """The path of the SQLite file that `--store` names; `MisuseError` where it names none."""
    if not store.startswith("sqlite:"):
        raise MisuseError(
            "--store must be sqlite:PATH or postgresql://USER@HOST/DATABASE, got"
            f" {without_password(store)}"
        )
    if schema is not None:
        raise MisuseError("--schema is for Postgres; a SQLite file has none")
    path = files.path_of(store)
    if path == files.MEMORY:
        raise MisuseError("--store must be one that outlives the command, got one in memory")
    return path


def _in_file(path: str) -> _Place:
    def look(migrate: bool) -> int:
        if not migrate:
            return verify(path, _PATIENCE_MS)
        opener = Opener(path, Durability.FULL, migrate=True)
        opener.connect(Wait(_PATIENCE_MS)).close()
        assert opener.found is not None
        return opener.found

    return _Place(path, sqlite_schema.VERSION, look, sqlite_schema.schema_sql())


def _on_postgres(url: str, schema: str | None) -> _Place:
    # The driver is an extra: only who names a Postgres store needs it.
    from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
    from unswept.adapters.postgres.schema import VERSION, schema_sql
    from unswept.adapters.postgres.settings import settings
    from unswept.adapters.postgres.store import prepare

    mine = settings(url, DEFAULT_SCHEMA if schema is None else schema)

    def look(migrate: bool) -> int:
        return prepare(evolve(mine, migrate=migrate))

    return _Place(mine.where, VERSION, look, schema_sql(mine.schema))
