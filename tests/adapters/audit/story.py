"""A store in which everything has happened that leaves a trace, and nothing that may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.job import OnOrphan, Terms
from unswept.core.lease import RequeueRule, Status
from unswept.core.replies import Refused
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Chunk, Request, Stream

TERMS = Terms(Ms(100), Ms(160), Ms(80), Ms(60))
KEYED = Request(principal="p", request_key="k")


class Clock:
    """Store time that stands until it is moved."""

    now = 1_700_000_000_000

    def __call__(self) -> StoreMs:
        return StoreMs(self.now)


def tell(store: c.Store, clock: Clock) -> None:
    """The story; every command in it is accepted."""

    def do(command: c.Command[Any]) -> Any:
        clock.now += 1
        reply = store.execute(command)
        assert not isinstance(reply, Refused) or isinstance(command, c.Complete), reply
        return reply

    def sweep(job: str, epoch: int, beats: int) -> None:
        clock.now += 400
        seen = StoreMs(clock.now)
        clock.now += 70
        do(c.Sweep("s", (c.Target(job, epoch, beats, seen),)))

    allowed = RequeueRule.ALLOWED
    for name in ("r1", "r2"):
        do(c.Register(name))
    do(c.Admit("done", "a", TERMS, request=KEYED, dedup_window_ms=Ms(1_000)))
    do(c.Start("done", "a", 1, TERMS))
    do(c.Output("done", "a", 1, Chunk(0, Stream.STDOUT, b"out"), Ms(100)))
    do(c.Complete("done", "a", 1, Status.COMPLETED))
    do(c.Admit("twin", "a", TERMS, request=KEYED, dedup_window_ms=Ms(1_000)))
    for job in ("healed", "orphan", "failing"):
        policy = OnOrphan.FAIL if job == "failing" else OnOrphan.MARK
        do(c.Admit(job, "a", TERMS, on_orphan=policy))
        do(c.Start(job, "a", 1, TERMS))
    do(c.Heartbeat("a", TERMS, (c.Hold("healed", 1),)))
    sweep("healed", 1, 3)
    do(c.Complete("healed", "a", 1, Status.FAILED))
    do(c.Delay("orphan", 1, 2, "s"))
    sweep("orphan", 1, 3)
    sweep("failing", 1, 2)
    do(c.Enqueue("fleet", requeue=allowed, on_orphan=OnOrphan.REQUEUE, max_attempts=2))
    do(c.Claim("r1", 1, TERMS))
    sweep("fleet", 1, 1)
    do(c.Complete("fleet", "r1", 1, Status.COMPLETED))  # late
    do(c.Claim("r2", 1, TERMS))
    sweep("fleet", 3, 2)
    do(c.Enqueue("back", requeue=allowed))
    do(c.Claim("r1", 2, TERMS))
    do(c.Release("back", "r1", 1))
    do(c.Enqueue("canceled"))
    do(c.RequestCancel("canceled"))
    do(c.Enqueue("late", queue_deadline=StoreMs(clock.now + 2)))
    clock.now += 10
    do(c.ExpireQueued("late"))
    do(c.Admit("evicted", "a", TERMS))
    do(c.Withdraw("evicted", "a"))
    clock.now += 100
    do(c.Evict((c.Hold("evicted", 1),), Ms(50)))
    do(c.Admit("asked", "a", TERMS))
    do(c.Start("asked", "a", 1, TERMS))
    do(c.RequestCancel("asked"))
    do(c.Enqueue("waiting", partition="p"))
    do(c.Admit("live", "a", TERMS))
    do(c.Start("live", "a", 1, TERMS))
    token = do(c.LeaseEvents("reader", "a", Ms(1_000))).token
    do(c.Acknowledge("reader", token, 3))
    do(c.Acknowledge("reader", token, 4, last=True, error="cannot be read"))


def sqlite_story(path: Path) -> Path:
    clock = Clock()
    with SqliteStore(path, clock=clock) as store:
        tell(store, clock)
    return path
