"""What is really so in a simulated run, which no instance and no store can know: who lives, who
could renew, and since when. Times are true milliseconds."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from unswept.core.policy import LeasePolicy
from unswept.core.units import Ms


@define
class Span:
    """A fault while it lasts; `end` is None until it is over."""

    name: str
    begin: int
    job_id: str | None = None
    """Only this job's renewal is held up."""
    instance: str | None = None
    """This instance alone cannot renew."""
    _end: int | None = field(default=None, init=False)

    @property
    def end(self) -> int | None:
        """When it was over; see `Truth.end`."""
        return self._end

    def close(self, now: int) -> None:
        """It is over."""
        self._end = now

    def length(self, now: int) -> int:
        """How long it has lasted."""
        return (now if self.end is None else self.end) - self.begin

    def overlap(self, since: int, now: int) -> int:
        """How much of it lies between two times."""
        end = now if self.end is None else self.end
        return max(0, min(end, now) - max(self.begin, since))


@define
class Truth:
    """The faults that were, for the laws to weigh: shared ones, and those of one instance alone."""

    shared: list[Span] = field(factory=list)
    own: dict[str, list[Span]] = field(factory=dict)
    steps: list[int] = field(factory=list)
    """When the store clock stepped."""
    back_steps: list[int] = field(factory=list)
    freed: dict[str, int] = field(factory=dict)
    """By job: until when somebody else's lock, or a fault of its row, was in a sweep's way."""
    failed_beats: dict[str, list[int]] = field(factory=dict)
    done_events: dict[str, int] = field(factory=dict)
    """By consumer: up to this number every event was handled, or made a dead letter."""
    told: Callable[[Span], None] | None = None
    """Whoever is to hear of each fault that begins or ends."""

    def begin_shared(self, name: str, now: int, job_id: str | None = None) -> Span:
        """From now on nobody (or nobody who holds `job_id`) can renew."""
        span = Span(name, now, job_id=job_id)
        self.shared.append(span)
        self._tell(span)
        return span

    def begin_own(self, name: str, now: int, instance: str) -> Span:
        """From now on this instance alone cannot renew."""
        span = Span(name, now, instance=instance)
        self.own.setdefault(instance, []).append(span)
        self._tell(span)
        return span

    def end(self, span: Span, now: int) -> None:
        """The fault is over."""
        span.close(now)
        self._tell(span)

    def _tell(self, span: Span) -> None:
        if self.told is not None:
            self.told(span)

    def beat_failed(self, instance: str, now: int) -> None:
        """A beat of this instance got no answer in time."""
        self.failed_beats.setdefault(instance, []).append(now)

    def events_done(self, consumer: str, upto: int) -> int:
        """Up to here a consumer's events are done with; how far they were before."""
        before = self.done_events.get(consumer, 0)
        self.done_events[consumer] = max(before, upto)
        return before

    def forget(self, before: int) -> None:
        """Drop what ended before a time that no lease reaches back to."""
        self.shared = [s for s in self.shared if s.end is None or s.end >= before]
        for times in (self.steps, self.back_steps):
            times[:] = [time for time in times if time >= before]
        self.own = {
            name: kept
            for name, spans in self.own.items()
            if (kept := [s for s in spans if s.end is None or s.end >= before])
        }
        self.failed_beats = {
            name: kept_times
            for name, failed in self.failed_beats.items()
            if (kept_times := [time for time in failed if time >= before])
        }

    def shared_since(self, since: int, now: int, job_id: str) -> list[Span]:
        """The shared faults that touched this job's renewals since a time."""
        return [
            span
            for span in self.shared
            if (span.job_id is None or span.job_id == job_id)
            and (span.end is None or span.end > since)
            and span.begin <= now
        ]

    def own_ms(self, instance: str, since: int, now: int, policy: LeasePolicy) -> Ms:
        """Time that this instance lost by itself since a time: its own faults, and for each beat
        that failed the pause until the next try."""
        spans = sum(span.overlap(since, now) for span in self.own.get(instance, ()))
        return Ms(spans + self.beats_failed(instance, since) * policy.gap_ms)

    def beats_failed(self, instance: str, since: int) -> int:
        """How many of its beats failed since a time."""
        return sum(1 for time in self.failed_beats.get(instance, ()) if time > since)
