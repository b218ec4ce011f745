"""Numbered migrations: files `0001_name.sql` of a package, to be applied in order and printed.

A statement ends with a line that ends in a semicolon. A file that has been released never changes:
what it got wrong, a later one puts right.
"""

from __future__ import annotations

import re
from importlib.resources import files

from attrs import frozen

from unswept.core.errors import StoreVersionError


@frozen
class Migration:
    """One numbered step of the schema."""

    number: int
    name: str
    sql: str

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements one by one, each with the comments that precede it."""
        parts = re.split(r"(?<=;)[ \t]*\n", self.sql)
        return tuple(part.strip() for part in parts if part.strip())


def load(package: str, folder: str = "migrations") -> tuple[Migration, ...]:
    """The migrations of a package in the order of their numbers, which leave no gap."""
    found = []
    for file in files(package).joinpath(folder).iterdir():
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name)
        if match is not None:
            sql = file.read_text(encoding="utf-8")
            found.append(Migration(int(match[1]), match[2], sql))
    found.sort(key=lambda migration: migration.number)
    numbers = [migration.number for migration in found]
    if not found or numbers != list(range(1, len(found) + 1)):
        raise ValueError(
            f"migrations of {package} must be numbered from 1 without a gap: {numbers}"
        )
    return tuple(found)


@frozen
class Advice:
    """What a database calls what it can do instead, in the messages of `check_version`."""

    place: str
    """What another of could be named."""
    migrate: str
    """How to migrate, besides `unswept db init`."""


def check_version(found: int, newest: int, where: str, advice: Advice, *, migrate: bool) -> None:
    """Refuse a newer version always, and an older one where it is not to be migrated."""
    if found > newest:
        raise StoreVersionError(
            f"{where}: expected schema version {newest} or older, found {found}: a newer version"
            f" of unswept made it. Upgrade unswept, or name another {advice.place}"
        )
    if found < newest and not migrate:
        what = "no unswept tables" if found == 0 else f"schema version {found}"
        raise StoreVersionError(
            f"{where}: expected schema version {newest}, found {what}, and migrating was not"
            f" asked for. Run `unswept db init`, or {advice.migrate}"
        )


def printed(migrations: tuple[Migration, ...]) -> str:
    """Migrations as one text of SQL, for people and for roles that may not create tables."""
    return "\n".join(
        f"-- migration {migration.number:04}: {migration.name}\n\n{migration.sql}"
        for migration in migrations
    )
