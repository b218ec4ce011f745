"""Judges the core that is imported, road by road: run in a process of its own over a mutant.

`python -c 'from tests.spec.roads import main; main()' '[ROADS, THEOREMS]'` prints, as JSON, what
each road found; with `serve` instead it is the mutant's pure store behind a pipe.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

from unswept.core import lease
from unswept.core.memory import MemoryStore
from unswept.spec.agreement import itf
from unswept.spec.agreement.judged import Judged
from unswept.spec.agreement.replay import Clock, replay
from unswept.spec.agreement.states import first_difference

TRACES = sorted((Path(__file__).parent / "traces").glob("*.itf.json"))
JOBS = ("j1", "j2", "j3", "j4", "j5", "j6")

Road = Callable[[tuple[str, ...]], str | None]
"""What found the mutant out, by name, given the theorems that speak of its guard; None: nothing."""


def proofs(theorems: tuple[str, ...]) -> str | None:
    """The theorems that speak of the guard, if each is refuted: none may be merely undetermined."""
    from unswept.adapters.proofs.prover import Verdict, prove
    from unswept.spec.theorems.catalogue import THEOREMS
    from unswept.spec.theorems.theorem import by_name

    known = by_name(THEOREMS)
    verdicts = {name: prove(known[name]).verdict for name in theorems}
    refuted = bool(verdicts) and set(verdicts.values()) == {Verdict.REFUTED}
    return ", ".join(f"`{name}`" for name in theorems) if refuted else None


def states(theorems: tuple[str, ...]) -> str | None:
    """The move that differs on some small state."""
    found = first_difference()
    return None if found is None else found.write[0]


def traces(theorems: tuple[str, ...]) -> str | None:
    """The first trace of the specification whose rows the store does not have."""
    for trace in TRACES:
        clock = Clock()
        if replay(itf.read(trace), MemoryStore(clock), clock):
            return trace.name.partition(".")[0]
    return None


def steps(theorems: tuple[str, ...]) -> str | None:
    """The command of a trace with which the store took a step that is not specified."""
    for trace in TRACES:
        clock = Clock()
        judged = Judged(MemoryStore(clock), clock, JOBS)
        replay(itf.read(trace), judged, clock)
        if found := next(filter(None, judged.offences), None):
            return found.partition(" ")[0]
    return None


def explorer(theorems: tuple[str, ...]) -> str | None:
    """The laws that the shortest way breaks which the explorer finds."""
    from unswept.spec.explorer.table.scopes import SCOPES
    from unswept.spec.explorer.table.search import first_refuted

    refuted = first_refuted(SCOPES, 2, 1)
    if refuted is None:
        return None
    _, found = refuted
    return ", ".join(dict.fromkeys(offence.law for offence in found.offences))


ROADS: dict[str, Road] = {
    "proofs": proofs,
    "small states": states,
    "traces": traces,
    "steps": steps,
    "explorer": explorer,
}


def serve() -> None:
    """Answer commands, each with its store time, until the pipe is closed; None begins a new
    store."""
    clock = Clock()
    store = MemoryStore(clock)
    while True:
        try:
            question = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        reply: object = None
        if question is None:
            store = MemoryStore(clock)
        else:
            clock.now, command = question
            try:
                reply = store.execute(command)
            except Exception as error:  # the kit says which command raised it
                reply = error
        pickle.dump(reply, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def main() -> None:
    """Say where the core was imported from, and what each road found that was asked for."""
    if sys.argv[1] == "serve":
        serve()
        return
    roads, theorems = json.loads(sys.argv[1])
    found = {name: ROADS[name](tuple(theorems)) for name in roads}
    print(json.dumps({"core": lease.__file__, **found}))
