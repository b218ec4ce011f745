"""Faults of the store: it is down, locked, read-only, or slow to commit."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from unswept.simulations.faults.fault import (
    MINUTE,
    SECOND,
    Fault,
    expire_all,
    free_row,
    lock_row,
    outage,
    when_a_sweep_waits,
)
from unswept.simulations.truth import Span

if TYPE_CHECKING:
    from unswept.simulations.instance import Instance
    from unswept.simulations.run import Run


class Outage(Fault):
    """The store is out of reach for all, shorter or longer than any ttl."""

    name = "outage"
    story = "the store is down, shorter or longer than the ttl"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """Nobody reaches the store for a second to ten minutes."""
        seconds = run.rng.choice((run.rng.randint(1, 20), run.rng.randint(60, 600)))
        outage(run, self.name, seconds * SECOND)


class ReadOnly(Fault):
    """A failover leaves the store read-only for a while; nothing is lost."""

    name = "read-only"
    story = "after a failover the store refuses every write for a while, and answers reads"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """Up to five minutes; what waited for a lock is rolled back."""
        length = run.rng.choice((run.rng.randint(1, 45), run.rng.randint(45, 300))) * SECOND
        span = run.truth.begin_shared(self.name, run.timeline.now)
        run.coverage.lasts(self.name, length)
        run.server.read_only += 1
        run.server.drop_waiting()
        run.timeline.after(length, self._end, run, span)

    def _end(self, run: Run, span: Span) -> None:
        run.truth.end(span, run.timeline.now)
        run.server.read_only -= 1


class Flaps(Fault):
    """Every lease looks expired, and the store comes and goes in step with one sweeper's heart."""

    name = "flaps"
    story = "every lease looks expired, and the store flaps in step with one sweeper's heart"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """Wait for the worst moment: somebody has just begun to suspect them all."""
        expire_all(run, lambda sweeper: self._flap(run, sweeper))

    def _flap(self, run: Run, sweeper: Instance) -> None:
        """Outages that end just before the sweeper's beats, and begin just after them."""
        period = int(sweeper.policy.heartbeat_interval_ms)
        if run.rng.random() < 0.3:
            period = run.rng.randint(period // 4, 2 * period)
        up = run.rng.randint(period // 50, period // 8)
        first = max(0, sweeper.next_beat_in() - 5)
        outage(run, self.name, first)
        for flap in range(run.rng.randint(1, 8)):
            wait = first + up + flap * period
            run.timeline.after(wait, outage, run, self.name, period - up)


class RenewalsBlocked(Fault):
    """The lease table is locked against writes, while reads and other tables work."""

    name = "renewals-blocked"
    story = "the lease table is locked against writes; reads and other tables work"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """An index is built, or a migration waits; it ends while a sweep waits, if one does."""
        span = run.truth.begin_shared(self.name, run.timeline.now)
        run.coverage.begins(self.name)
        run.server.table_locks += 1
        held, at_most = run.rng.randint(2, 300) * SECOND, run.rng.randint(60, 600) * SECOND
        until, end = run.timeline.now + at_most, partial(self._end, run, span)
        run.timeline.after(held, when_a_sweep_waits, run, until, end)

    def _end(self, run: Run, span: Span) -> None:
        run.truth.end(span, run.timeline.now)
        run.coverage.ends(self.name)
        run.server.table_locks -= 1
        run.server.released()


class RowLock(Fault):
    """A stranger locks one job's row, past its ttl."""

    name = "row-lock"
    story = "a stranger locks one job's row past the ttl"
    per_hour = 12.0

    def strike(self, run: Run) -> None:
        """Somebody's open transaction holds the row; it ends while a sweep waits, if one does."""
        owned = sorted(set(run.server.pure.world.owned) - run.server.locked_rows)
        if not owned:
            return
        span = lock_row(run, self.name, run.rng.choice(owned))
        run.coverage.begins(self.name)
        held, at_most = run.rng.randint(30, 300) * SECOND, run.rng.randint(60, 600) * SECOND
        until, end = run.timeline.now + at_most, partial(self._end, run, span)
        run.timeline.after(held, when_a_sweep_waits, run, until, end)

    def _end(self, run: Run, span: Span) -> None:
        run.coverage.ends(self.name)
        free_row(run, span)


class SlowCommit(Fault):
    """What was written is locked until its commit comes through, and answered only then."""

    name = "slow-commit"
    story = "a commit takes up to twenty seconds; its rows are locked until then"
    per_hour = 6.0

    def strike(self, run: Run) -> None:
        """For up to two minutes the disk, or a synchronous replica, is slow."""
        length, longest = run.rng.randint(5, 120) * SECOND, run.rng.choice((1, 3, 20)) * SECOND
        run.coverage.lasts(self.name, length)
        run.server.commit = lambda rows: self._commit(run, rows, longest)
        run.timeline.after(length, self._end, run)

    def _commit(self, run: Run, rows: Collection[str], longest: int) -> int:
        takes = run.rng.randint(1, longest)
        for job_id in sorted(set(rows) - run.server.locked_rows):
            span = lock_row(run, self.name, job_id)
            run.timeline.after(takes, free_row, run, span)
        return takes

    def _end(self, run: Run) -> None:
        run.server.commit = None


class PoisonRow(Fault):
    """One row on which whatever follows an orphan fails, so that no sweep of it succeeds."""

    name = "poison-row"
    story = "sweeps, requeues and settlements of one job fail; its owner's renewals do not"
    per_hour = 6.0

    def strike(self, run: Run) -> None:
        """A constraint is in the way until somebody mends it; the jobs beside it must not wait."""
        owned = sorted(set(run.server.pure.world.owned) - run.server.poisoned)
        if owned:
            job_id = run.rng.choice(owned)
            run.server.poisoned.add(job_id)
            run.coverage.begins(self.name)
            run.timeline.after(run.rng.randint(1, 15) * MINUTE, self._end, run, job_id)

    def _end(self, run: Run, job_id: str) -> None:
        run.server.poisoned.discard(job_id)
        run.truth.freed[job_id] = run.timeline.now
        run.coverage.ends(self.name)
