"""The trace of a run: one JSON object per line for whatever happened, handed to whoever writes it.

The records and their keys are described in docs/traces.md; readers skip what they do not know.
Times under `at` are true milliseconds of the run; those of rows are the store clock's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from json import JSONEncoder
from typing import Any, Final, Protocol

from attrs import asdict, define, field

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.heart import Phase
from unswept.core.job import Job
from unswept.core.lease import RequeueRule
from unswept.core.policy import LeasePolicy
from unswept.core.sweeper import Suspicion
from unswept.core.units import MonoMs, Ms
from unswept.core.values import Event
from unswept.simulations.commands_json import Fields, command_fields, reply_fields, verb_of
from unswept.simulations.transcript import said
from unswept.spec.observations import Delivery, Send, Step

FORMAT: Final = 1
"""Grows when a reader of the last one would misread this one; a new record or key is no reason."""

_encode: Final = JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Actor(Protocol):
    """Whoever takes part in a run, as far as a trace tells of it."""

    name: str

    @property
    def kind(self) -> str:
        """What it is: gateway, runner, producer, authority, consumer or stranger."""
        ...

    @property
    def host_name(self) -> str:
        """Where it runs."""
        ...


@define
class _Known:
    """What the trace has said of an instance's mind, so that it says only what is new."""

    phase: Phase | None = None
    suspicions: Mapping[str, Suspicion] = field(factory=dict)


class Trace:
    """Formats what happens in one run, a line at a time, in the order in which it happens."""

    def __init__(self, write: Callable[[str], object], version: str, store: str) -> None:
        """A trace whose lines go to `write`, newline included; `version` is that of the package,
        and `store` names the store under test."""
        self._write = write
        self._version = version
        self._store = store
        self._known: dict[str, _Known] = {}
        self._commands = 0
        self._rows: dict[str, tuple[Job | None, str]] = {}
        """Each job that has changed, and its row as it was written last: a change begins with it,
        and rows are the bulk of a trace."""

    # The run ----------------------------------------------------------------------------------

    def begins(self, settings: Any, excused: frozenset[str], store_clock_ms: int) -> None:
        """The first line: what makes the same run again."""
        self._line(
            {
                "type": "run",
                "format": FORMAT,
                "version": self._version,
                "seed": settings.seed,
                "settings": asdict(settings),
                "store": self._store,
                "store_clock_ms": store_clock_ms,
                "excused": sorted(excused),
            }
        )

    def violation(self, at: int, law: str, offence: str) -> None:
        """A law was broken: the run ends here."""
        words = (word.strip(",:;()'") for word in offence.split())
        job = next((word for word in words if word in self._rows), None)
        record = {"type": "violation", "at": at, "law": law, "offence": offence, "job": job}
        self._line({**record, "n": self._commands})

    def ends(self, at: int, **found: Any) -> None:
        """The last line: what the run came to."""
        self._line({"type": "end", "at": at, **found})

    # Who takes part ---------------------------------------------------------------------------

    def boots(self, at: int, actor: Actor, policy: LeasePolicy | None) -> None:
        """A process starts; consumers and other clients have no policy."""
        self._line(
            {
                **self._instance(at, actor, "boots"),
                "heartbeat_interval_ms": policy and policy.heartbeat_interval_ms,
                "lease_ttl_ms": policy and policy.lease_ttl_ms,
            }
        )

    def instance(self, at: int, actor: Actor, event: str) -> None:
        """A process is killed, stands still, goes on, drains or has stopped."""
        self._line(self._instance(at, actor, event))

    def mind(
        self, at: int, actor: Actor, phase: Phase, suspicions: Mapping[str, Suspicion]
    ) -> None:
        """What an instance is and whom it suspects; only what has changed is written."""
        known = self._known.get(actor.name)
        if known is None:
            known = self._known[actor.name] = _Known()
        if known.phase is not phase:
            known.phase = phase
            self._line({**self._instance(at, actor, "phase"), "phase": phase.value})
        before = known.suspicions
        if before is not suspicions:
            known.suspicions = suspicions
            self._suspects(at, actor.name, before, suspicions)

    def _suspects(
        self,
        at: int,
        name: str,
        before: Mapping[str, Suspicion],
        after: Mapping[str, Suspicion],
    ) -> None:
        for job_id, old in before.items():
            new = after.get(job_id)
            if new is None or (new.epoch, new.beats) != (old.epoch, old.beats):
                self._sight(at, name, job_id, old.epoch, old.beats, "dropped")
        for job_id, new in after.items():
            known = before.get(job_id)
            if known is None or (new.epoch, new.beats) != (known.epoch, known.beats):
                self._sight(at, name, job_id, new.epoch, new.beats, "suspected")

    def _sight(self, at: int, name: str, job_id: str, epoch: int, beats: int, event: str) -> None:
        record = {"type": "sight", "at": at, "instance": name, "job": job_id, "epoch": epoch}
        self._line({**record, "beats": beats, "event": event})

    def _instance(self, at: int, actor: Actor, event: str) -> Fields:
        return {
            "type": "instance",
            "at": at,
            "name": actor.name,
            "kind": actor.kind,
            "host": actor.host_name,
            "event": event,
        }

    # What befalls them ------------------------------------------------------------------------

    def fault(
        self, at: int, name: str, event: str, on: str | None = None, ms: int | None = None
    ) -> None:
        """A fault strikes, or begins or ends for an instance, a job or all; `ms`: by how much the
        store clock stepped."""
        record = {"type": "fault", "at": at, "name": name, "event": event, "on": on}
        self._line(record if ms is None else {**record, "ms": ms})

    # What the laws look at --------------------------------------------------------------------

    def command(self, at: int, sender: str, step: Step) -> None:
        """A command that the store carries out, with all that it changes."""
        self._commands += 1
        command, reply = step.command, step.reply
        refused = isinstance(reply, r.Refused)
        head = _encode(
            {
                "type": "command",
                "at": at,
                "n": self._commands,
                "sender": sender,
                "verb": verb_of(command),
                "store_at": step.now,
                "job": getattr(command, "job_id", None),
                "epoch": getattr(command, "epoch", None),
                "command": command_fields(command),
                "reply": said(reply),
                "refusal": reply.reason.value if refused else None,
            }
        )
        changes = ",".join(self._changes(step))
        tail = _encode(
            {
                "answer": reply_fields(reply),
                "events": [_event(event) for event in step.events],
                "output": step.output,
                "used": list(step.newly_used),
                **_beside_jobs(step),
            }
        )
        self._write(f'{head[:-1]},"changes":[{changes}],{tail[1:]}\n')

    def send(self, at: int, send: Send) -> None:
        """An instance sends what its heart or its window must allow: laws L10 and L12a."""
        if isinstance(send.command, c.Sweep):
            for target in send.command.targets:
                at_stamp = (target.job_id, target.epoch, target.beats)
                self._sight(at, send.instance, *at_stamp, "confirmed")
        self._line(
            {
                "type": "send",
                "at": at,
                "n": self._commands,
                "instance": send.instance,
                "verb": verb_of(send.command),
                "phase": send.phase.value,
                "repeat": send.repeat,
                "sights": [asdict(sight) for sight in send.sights],
            }
        )

    def work(
        self,
        at: int,
        actor: Actor,
        hold: tuple[str, int],
        requeue: RequeueRule,
        now: MonoMs,
        heard: tuple[MonoMs, Ms] | None,
        margin_ms: Ms,
    ) -> None:
        """An instance begins a step of work: what laws L11 and F3 judge. `now` and the first send
        of the last stamp that it `heard` of, with its ttl, are by its own clock."""
        stamped_from, ttl_ms = (None, None) if heard is None else heard
        self._line(
            {
                "type": "work",
                "at": at,
                "n": self._commands,
                "instance": actor.name,
                "job": hold[0],
                "epoch": hold[1],
                "requeue": requeue.value,
                "now": now,
                "stamped_from": stamped_from,
                "ttl_ms": ttl_ms,
                "margin_ms": margin_ms,
            }
        )

    def delivery(self, at: int, delivery: Delivery) -> None:
        """A consumer has handled an event: what law F4 judges, with its acknowledgements."""
        record = {"type": "delivery", "at": at, "n": self._commands, "consumer": delivery.consumer}
        self._line({**record, "number": delivery.number})

    def _changes(self, step: Step) -> Iterator[str]:
        left: dict[str, list[Event]] = {}
        for event in step.events:
            left.setdefault(event.job_id, []).append(event)
        for before, after in step.rows:
            job = after or before
            assert job is not None
            kind = _transition(step, before, after, left.get(job.id, []))
            was, now = self._row(job.id, before), self._row(job.id, after)
            yield (
                f'{{"job":{_encode(job.id)},"transition":{_encode(kind)},'
                f'"before":{was},"after":{now}}}'
            )

    def _row(self, job_id: str, job: Job | None) -> str:
        known = self._rows.get(job_id)
        if known is not None and known[0] is job:
            return known[1]
        text = _encode(_row(job))
        self._rows[job_id] = (job, text)
        return text

    def _line(self, record: Fields) -> None:
        self._write(_encode(record) + "\n")


def _transition(
    step: Step, before: Job | None, after: Job | None, left: Sequence[Event]
) -> str | None:
    """The name of what happened to a row: its event's; a heartbeat leaves none."""
    if isinstance(step.command, c.Heartbeat):
        return "renew"
    for event in left:
        if after is None or (event.epoch, event.status) == (after.lease.epoch, after.lease.status):
            return event.kind.value
    transition = getattr(step.reply, "transition", None)
    return None if transition is None else str(transition.value)


def _row(job: Job | None) -> Fields | None:
    """A job's row, its lease and its process spread out; what is not set is left out."""
    if job is None:
        return None
    row = {**job.lease.__dict__, **job.__dict__}
    del row["id"], row["lease"]
    process = row.pop("process")
    if process is not None:
        row.update(pid=process.pid, process_start=process.start, boot_id=process.boot_id)
    return {name: value for name, value in row.items() if value is not None}


def _beside_jobs(step: Step) -> Fields:
    """What it did with consumers and old events, if its command is one for that; and what an
    eviction left of its jobs."""
    fields: Fields = {"left_behind": list(step.left_behind)} if step.left_behind else {}
    outbox = step.outbox
    if outbox is None or (isinstance(step.command, c.Evict) and not outbox.forgotten):
        return fields
    row = None if outbox.row is None else dict(outbox.row.__dict__)
    letters = [{"consumer": name, "number": number} for name, number in outbox.letters]
    fields["outbox"] = {"row": row, "letters": letters, "forgotten": list(outbox.forgotten)}
    return fields


def _event(event: Event) -> Fields:
    row = {("job" if name == "job_id" else name): value for name, value in event.__dict__.items()}
    return {name: value for name, value in row.items() if value is not None}
