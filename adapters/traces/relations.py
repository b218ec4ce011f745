"""What a table or a view of a trace is: its name, its columns in a few words, and its SQL."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen
class Relation:
    """A table or a view."""

    name: str
    sentence: str
    """One row each for what."""
    columns: Mapping[str, str]
    """What each column says, in their order."""
    sql: str
    """The SELECT that makes it."""
