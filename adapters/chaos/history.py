"""What the files say of one gateway, put together: its exchanges with the store, and what ailed it.

An ailment is a time in which this gateway could not be expected to renew, with its cause. It comes
from what the driver did, from what the gateway saw of itself (no thread of it ran, its loop stood
still), or from a beat of its own that got no answer; never from what the store has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from attrs import field, frozen

from unswept.adapters.chaos.plan import POLICY
from unswept.adapters.chaos.records import (
    Act,
    Answered,
    Born,
    Deed,
    Drained,
    Failed,
    HoldName,
    Line,
    LoopStood,
    Sent,
    Slots,
    Stalled,
    Work,
)

FOREVER: Final = 2**62


class Cause(StrEnum):
    """Why a gateway could not renew."""

    DEAD = "dead"
    STOPPED = "stopped"
    BLOCKED = "loop blocked past the stall limit"
    DOWN = "server down"
    LOCKED = "store locked"
    CUT_OFF = "connections killed"
    STARVED = "got no CPU"
    UNANSWERED = "beats unanswered"


class Ailment(NamedTuple):
    """A time in which a gateway could not be expected to renew."""

    since: int
    until: int
    cause: Cause


@frozen(slots=False)
class Exchange:
    """One command, and what came of it."""

    sent: Sent
    outcome: Answered | Failed | None
    """None: the gateway did not live to write it."""

    @property
    def answer(self) -> Answered | None:
        """The answer, if there was one."""
        return self.outcome if isinstance(self.outcome, Answered) else None

    @property
    def took_ms(self) -> int:
        """How long it took; for ever, if nothing came of it."""
        return FOREVER if self.outcome is None else self.outcome.at - self.sent.at


class StampAt(NamedTuple):
    """An acknowledged stamp."""

    at: int
    """The store time of the reply; the stamp may be a little later."""
    deadline: int
    heard_at: int
    """When the gateway heard of it."""


@frozen(slots=False)
class Deeds:
    """What the driver did and saw."""

    lines: tuple[Line, ...] = field(converter=tuple[Line, ...])

    @cached_property
    def all(self) -> tuple[Deed, ...]:
        """Every deed."""
        return tuple(line for line in self.lines if isinstance(line, Deed))

    @cached_property
    def slots(self) -> tuple[Slots, ...]:
        """What was read at rest."""
        return tuple(line for line in self.lines if isinstance(line, Slots))

    def of(self, act: Act, gateway: int | None = None) -> list[Deed]:
        """These deeds, of this gateway or of any."""
        return [
            deed
            for deed in self.all
            if deed.act is act and (gateway is None or deed.gateway == gateway)
        ]

    def count(self, act: Act) -> int:
        """How many there were."""
        return len(self.of(act))

    def spans(self, begin: Act, end: Act, gateway: int | None = None) -> Iterator[tuple[int, int]]:
        """From each beginning to the next end; for ever, where there is none."""
        ends = [deed.at for deed in self.of(end, gateway)]
        for deed in self.of(begin, gateway):
            yield deed.since, next((at for at in ends if at >= deed.at), FOREVER)

    def gone_at(self, gateway: int) -> int:
        """From when on a gateway is gone: it was killed, or has ended."""
        ends = [*self.of(Act.KILL, gateway), *self.of(Act.ENDED, gateway)]
        return min((deed.since for deed in ends), default=FOREVER)

    def told_to_end_at(self, gateway: int) -> int:
        """From when on it drains."""
        return min((deed.since for deed in self.of(Act.TERM, gateway)), default=FOREVER)


@frozen(slots=False)
class History:
    """One gateway's file."""

    number: int
    lines: tuple[Line, ...] = field(converter=tuple[Line, ...])

    @cached_property
    def instance(self) -> str | None:
        """Its id; None: it did not live to have one."""
        return next((line.instance for line in self.lines if isinstance(line, Born)), None)

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All that it sent, in that order."""
        outcomes = {line.number: line for line in self.lines if isinstance(line, Answered | Failed)}
        return tuple(
            Exchange(line, outcomes.get(line.number))
            for line in self.lines
            if isinstance(line, Sent)
        )

    @cached_property
    def stamps(self) -> Mapping[HoldName, Sequence[StampAt]]:
        """Each hold's acknowledged stamps, the oldest first."""
        found: dict[HoldName, list[StampAt]] = defaultdict(list)
        for answer in self.answers():
            for stamp in answer.stamps:
                hold = HoldName(stamp.job_id, stamp.epoch)
                found[hold].append(StampAt(answer.store_at, stamp.deadline, answer.at))
        return {hold: sorted(stamps) for hold, stamps in found.items()}

    @cached_property
    def unanswered(self) -> Mapping[HoldName, int]:
        """For each hold, how many commands that stamp it were sent and got no answer."""
        found: dict[HoldName, int] = defaultdict(int)
        for exchange in self.exchanges:
            if exchange.answer is None and exchange.sent.command in ("Admit", "Start", "Heartbeat"):
                for hold in exchange.sent.holds:
                    found[hold] += 1
        return found

    @cached_property
    def granted(self) -> frozenset[str]:
        """The jobs whose admission was acknowledged."""
        return frozenset(job_id for answer in self.answers() for job_id in answer.granted)

    @cached_property
    def beats(self) -> tuple[Exchange, ...]:
        """Its heartbeats that were accepted in time."""
        return tuple(
            exchange
            for exchange in self.exchanges
            if exchange.sent.command == "Heartbeat"
            and exchange.answer is not None
            and exchange.took_ms < POLICY.operation_timeout_ms
        )

    def longest_gap(self, since: int, until: int) -> int:
        """The longest time from the send of one accepted beat to the answer of the next, of those
        that end after `since`; the last of them may still be open at `until`."""
        spans = [(beat.sent.at, beat.sent.at + beat.took_ms) for beat in self.beats]
        before = [span for span in spans if span[1] <= since]
        if not before:
            return FOREVER
        chain = [before[-1], *(span for span in spans if since < span[1] and span[0] <= until)]
        gaps = [second[1] - first[0] for first, second in pairwise(chain)]
        return max([*gaps, until - chain[-1][0]])

    def answers(self) -> Iterator[Answered]:
        """All answers that it got."""
        return (exchange.answer for exchange in self.exchanges if exchange.answer is not None)

    def ailments(self, deeds: Deeds) -> list[Ailment]:
        """What kept this gateway from renewing any job of its own."""
        found = [Ailment(deeds.gone_at(self.number), FOREVER, Cause.DEAD)]
        found += (Ailment(line.at, FOREVER, Cause.DEAD) for line in self._drained())
        for begin, end, cause, number in (
            (Act.STOP, Act.CONTINUE, Cause.STOPPED, self.number),
            (Act.DOWN, Act.UP, Cause.DOWN, None),
            (Act.LOCK, Act.UNLOCK, Cause.LOCKED, None),
        ):
            found += (Ailment(*span, cause) for span in deeds.spans(begin, end, number))
        found += (
            Ailment(cut.since, cut.at, Cause.CUT_OFF) for cut in deeds.of(Act.CUT, self.number)
        )
        found += (
            Ailment(line.since, line.at, Cause.STARVED)
            for line in self.lines
            if isinstance(line, Stalled)
        )
        found += self._unanswered_beats()
        return found

    def blocked(self, job_id: str) -> Iterator[Ailment]:
        """When this job was not vouched for, because the loop that is to end it stood still past
        the stall limit; not while its process surely lived."""
        lives_until = self._process_ends.get(job_id, 0)
        for since, until in self._loop_stood():
            # The watch adds up looks, of which the first finds the loop still turning.
            patient_until = since + POLICY.stall_limit_ms - 2 * POLICY.retry_ms
            begun = max(patient_until, lives_until)
            if begun < until:
                yield Ailment(begun, until, Cause.BLOCKED)

    @cached_property
    def _process_ends(self) -> Mapping[str, int]:
        """Until when a job's process surely lived: its start was acknowledged after its birth."""
        lasts = {line.job_id: line.lasts_ms for line in self.lines if isinstance(line, Work)}
        return {
            hold.job_id: exchange.sent.at + lasts[hold.job_id]
            for exchange in self.exchanges
            if exchange.sent.command == "Start"
            for hold in exchange.sent.holds
            if hold.job_id in lasts
        }

    def _loop_stood(self) -> Iterator[tuple[int, int]]:
        stood = [line for line in self.lines if isinstance(line, LoopStood)]
        for line in stood:
            if line.at is not None:
                yield line.since, line.at
            elif not any(other.at is not None and other.at > line.since for other in stood):
                yield line.since, FOREVER

    def _drained(self) -> Iterator[Drained]:
        return (line for line in self.lines if isinstance(line, Drained))

    def _unanswered_beats(self) -> Iterator[Ailment]:
        for exchange in self.exchanges:
            if exchange.sent.command != "Heartbeat":
                continue
            late = exchange.took_ms >= POLICY.operation_timeout_ms
            if exchange.answer is None or late:
                sent_at = exchange.sent.at
                yield Ailment(sent_at, min(FOREVER, sent_at + exchange.took_ms), Cause.UNANSWERED)


def longest_rest(ailments: Iterable[Ailment], since: int, until: int) -> int:
    """The longest time between these without any ailment."""
    longest, well_since = 0, since
    for ailment in sorted(ailments):
        if ailment.since >= until:
            break
        longest = max(longest, ailment.since - well_since)
        well_since = max(well_since, ailment.until)
    return max(longest, until - well_since)


def main_cause(ailments: Iterable[Ailment], since: int, until: int) -> Cause | None:
    """The first of the causes that took a quarter of the time between these, or else the one that
    took most of it: a stopped process also gets no CPU, and a dead one is not stopped any more."""
    took: dict[Cause, int] = defaultdict(int)
    for ailment in ailments:
        overlap = min(ailment.until, until) - max(ailment.since, since)
        if overlap >= 0:
            took[ailment.cause] += overlap
    large = [cause for cause in Cause if took[cause] * 4 >= max(1, until - since)]
    return large[0] if large else max(took, key=lambda cause: took[cause], default=None)
