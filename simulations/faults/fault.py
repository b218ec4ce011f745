"""What a fault is, and what several of them do: stop the store, step its clock, let processes stand
still."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from unswept.simulations.network import Weather
from unswept.simulations.truth import Span

if TYPE_CHECKING:
    from unswept.simulations.actor import Actor
    from unswept.simulations.instance import Instance
    from unswept.simulations.run import Run

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
CALM_DRIFT_PPM: Final = 50
"""How much a host's clock gains or loses at most when nothing is wrong with it."""
WORST_MOMENT: Final = 500
"""How often a fault looks for its worst moment: a lock, for one in which a sweep waits for it."""


class Fault:
    """Something that strikes now and then."""

    name: ClassVar[str]
    story: ClassVar[str]
    per_hour: ClassVar[float]
    """How often it strikes on average; 0: it lies over the whole run."""
    weather: ClassVar[Weather | None] = None
    """What it makes of the network."""
    drift_ppm: ClassVar[int] = CALM_DRIFT_PPM
    """How much a host's clock gains or loses at most, in parts per million."""

    def strike(self, run: Run) -> None:
        """Begin the fault, and see to its end."""
        raise NotImplementedError


def one_living(run: Run, spared: Callable[[Instance], bool] = lambda _: False) -> Instance | None:
    """One instance, drawn from those whose process is there and that are not spared."""
    living = [instance for instance in run.living() if not spared(instance)]
    return run.rng.choice(living) if living else None


def when_a_sweep_waits(run: Run, at_most: int, then: Callable[[], None]) -> None:
    """Go on at the worst moment for a lock to go, while a sweep waits for it; at `at_most` in any
    case."""
    if run.server.sweep_waits() or run.timeline.now >= at_most:
        then()
    else:
        run.timeline.after(WORST_MOMENT, when_a_sweep_waits, run, at_most, then)


def outage(run: Run, name: str, length_ms: int) -> None:
    """The store is out of reach; what waited there is rolled back."""
    span = run.truth.begin_shared(name, run.timeline.now)
    run.coverage.lasts(name, length_ms)
    run.server.down += 1
    run.server.drop_waiting()
    run.timeline.after(length_ms, _end_outage, run, span)


def _end_outage(run: Run, span: Span) -> None:
    run.truth.end(span, run.timeline.now)
    run.server.down -= 1


def step_clock(run: Run, ms: int) -> None:
    """The store clock steps."""
    run.server.clock.offset_ms += ms
    run.truth.steps.append(run.timeline.now)
    if ms < 0:
        run.truth.back_steps.append(run.timeline.now)
    run.note(f"store clock steps by {ms} ms")
    if run.trace is not None:
        run.trace.fault(run.timeline.now, "store-clock", "strikes", ms=ms)


def expire_all(run: Run, then: Callable[[Instance], None]) -> None:
    """Wait for a sweeper's next pass, and step the clock just before it, so that every lease looks
    expired; once it suspects somebody, which is the worst moment, go on."""
    sweeper = one_living(run)
    if sweeper is not None:
        wait = max(0, sweeper.next_pass_in() - run.rng.randint(1, SECOND))
        run.timeline.after(wait, _expire_all, run, sweeper, then)


def _expire_all(run: Run, sweeper: Instance, then: Callable[[Instance], None]) -> None:
    step_clock(run, run.rng.randint(100, 400) * SECOND)
    _await_suspicion(run, sweeper, run.timeline.now + 5 * SECOND, then)


def _await_suspicion(
    run: Run, sweeper: Instance, until: int, then: Callable[[Instance], None]
) -> None:
    if sweeper.sweeper.suspicions:
        then(sweeper)
    elif run.timeline.now < until:
        run.timeline.after(50, _await_suspicion, run, sweeper, until, then)


def freeze(
    run: Run, name: str, victims: Sequence[Actor], length_ms: int, everywhere: bool = False
) -> None:
    """These processes stand still; `everywhere`: nobody else runs, so that nobody could renew."""
    now, living = run.timeline.now, run.living()
    if everywhere:
        spans = [run.truth.begin_shared(name, now)]
    else:
        frozen = [instance for instance in living if instance in victims]
        spans = [run.truth.begin_own(name, now, instance.name) for instance in frozen]
    run.coverage.lasts(name, length_ms)
    for victim in victims:
        victim.freeze()
    run.timeline.after(length_ms, _end_freeze, run, victims, spans)


def _end_freeze(run: Run, frozen: Sequence[Actor], spans: list[Span]) -> None:
    for span in spans:
        run.truth.end(span, run.timeline.now)
    for actor in frozen:
        actor.thaw()


def lock_row(run: Run, name: str, job_id: str) -> Span:
    """One job's row is locked by a stranger: whoever holds the job cannot renew it."""
    run.server.locked_rows.add(job_id)
    return run.truth.begin_shared(name, run.timeline.now, job_id)


def free_row(run: Run, span: Span) -> None:
    """The row is free again."""
    assert span.job_id is not None
    run.truth.end(span, run.timeline.now)
    run.truth.freed[span.job_id] = run.timeline.now
    run.server.locked_rows.discard(span.job_id)
    run.server.released()
