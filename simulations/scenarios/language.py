"""Conversations with a store, written so that a reader can check them by eye.

    0    admit j1 A            -> admit: queued A e1 b1 d100
    100  sweep S j1/1/1        -> j1 not_expired
    101  sweep S j1/1/1        -> j1 done

Each line is a store time, a command and its reply. The store clock may step: times may go backward.
A standing is the status, the owner (- for nobody), epoch, beats, then the deadline and the time of
the cancel request where there is one. `name=value` sets an option of a command.

A lease is stamped for 100 ms (http jobs: 300), a claim for 50 until it beats; the dedup window is
60, late output is taken for 20, a finished job is kept for 1000, and its events for 300 more.
`live` is no command: see `unswept.simulations.scenarios.alive`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import OnOrphan, Process, Transport
from unswept.core.lease import RequeueRule, Status
from unswept.core.policy import LeasePolicy
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Chunk, Request, Result, Stream

EVENT_RETENTION_MS: Final = Ms(300)
POLICY: Final = LeasePolicy(
    heartbeat_interval_ms=Ms(10),
    lease_ttl_ms=Ms(100),
    http_grace_ms=Ms(300),
    first_beat_ttl_ms=Ms(50),
    confirm_after_ms=Ms(30),
    sweep_interval_ms=Ms(20),
    instance_gc_ms=Ms(500),
    retention_ms=Ms(1_000),
    event_retention_ms=EVENT_RETENTION_MS,
    dedup_window_ms=Ms(60),
    late_output_ms=Ms(20),
)
"""By which everybody in a story lives."""
TERMS: Final = POLICY.terms()

Options = dict[str, str]


def lines_of(text: str) -> list[str]:
    """The lines of a story; spaces and empty lines do not count."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def command(words: list[str]) -> c.Command[Any]:
    """The command that these words say."""
    verb, *rest = words
    options = dict(word.split("=", 1) for word in rest if "=" in word)
    return VERBS[verb]([word for word in rest if "=" not in word], options)


def _hold(words: list[str]) -> tuple[str, str, int]:
    job_id, owner, epoch = words[:3]
    return (job_id, owner, int(epoch))


def _admit(words: list[str], options: Options) -> c.Admit:
    principal, _, key = options.get("key", "").partition("/")
    request = Request(b"", principal, key) if key else Request()
    return c.Admit(
        words[0],
        words[1],
        TERMS,
        Transport.HTTP if "http" in words else Transport.PROCESS,
        RequeueRule.ALLOWED if "requeueable" in words else RequeueRule.NEVER,
        request,
        Ms(int(options.get("window", POLICY.dedup_window_ms))),
        "fresh" in words,
        *_policy(options),
    )


def _policy(options: Options) -> tuple[OnOrphan, int | None]:
    policy, _, most = options.get("then", "mark").partition("/")
    return OnOrphan(policy), int(most) if most else None


def _enqueue(words: list[str], options: Options) -> c.Enqueue:
    policy, most = _policy(options)
    return c.Enqueue(
        words[0],
        requeue=RequeueRule.ALLOWED if "requeueable" in words else RequeueRule.NEVER,
        partition=options.get("in", ""),
        priority=int(options.get("priority", 0)),
        queue_deadline=_time(options, "until"),
        not_before=_time(options, "from"),
        labels=_labels(options),
        on_orphan=policy,
        max_attempts=most,
    )


def _labels(options: Options) -> tuple[str, ...]:
    return tuple(options["labels"].split("+")) if "labels" in options else ()


def _time(options: Options, name: str) -> StoreMs | None:
    return StoreMs(int(options[name])) if name in options else None


def _claim(words: list[str], options: Options) -> c.Claim:
    limit = int(options.get("limit", 1))
    return c.Claim(words[0], int(words[1]), TERMS, options.get("in", ""), limit, _labels(options))


def _start(words: list[str], options: Options) -> c.Start:
    pid = options.get("pid")
    process = None if pid is None else Process(int(pid), 5_000, "boot")
    return c.Start(*_hold(words), TERMS, process)


def holds_of(words: list[str]) -> tuple[c.Hold, ...]:
    """Holds, each as JOB/EPOCH."""
    pairs = (word.split("/") for word in words)
    return tuple(c.Hold(job_id, int(epoch)) for job_id, epoch in pairs)


def _output(words: list[str], options: Options) -> c.Output:
    chunk = Chunk(int(words[3]), Stream.STDOUT, words[4].encode())
    return c.Output(*_hold(words), chunk, POLICY.late_output_ms)


def _complete(words: list[str], options: Options) -> c.Complete:
    code = int(options["code"]) if "code" in options else None
    return c.Complete(*_hold(words), Status(words[3]), Result(exit_code=code))


def _requeue(words: list[str], options: Options) -> c.Requeue:
    force = "force" in words
    return c.Requeue(words[0], int(words[1]), force, not_before=_time(options, "from"))


def _sweep(words: list[str], options: Options) -> c.Sweep:
    stamps = (word.split("/") for word in words[1:])
    targets = (c.Target(id_, int(epoch), int(beats), StoreMs(0)) for id_, epoch, beats in stamps)
    return c.Sweep(words[0], tuple(targets))


def _register(words: list[str], options: Options) -> c.Register:
    budget = int(options["budget"]) if "budget" in options else None
    return c.Register(words[0], claim_no=int(options.get("claims", 0)), max_held=budget)


def _acknowledge(words: list[str], options: Options) -> c.Acknowledge:
    name, token, upto = words[:3]
    return c.Acknowledge(name, int(token), int(upto), "last" in words, options.get("error"))


VERBS: Final = MappingProxyType[str, Callable[[list[str], Options], c.Command[Any]]](
    {
        "register": _register,
        "deregister": lambda words, options: c.Deregister(words[0]),
        "admit": _admit,
        "enqueue": _enqueue,
        "withdraw": lambda words, options: c.Withdraw(words[0], words[1]),
        "claim": _claim,
        "start": _start,
        "beat": lambda words, options: c.Heartbeat(words[0], TERMS, holds_of(words[1:])),
        "output": _output,
        "complete": _complete,
        "release": lambda words, options: c.Release(*_hold(words), _time(options, "from")),
        "cancel": lambda words, options: c.RequestCancel(words[0]),
        "requeue": _requeue,
        "settle": lambda words, options: c.Settle(words[0], int(words[1]), Status(words[2])),
        "expire": lambda words, options: c.ExpireQueued(words[0]),
        "suspects": lambda words, options: c.Suspects(),
        "delay": lambda words, options: c.Delay(words[1], int(words[2]), int(words[3]), words[0]),
        "sweep": _sweep,
        "evict": lambda words, options: c.Evict(holds_of(words), POLICY.retention_ms),
        "overdue": lambda words, options: c.LookOverdue(
            POLICY.retention_ms,
            POLICY.instance_gc_ms,
            POLICY.dedup_window_ms,
            event_retention_ms=EVENT_RETENTION_MS if "events" in words else None,
        ),
        "forget": lambda words, options: c.ForgetInstances(
            tuple((name, StoreMs(int(at))) for name, at in (word.split("/") for word in words)),
            POLICY.instance_gc_ms,
        ),
        "forget-key": lambda words, options: c.ForgetKeys(
            ((words[0], words[1], words[2]),), POLICY.dedup_window_ms
        ),
        "forget-events": lambda words, options: c.ForgetEvents(tuple(words), EVENT_RETENTION_MS),
        "forget-consumer": lambda words, options: c.ForgetConsumer(words[0]),
        "find": lambda words, options: c.Find(words[0]),
        "print": lambda words, options: c.ReadOutput(
            words[0], int(words[1]) if len(words) > 1 else None
        ),
        "lease": lambda words, options: c.LeaseEvents(words[0], words[1], Ms(50)),
        "ack": _acknowledge,
        "consumers": lambda words, options: c.ListConsumers(),
        "letters": lambda words, options: c.ReadDeadLetters(words[0]),
        "count": lambda words, options: c.Count(tuple(words) or None),
        "events": lambda words, options: c.ReadEvents(),
    }
)


def shown(reply: Any) -> str:
    """A reply in a few words."""
    match reply:
        case r.Accepted():
            done = "repeated" if reply.transition is None else reply.transition.value
            return f"{done}: {standing(reply.standing)}"
        case r.Refused():
            stands = "" if reply.standing is None else f": {standing(reply.standing)}"
            return f"refused {reply.reason}{stands}"
        case r.Joined():
            return f"joined {reply.standing.job_id}: {standing(reply.standing)}"
        case r.Withdrawn():
            return "withdrawn"
        case r.Registered():
            return f"registered, claims={reply.claim_no}"
        case r.Deregistered():
            return "deregistered"
        case r.Claimed():
            grants = [
                f"{grant.standing.job_id} {standing(grant.standing)}" for grant in reply.grants
            ]
            return f"{'again' if reply.repeated else 'got'}: {_listed(grants)}"
        case r.Beaten():
            answers = [answer(row) for row in reply.answers]
            return _listed(answers) + ("" if reply.registered else " (not registered)")
        case r.Swept() | r.Evicted():
            return _listed(f"{row.job_id} {became(row)}" for row in reply.answers)
        case r.SuspectsPage():
            return _listed(f"{row.job_id}/{row.epoch}/{row.beats}" for row in reply.suspects)
        case r.Overdue():
            rows = (*reply.evictable, *reply.expirable, *reply.silent, *reply.keys)
            due = ["/".join(map(str, row)) for row in rows]
            return _listed([*due, *(f"events of {job_id}" for job_id in reply.events)])
        case r.Forgotten():
            return f"forgot {reply.count}"
        case r.Found():
            code = "" if reply.result is None else f" code={reply.result.exit_code}"
            return f"found: {standing(r.Standing.of(reply.job))}{code}"
        case r.OutputPage():
            text = " ".join(chunk.data.decode() for chunk in reply.chunks)
            return f"e{reply.epoch}: {text or '-'}"
        case r.EventsLeased():
            word = "renewed" if reply.renewed else "leased"
            stands = f"token {reply.token} behind {reply.position} until {reply.expires_at}"
            return f"{word}: {stands}, attempt {reply.attempts}"
        case r.Acknowledged():
            return f"{'repeated' if reply.repeated else 'moved'}: {reply.position}"
        case r.Consumers():
            return _listed(f"{row.name} {row.position}/{reply.newest}" for row in reply.consumers)
        case r.DeadLettersPage():
            return _listed(f"{row.number} {row.error}" for row in reply.letters)
        case r.Counts():
            return _listed(counted(row) for row in reply.partitions)
        case r.EventsPage():
            return _listed(f"{event.kind}/{event.epoch}" for event in reply.events)
    raise TypeError(f"no words for {reply!r}")


def counted(row: r.PartitionCount) -> str:
    """How many wait (and since when), are held queued + running, and are orphaned."""
    oldest = "" if row.oldest_at is None else f"@{row.oldest_at}"
    return f"{row.partition or '-'} {row.waiting}{oldest}/{row.queued}+{row.running}/{row.orphaned}"


def standing(row: r.Standing) -> str:
    """What stands for one job: status, owner, epoch, beats, deadline, cancel request."""
    words = [row.status.value, row.owner or "-", f"e{row.epoch}", f"b{row.beats}"]
    if row.deadline is not None:
        words.append(f"d{row.deadline}")
    if row.cancel_requested_at is not None:
        words.append(f"c{row.cancel_requested_at}")
    return " ".join(words)


def answer(row: r.HoldAnswer) -> str:
    """A heartbeat's answer to one hold."""
    words = [row.job_id, row.answer.value]
    if row.deadline is not None:
        words.append(f"d{row.deadline}")
    if row.cancel_requested_at is not None:
        words.append(f"c{row.cancel_requested_at}")
    return " ".join(words)


def became(row: r.SweepAnswer) -> str:
    """What became of one target of a sweep, or one hold of an eviction."""
    if row.refusal is not None:
        return row.refusal.value
    return "repeated" if row.repeated else "done"


def _listed(rows: Any) -> str:
    return ", ".join(rows) or "nothing"
