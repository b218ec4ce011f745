"""A store whose every command the specification judges, by the rows before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Job
from unswept.spec.agreement.behaviour import offence
from unswept.spec.agreement.replay import Clock

R = TypeVar("R")


class Judged:
    """A box around a store. It reads the named jobs before and after each command, so nobody else
    may write meanwhile."""

    def __init__(self, store: c.Store, clock: Clock, job_ids: Sequence[str]) -> None:
        """The store, its clock, and all jobs that it may ever have."""
        self._store = store
        self._clock = clock
        self._job_ids = job_ids
        self.offences: list[str | None] = []
        """Of each command why it was no step of the specification; None: it was one."""

    def execute(self, command: c.Command[R]) -> R:
        """Carry out the command, and judge it unless it only finds a job."""
        judging = not isinstance(command, c.Find)
        before = self._rows() if judging else {}
        reply = self._store.execute(command)
        if judging:
            after: dict[str, Job | None] = {**dict.fromkeys(before), **self._rows()}
            self.offences.append(offence(self._clock.now, command, before, after))
        return reply

    def _rows(self) -> dict[str, Job]:
        found: list[Any] = [self._store.execute(c.Find(job_id)) for job_id in self._job_ids]
        return {reply.job.id: reply.job for reply in found if isinstance(reply, r.Found)}
