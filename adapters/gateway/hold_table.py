"""All that this instance answers for, in one place that threads share.

A hold is entered by the thread that got the grant's answer, so that it is beaten for even if the
event loop stands still just then. It leaves only by the store's word or when it is given up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol

from attrs import define

from unswept.core.commands import Hold
from unswept.core.holds import Held, local_deadline, may_step, stamped
from unswept.core.job import Terms, Transport
from unswept.core.lease import RequeueRule
from unswept.core.replies import Answer, HoldAnswer
from unswept.core.units import MonoMs, Ms


class Holder(Protocol):
    """The work behind a hold. All of it is called from the heart's threads."""

    def vouched(self) -> bool:
        """Is anything alive here that will bring the job to its end?"""
        ...

    def hear(self, answer: Answer) -> None:
        """The store's answer to the hold, other than renewed or busy."""
        ...

    def hear_cancel(self) -> None:
        """Somebody has asked for the job's end. (L7)"""
        ...

    def expire(self) -> None:
        """The local deadline is past: work that may be requeued stops. (L11)"""
        ...


@define
class _Entry:
    held: Held
    transport: Transport
    holder: Holder


class HoldTable:
    """The holds, each with its last stamp and the work behind it."""

    def __init__(self, terms: Terms, margin_ms: Ms) -> None:
        """No holds yet; renewals stamp by `terms`."""
        self._terms = terms
        self._margin_ms = margin_ms
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Lock()

    def begin(
        self,
        hold: Hold,
        transport: Transport,
        requeue: RequeueRule,
        sent_at: MonoMs,
        holder: Holder,
        *,
        claimed: bool = False,
    ) -> None:
        """A grant that was first sent at `sent_at` has been acknowledged; a claim stamps the first
        beat's ttl."""
        terms = self._terms
        ttl_ms = terms.first_beat_ttl_ms if claimed else terms.ttl_ms(transport)
        held = Held(hold, requeue, sent_at, ttl_ms)
        with self._lock:
            older = self._entries.get(hold.job_id)
            self._entries[hold.job_id] = _Entry(held, transport, holder)
        if older is not None and older.held.hold != hold:
            older.holder.hear(Answer.FENCED)  # no heartbeat will ask for it any more

    def stamp(self, hold: Hold, sent_at: MonoMs) -> None:
        """A start that stamped anew has been acknowledged."""
        with self._lock:
            entry = self._entry(hold)
            if entry is not None and sent_at > entry.held.stamped_from:
                entry.held = stamped(entry.held, sent_at, self._terms.ttl_ms(entry.transport))

    def end(self, job_id: str) -> None:
        """The hold has ended."""
        with self._lock:
            self._entries.pop(job_id, None)

    def let_go(self, hold: Hold) -> None:
        """This very hold has ended; a newer one of the same job stays."""
        with self._lock:
            if self._entry(hold) is not None:
                del self._entries[hold.job_id]

    def ids(self) -> frozenset[str]:
        """The jobs that are held."""
        with self._lock:
            return frozenset(self._entries)

    def vouched(self) -> tuple[Hold, ...]:
        """The holds that a heartbeat may name."""
        with self._lock:
            entries = tuple(self._entries.values())
        return tuple(entry.held.hold for entry in entries if entry.holder.vouched())

    def may_step(self, hold: Hold, now: MonoMs) -> bool:
        """May the work begin its next step? (L11)"""
        with self._lock:
            entry = self._entry(hold)
            return entry is not None and may_step(entry.held, self._margin_ms, now)

    def deadline(self, hold: Hold) -> MonoMs | None:
        """Until when the lease surely runs; None: it is not held."""
        with self._lock:
            entry = self._entry(hold)
            return None if entry is None else local_deadline(entry.held, self._margin_ms)

    def expire(self, now: MonoMs) -> MonoMs | None:
        """Stop what is past its local deadline; when the next deadline falls, or None."""
        with self._lock:
            rerunnable = [
                (local_deadline(entry.held, self._margin_ms), entry.holder)
                for entry in self._entries.values()
                if entry.held.requeue is RequeueRule.ALLOWED
            ]
        for deadline, holder in rerunnable:
            if now >= deadline:
                holder.expire()
        return min((deadline for deadline, _ in rerunnable if deadline > now), default=None)

    def hear(self, answers: Iterable[HoldAnswer], sent_at: MonoMs) -> None:
        """Act on each answer to a heartbeat that was sent at `sent_at`, by L8."""
        for answer in answers:
            self._hear(answer, sent_at)

    def _hear(self, answer: HoldAnswer, sent_at: MonoMs) -> None:
        with self._lock:
            entry = self._entry(Hold(answer.job_id, answer.epoch))
            if entry is None:
                return
            if answer.answer is Answer.RENEWED:
                ttl_ms = self._terms.ttl_ms(entry.transport)
                entry.held = stamped(entry.held, sent_at, ttl_ms)
        if answer.answer not in (Answer.RENEWED, Answer.BUSY):
            entry.holder.hear(answer.answer)
        if answer.cancel_requested_at is not None:
            entry.holder.hear_cancel()

    def _entry(self, hold: Hold) -> _Entry | None:
        entry = self._entries.get(hold.job_id)
        return entry if entry is not None and entry.held.hold == hold else None
