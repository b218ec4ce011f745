"""What is asked of the jobs, instances and consumers in a store of either kind."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Final

from unswept.adapters.doctor.check import Answer, Check, Verdict, judged, ok
from unswept.adapters.doctor.look import Look
from unswept.adapters.doctor.orphans import read_orphans
from unswept.adapters.doctor.suspects import look_for_suspects, window_of
from unswept.core import commands as c
from unswept.core.errors import NotAStoreError, StoreError, StoreUnavailableError
from unswept.core.outbox import Consumer
from unswept.core.policy import Breaker, LeasePolicy
from unswept.core.replies import Suspect
from unswept.core.units import StoreMs

_TRIPS: Final = 5
TRIPS_OF_A_BEAT: Final = 3
"""Begin, renew and commit, where each waits for the one before it."""
_LETTERS: Final = 1_000


def schema_version(look: Look, policy: LeasePolicy) -> Answer:
    """Is it the one that this library reads and writes, with all its tables?"""
    return ok(f"version {look.version()}", "the newest, whole")


def latency(look: Look, policy: LeasePolicy) -> Answer:
    """Is there room for a heartbeat's round trips within the operation timeout?"""
    took = []
    for _ in range(_TRIPS):
        began = perf_counter()
        look.rows("SELECT 1")
        took.append((perf_counter() - began) * 1000)
    trip = sorted(took)[_TRIPS // 2]
    most = policy.operation_timeout_ms / TRIPS_OF_A_BEAT
    verdict = Verdict.BAD if trip > most else Verdict.WARN if trip > most / 2 else None
    return judged(
        verdict,
        f"{trip:.1f} ms a round trip",
        f"at most {most:.0f} ms: operation_timeout_ms ({policy.operation_timeout_ms}) / 3",
        "Move the instances nearer to the store, or raise heartbeat_interval_ms and"
        " operation_timeout_ms together.",
    )


def write_lock(look: Look, policy: LeasePolicy) -> Answer:
    """Can anybody renew in time, or does somebody hold the file, or the lease table?"""
    most = policy.operation_timeout_ms
    expected = f"within operation_timeout_ms ({most})"
    try:
        took = look.write_lock_ms(most)
    except StoreUnavailableError as error:
        return Answer(
            Verdict.BAD,
            str(error),
            expected,
            "Nobody can renew meanwhile. Find who keeps a transaction open: a backup, a shell, a"
            " CREATE INDEX, another program.",
        )
    except NotAStoreError as error:
        advice = "It is no store, or is damaged. Name the right one, or restore it from a backup."
        return Answer(Verdict.BAD, str(error), expected, advice)
    except StoreError as error:
        advice = "Nobody who asks as this user can renew. Ask as the one that the instances use."
        return Answer(Verdict.BAD, str(error), expected, advice)
    return judged(
        Verdict.WARN if took > most / 2 else None,
        f"had after {took:.1f} ms",
        expected,
        "Somebody holds it for long at a time; heartbeats wait as long.",
    )


def tight_policy(look: Look, policy: LeasePolicy) -> Answer:
    """Does the configuration leave room? It is what an instance that starts here would read."""
    warnings = policy.warnings()
    return judged(
        Verdict.WARN if warnings else None,
        "; ".join(warnings)
        or f"a process job outlives {policy.missed_beats()} missed beats, its dead owner's is"
        f" orphaned within {policy.detection_ms()} ms",
        "no warning",
        "`unswept check-config` shows every number, and where it stands.",
    )


def instances(look: Look, policy: LeasePolicy) -> Answer:
    """Who is registered, and who has fallen silent?"""
    found = look.execute(c.ListInstances())
    most = policy.lease_ttl_ms
    silent = [each for each in found.instances if found.at - each.seen_at > most]
    words = f"{len(found.instances)} registered, {len(silent)} silent"
    if silent:
        words += f": {_named([f'{each.id} ({each.role} on {each.host})' for each in silent])}"
    nobody = len(silent) == len(found.instances)
    return judged(
        Verdict.WARN if nobody or silent else None,
        words,
        f"some, each seen within lease_ttl_ms ({most})",
        "Nobody beats: no job runs, and none is swept."
        if nobody
        else "They are dead, or cut off from the store; the others sweep what they held.",
    )


def jobs(look: Look, policy: LeasePolicy) -> Answer:
    """How many jobs are not over, by where they stand?"""
    total = look.execute(c.Count()).total
    return ok(
        f"{total.waiting} waiting, {total.queued} queued, {total.running} running,"
        f" {total.orphaned} orphaned"
    )


def suspects(look: Look, policy: LeasePolicy) -> Answer:
    """How many leases have lapsed? A few come and go where owners die; one look proves nothing."""
    found = look_for_suspects(look).suspects
    return judged(
        Verdict.WARN if found else None,
        f"{len(found)}: {_named([each.job_id for each in found])}" if found else "0",
        "0",
        "Look again: their owners renew them within a heartbeat, or a sweep takes them.",
    )


def oldest_suspect(look: Look, policy: LeasePolicy) -> Answer:
    """Is anybody sweeping at all?"""
    found = look_for_suspects(look)
    if not found.suspects:
        return ok("none")
    late = {each: found.at - each.deadline - _most(each, policy) for each in found.suspects}
    worst = max(found.suspects, key=late.__getitem__)
    return judged(
        Verdict.BAD if late[worst] > 0 else None,
        f"{worst.job_id}, lapsed for {found.at - worst.deadline} ms",
        f"at most {_most(worst, policy)} ms: sweep interval, window and two timeouts",
        "Nobody sweeps. Start an instance, see that its heart is steady, or run `unswept sweep`.",
    )


def orphans(look: Look, policy: LeasePolicy) -> Answer:
    """Do orphans wait for somebody's decision?"""
    counts = look.execute(c.Count())
    if not counts.total.orphaned:
        return ok("0", "0")
    oldest = read_orphans(look, 1)
    words = f"{counts.total.orphaned}"
    if oldest:
        words += f", {oldest[0].id} for {_seconds(counts.at - oldest[0].orphaned_at)}"
    return Answer(Verdict.WARN, words, "0", "`unswept orphans` lists them, and what decides.")


def consumers(look: Look, policy: LeasePolicy) -> Answer:
    """Has every consumer of events somebody who reads, and keeps up?"""
    found = look.execute(c.ListConsumers())
    bound = f"the oldest unread event younger than lease_ttl_ms ({policy.lease_ttl_ms})"
    behind = {each: _unread_ms(look, each, found.at) for each in found.consumers}
    lagging = [each for each in found.consumers if behind[each] > policy.lease_ttl_ms]
    if not lagging:
        return ok(f"{len(found.consumers)}, none behind", bound)
    left = [each for each in lagging if each.holder is None or each.expires_at < found.at]
    words = [
        f"{each.name} {found.newest - each.position} events behind, for"
        f" {_seconds(behind[each])}{', read by nobody' if each in left else ''}"
        for each in lagging
    ]
    return Answer(
        Verdict.BAD if left else Verdict.WARN,
        "; ".join(words),
        bound,
        "Start its reader, or end it with ForgetConsumer: it keeps events from being removed."
        if left
        else "See what holds its reader up; one that fails at an event makes it a dead letter.",
    )


def dead_letters(look: Look, policy: LeasePolicy) -> Answer:
    """Has a consumer given up events?"""
    counted = {}
    for each in look.execute(c.ListConsumers()).consumers:
        page = look.execute(c.ReadDeadLetters(each.name, limit=_LETTERS))
        if page.letters:
            last = page.letters[-1]
            many = f"{len(page.letters)}{' and more' if page.more else ''}"
            counted[each.name] = f"{each.name}: {many}, event {last.number}: {last.error}"
    return judged(
        Verdict.WARN if counted else None,
        "; ".join(counted.values()) or "0",
        "0",
        "Read them with ReadDeadLetters, and do by hand what their reader could not.",
    )


CHECKS: Final[Sequence[Check[Look]]] = (
    Check("policy", tight_policy),
    Check("instances", instances),
    Check("jobs", jobs),
    Check("suspects", suspects),
    Check("oldest suspect", oldest_suspect),
    Check("orphans", orphans),
    Check("consumers of events", consumers),
    Check("dead letters", dead_letters),
)
"""Of a store whose schema is the newest."""


def _most(suspect: Suspect, policy: LeasePolicy) -> int:
    """How long after its deadline it may stand, if some other instance is steady. (L13)"""
    deferred = policy.breaker_max_ms if policy.breaker is Breaker.DEFER else 0
    window = window_of(suspect, policy)
    return policy.sweep_interval_ms + window + 2 * policy.operation_timeout_ms + deferred


def _unread_ms(look: Look, consumer: Consumer, now: StoreMs) -> int:
    """How old the first event is that it has not acknowledged; 0 where there is none."""
    # Not `ReadEvents`: where a number is missing it takes a transaction number, which is a write.
    rows = look.rows(
        f"SELECT at FROM {{0}}events WHERE seq > {consumer.position} ORDER BY seq LIMIT 1"
    )
    return int(now - rows[0][0]) if rows else 0


def _named(job_ids: list[str]) -> str:
    return ", ".join(job_ids[:3]) + (" ..." if len(job_ids) > 3 else "")


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.0f} s"
