"""Stores that lack one rule of what goes out or goes away: consumers, old events, and what an
eviction takes with it. The laws must catch them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import evolve

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.outbox import Consumer
from unswept.core.records import changed
from unswept.core.units import StoreMs
from unswept.core.world import Change, Decision, Table, World, decide

_HEAVY: Final = (Table.REQUESTS, Table.OUTPUT)
"""The tables of what may be large."""


def old_token(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """An acknowledgement is taken under whatever token."""
    row = _named(world, command)
    if row is None or not isinstance(command, c.Acknowledge):
        return decide(world, command, now)
    believed = changed(row, token=command.token)
    decision = decide(_with_consumer(world, believed), command, now)
    return _edited(decision, lambda after: changed(after, token=row.token))


def goes_back(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """An acknowledgement overwrites the position, also where it comes late and says less."""
    row = _named(world, command)
    decision = decide(world, command, now)
    if row is None or not isinstance(command, c.Acknowledge):
        return decision
    if not isinstance(decision.reply, r.Acknowledged) or command.upto >= row.position:
        return decision
    back = changed(row, position=command.upto, holder=None if command.last else row.holder)
    return changed(decision, changes=(Change(Table.CONSUMERS, row.name, back),))


def lease_for_two(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A lease is granted to whoever asks, whether it is another's or not."""
    row = _named(world, command)
    if row is None or not isinstance(command, c.LeaseEvents) or row.holder == command.holder:
        return decide(world, command, now)
    return decide(_with_consumer(world, changed(row, holder=None)), command, now)


def forgets_unread(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """The events of a job go when their retention is over, whoever has not come so far."""
    if not isinstance(command, (c.LookOverdue, c.ForgetEvents)):
        return decide(world, command, now)
    return decide(evolve(world, consumers={}), command, now)


def forgets_letters(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """The events of a job go also where one of them is a dead letter."""
    if not isinstance(command, (c.LookOverdue, c.ForgetEvents)):
        return decide(world, command, now)
    return decide(evolve(world, letters={}), command, now)


def row_alone(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """An eviction removes the job's row, and leaves its request and its output behind."""
    decision = decide(world, command, now)
    if not isinstance(command, c.Evict):
        return decision
    return changed(decision, changes=tuple(ch for ch in decision.changes if ch.table not in _HEAVY))


def _named(world: World, command: c.Command[Any]) -> Consumer | None:
    return world.consumers.get(getattr(command, "consumer", ""))


def _with_consumer(world: World, row: Consumer) -> World:
    return evolve(world, consumers={**world.consumers, row.name: row})


def _edited(decision: Decision[Any], edit: Callable[[Consumer], Consumer]) -> Decision[Any]:
    """The decision with every consumer that it puts edited."""
    changes = tuple(
        change._replace(row=edit(change.row))
        if change.table is Table.CONSUMERS and change.row is not None
        else change
        for change in decision.changes
    )
    return changed(decision, changes=changes)
