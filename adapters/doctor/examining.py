"""Asks a store all there is to ask, in the order in which one answer makes sense of the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unswept.adapters.doctor import file_checks, store_checks
from unswept.adapters.doctor.check import Finding, Verdict, findings
from unswept.adapters.doctor.look import Look
from unswept.adapters.doctor.sqlite_look import check_there, looked_into
from unswept.core.errors import StoreError
from unswept.core.policy import LeasePolicy


def examine_file(path: str, policy: LeasePolicy) -> tuple[Finding, ...]:
    """All findings about a SQLite file; `StoreError` where it cannot be asked at all."""
    check_there(path)
    found = [*findings(file_checks.OF_THE_FILE, path, policy)]
    with _told_with(found), looked_into(path) as look:
        for finding in findings(file_checks.OF_THE_DATABASE, look, policy):
            found.append(finding)
        _examine_rows(found, look, policy)
    return tuple(found)


def examine_server(
    url: str, schema: str | None, policy: LeasePolicy
) -> tuple[str, tuple[Finding, ...]]:
    """The store's name without a password, and all findings about it; `StoreError` where the server
    cannot be asked at all."""
    # The driver is an extra: only who names a Postgres store needs it.
    from unswept.adapters.doctor import server_checks
    from unswept.adapters.doctor.postgres_look import looked_at

    found: list[Finding] = []
    with looked_at(url, schema) as look, _told_with(found):
        for finding in findings(server_checks.CHECKS, look, policy):
            found.append(finding)
        _examine_rows(found, look, policy)
    return look.where, tuple(found)


def _examine_rows(found: list[Finding], look: Look, policy: LeasePolicy) -> None:
    """Only where the tables are as this library knows them."""
    if not any(each.check == "schema" and each.verdict is Verdict.BAD for each in found):
        for finding in findings(store_checks.CHECKS, look, policy):
            found.append(finding)


@contextmanager
def _told_with(found: list[Finding]) -> Iterator[None]:
    """A store that stops to answer is one more finding where something bad was found before, which
    says why; else it is raised."""
    try:
        yield
    except StoreError as error:
        if all(each.verdict is not Verdict.BAD for each in found):
            raise
        found.append(Finding("the rest", Verdict.BAD, str(error), "an answer", ""))
