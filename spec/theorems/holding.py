"""L11: until when an instance may work on, without another word from the store."""

from __future__ import annotations

from typing import Final

from unswept.core import holds
from unswept.core.holds import Held
from unswept.core.lease import RequeueRule
from unswept.core.units import MonoMs, Ms, StoreMs
from unswept.spec.observations import Work
from unswept.spec.theorems.drawn import unchecked
from unswept.spec.theorems.predicates import kept
from unswept.spec.theorems.theorem import Edit, theorem

DRIFT: Final = 1_000
"""The bound for clocks: in any true time T one runs for at least T - T/1000, at most T + T/1000."""


def _runs(clock_us: int, true_us: int) -> bool:
    """Can a clock within the bound run for this long in that true time?"""
    return (DRIFT - 1) * true_us <= DRIFT * clock_us <= (DRIFT + 1) * true_us


def _reads(read_ms: int, clock_us: int) -> bool:
    """Can two readings in whole milliseconds be so far apart, on a clock that ran for so long?"""
    return 1_000 * (read_ms - 1) < clock_us < 1_000 * (read_ms + 1)


def no_step_begins_after_the_stamped_deadline(
    stamped_from: MonoMs,
    stamped_at: StoreMs,
    ttl_ms: Ms,
    margin_ms: Ms,
    now: MonoMs,
    store_now: StoreMs,
    true_us: int,
    local_us: int,
    store_us: int,
) -> bool | None:
    """Requeueable work that may begin a step has a lease that still runs in the store: for clocks
    that run within 1/1000 of true time and are read in whole milliseconds, a store clock that does
    not step, and a margin of at least ttl/500, which the policy demands."""
    held = unchecked(
        Held, hold=None, requeue=RequeueRule.ALLOWED, stamped_from=stamped_from, ttl_ms=ttl_ms
    )
    if ttl_ms < 1 or 500 * margin_ms < ttl_ms or not holds.may_step(held, margin_ms, now):
        return None
    # The true time since the send; since the stamp, which came after it, no more has passed.
    if not _runs(local_us, true_us) or not _reads(now - stamped_from, local_us):
        return None
    if DRIFT * store_us > (DRIFT + 1) * true_us or not _reads(store_now - stamped_at, store_us):
        return None
    return store_now <= stamped_at + ttl_ms


def requeueable_work_stops_at_its_local_deadline(
    stamped_from: MonoMs, ttl_ms: Ms, margin_ms: Ms, requeue: RequeueRule, now: MonoMs
) -> bool | None:
    """Work whose job may be requeued begins no step at its local deadline or after it; other work
    may always go on."""
    held = unchecked(Held, hold=None, requeue=requeue, stamped_from=stamped_from, ttl_ms=ttl_ms)
    if not holds.may_step(held, margin_ms, now):
        return False if requeue is RequeueRule.NEVER else None
    return kept("L11", Work("i", "j", requeue, now, stamped_from, ttl_ms, margin_ms))


THEOREMS: Final = (
    theorem(
        "L11",
        no_step_begins_after_the_stamped_deadline,
        Edit(holds.local_deadline, " - margin_ms", ""),
    ),
    theorem(
        "L11",
        requeueable_work_stops_at_its_local_deadline,
        Edit(holds.may_step, "now < local", "now <= local"),
    ),
)
