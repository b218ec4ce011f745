"""Judges recorded runs by the laws in SQL, and compares with what the simulator found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from attrs import frozen

from unswept.adapters.traces.law_helpers import PREPARATION
from unswept.adapters.traces.law_sql import NOT_JUDGED, OFFENCES
from unswept.adapters.traces.store import TraceStore
from unswept.simulations.examiner import NAME as EXAMINER
from unswept.spec.laws import LAWS, READS, Judges, Law


@frozen
class Offence:
    """A law broken in a run, at one of its commands."""

    seed: int
    n: int
    job: str | None
    offence: str


@frozen
class Judgement:
    """What SQL made of one law, and what the simulator had made of it."""

    law: Law
    judged: int
    """How many observations there were to judge."""
    offences: tuple[Offence, ...]
    reported: tuple[int, ...]
    """The runs that the simulator ended by this law."""
    why_not: str | None = None
    """Why a trace cannot show it; None: it was judged."""

    @property
    def broken(self) -> bool:
        """By either judgement."""
        return bool(self.offences or self.reported)


def judge(traces: TraceStore) -> tuple[Judgement, ...]:
    """Every law of the catalogue, over all runs that are open."""
    traces.prepare(PREPARATION)
    reported: dict[str, list[int]] = {}
    for seed, law_id in traces.query("SELECT seed, law FROM violations ORDER BY seed").rows:
        reported.setdefault(law_id, []).append(seed)
    return tuple(_judge(traces, law, tuple(reported.get(law.id, ()))) for law in LAWS)


def ended_early(traces: TraceStore) -> tuple[int, ...]:
    """The runs whose traces have no last line: what came after the rest was judged by nobody."""
    cut = traces.query("SELECT seed FROM runs WHERE seed NOT IN (SELECT seed FROM ends) ORDER BY 1")
    return tuple(seed for (seed,) in cut.rows)


def disagreements(judgements: Sequence[Judgement], early: Collection[int] = ()) -> list[str]:
    """Where the two judgements differ: a run that the simulator found against a law, and SQL did
    not; and one that SQL found against any law, and the simulator against none.

    The simulator ends a run at the first law that is broken; by the same command others may be. In
    a trace that ends `early` its finding may be missing.
    """
    ended = {seed for judgement in judgements for seed in judgement.reported} | {*early}
    found = []
    for judgement in judgements:
        if judgement.why_not is not None:
            continue
        seeds = {offence.seed for offence in judgement.offences}
        law_id = judgement.law.id
        found += [
            f"{law_id} was broken in seed {seed} by the simulator's judgement alone"
            for seed in judgement.reported
            if seed not in seeds
        ]
        found += [
            f"{law_id} was broken in seed {seed} by SQL's judgement alone"
            for seed in sorted(seeds - ended)
        ]
    return found


def _judge(traces: TraceStore, law: Law, reported: tuple[int, ...]) -> Judgement:
    sql = OFFENCES.get(law.id)
    if sql is None:
        return Judgement(law, 0, (), reported, NOT_JUDGED[law.id])
    held = f"trace.runs AS r ON r.seed = o.seed AND NOT list_contains(r.excused, '{law.id}')"
    ((judged,),) = traces.query(
        f"SELECT count(*) FROM ({_observations(law)}) AS o JOIN {held}"
    ).rows
    offences = traces.query(
        f"SELECT o.seed, o.n, o.job, o.offence FROM ({sql}) AS o JOIN {held} ORDER BY ALL"
    ).rows
    return Judgement(law, judged, tuple(Offence(*row) for row in offences), reported)


_ACKNOWLEDGED: Final = (
    "SELECT seed FROM trace.commands WHERE verb = 'Acknowledge'"
    f" AND (answer ->> 'type') = 'Acknowledged' AND sender <> '{EXAMINER}'"
)


def _observations(law: Law) -> str:
    """What there was to judge: a row each."""
    if law.judges is Judges.SEND:
        bound = f"verb IN ({_verbs(law.on)})" if law.on else "len(sights) > 0"
        return f"SELECT seed FROM trace.sends WHERE {bound}"
    if law.judges is Judges.WORK:
        return "SELECT seed FROM trace.works"
    if law.judges is Judges.DELIVERY:
        return f"SELECT seed FROM trace.deliveries UNION ALL {_ACKNOWLEDGED}"
    steps = f"SELECT seed, n FROM trace.commands WHERE verb NOT IN ({_verbs(READS)})"
    if law.on:
        steps += f" AND verb IN ({_verbs(law.on)})"
    if law.of_moves:
        moved = "before.status IS DISTINCT FROM after.status"
        steps += f" AND (seed, n) IN (SELECT (seed, n) FROM trace.changes WHERE {moved})"
    elif law.of_rows:
        changed = "SELECT seed, n FROM trace.changes UNION SELECT seed, n FROM trace.events"
        steps += f" AND (seed, n) IN ({changed})"
    return steps


def _verbs(commands: Sequence[type] | frozenset[type]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(kind.__name__ for kind in commands))
