"""Judges each step by the laws' own predicates, and counts what was judged and exercised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from unswept.core.lease import MOVES, Kind, Status
from unswept.core.world import all_commands
from unswept.spec.explorer.offence import Offence
from unswept.spec.laws import step_laws
from unswept.spec.observations import Step

Cell = tuple[Kind, Status, Status | None]
"""A move, the status that it leaves, and the one that it reaches; None: the row is gone."""


class Judge:
    """Judges steps, and keeps the counts."""

    def __init__(self, judged: Counter[str], cells: set[Cell]) -> None:
        """Counts in these."""
        self._judged = judged
        self._cells = cells

    def offences(self, step: Step) -> tuple[Offence, ...]:
        """The laws that this step breaks."""
        changes = bool(step.rows or step.events)
        offences: tuple[Offence, ...] = ()
        for law in _LAWS[type(step.command)]:
            if law.of_rows and not changes:
                continue
            self._judged[law.id] += 1
            assert law.broken is not None
            said = law.broken(step)
            if said is not None:
                offences = (*offences, Offence(law.id, said))
        if changes:
            self._cells.update(_cells(step))
        return offences


_LAWS: Final = MappingProxyType({command: step_laws(command) for command in all_commands()})


def _cells(step: Step) -> Iterator[Cell]:
    """The cells of the status table that this step's changes of rows are."""
    kinds = Counter({(event.job_id, event.kind): 1 for event in step.events})
    for before, after in step.rows:
        if before is None:
            continue
        was = before.lease.status
        if after is None:
            yield Kind.EVICT, was, None
            continue
        now = after.lease.status
        named = [kind for job_id, kind in kinds if job_id == after.id and _is_of(kind, was, now)]
        if named:
            yield named[0], was, now
        elif after.lease.beats > before.lease.beats:
            yield Kind.RENEW, was, now


def _is_of(kind: Kind, was: Status, now: Status) -> bool:
    move = MOVES.get(kind)
    if move is None or was not in move.leaves or now not in move.reaches:
        return False
    return kind not in _STAYING or was is now


_STAYING: Final = frozenset({Kind.RENEW, Kind.DELAY, Kind.REQUEST_CANCEL})
"""Moves that keep the status."""


def every_cell() -> frozenset[Cell]:
    """All cells of the status table: a move, the status that it leaves, and the one it reaches."""
    return frozenset(
        (kind, was, now)
        for kind, move in MOVES.items()
        for was in move.leaves
        for now in move.reaches or (None,)
        if kind not in _STAYING or was is now
    )
