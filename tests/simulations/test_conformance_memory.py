"""The conformance kit passes the pure store, and catches every fault that is planted in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar
from unittest import mock

import pytest
from attrs import evolve, frozen
from hypothesis import settings

from unswept.core import commands as c
from unswept.core import job as jobs
from unswept.core import lease as rules
from unswept.core import replies as r
from unswept.core import world
from unswept.core.errors import StoreError
from unswept.core.job import Job, Terms
from unswept.core.lease import Kind, Lease, Status
from unswept.core.memory import MemoryStore
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.simulations.conformance import (
    SEARCH,
    STEPS,
    TOUR,
    NonconformanceError,
    ShortfallError,
    case,
    conformance_case,
    effort,
    history,
    refute,
    replay,
    require,
    search,
    short,
)

R = TypeVar("R")
TERMS = Terms(Ms(100), Ms(300), Ms(50), Ms(30))
TestMemoryStore = conformance_case(MemoryStore)


# Faults, each in one function of the core -------------------------------------------------------

Rule = Callable[..., Any]


@frozen
class Fault:
    """One function of the core, and what stands in its place."""

    module: Any
    name: str
    wrong: Callable[[Rule], Rule]
    """Makes the wrong function out of the right one."""


class FaultyStore(MemoryStore):
    """A pure store in which one function is wrong, only while it carries out a command."""

    def __init__(self, clock: Callable[[], StoreMs], fault: Fault) -> None:
        super().__init__(clock)
        self._fault = fault
        self._wrong = fault.wrong(getattr(fault.module, fault.name))

    def execute(self, command: c.Command[R]) -> R:
        with mock.patch.object(self._fault.module, self._fault.name, self._wrong):
            return super().execute(command)


def one_ms_early(right: Rule) -> Rule:
    """`<=` for `<`: what is due at `now` counts as past."""

    def wrong(*args: Any) -> Any:
        *most, now = args
        return right(*most, now + 1)

    return wrong


def drop_the_epoch(right: Rule) -> Rule:
    return lambda lease, owner, epoch, *rest: right(lease, owner, lease.epoch, *rest)


def drop_the_owner(right: Rule) -> Rule:
    return lambda lease, owner, epoch, *rest: right(lease, lease.owner or owner, epoch, *rest)


def keep_the_greater_deadline(right: Rule) -> Rule:
    def wrong(lease: Lease, *args: Any) -> Any:
        after = right(lease, *args)
        if isinstance(after, Lease) and lease.deadline and after.deadline:
            return changed(after, deadline=max(lease.deadline, after.deadline))
        return after

    return wrong


def forget_the_ttl_before(right: Rule) -> Rule:
    def wrong(lease: Lease, ttl_ms: Ms, confirm_ms: Ms, now: StoreMs) -> Lease:
        after: Lease = changed(right(lease, ttl_ms, confirm_ms, now), ttl_ms=ttl_ms)
        return after

    return wrong


def with_lease(**fields: Any) -> Callable[[Rule], Rule]:
    """The rule, as if the lease were another."""

    def make(right: Rule) -> Rule:
        def wrong(lease: Lease, *args: Any) -> Any:
            return right(changed(lease, **fields), *args)

        return wrong

    return make


def keep_the_epoch(right: Rule) -> Rule:
    return lambda lease, status: changed(right(lease, status), epoch=lease.epoch)


def always(answer: object) -> Callable[[Rule], Rule]:
    return lambda right: lambda *args: answer


def hand_out_orphans(right: Rule) -> Rule:
    def wrong(job: Job, window_ms: Ms, now: StoreMs) -> Any:
        if job.lease.status is Status.ORPHANED:
            job = changed(job, lease=changed(job.lease, status=Status.COMPLETED))
        return right(job, window_ms, now)

    return wrong


def hand_out_suspects(right: Rule) -> Rule:
    def wrong(job: Job, window_ms: Ms, now: StoreMs) -> Any:
        return right(changed(job, lease=changed(job.lease, deadline=now)), window_ms, now)

    return wrong


def join_in_a_window_of_zero(right: Rule) -> Rule:
    return lambda job, window_ms, now: right(job, window_ms or 1, now)


def lose_the_stale_result(right: Rule) -> Rule:
    return lambda job, epoch, owner, now: changed(right(job, epoch, owner, now), epoch=epoch + 1)


def oldest_last(right: Rule) -> Rule:
    return lambda job: (job.priority, -job.admitted_at, job.id)


FAULTS = {
    "L1: the sweep takes a deadline equal to now": Fault(rules, "orphan", one_ms_early),
    "L1: a suspect is named at its deadline": Fault(rules, "is_suspect", one_ms_early),
    "L1: a renewal keeps the greater deadline": Fault(rules, "renew", keep_the_greater_deadline),
    "L1: a stamp forgets the greatest ttl": Fault(rules, "_stamp", forget_the_ttl_before),
    "L2: the sweep ignores the beats": Fault(
        rules,
        "orphan",
        lambda right: lambda lease, epoch, beats, now: right(lease, epoch, lease.beats, now),
    ),
    "L3: complete drops the epoch": Fault(rules, "complete", drop_the_epoch),
    "L3: complete drops the owner": Fault(rules, "complete", drop_the_owner),
    "L3: the fence drops the epoch": Fault(rules, "fence", drop_the_epoch),
    "L3: release drops the owner": Fault(rules, "release", drop_the_owner),
    "L3: a requeue leaves the epoch": Fault(rules, "_let_go", keep_the_epoch),
    "L4: output is taken for ever": Fault(rules, "may_append", always(None)),
    "L4: a cancel changes a finished job": Fault(
        rules, "request_cancel", with_lease(status=Status.ORPHANED)
    ),
    "L5: a stale result has no event of its own": Fault(
        world, "stale_result", lose_the_stale_result
    ),
    "L7: a later cancel replaces the first": Fault(
        rules, "request_cancel", with_lease(cancel_requested_at=None)
    ),
    "L7: a start goes through under a cancel": Fault(
        rules, "start", with_lease(cancel_requested_at=None)
    ),
    "L7: a requeue forgets the cancel": Fault(
        rules, "requeue", with_lease(cancel_requested_at=None)
    ),
    "L8: an orphan is renewed": Fault(rules, "renew", with_lease(status=Status.RUNNING)),
    "L9: a delay comes twice": Fault(rules, "delay", with_lease(delayed_at=None)),
    "L14: eviction comes a millisecond early": Fault(rules, "may_evict", one_ms_early),
    "L14: a queued job expires at its deadline": Fault(rules, "expire", one_ms_early),
    "L15: an orphan is handed out": Fault(world, "may_join", hand_out_orphans),
    "L15: a suspect is handed out": Fault(world, "may_join", hand_out_suspects),
    "L15: a window of 0 joins": Fault(world, "may_join", join_in_a_window_of_zero),
    "L15: the window ends a millisecond early": Fault(world, "may_join", one_ms_early),
    "a claim takes what is for later": Fault(
        world, "may_claim", lambda right: lambda job, partition, now: right(job, partition, 2**53)
    ),
    "a claim takes from another partition": Fault(
        world, "may_claim", lambda right: lambda job, partition, now: right(job, job.partition, now)
    ),
    "a claim takes the youngest first": Fault(world, "claim_order", oldest_last),
    "a claim stamps the lease ttl": Fault(
        jobs,
        "claim",
        lambda right: (
            lambda job, owner, claim_no, terms, now: right(
                job, owner, claim_no, evolve(terms, first_beat_ttl_ms=terms.lease_ttl_ms), now
            )
        ),
    ),
    "requeue = never is released": Fault(
        rules, "release", with_lease(requeue=rules.RequeueRule.ALLOWED)
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_wrong_rule_is_caught(fault: Fault) -> None:
    """A store with one wrong rule fails the kit."""
    assert refute(lambda clock: FaultyStore(clock, fault))


# Faults of the store around the rules -----------------------------------------------------------


class LosesEvents(MemoryStore):
    def apply(self, decision: world.Decision[Any]) -> None:
        kept = tuple(event for event in decision.events if event.kind is not Kind.HEAL)
        super().apply(evolve(decision, events=kept))


class LosesEventsOfLaterLives(MemoryStore):
    """On the tour alone, of all jobs but the first that comes to a situation."""

    def apply(self, decision: world.Decision[Any]) -> None:
        kept = tuple(
            event
            for event in decision.events
            if event.kind is not Kind.ORPHAN or "/" not in event.job_id or "/0/" in event.job_id
        )
        super().apply(evolve(decision, events=kept))


class ForgetsIds(MemoryStore):
    def apply(self, decision: world.Decision[Any]) -> None:
        gone = tuple(
            world.Change(world.Table.IDS, change.key, None)
            for change in decision.changes
            if change.table is world.Table.JOBS and change.row is None
        )
        super().apply(evolve(decision, changes=decision.changes + gone))


class WithdrawsWithoutATrace(MemoryStore):
    def execute(self, command: c.Command[R]) -> R:
        reply = super().execute(command)
        if isinstance(reply, r.Withdrawn):
            self._tables[world.Table.IDS].pop(reply.job_id, None)
        return reply


class RenewsAllThatIsOwned(MemoryStore):
    def execute(self, command: c.Command[R]) -> R:
        reply = super().execute(command)
        if isinstance(command, c.Heartbeat):
            named = {hold.job_id for hold in command.holds}
            for job in list(self.world.jobs.values()):
                owner = job.lease.owner
                if owner == command.instance and job.id not in named and job.lease.deadline:
                    hold = (c.Hold(job.id, job.lease.epoch),)
                    super().execute(evolve(command, holds=hold))
        return reply


class ChargesClaimsAgain(MemoryStore):
    def execute(self, command: c.Command[Any]) -> Any:
        if isinstance(command, c.Claim) and command.owner in self.world.instances:
            last = self.world.instances[command.owner].claim_no
            command = evolve(command, claim_no=max(command.claim_no, last + 1))
        return super().execute(command)


class OneBadHoldSpoilsTheRest(MemoryStore):
    def execute(self, command: c.Command[Any]) -> Any:
        if isinstance(command, c.Heartbeat):
            sound = all(hold.job_id in self.world.jobs for hold in command.holds)
            if not sound:
                reply = super().execute(evolve(command, holds=()))
                lost = (r.HoldAnswer(h.job_id, h.epoch, r.Answer.ABSENT) for h in command.holds)
                return evolve(reply, answers=tuple(lost))
        return super().execute(command)


class RewritesOutput(MemoryStore):
    def execute(self, command: c.Command[R]) -> R:
        if isinstance(command, c.Output):
            chunks = self._tables[world.Table.OUTPUT].get(command.job_id, {})
            chunks.pop((command.epoch, command.chunk.chunk), None)
        return super().execute(command)


class FoldsTheCaseOfIds(MemoryStore):
    def execute(self, command: c.Command[Any]) -> Any:
        job_id = getattr(command, "job_id", None)
        known = {name.casefold(): name for name in self.world.ids}
        if job_id is not None and job_id.casefold() in known:
            command = copy(command)
            object.__setattr__(command, "job_id", known[job_id.casefold()])
        return super().execute(command)


class RaisesWhereItShouldRefuse(MemoryStore):
    def execute(self, command: c.Command[R]) -> R:
        reply = super().execute(command)
        if isinstance(reply, r.Refused) and reply.reason is Refusal.STALE_EPOCH:
            raise StoreError("stale epoch")
        return reply


STORES = (
    LosesEvents,
    LosesEventsOfLaterLives,
    ForgetsIds,
    WithdrawsWithoutATrace,
    RenewsAllThatIsOwned,
    ChargesClaimsAgain,
    OneBadHoldSpoilsTheRest,
    RewritesOutput,
    FoldsTheCaseOfIds,
    RaisesWhereItShouldRefuse,
)


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.__name__)
def test_a_wrong_store_is_caught(store: Callable[[Callable[[], StoreMs]], MemoryStore]) -> None:
    """A store that keeps its rows wrongly fails the kit."""
    assert refute(store)


# The kit itself ---------------------------------------------------------------------------------


def test_a_search_that_met_too_little_fails() -> None:
    """A run in which rules never ran is no evidence, and fails."""
    hasty = settings(max_examples=1, stateful_step_count=2, database=None, derandomize=True)
    with pytest.raises(ShortfallError, match="Sweep: done"):
        require(search(MemoryStore, hasty), SEARCH)


def test_what_must_be_met_is_met_by_far() -> None:
    """Other histories meet it as well, each outcome in eight of a hundred at least: that the usual
    ones do is no luck, which the next change of how they are drawn would undo."""
    met = Counter(
        pair
        for number in range(100)
        for pair in set(history(MemoryStore, f"other {number}", STEPS))
    )
    assert {pair: met[pair] for pair in SEARCH if met[pair] < 8} == {}


def test_the_histories_are_the_same_on_every_run() -> None:
    """Whatever Hypothesis's seed is, and whatever was imported before."""
    assert search(MemoryStore, effort(3)) == search(MemoryStore, effort(3))
    assert history(MemoryStore, 0, STEPS) == history(MemoryStore, 0, STEPS)
    assert history(MemoryStore, 0, STEPS) != history(MemoryStore, 1, STEPS)


def test_a_profile_that_asks_for_more_has_new_histories() -> None:
    """As many as it asks for, each at least as long, and what they find is raised as it is."""
    before = settings.get_current_profile_name()
    settings.load_profile("thorough")
    try:
        how = effort()
    finally:
        settings.load_profile(before)
    assert (how.max_examples, how.derandomize, how.stateful_step_count) == (2_000, False, STEPS)
    few = settings(how, max_examples=3, database=None)
    assert search(MemoryStore, few) != search(MemoryStore, effort(3))
    fault = FAULTS["L1: the sweep takes a deadline equal to now"]
    with pytest.raises(NonconformanceError):
        search(lambda clock: FaultyStore(clock, fault), settings(how, database=None))


def test_the_quotas_cover_every_command() -> None:
    """Each command that a store must carry out has outcomes that must be met."""
    required = {command for command, _ in TOUR | SEARCH}
    assert required == {kind.__name__ for kind in world.all_commands()}
    assert {kind.value for kind in Kind} <= {outcome for _, outcome in TOUR | SEARCH} | {
        "orphan",  # a sweep says done
        "renew",  # a heartbeat says renewed
        "claim",  # a claim says granted
        "evict",  # an eviction says done
        "stale_result",  # a completion says stale_epoch
    }


def test_a_kit_without_a_rule_for_a_command_is_refused() -> None:
    """A command that the kit does not know makes no case at all."""

    class Unknown(c.Command[r.Registered]):
        pass

    commands = [*world.all_commands(), Unknown]
    with (
        mock.patch.object(case, "all_commands", return_value=commands),
        pytest.raises(TypeError, match="no rule for Unknown"),
    ):
        conformance_case(MemoryStore)


def test_a_history_can_be_replayed() -> None:
    """A history that was kept can be asked again, without a search."""
    history = [
        (10, c.Admit("a", "ann", TERMS)),
        (110, c.Sweep("bob", (c.Target("a", 1, 1, StoreMs(110)),))),
        (111, c.Sweep("bob", (c.Target("a", 1, 1, StoreMs(110)),))),
    ]
    replay(MemoryStore, history)
    fault = FAULTS["L1: the sweep takes a deadline equal to now"]
    with pytest.raises(NonconformanceError) as caught:
        replay(lambda clock: FaultyStore(clock, fault), history)
    shown = str(caught.value)
    assert "refusal=<Refusal.NOT_EXPIRED" in shown
    assert "  10  Admit(job_id='a', owner='ann', terms=Terms(" in shown


def test_a_failing_case_shows_the_fewest_commands() -> None:
    """Of a long history only what leads to the difference is shown. (L1)"""
    fault = FAULTS["L1: the sweep takes a deadline equal to now"]
    case = conformance_case(lambda clock: FaultyStore(clock, fault))
    for method in ("test_every_command_in_every_situation", "test_histories"):
        with pytest.raises(NonconformanceError) as caught:
            getattr(case(method), method)()
        asked = [command for _, command in caught.value.history]
        assert len(asked) <= 4
        assert isinstance(asked[-1], c.Sweep)
        assert short(asked[-1]) in str(caught.value)


def test_a_command_is_shown_without_its_defaults() -> None:
    """A history names what was said, and nothing that is so by default."""
    assert short(c.Suspects()) == "Suspects()"
    assert short(c.Suspects(limit=3)) == "Suspects(limit=3)"
