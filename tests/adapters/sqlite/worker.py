"""One gateway process of the test with real processes: runs jobs, beats, sweeps, and keeps a diary.

    python worker.py STORE DIARY OWNER

A line is added to the diary after each acknowledged write, so that the test knows what must not be
lost. The process runs until it is killed or told to end on its standard input.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from random import Random

from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.errors import StoreUnavailableError
from unswept.core.job import Terms
from unswept.core.lease import RequeueRule, Status
from unswept.core.replies import Accepted, Answer, Suspect
from unswept.core.units import Ms
from unswept.core.values import Chunk, Request, Stream

BEAT_S = 0.15
WINDOW_S = 1.5
TERMS = Terms(Ms(1_500), Ms(1_500), Ms(1_500), Ms(int(WINDOW_S * 1_000)))


class Worker:
    """Jobs in this thread, beats and sweeps in another."""

    def __init__(self, path: str, diary: str, owner: str) -> None:
        self.store = SqliteStore(path)
        self.diary = os.open(diary, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.owner = owner
        self.random = Random(owner)
        self.holds: dict[str, int] = {}
        self.changing = threading.Lock()
        self.over = threading.Event()
        self.first_seen: dict[tuple[str, int, int], float] = {}

    def write(self, *words: object) -> None:
        os.write(self.diary, (" ".join(map(str, words)) + "\n").encode())

    def run(self) -> None:
        self.store.execute(c.Register(self.owner, pid=os.getpid()))
        beating = threading.Thread(target=self.beat, daemon=True)
        beating.start()
        threading.Thread(target=self.wait_for_the_end, daemon=True).start()
        number = 0
        while not self.over.is_set():
            self.job(f"{self.owner}-{number:04}")
            number += 1
        beating.join()
        self.store.close()

    def wait_for_the_end(self) -> None:
        sys.stdin.read()
        self.over.set()

    def job(self, job_id: str) -> None:
        """One job from admit to completion, with every acknowledgement in the diary."""
        request = Request(b"x" * self.random.choice((10, 5_000)))
        self.store.execute(
            c.Admit(job_id, self.owner, TERMS, requeue=RequeueRule.NEVER, request=request)
        )
        self.write("admitted", job_id)
        with self.changing:
            self.holds[job_id] = 1
        self.store.execute(c.Start(job_id, self.owner, 1, TERMS))
        for number in range(self.random.randint(0, 3)):
            chunk = Chunk(number, Stream.STDOUT, b"line\n")
            self.store.execute(c.Output(job_id, self.owner, 1, chunk, Ms(1_000)))
            self.write("output", job_id, number)
            self.over.wait(self.random.uniform(0, 0.05))
        done = self.store.execute(c.Complete(job_id, self.owner, 1, Status.COMPLETED))
        assert isinstance(done, Accepted), done
        self.write("completed", job_id)
        with self.changing:
            del self.holds[job_id]

    def beat(self) -> None:
        """Beats and sweeps until the end; a gap in its own beats starts every window anew."""
        last = time.monotonic()
        while not self.over.wait(BEAT_S):
            with self.changing:
                holds = tuple(c.Hold(*hold) for hold in self.holds.items())
            try:
                beaten = self.store.execute(c.Heartbeat(self.owner, TERMS, holds))
            except StoreUnavailableError:
                continue
            for answer in beaten.answers:
                assert answer.answer in (Answer.RENEWED, Answer.TERMINAL), answer
            now = time.monotonic()
            if now - last > 3 * BEAT_S:
                self.first_seen.clear()
            last = now
            self.sweep(now)

    def sweep(self, now: float) -> None:
        page = self.store.execute(c.Suspects())
        seen = {(s.job_id, s.epoch, s.beats): s for s in page.suspects if s.owner != self.owner}
        self.first_seen = {stamp: self.first_seen.get(stamp, now) for stamp in seen}
        ripe = [seen[stamp] for stamp, at in self.first_seen.items() if now - at >= WINDOW_S]
        if ripe:
            targets = tuple(target(suspect) for suspect in ripe)
            self.store.execute(c.Sweep(self.owner, targets))


def target(suspect: Suspect) -> c.Target:
    return c.Target(suspect.job_id, suspect.epoch, suspect.beats, first_seen_at=suspect.deadline)


if __name__ == "__main__":
    Worker(*sys.argv[1:]).run()
