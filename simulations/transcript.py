"""The trace of a run: a line for everything that happens, its last lines, and a digest of all."""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import Any

from unswept.core import commands as c
from unswept.core import replies as r

KEPT_LINES = 40


class Transcript:
    """Lines of true time and text; two runs of one seed must have the same digest."""

    def __init__(self) -> None:
        """An empty trace."""
        self._digest = blake2b(digest_size=16)
        self.last: deque[str] = deque(maxlen=KEPT_LINES)

    def line(self, now: int, text: str) -> None:
        """One thing happened at a true time."""
        entry = f"{now / 1000:>11.3f}  {text}"
        self.last.append(entry)
        self._digest.update(entry.encode())

    @property
    def digest(self) -> str:
        """A name for everything that was written."""
        return self._digest.hexdigest()


def told(sender: str, command: c.Command[Any], reply: Any) -> str:
    """A command and its reply, on one line."""
    return f"{sender} {type(command).__name__}{_about(command)}: {said(reply)}"


def _about(command: c.Command[Any]) -> str:
    job_id = getattr(command, "job_id", None)
    if job_id is not None:
        epoch = getattr(command, "epoch", None)
        return f" {job_id}" if epoch is None else f" {job_id}@{epoch}"
    if isinstance(command, c.Sweep):
        return "".join(f" {t.job_id}@{t.epoch}/{t.beats}" for t in command.targets)
    if isinstance(command, c.Heartbeat):
        return f" of {len(command.holds)}"
    return ""


def said(reply: Any) -> str:
    """A reply in a few words."""
    if isinstance(reply, r.Accepted):
        done = "repeated" if reply.transition is None else reply.transition
        return f"{done}, now {reply.standing.status} at epoch {reply.standing.epoch}"
    if isinstance(reply, r.Refused):
        return f"refused, {reply.reason}"
    if isinstance(reply, r.Beaten):
        counts: dict[r.Answer, int] = {}
        for each in reply.answers:
            counts[each.answer] = counts.get(each.answer, 0) + 1
        return ", ".join([f"{n} {answer}" for answer, n in counts.items()]) or "nothing to renew"
    if isinstance(reply, r.SuspectsPage):
        return " ".join(f"{s.job_id}@{s.epoch}/{s.beats}" for s in reply.suspects) or "none"
    if isinstance(reply, r.Swept):
        return " ".join(
            "swept" if a.refusal is None else f"refused, {a.refusal}" for a in reply.answers
        )
    if isinstance(reply, r.Claimed):
        return " ".join(grant.standing.job_id for grant in reply.grants) or "nothing"
    if isinstance(reply, r.EventsLeased):
        return f"token {reply.token} behind {reply.position}"
    if isinstance(reply, r.Acknowledged):
        return f"up to {reply.position}"
    return type(reply).__name__.lower()
