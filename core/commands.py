"""Everything that can be asked of a store, each command typed by its reply.

A command refuses nonsense when it is made. Each can be repeated after an unknown outcome: it has no
second effect, and gets the first reply or one that says what has happened since.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from attrs import field, frozen

from unswept.core.checks import (
    canonical_labels,
    check_batch,
    check_bool,
    check_count,
    check_duration,
    check_id,
    check_label,
    check_member,
    check_optional_id,
    check_optional_time,
    check_time,
    check_whole,
    shown,
    storable_text,
)
from unswept.core.errors import MisuseError
from unswept.core.job import OnOrphan, Process, Terms, Transport
from unswept.core.lease import OUTCOMES, SETTLEMENTS, RequeueRule, Status
from unswept.core.replies import (
    Accepted,
    Acknowledged,
    Beaten,
    Claimed,
    Consumers,
    Counts,
    DeadLettersPage,
    Deregistered,
    EventsLeased,
    EventsPage,
    Evicted,
    Forgotten,
    Found,
    Instances,
    Joined,
    OutputPage,
    Overdue,
    Refused,
    Registered,
    RequestRead,
    SuspectsPage,
    Swept,
    Withdrawn,
)
from unswept.core.units import MAX_COUNT, Ms, StoreMs
from unswept.core.values import Chunk, Request, Result

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")

Outcome: TypeAlias = Accepted | Refused
"""The reply to most commands about one job."""

MAX_PAGE: Final = 10_000
"""The most rows that one page may have."""


class Command(Generic[R_co]):
    """A request to a store whose reply has type R."""

    __slots__ = ()


class Store(Protocol):
    """What carries out commands: the pure store, a database, or a wrapper around one."""

    def execute(self, command: Command[R]) -> R:
        """Carry out one command and reply. Raises `StoreError` where the outside world fails."""
        ...


# Instances --------------------------------------------------------------------------------------


@frozen
class Register(Command[Registered]):
    """Makes an instance known. `claim_no` is the greatest claim number that it has used so far; the
    store keeps the greatest that it knows, also of an instance that is gone, so that a claim that
    comes late takes nothing. `max_held` is its budget: how many claimed jobs it may hold at once,
    whatever its claims say."""

    instance: str
    role: str = "instance"
    host: str = ""
    pid: int | None = None
    claim_no: int = 0
    max_held: int | None = None

    def __attrs_post_init__(self) -> None:
        """An id, and facts for people."""
        check_id("instance", self.instance)
        check_label("role", self.role)
        check_label("host", self.host)
        if self.pid is not None:
            check_count("pid", self.pid)
        check_count("claim_no", self.claim_no)
        if self.max_held is not None:
            check_whole("max_held", self.max_held, 1, MAX_COUNT)


@frozen
class Deregister(Command[Deregistered]):
    """An instance is gone; its jobs and their leases stay as they are."""

    instance: str

    def __attrs_post_init__(self) -> None:
        """An id."""
        check_id("instance", self.instance)


@frozen
class ListInstances(Command[Instances]):
    """All registered instances."""


# Two ways in ------------------------------------------------------------------------------------


@frozen
class Admit(Command[Accepted | Joined | Refused]):
    """A job that its owner will run itself: queued and owned from birth, epoch 1.

    Repeats by id: the same first owner is a repeat, any other gets ID_USED. Then, unless `fresh`,
    a twin by (principal, request key) inside `dedup_window_ms` is joined. (L15)
    """

    job_id: str
    owner: str
    terms: Terms
    transport: Transport = Transport.PROCESS
    requeue: RequeueRule = RequeueRule.NEVER
    request: Request = Request()
    dedup_window_ms: Ms = Ms(0)
    fresh: bool = False
    on_orphan: OnOrphan = OnOrphan.MARK
    max_attempts: int | None = None

    def __attrs_post_init__(self) -> None:
        """Ids, terms and enums."""
        check_id("job_id", self.job_id)
        check_id("owner", self.owner)
        check_member("terms", self.terms, Terms)
        check_member("transport", self.transport, Transport)
        check_member("requeue", self.requeue, RequeueRule)
        check_member("request", self.request, Request)
        check_time("dedup_window_ms", self.dedup_window_ms)
        check_bool("fresh", self.fresh)
        _check_policy(self.requeue, self.on_orphan, self.max_attempts)


@frozen
class Enqueue(Command[Outcome]):
    """A job that nobody owns until a claim: queued, epoch 0. Repeats by id."""

    job_id: str
    transport: Transport = Transport.PROCESS
    requeue: RequeueRule = RequeueRule.NEVER
    request: Request = Request()
    partition: str = ""
    priority: int = 0
    """Lower is claimed sooner."""
    queue_deadline: StoreMs | None = None
    """Store time after which the job, if nobody claimed it, may be expired."""
    not_before: StoreMs | None = None
    """Store time before which nobody may claim the job."""
    labels: tuple[str, ...] = field(default=(), converter=canonical_labels)
    """What a claim must offer to get the job: kinds of runner, not names of jobs, for each set of
    them that is ever used is kept."""
    on_orphan: OnOrphan = OnOrphan.MARK
    max_attempts: int | None = None
    """Of on_orphan = requeue: how often the job is begun, unless an authority requeues it."""

    def __attrs_post_init__(self) -> None:
        """Ids, enums and bounds."""
        check_id("job_id", self.job_id)
        check_member("transport", self.transport, Transport)
        check_member("requeue", self.requeue, RequeueRule)
        check_member("request", self.request, Request)
        check_label("partition", self.partition)
        check_whole("priority", self.priority, -(2**31), 2**31 - 1)
        check_optional_time("queue_deadline", self.queue_deadline)
        check_optional_time("not_before", self.not_before)
        _check_policy(self.requeue, self.on_orphan, self.max_attempts)


@frozen
class Withdraw(Command[Accepted | Withdrawn | Refused]):
    """Takes back an admit or enqueue that was given up, also one that has not arrived yet: then the
    id is spent. Somebody else's running job gets a cancel request."""

    job_id: str
    owner: str

    def __attrs_post_init__(self) -> None:
        """Ids."""
        check_id("job_id", self.job_id)
        check_id("owner", self.owner)


@frozen
class Claim(Command[Claimed | Refused]):
    """Takes queued jobs that are nobody's and all of whose labels it offers: lowest priority number
    first, then oldest, then by id.

    Repeats by (owner, claim_no): the jobs it took that are still held. A number not above the
    owner's last takes nothing new. A claimed job runs, and has until the first-beat ttl to beat.
    A claim beyond the owner's budget is refused as BUDGET, and its number is used up.
    """

    owner: str
    claim_no: int
    terms: Terms
    partition: str = ""
    limit: int = 1
    labels: tuple[str, ...] = field(default=(), converter=canonical_labels)
    """What the claimer offers."""

    def __attrs_post_init__(self) -> None:
        """An id, a number from 1, terms and a batch."""
        check_id("owner", self.owner)
        check_whole("claim_no", self.claim_no, 1, MAX_COUNT)
        check_member("terms", self.terms, Terms)
        check_label("partition", self.partition)
        check_whole("limit", self.limit, 1, 1_000)


# What an owner says, under its epoch ------------------------------------------------------------


@frozen
class Hold:
    """(job id, epoch): a job that this instance still answers for."""

    job_id: str
    epoch: int

    def __attrs_post_init__(self) -> None:
        """An id and an epoch."""
        check_id("job_id", self.job_id)
        check_count("epoch", self.epoch)


@frozen
class Start(Command[Outcome]):
    """The work begins; refused under a pending cancel. Repeats by (id, epoch), stamping once."""

    job_id: str
    owner: str
    epoch: int
    terms: Terms
    process: Process | None = None

    def __attrs_post_init__(self) -> None:
        """A hold, its owner and terms."""
        _check_held(self.job_id, self.owner, self.epoch)
        check_member("terms", self.terms, Terms)
        if self.process is not None:
            check_member("process", self.process, Process)


@frozen
class Heartbeat(Command[Beaten]):
    """Renews an explicit set of holds, never "everything I own"; runs the renewal statement also
    when there is nothing to renew, as evidence that others could. `watched` names the jobs that
    the sender suspects: the reply says which of their rows are locked."""

    instance: str
    terms: Terms
    holds: tuple[Hold, ...] = ()
    watched: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        """No job twice: two answers to one hold would contradict each other."""
        check_id("instance", self.instance)
        check_member("terms", self.terms, Terms)
        check_batch("holds", self.holds, Hold)
        check_batch("watched", self.watched, str)
        for job_id in self.watched:
            check_id("watched", job_id)
        check_distinct("holds", [hold.job_id for hold in self.holds])
        check_distinct("watched", self.watched)


@frozen
class Output(Command[Outcome]):
    """Appends one numbered chunk, never rewriting one; also while orphaned, and until
    `late_output_ms` after the end under the same epoch. Repeats by (id, epoch, chunk)."""

    job_id: str
    owner: str
    epoch: int
    chunk: Chunk
    late_output_ms: Ms

    def __attrs_post_init__(self) -> None:
        """A hold, a chunk and a bound."""
        _check_held(self.job_id, self.owner, self.epoch)
        check_member("chunk", self.chunk, Chunk)
        check_duration("late_output_ms", self.late_output_ms)


@frozen
class Complete(Command[Outcome]):
    """The owner's terminal write; on an orphan of the same epoch it heals. Under an older epoch it
    changes nothing and leaves one event, the stale result. Repeats by (id, epoch)."""

    job_id: str
    owner: str
    epoch: int
    outcome: Status
    result: Result = Result()

    def __attrs_post_init__(self) -> None:
        """A hold, and an outcome that an owner may give."""
        _check_held(self.job_id, self.owner, self.epoch)
        _check_outcome("outcome", self.outcome, OUTCOMES)
        check_member("result", self.result, Result)


@frozen
class Release(Command[Outcome]):
    """Gives a requeueable job back to the queue, or cancels it under a pending cancel."""

    job_id: str
    owner: str
    epoch: int
    not_before: StoreMs | None = None

    def __attrs_post_init__(self) -> None:
        """A hold and a store time."""
        _check_held(self.job_id, self.owner, self.epoch)
        check_optional_time("not_before", self.not_before)


# What anybody may say ---------------------------------------------------------------------------


@frozen
class RequestCancel(Command[Accepted | Withdrawn | Refused]):
    """Asks the owner to stop, by its next heartbeat; cancels nobody's job at once. The first
    request's time stays. One that comes before the job spends its id, so that an admit or enqueue
    that comes after it does nothing. Repeats by id."""

    job_id: str

    def __attrs_post_init__(self) -> None:
        """An id."""
        check_id("job_id", self.job_id)


@frozen
class Requeue(Command[Outcome]):
    """Puts an orphan back into the queue, fencing its old owner; under a pending cancel it is
    canceled. `force` overrides requeue = never, and its event says so. Repeats by (id, epoch
    seen)."""

    job_id: str
    epoch: int
    force: bool = False
    not_before: StoreMs | None = None
    actor: str | None = None

    def __attrs_post_init__(self) -> None:
        """What was seen, and what is wanted."""
        check_id("job_id", self.job_id)
        check_count("epoch", self.epoch)
        check_bool("force", self.force)
        check_optional_time("not_before", self.not_before)
        check_optional_id("actor", self.actor)


@frozen
class Settle(Command[Outcome]):
    """Ends an orphan by authority, as canceled or failed. Repeats by (id, epoch seen)."""

    job_id: str
    epoch: int
    outcome: Status
    actor: str | None = None

    def __attrs_post_init__(self) -> None:
        """What was seen, and what an authority may decide."""
        check_id("job_id", self.job_id)
        check_count("epoch", self.epoch)
        _check_outcome("outcome", self.outcome, SETTLEMENTS)
        check_optional_id("actor", self.actor)


@frozen
class ExpireQueued(Command[Outcome]):
    """Ends a queued job that nobody claimed before its queue deadline. Repeats by id."""

    job_id: str

    def __attrs_post_init__(self) -> None:
        """An id."""
        check_id("job_id", self.job_id)


# What a sweeper says ----------------------------------------------------------------------------


@frozen
class Suspects(Command[SuspectsPage]):
    """One page of the suspects, in id order, behind `after`; names no row that is locked. With
    `counted` the reply says how many leases there are in all."""

    after: str | None = None
    limit: int = 1_000
    counted: bool = False

    def __attrs_post_init__(self) -> None:
        """Where the page begins and how long it is."""
        check_bool("counted", self.counted)
        check_optional_id("after", self.after)
        check_whole("limit", self.limit, 1, MAX_PAGE)


@frozen
class Delay(Command[Outcome]):
    """Process evidence stamps a suspect once more in its epoch, by its own ttl. (L9)"""

    job_id: str
    epoch: int
    beats: int
    actor: str

    def __attrs_post_init__(self) -> None:
        """The stamp that was seen."""
        check_id("job_id", self.job_id)
        check_count("epoch", self.epoch)
        check_count("beats", self.beats)
        check_id("actor", self.actor)


@frozen
class Target:
    """One confirmed suspect: the stamp that was seen, and when it was first seen."""

    job_id: str
    epoch: int
    beats: int
    first_seen_at: StoreMs

    def __attrs_post_init__(self) -> None:
        """The stamp that was seen, and a store time."""
        check_id("job_id", self.job_id)
        check_count("epoch", self.epoch)
        check_count("beats", self.beats)
        check_time("first_seen_at", self.first_seen_at)


@frozen
class Sweep(Command[Swept]):
    """Orphans the targets that still bear the stamp under which they were seen. (L1, L2)"""

    sweeper: str
    targets: tuple[Target, ...]

    def __attrs_post_init__(self) -> None:
        """No job twice."""
        check_id("sweeper", self.sweeper)
        check_batch("targets", self.targets, Target)
        check_distinct("targets", [target.job_id for target in self.targets])


@frozen
class LookOverdue(Command[Overdue]):
    """What housekeeping may act on once it has stood for a window: nothing goes at first sight."""

    retention_ms: Ms
    instance_gc_ms: Ms
    dedup_window_ms: Ms
    limit: int = 100
    event_retention_ms: Ms | None = None
    """None: events are kept for ever, and none is looked for."""

    def __attrs_post_init__(self) -> None:
        """Three or four ages and a batch."""
        check_duration("retention_ms", self.retention_ms)
        check_duration("instance_gc_ms", self.instance_gc_ms)
        check_time("dedup_window_ms", self.dedup_window_ms)
        check_whole("limit", self.limit, 1, MAX_PAGE)
        if self.event_retention_ms is not None:
            check_duration("event_retention_ms", self.event_retention_ms)


@frozen
class Evict(Command[Evicted]):
    """Removes terminal jobs past their retention, and all that rides along; ids stay used."""

    targets: tuple[Hold, ...]
    retention_ms: Ms

    def __attrs_post_init__(self) -> None:
        """No job twice."""
        check_batch("targets", self.targets, Hold)
        check_duration("retention_ms", self.retention_ms)
        check_distinct("targets", [target.job_id for target in self.targets])


@frozen
class ForgetInstances(Command[Forgotten]):
    """Takes instances for gone that are still silent since the very beat that was seen."""

    seen: tuple[tuple[str, StoreMs], ...]
    instance_gc_ms: Ms

    def __attrs_post_init__(self) -> None:
        """Ids and store times, no instance twice."""
        check_rows("seen", self.seen, 2)
        for instance, seen_at in self.seen:
            check_id("instance", instance)
            check_time("seen_at", seen_at)
        check_distinct("seen", [instance for instance, _ in self.seen])
        check_duration("instance_gc_ms", self.instance_gc_ms)


@frozen
class ForgetKeys(Command[Forgotten]):
    """Removes dedup keys that still name the very job that was seen and are older than the window;
    by age alone, never by eviction."""

    seen: tuple[tuple[str, str, str], ...]
    dedup_window_ms: Ms

    def __attrs_post_init__(self) -> None:
        """Ids and an age, no key twice."""
        check_rows("seen", self.seen, 3)
        for principal, request_key, job_id in self.seen:
            check_id("principal", principal)
            check_id("request_key", request_key)
            check_id("job_id", job_id)
        check_distinct("seen", [row[:2] for row in self.seen])
        check_time("dedup_window_ms", self.dedup_window_ms)


@frozen
class ForgetEvents(Command[Forgotten]):
    """Removes all events of each of these jobs that was evicted longer than `event_retention_ms`
    ago (store clock), once every consumer has them behind itself and none is a dead letter. Their
    numbers are never used again."""

    job_ids: tuple[str, ...]
    event_retention_ms: Ms

    def __attrs_post_init__(self) -> None:
        """Ids and an age, no job twice."""
        check_batch("job_ids", self.job_ids, str)
        for job_id in self.job_ids:
            check_id("job_ids", job_id)
        check_distinct("job_ids", self.job_ids)
        check_duration("event_retention_ms", self.event_retention_ms)


# What readers ask -------------------------------------------------------------------------------


@frozen
class Find(Command[Found | Refused]):
    """One job as it stands, with its result; refused as ABSENT or SPENT."""

    job_id: str

    def __attrs_post_init__(self) -> None:
        """An id."""
        check_id("job_id", self.job_id)


@frozen
class ReadRequest(Command[RequestRead | Refused]):
    """A job's request with its payload."""

    job_id: str

    def __attrs_post_init__(self) -> None:
        """An id."""
        check_id("job_id", self.job_id)


@frozen
class ReadOutput(Command[OutputPage | Refused]):
    """The output of a job's epoch (the current one unless named), from chunk `first` on."""

    job_id: str
    epoch: int | None = None
    first: int = 0
    limit: int = 1_000

    def __attrs_post_init__(self) -> None:
        """Where to begin and how much."""
        check_id("job_id", self.job_id)
        if self.epoch is not None:
            check_count("epoch", self.epoch)
        check_count("first", self.first)
        check_whole("limit", self.limit, 1, MAX_PAGE)


@frozen
class Count(Command[Counts]):
    """How many jobs wait, are held and are orphaned, by partition, in one snapshot; of these
    partitions, or of all that have any."""

    partitions: tuple[str, ...] | None = None

    def __attrs_post_init__(self) -> None:
        """No partition twice."""
        if self.partitions is not None:
            check_batch("partitions", self.partitions, str)
            for partition in self.partitions:
                check_label("partitions", partition)
            check_distinct("partitions", self.partitions)


@frozen
class ReadEvents(Command[EventsPage]):
    """Events in the order in which they were written, behind number `after`."""

    after: int = 0
    limit: int = 1_000

    def __attrs_post_init__(self) -> None:
        """Where to begin and how many."""
        check_count("after", self.after)
        check_whole("limit", self.limit, 1, MAX_PAGE)


# What consumers of events say ---------------------------------------------------------------------


@frozen
class LeaseEvents(Command[EventsLeased | Refused]):
    """Takes a consumer's lease, or keeps it: whoever holds it reads the events behind its position
    and acknowledges them. A consumer that is not known begins before the first event. Repeats by
    (consumer, holder), stamping the lease anew."""

    consumer: str
    holder: str
    lease_ms: Ms

    def __attrs_post_init__(self) -> None:
        """Ids and a duration."""
        check_id("consumer", self.consumer)
        check_id("holder", self.holder)
        check_duration("lease_ms", self.lease_ms)


@frozen
class Acknowledge(Command[Acknowledged | Refused]):
    """Moves a consumer's position to event number `upto`, by the newest token only, also where its
    lease has run out and nobody has taken it since. With `error` that event is made a dead letter;
    with `last` the lease is given back. Repeats by (consumer, token, upto)."""

    consumer: str
    token: int
    upto: int
    last: bool = False
    error: str | None = None
    """Free text; NUL and lone surrogates become U+FFFD."""

    def __attrs_post_init__(self) -> None:
        """An id, a token from 1, a number and a text that every store can keep."""
        check_id("consumer", self.consumer)
        check_whole("token", self.token, 1, MAX_COUNT)
        check_count("upto", self.upto)
        check_bool("last", self.last)
        if self.error is not None:
            if not isinstance(self.error, str):
                raise MisuseError(f"error must be a string, got {shown(self.error)}")
            object.__setattr__(self, "error", storable_text(self.error))


@frozen
class ForgetConsumer(Command[Forgotten | Refused]):
    """Removes a consumer and its dead letters, so that it keeps no event any longer; refused while
    somebody has its lease. Under the same name a new consumer may begin, before the first event
    that is left and with token 1: forget one only when none of its holders works on."""

    consumer: str

    def __attrs_post_init__(self) -> None:
        """An id."""
        check_id("consumer", self.consumer)


@frozen
class ListConsumers(Command[Consumers]):
    """All consumers, and how far they have come."""


@frozen
class ReadDeadLetters(Command[DeadLettersPage]):
    """A consumer's dead letters behind number `after`."""

    consumer: str
    after: int = 0
    limit: int = 1_000

    def __attrs_post_init__(self) -> None:
        """Whose, where to begin and how many."""
        check_id("consumer", self.consumer)
        check_count("after", self.after)
        check_whole("limit", self.limit, 1, MAX_PAGE)


def check_rows(name: str, rows: object, width: int) -> None:
    """A batch of tuples that all have `width` members."""
    check_batch(name, rows, tuple)
    assert isinstance(rows, tuple)
    for row in rows:
        if len(row) != width:
            raise MisuseError(f"{name} must hold tuples of {width}, got {shown(row)}")


def check_distinct(name: str, keys: Sequence[Hashable]) -> None:
    """The same row named twice in one batch is a caller's mistake, and is named."""
    if len(set(keys)) == len(keys):
        return
    known: set[Hashable] = set()
    for key in keys:
        if key in known:
            raise MisuseError(f"{name} must name each row once, {shown(key)} comes twice")
        known.add(key)


def _check_policy(requeue: RequeueRule, on_orphan: object, max_attempts: object) -> None:
    check_member("on_orphan", on_orphan, OnOrphan)
    if on_orphan is not OnOrphan.REQUEUE:
        if max_attempts is not None:
            raise MisuseError(
                f"max_attempts ({shown(max_attempts)}) is for on_orphan = requeue, got {on_orphan}"
            )
        return
    if requeue is not RequeueRule.ALLOWED:
        raise MisuseError(f"on_orphan = requeue needs requeue = allowed, got {requeue}")
    check_whole("max_attempts", max_attempts, 1, MAX_COUNT)


def _check_held(job_id: object, owner: object, epoch: object) -> None:
    check_id("job_id", job_id)
    check_id("owner", owner)
    check_count("epoch", epoch)


def _check_outcome(name: str, value: object, allowed: frozenset[Status]) -> None:
    check_member(name, value, Status)
    if value not in allowed:
        names = ", ".join(sorted(allowed))
        raise MisuseError(f"{name} must be one of {names}, got {value!s}")
