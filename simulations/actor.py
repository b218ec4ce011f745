"""Whoever takes part in a simulated run: it can be killed or stand still, and what it asks is asked
again until it is answered."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import define, field

from unswept.core import commands as c
from unswept.core.heart import Act
from unswept.core.job import OnOrphan
from unswept.core.lease import RequeueRule
from unswept.core.units import MonoMs
from unswept.simulations.designs import Design
from unswept.simulations.marks import Mark
from unswept.simulations.network import Envelope, Network
from unswept.simulations.timeline import HostClock, Timeline

if TYPE_CHECKING:
    from unswept.simulations.trace import Trace


class Surroundings(Protocol):
    """What anybody can reach: the rest of the simulated world."""

    timeline: Timeline
    rng: Random
    network: Network
    design: Design
    trace: Trace | None
    """Where all that happens is written down, if anybody wants it."""

    def sometimes(self, mark: Mark) -> None:
        """Something that must happen now and then has happened."""
        ...


@define
class Host:
    """A machine: its clock, its boot, and the processes that are alive on it."""

    name: str
    clock: HostClock
    boot_id: str
    alive: dict[int, int] = field(factory=dict)
    """Process id to start time."""
    asleep: int = 0
    """How many faults keep it suspended; nothing boots there meanwhile."""


@define(eq=False)
class Call:
    """A command that is repeated until it is answered or given up."""

    command: c.Command[Any]
    first_sent_at: MonoMs
    answer: Callable[[Any, MonoMs], None]
    act: Act | None = None
    """What the heart must allow; a repeat waits until it does."""
    give_up: Callable[[], None] | None = None
    tries_left: int = -1
    done: bool = False
    sent: bool = False


class Actor:
    """One process on a host that sends commands in its own name."""

    def __init__(self, name: str, host: Host, world: Surroundings, patience_ms: int) -> None:
        """It has done nothing yet; what is not answered after `patience_ms` is sent again."""
        self.name = name
        self.host = host
        self.world = world
        self.alive = True
        self.frozen = 0
        self._patience_ms = patience_ms
        self._backlog: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    @property
    def kind(self) -> str:
        """What it is, in one word."""
        return type(self).__name__.lower()

    @property
    def host_name(self) -> str:
        """Where it runs."""
        return self.host.name

    def kill(self) -> None:
        """The process is gone, with all that it knew."""
        self.alive = False
        self._backlog.clear()
        self._trace("killed")

    def freeze(self) -> None:
        """The process stands still: suspended, stopped, or its loop is blocked."""
        self.frozen += 1
        if self.frozen == 1 and self.alive:
            self._trace("stands_still")

    def thaw(self) -> None:
        """The process runs on; whatever came meanwhile is dealt with after its timers."""
        self.frozen -= 1
        if self.frozen or not self.alive:
            return
        self._trace("goes_on")
        self.awake()
        backlog, self._backlog = self._backlog, []
        for action, args in backlog:
            self.run(action, *args)

    def run(self, action: Callable[..., None], *args: Any) -> None:
        """Let something happen inside the process: now, when it thaws, or never."""
        if not self.alive:
            return
        if self.frozen:
            self._backlog.append((action, args))
        else:
            action(*args)

    def later(self, delay_ms: int, action: Callable[..., None], *args: Any) -> None:
        """Let something happen inside the process in a while."""
        self.world.timeline.after(delay_ms, self.run, action, *args)

    def call(
        self,
        command: c.Command[Any],
        answer: Callable[[Any, MonoMs], None],
        act: Act | None = None,
        tries: int = -1,
        give_up: Callable[[], None] | None = None,
    ) -> None:
        """Send, and repeat until it is answered; the answer learns when it was first sent."""
        self._try(Call(command, self.host.clock(), answer, act, give_up, tries))

    def _try(self, call: Call) -> None:
        if call.done or self._must_wait(call):
            return
        if call.tries_left == 0:
            self._abandon(call)
            return
        call.tries_left -= 1
        if not call.sent:
            call.first_sent_at = self.host.clock()
        self._sending(call.command, call.sent)
        call.sent = True
        envelope = Envelope(
            self.name,
            call.command,
            call.first_sent_at,
            lambda reply: self.run(self._got, call, reply),
        )
        self.world.network.send(envelope)
        self.later(self._patience_ms, self._try, call)

    def _got(self, call: Call, reply: Any) -> None:
        if not call.done:
            call.done = True
            call.answer(reply, call.first_sent_at)

    def _abandon(self, call: Call) -> None:
        call.done = True
        if call.give_up is not None:
            call.give_up()

    def _must_wait(self, call: Call) -> bool:
        """Is it not the time to send this? Then it has been seen to."""
        return False

    def _trace(self, event: str) -> None:
        if self.world.trace is not None:
            self.world.trace.instance(self.world.timeline.now, self, event)

    def _sending(self, command: c.Command[Any], repeat: bool) -> None:
        """A command is about to go out."""

    def awake(self) -> None:
        """The process has just begun to run on."""


_POLICIES: Final = {
    RequeueRule.ALLOWED: (OnOrphan.MARK, OnOrphan.REQUEUE, OnOrphan.REQUEUE, OnOrphan.FAIL),
    RequeueRule.NEVER: (OnOrphan.MARK, OnOrphan.MARK, OnOrphan.FAIL, OnOrphan.HOLD),
}


def pause(rng: Random, mean_ms: float) -> int:
    """How long until something happens that happens at random, every `mean_ms` on average."""
    return 1 + int(-log(1.0 - rng.random()) * mean_ms)


def drawn_policy(rng: Random, requeue: RequeueRule) -> tuple[OnOrphan, int | None]:
    """What is to become of a job that is orphaned, and how often it may be begun."""
    on_orphan = rng.choice(_POLICIES[requeue])
    return on_orphan, rng.randint(1, 3) if on_orphan is OnOrphan.REQUEUE else None


def unheeded(reply: Any, sent_at: MonoMs) -> None:
    """Where an answer goes that nobody needs."""
