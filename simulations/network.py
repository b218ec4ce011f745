"""The network between instances and the store: it delays, loses and repeats messages, and loses
answers after the commit."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from random import Random
from typing import Any, Final, Protocol

from attrs import define, evolve, frozen

from unswept.core.commands import Claim, Command, Complete, Heartbeat
from unswept.core.units import MonoMs
from unswept.simulations.timeline import Timeline

_LONGEST_WAY_MS: Final = 60_000
"""Nothing is under way for so long."""


@frozen
class Weather:
    """How bad the network is: the chance that each message suffers, and by how much."""

    lost: float = 0.0
    answer_lost: float = 0.0
    repeated: float = 0.0
    longest_echo_ms: int = 0
    delayed: float = 0.0
    longest_delay_ms: int = 0

    def times(self, intensity: float) -> Weather:
        """The same weather, with chances that are so many times as great."""
        return evolve(
            self,
            lost=self.lost * intensity,
            answer_lost=self.answer_lost * intensity,
            repeated=self.repeated * intensity,
            delayed=self.delayed * intensity,
        )

    def chance_of_echo(self, command: Command[Any]) -> float:
        """Heartbeats are many and forgive an echo; what decides a job's fate is echoed more."""
        return self.repeated if isinstance(command, Heartbeat) else 8 * self.repeated

    def chance_of_silence(self, command: Command[Any]) -> float:
        """So it is with answers; claims are few, and theirs are lost most of all."""
        if isinstance(command, Claim):
            return 10 * self.answer_lost
        return self.answer_lost if isinstance(command, Heartbeat) else 2 * self.answer_lost


@define
class Envelope:
    """A command on its way, and where its answer goes."""

    sender: str
    command: Command[Any]
    sent_at: MonoMs
    """First send, on the sender's clock."""
    answer: Callable[[Any], None]
    blind: bool = False
    """It touches no row of the lease table, so that no lock there holds it up."""
    lock_blind: bool = False
    """It heeds no row lock: it names locked rows, and waits for their locks."""


class Receiver(Protocol):
    """The store's end of the wire."""

    def receive(self, envelope: Envelope) -> None:
        """A command has arrived."""
        ...


class Network:
    """Carries envelopes to the store and answers back."""

    def __init__(
        self,
        timeline: Timeline,
        rng: Random,
        weather: Weather,
        heard: Callable[[Envelope, Any], None],
    ) -> None:
        """A network in this weather; `cut` names the senders that reach nobody, and `heard` learns
        of every answer that reaches its sender."""
        self._timeline = timeline
        self._rng = rng
        self._weather = weather
        self._heard = heard
        self.cut: set[str] = set()
        self.exhausted: set[str] = set()
        """Senders that have a connection for their heartbeats alone."""
        self._reset_at: dict[str, int] = {}
        """By sender, when its connections broke last."""
        self.completions: dict[str, Envelope] = {}
        """Each job's last completion that was sent, whether it arrived or not."""
        self.store: Receiver | None = None
        self.seen: dict[str, int] = dict.fromkeys(("loss", "lost-answer", "duplicate", "delay"), 0)

    def send(self, envelope: Envelope) -> None:
        """Send an envelope; its answer may never come, and it may arrive twice."""
        if isinstance(envelope.command, Complete):
            self.completions[envelope.command.job_id] = envelope
        if envelope.sender in self.cut or self._happens(self._weather.lost, "loss"):
            return
        if envelope.sender in self.exhausted and not isinstance(envelope.command, Heartbeat):
            return
        now = self._timeline.now
        self._timeline.after(self._latency(), self._arrive_unless_reset, envelope, now)
        if self._happens(self._weather.chance_of_echo(envelope.command), "duplicate"):
            self.echo(envelope, self._rng.randint(1, self._weather.longest_echo_ms))

    def echo(self, envelope: Envelope, delay_ms: int) -> None:
        """Let an envelope arrive again; the answer goes nowhere."""
        echo = evolve(envelope, answer=_nobody)
        self._timeline.after(delay_ms, self._arrive, echo)

    def reset(self, senders: Iterable[str]) -> None:
        """Their connections break: what is under way on them, either way, is gone."""
        now = self._timeline.now
        recent = {name: at for name, at in self._reset_at.items() if at > now - _LONGEST_WAY_MS}
        self._reset_at = {**recent, **dict.fromkeys(senders, now)}

    def forget_completions(self, known: Container[str]) -> None:
        """Drop the completions of jobs that no longer exist."""
        self.completions = {k: v for k, v in self.completions.items() if k in known}

    def answer(self, envelope: Envelope, reply: Any) -> None:
        """Send a reply back to where its command came from."""
        if self._happens(self._weather.chance_of_silence(envelope.command), "lost-answer"):
            return
        now = self._timeline.now
        self._timeline.after(self._latency(), self._deliver, envelope, reply, now)

    def _arrive_unless_reset(self, envelope: Envelope, sent: int) -> None:
        if not self._was_reset(envelope, sent):
            self._arrive(envelope)

    def _was_reset(self, envelope: Envelope, since: int) -> bool:
        return self._reset_at.get(envelope.sender, -1) >= since

    def _arrive(self, envelope: Envelope) -> None:
        if envelope.sender not in self.cut and self.store is not None:
            self.store.receive(envelope)

    def _deliver(self, envelope: Envelope, reply: Any, sent: int) -> None:
        if envelope.sender not in self.cut and not self._was_reset(envelope, sent):
            self._heard(envelope, reply)
            envelope.answer(reply)

    def _latency(self) -> int:
        if self._happens(self._weather.delayed, "delay"):
            return self._rng.randint(30, self._weather.longest_delay_ms)
        return 1 + int(self._rng.random() * 15)

    def _happens(self, chance: float, name: str) -> bool:
        if chance and self._rng.random() < chance:
            self.seen[name] += 1
            return True
        return False


def _nobody(reply: Any) -> None:
    """Where the answer to a repeated message goes."""
