"""What a command says of jobs, stamps and times, and the same command said otherwise: of fewer
jobs, at another time, under other names, or of the stamps that another history has led to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeVar

import attrs
from attrs import evolve, frozen

from unswept.core import commands as c
from unswept.core.commands import Command
from unswept.core.errors import MisuseError
from unswept.core.job import OnOrphan
from unswept.core.lease import RequeueRule
from unswept.core.units import StoreMs
from unswept.core.world import World
from unswept.spec.observations import Send, Sight

V = TypeVar("V")

_BATCHES: Final = ("holds", "watched", "targets", "job_ids", "seen")
_TIMES: Final = frozenset({"queue_deadline", "not_before", "first_seen_at"})
_NAMES: Final = frozenset(
    {"job_id", "job_ids", "watched", "owner", "instance", "sweeper", "actor", "holder", "watcher"}
)
_INSIDE: Final = (Command, c.Hold, c.Target, Send, Sight)
"""Where names and times are looked for, besides the top."""


def mentioned(command: Command[Any]) -> tuple[str, ...]:
    """The jobs that a command names."""
    if isinstance(command, c.ForgetInstances):
        return ()
    job_id: str | None = getattr(command, "job_id", None)
    found = [] if job_id is None else [job_id]
    for name in _BATCHES:
        found += [_job_of(row) for row in getattr(command, name, ())]
    return tuple(dict.fromkeys(found))


def _job_of(row: Any) -> str:
    if isinstance(row, str):
        return row
    job_id: str = row[2] if isinstance(row, tuple) else row.job_id
    return job_id


def restricted(command: Command[Any], jobs: Collection[str]) -> Command[Any] | None:
    """The same command about these jobs alone; None if it is then about nothing."""
    if not mentioned(command):
        return command
    if (job_id := getattr(command, "job_id", None)) is not None:
        return command if job_id in jobs else None
    whole: Any = command
    batches = {
        name: tuple(row for row in getattr(whole, name) if _job_of(row) in jobs)
        for name in _BATCHES
        if hasattr(whole, name)
    }
    return evolve(whole, **batches) if any(batches.values()) else None


def shifted(command: Command[Any], by_ms: int) -> Command[Any]:
    """The same command with all the store times that it names moved."""
    if isinstance(command, c.ForgetInstances):
        return evolve(command, seen=tuple((name, StoreMs(at + by_ms)) for name, at in command.seen))
    moved: Command[Any] = _edited(
        command, lambda name, v: v + by_ms if name in _TIMES and v is not None else v
    )
    return moved


def renamed(value: V, names: Mapping[str, str]) -> V:
    """The same command or observation about other jobs and instances."""
    if isinstance(value, c.ForgetInstances):
        return evolve(value, seen=tuple((names.get(name, name), at) for name, at in value.seen))
    if isinstance(value, c.ForgetKeys):
        return evolve(value, seen=tuple((who, key, names.get(j, j)) for who, key, j in value.seen))
    other: V = _edited(value, lambda name, v: names.get(v, v) if name in _NAMES else v)
    return other


def _edited(value: Any, edit: Callable[[str, Any], Any]) -> Any:
    """A copy with each plain field edited, also inside commands, holds, targets and sights."""
    fields = {}
    for each in attrs.fields(type(value)):
        old = getattr(value, each.name)
        new = (
            tuple(_part(each.name, part, edit) for part in old)
            if isinstance(old, tuple)
            else _part(each.name, old, edit)
        )
        if new != old:
            fields[each.name] = new
    return evolve(value, **fields) if fields else value


def _part(name: str, part: Any, edit: Callable[[str, Any], Any]) -> Any:
    if isinstance(part, _INSIDE):
        return _edited(part, edit)
    return part if isinstance(part, tuple) else edit(name, part)


# Stamps of another history ------------------------------------------------------------------------


@frozen
class Stamps:
    """How the epochs, beats and numbers that a command names stand to those that the store had."""

    epochs: Mapping[str, int] = {}
    """By job: the named epoch less the row's."""
    beats: Mapping[str, int | None] = {}
    """By job: the named beats less the row's; None: it names the row's deadline in their place."""
    seen: Mapping[str, int] = {}
    """By instance: the named time of its last beat less the row's."""
    token: int | None = None
    """The named token of a consumer less its newest."""
    upto: int | None = None
    """The named event less the consumer's position."""
    ahead: int = 0
    """How far the named event lies past the newest."""


def stamps_of(command: Command[Any], world: World) -> Stamps:
    """What a command names, told by where the store stood just before it."""
    if isinstance(command, c.Acknowledge):
        consumer = world.consumers.get(command.consumer)
        if consumer is None:
            return Stamps()
        return Stamps(
            token=command.token - consumer.token,
            upto=command.upto - consumer.position,
            ahead=max(0, command.upto - world.events.newest),
        )
    if isinstance(command, c.ForgetInstances):
        rows = ((world.instances.get(name), at) for name, at in command.seen)
        return Stamps(seen={row.id: at - row.seen_at for row, at in rows if row is not None})
    epochs: dict[str, int] = {}
    beats: dict[str, int | None] = {}
    for named in _stamped(command):
        row = world.jobs.get(named.job_id)
        if row is None or named.epoch is None:
            continue
        epochs[row.id] = named.epoch - row.lease.epoch
        if isinstance(named, (c.Target, c.Delay)):
            by_deadline = named.beats == row.lease.deadline
            beats[row.id] = None if by_deadline else named.beats - row.lease.beats
    return Stamps(epochs, beats)


def _stamped(command: Command[Any]) -> tuple[Any, ...]:
    if hasattr(command, "epoch"):
        return (command,)
    return (*getattr(command, "holds", ()), *getattr(command, "targets", ()))


def rebased(command: Command[Any], stamps: Stamps, world: World) -> Command[Any]:
    """The same command, with what it names as far from where this store stands."""
    if stamps == _AS_IT_IS:
        return command
    if isinstance(command, c.Acknowledge):
        consumer = world.consumers.get(command.consumer)
        if consumer is None or stamps.token is None or stamps.upto is None:
            return command
        newest = world.events.newest
        upto = min(consumer.position + stamps.upto, newest)
        upto = newest + stamps.ahead if stamps.ahead else upto
        return evolve(command, token=consumer.token + stamps.token, upto=upto)
    if isinstance(command, c.ForgetInstances):
        return evolve(command, seen=tuple(_seen(pair, stamps, world) for pair in command.seen))
    named: Any = command
    if not hasattr(named, "epoch"):
        rows = "holds" if hasattr(named, "holds") else "targets"
        batch = tuple(_restamped(row, stamps, world) for row in getattr(named, rows))
        named = evolve(named, **{rows: batch})
    else:
        named = _restamped(named, stamps, world)
    same_kind: Command[Any] = named
    return same_kind


_AS_IT_IS: Final = Stamps()


def _seen(pair: tuple[str, StoreMs], stamps: Stamps, world: World) -> tuple[str, StoreMs]:
    name = pair[0]
    row = world.instances.get(name)
    if row is None or name not in stamps.seen:
        return pair
    return name, StoreMs(row.seen_at + stamps.seen[name])


def _restamped(named: Any, stamps: Stamps, world: World) -> Any:
    row = world.jobs.get(named.job_id)
    if row is None or named.job_id not in stamps.epochs:
        return named
    fields = {"epoch": row.lease.epoch + stamps.epochs[named.job_id]}
    if named.job_id in stamps.beats:
        ahead = stamps.beats[named.job_id]
        if ahead is not None:
            fields["beats"] = row.lease.beats + ahead
        elif row.lease.deadline is not None:
            fields["beats"] = row.lease.deadline
    return evolve(named, **fields)


# Simpler commands ---------------------------------------------------------------------------------


def simpler(command: Command[Any]) -> Iterator[Command[Any]]:
    """The same command with one thing less to it, in one way after the other."""
    kind: Any = type(command)
    for each in attrs.fields(kind):
        old = getattr(command, each.name)
        if each.default is not attrs.NOTHING and old != each.default:
            yield from _tried(command, {each.name: each.default})
        if each.name in _BATCHES and len(old) > 1:
            for index in range(len(old)):
                yield from _tried(command, {each.name: (*old[:index], *old[index + 1 :])})
    if getattr(command, "on_orphan", OnOrphan.MARK) is not OnOrphan.MARK:
        marks = {"on_orphan": OnOrphan.MARK, "max_attempts": None}
        yield from _tried(command, {**marks, "requeue": RequeueRule.NEVER})
        yield from _tried(command, marks)


def _tried(command: Any, fields: Mapping[str, Any]) -> Iterator[Command[Any]]:
    try:
        yield evolve(command, **fields)
    except MisuseError:
        return
