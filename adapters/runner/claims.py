"""The claims of one runner: one at a time, under growing numbers, each asked until it is answered.

A claim whose answer was lost may have taken jobs that nobody knows of. So it is repeated under its
number, which gets what it took and is still held, also when the heart forbids a new claim. A runner
that drains first makes its number known as used: then the repetition takes nothing new.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import evolve

from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.hold_table import HoldTable
from unswept.adapters.gateway.lane import Sent
from unswept.adapters.gateway.sender import Sender
from unswept.adapters.runner.live_run import LiveRun
from unswept.core.commands import Claim
from unswept.core.heart import Act
from unswept.core.job import Terms
from unswept.core.replies import Claimed, Grant, Refused

MOST_AT_ONCE: Final = 1_000


class Claims:
    """What is asked of the queue, and what was got."""

    def __init__(
        self,
        instance: str,
        terms: Terms,
        partition: str,
        labels: tuple[str, ...],
        holds: HoldTable,
        make_run: Callable[[Grant], LiveRun],
    ) -> None:
        """No claim has been made. A claim is checked here, before anything runs."""
        self._first = Claim(instance, 1, terms, partition, 1, labels)
        self._holds = holds
        self._make_run = make_run
        self._command = self._first
        self._asked_at = boot_ms()
        """When the present claim was first sent: the store may have stamped then. (L11)"""
        self._taken: list[LiveRun] = []
        self.number = 0
        """The last number that was used."""
        self.open = False
        """A claim was sent, and its answer is not known."""

    def may(self, allowed: bool) -> bool:
        """May a claim be sent, if the heart's word is this? A repetition always may. Called by the
        thread that sends, right before."""
        if allowed and not self.open:
            self._asked_at = boot_ms()
            self.open = True
        return self.open

    async def claim(
        self, sender: Sender, limit: int, until: Callable[[], bool]
    ) -> tuple[LiveRun, ...] | Refused:
        """Take up to so many jobs; they are held when this returns.

        `NotAnsweredError` once `until`, with `open` saying whether it may have taken any.
        """
        if not self.open:
            self.number += 1
            limit = min(limit, MOST_AT_ONCE)
            self._command = evolve(self._first, claim_no=self.number, limit=limit)
        self._taken = []
        sent = await sender.send(self._command, act=Act.CLAIM, until=until, on_reply=self._hold)
        self.open = False
        return sent.reply if isinstance(sent.reply, Refused) else tuple(self._taken)

    def _hold(self, sent: Sent[Claimed | Refused]) -> None:
        """Called by the thread that got the answer: from here on the jobs are beaten for."""
        if isinstance(sent.reply, Refused):
            return
        for grant in sent.reply.grants:
            run = self._make_run(grant)
            self._taken.append(run)
            self._holds.begin(
                run.hold, grant.transport, grant.requeue, self._asked_at, run, claimed=True
            )
