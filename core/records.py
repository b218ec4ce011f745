"""Copies a frozen row with some fields changed: `attrs.evolve`, six times as fast.

Every transition makes one or two such copies, and a simulated year makes millions. The rows that
are copied so are `frozen(slots=False)` and have no validators; the type checker sees `evolve`, and
so refuses a field that the row does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attrs import evolve as changed
else:

    def changed(row: Any, /, **fields: Any) -> Any:
        """A copy of `row` with `fields` in place of its own."""
        copy = object.__new__(row.__class__)
        # A dict of its own: CPython reads fields three times as slowly from one that shares its
        # keys with the class, as the one that an object comes with does.
        object.__setattr__(copy, "__dict__", {**row.__dict__, **fields})
        return copy


__all__ = ["changed"]
