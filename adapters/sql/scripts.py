"""One script per command: what the command comes to on any SQL store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from unswept.adapters.sql import births, holds, outbox, outsiders, reads, sweeps
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.steps import Mode, Script
from unswept.core import commands as c
from unswept.core.checks import shown
from unswept.core.errors import MisuseError


class Entry(NamedTuple):
    """How one command is carried out."""

    mode: Mode
    script: Callable[[Queries, Any], Script[Any]]


_WRITES: Final[Mapping[type, Callable[[Queries, Any], Script[Any]]]] = MappingProxyType(
    {
        c.Register: births.register,
        c.Deregister: births.deregister,
        c.Admit: births.admit,
        c.Enqueue: births.enqueue,
        c.Withdraw: births.withdraw,
        c.Claim: births.claim,
        c.Start: holds.start,
        c.Heartbeat: holds.heartbeat,
        c.Output: holds.output,
        c.Complete: holds.complete,
        c.Release: holds.release,
        c.RequestCancel: outsiders.request_cancel,
        c.Requeue: outsiders.requeue,
        c.Settle: outsiders.settle,
        c.ExpireQueued: outsiders.expire,
        c.Delay: sweeps.delay,
        c.Sweep: sweeps.sweep,
        c.Evict: sweeps.evict,
        c.ForgetInstances: sweeps.forget_instances,
        c.ForgetKeys: sweeps.forget_keys,
        c.ForgetEvents: outbox.forget_events,
        c.LeaseEvents: outbox.lease_events,
        c.Acknowledge: outbox.acknowledge,
        c.ForgetConsumer: outbox.forget_consumer,
    }
)
_READS: Final[Mapping[type, Callable[[Queries, Any], Script[Any]]]] = MappingProxyType(
    {
        c.ListInstances: births.list_instances,
        c.Suspects: sweeps.suspects,
        c.LookOverdue: sweeps.look_overdue,
        c.Find: reads.find,
        c.ReadRequest: reads.read_request,
        c.ReadOutput: reads.read_output,
        c.Count: reads.count_jobs,
        c.ReadEvents: reads.read_events,
        c.ListConsumers: outbox.list_consumers,
        c.ReadDeadLetters: outbox.read_dead_letters,
    }
)

SCRIPTS: Final[Mapping[type, Entry]] = MappingProxyType(
    {
        **{command: Entry(Mode.WRITE, script) for command, script in _WRITES.items()},
        **{command: Entry(Mode.READ, script) for command, script in _READS.items()},
    }
)


def entry_of(command: object) -> Entry:
    """How a command is carried out; refuses what is none."""
    entry = SCRIPTS.get(type(command))
    if entry is None:
        raise MisuseError(f"expected a command of unswept, got {shown(command)}")
    return entry


def entry_within(command: object) -> Entry:
    """How a command is carried out in a caller's own transaction; refuses all but two."""
    if not isinstance(command, (c.Enqueue, c.Complete)):
        raise MisuseError(
            "expected an Enqueue or a Complete, the only commands that can be part of a caller's"
            f" transaction, got {shown(command)}. Others see nothing of it before the commit: the"
            " heartbeat of a job that was admitted there would not find it. Use `execute`"
        )
    return entry_of(command)
