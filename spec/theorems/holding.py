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
"""The bound for the rates of clocks: in any true time T a clock counts between T - T/1000 and
T + T/1000."""


def _counts(counted: int, true: int) -> bool:
    """Can a clock within the bound count this in that true time?"""
    return (DRIFT - 1) * true <= DRIFT * counted <= (DRIFT + 1) * true


def no_step_begins_after_the_stamped_deadline(
    sent_at: MonoMs, stamped_at: StoreMs, ttl_ms: Ms, now: MonoMs, true_ms: int, store_now: StoreMs
) -> bool | None:
    """Requeueable work that may begin a step has a lease that still runs in the store: for clocks
    that run within 1/1000 of true time, a store clock that does not step, a stamp that was made at
    the send or later, and a margin of at least ttl/500, which the policy demands."""
    margin_ms = Ms(-(-ttl_ms // 500))
    held = unchecked(
        Held,
        hold=None,
        requeue=RequeueRule.ALLOWED,
        stamped_from=sent_at,
        ttl_ms=ttl_ms,
    )
    if ttl_ms < 1 or true_ms < 0 or not holds.may_step(held, margin_ms, now):
        return None
    # `true_ms` is the true time from the send until now; the stamp came after the send.
    if not _counts(now - sent_at, true_ms) or store_now < stamped_at:
        return None
    if DRIFT * (store_now - stamped_at) > (DRIFT + 1) * true_ms:
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
