"""A counterexample of the table as a reader wants it: what reached the store, step by step."""

from __future__ import annotations

from attrs import frozen

from unswept.core import commands as c
from unswept.core.job import Transport
from unswept.core.lease import RequeueRule
from unswept.spec.explorer.table.scopes import LONGER, STEP_BACK
from unswept.spec.explorer.table.search import BACK, TICK, Found, What
from unswept.spec.explorer.table.settled import Settled


@frozen
class Told:
    """One thing that happened on the way, and when, in ticks of the store clock."""

    tick: int
    words: str


def told(trace: tuple[What, ...]) -> tuple[Told, ...]:
    """The way in words; that a tick passes shows in the ticks alone."""
    now, tale = 0, []
    for what in trace:
        if what == TICK:
            now += 1
            continue
        tale.append(Told(now, _words(what)))
        if what == BACK:
            now -= STEP_BACK
    return tuple(tale)


def sentences(found: Found) -> tuple[str, ...]:
    """The way, and how its last step breaks which laws."""
    way = tuple(f"tick {step.tick}: {step.words}" for step in told(found.trace))
    return (*way, *(f"{offence.law}: {offence.sentence}" for offence in found.offences))


def _words(what: What) -> str:
    if isinstance(what, str):
        return what
    return _said(what) + (", whose policy is another" if _longer(what) else "")


def _longer(command: c.Command[object]) -> bool:
    return getattr(command, "terms", None) == LONGER


def _said(what: c.Command[object]) -> str:
    match what:
        case c.Admit():
            fresh = ", afresh" if what.fresh else ""
            return f"{what.owner} admits {what.job_id} ({_kind(what)}){fresh}"
        case c.Enqueue():
            return f"{what.job_id} is enqueued ({_kind(what)})"
        case c.Claim():
            return f"{what.owner} claims up to {what.limit}, claim {what.claim_no}"
        case c.Start():
            return f"{what.owner} starts {what.job_id} under epoch {what.epoch}"
        case c.Heartbeat():
            holds = ", ".join(f"{hold.job_id} under epoch {hold.epoch}" for hold in what.holds)
            return f"{what.instance} renews {holds}"
        case c.Complete():
            return (
                f"{what.owner} completes {what.job_id} under epoch {what.epoch}, as {what.outcome}"
            )
        case c.Release():
            return f"{what.owner} releases {what.job_id} under epoch {what.epoch}"
        case c.Output():
            return f"{what.owner} sends output of {what.job_id} under epoch {what.epoch}"
        case c.RequestCancel():
            return f"somebody asks to cancel {what.job_id}"
        case c.Withdraw():
            return f"{what.owner} withdraws {what.job_id}"
        case c.Requeue():
            force = ", by force" if what.force else ""
            return f"an authority requeues {what.job_id}, seen under epoch {what.epoch}{force}"
        case c.Settle():
            seen = f"seen under epoch {what.epoch}"
            return f"an authority settles {what.job_id} as {what.outcome}, {seen}"
        case c.Delay():
            return f"{what.actor} delays {what.job_id}, {_seen(what.epoch, what.beats)}"
        case c.Sweep():
            targets = (f"{each.job_id}, {_seen(each.epoch, each.beats)}" for each in what.targets)
            return f"{what.sweeper} sweeps {'; and '.join(targets)}"
        case c.ExpireQueued():
            return f"{what.job_id} is to be expired"
        case c.Evict():
            targets = (f"{each.job_id}, seen under epoch {each.epoch}" for each in what.targets)
            return f"{'; and '.join(targets)}: to be evicted"
        case c.Register():
            return f"{what.instance} registers, having used claim numbers up to {what.claim_no}"
        case c.Deregister():
            return f"{what.instance} deregisters"
        case _:
            return type(what).__name__


def _seen(epoch: int, beats: int) -> str:
    return f"seen under epoch {epoch} at beat {beats}"


def _kind(what: c.Admit | c.Enqueue) -> str:
    words = ["http" if what.transport is Transport.HTTP else "process"]
    words.append(f"requeue {RequeueRule(what.requeue)}")
    words.append(f"on_orphan {what.on_orphan}")
    return ", ".join(words)


def settled_sentences(found: Settled) -> tuple[str, ...]:
    """The way to where a job stays for ever as it is, and what happens there again and again."""
    if not found.round:
        return tuple(f"{offence.law}: {offence.sentence}" for offence in found.offences)
    again = " and ".join(dict.fromkeys(found.round))
    return (*found.way, f"for ever: {again}; and {found.job_id} is never settled")
