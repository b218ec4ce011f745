"""Designs under test, as data: the real one, and broken ones, each with the laws that must catch
it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from unswept.core import world as worlds
from unswept.core.commands import Command
from unswept.core.units import StoreMs
from unswept.core.world import Decision, World
from unswept.simulations import broken_leases, broken_outboxes, broken_stores

Decide = Callable[[World, Command[Any], StoreMs], Decision[Any]]


@frozen
class Design:
    """How instances, consumers or the store differ from the real design."""

    name: str
    sentence: str
    caught_by: frozenset[str] = frozenset()
    """The laws that may catch it, whichever comes first; none where the laws hold for it."""
    of_gateways: bool = False
    """Gateways alone show what is wrong with it; runners would only take time."""
    under: tuple[str, ...] = ()
    """The faults that bring it out, by name; none: all of them."""
    blanket_sweep_at_boot: bool = False
    """On boot every active job of another instance is marked orphaned, whatever its lease says."""
    one_observation: bool = False
    """A suspect is swept as soon as an answer names it."""
    hurries: bool = True
    """The heart beats every quarter of a heartbeat while a suspicion is open, and a gap is judged
    by that."""
    beats_renew: bool = True
    """The beat that proves the heart executes the renewal statement."""
    heeds_locks: bool = True
    """Locked rows are not named as suspects, and suspects whose rows are locked are forgotten."""
    heeds_deadlines: bool = True
    """Work that may be requeued stops at its local deadline."""
    heeds_own_gaps: bool = True
    """A gap in its own beats restarts a sweeper's windows, and it beats before it sweeps."""
    beats_while_draining: bool = True
    """The heart is the last to stop."""
    pid_vetoes: bool = False
    """A suspect is spared for as long as its pid is alive on the sweeper's host."""
    sweeps_again: bool = True
    """A sweeper passes over the suspects from time to time, not at its start alone."""
    looks_twice: bool = True
    """What is overdue goes only when looks have found it so for a whole window."""
    acknowledges_first: bool = False
    """A consumer acknowledges events before it handles them."""
    decide: Decide = worlds.decide
    """What the store makes of a command."""
    excused: frozenset[str] = frozenset()
    """Laws on conduct that the design breaks by intention: it must be caught by what comes of it,
    for a live job or a canceled one."""

    @property
    def sound(self) -> bool:
        """Do the laws hold for it?"""
        return not self.caught_by

    @property
    def on_real_store(self) -> bool:
        """Can a store under test keep step with it? None does what a broken one does."""
        return self.decide is worlds.decide and not self.blanket_sweep_at_boot


_CONDUCT: Final = frozenset({"L10", "L12a"})
_SWEPT_ALIVE: Final = frozenset({"L12"})
_SWEPT_WRONGLY: Final = frozenset({"L1", "L2"})

_SOUND: Final = Design("unswept", "The real design.")

_OF_INSTANCES: Final = (
    Design(
        "blanket-sweep",
        "A new instance marks every active job of the others orphaned when it boots.",
        _SWEPT_WRONGLY,
        of_gateways=True,
        blanket_sweep_at_boot=True,
        under=("crash",),
    ),
    Design(
        "single-observation",
        "A lease that looks expired is swept at first sight.",
        _SWEPT_ALIVE,
        of_gateways=True,
        one_observation=True,
        excused=_CONDUCT,
        under=("flaps",),
    ),
    Design(
        "slow-heart",
        "The sweeper beats once per heartbeat while it suspects, and takes that for proof.",
        _SWEPT_ALIVE,
        of_gateways=True,
        hurries=False,
        excused=_CONDUCT,
        under=("flaps",),
    ),
    Design(
        "blind-heart",
        "The sweeper's beat touches only the instances table, not the leases.",
        _SWEPT_ALIVE,
        of_gateways=True,
        beats_renew=False,
        excused=_CONDUCT,
        under=("renewals-blocked",),
    ),
    Design(
        "lock-blind",
        "The sweeper suspects and sweeps rows that somebody has locked.",
        _SWEPT_ALIVE,
        of_gateways=True,
        heeds_locks=False,
        excused=_CONDUCT,
        under=("row-lock",),
    ),
    Design(
        "sweep-before-heartbeat",
        "After a pause a sweeper goes on where it stood, before its own heart has beaten.",
        _SWEPT_ALIVE,
        of_gateways=True,
        heeds_own_gaps=False,
        excused=_CONDUCT,
        under=("suspend-all",),
    ),
    Design(
        "heart-stops-first",
        "A drain stops the heart first, while the work goes on.",
        _SWEPT_ALIVE,
        of_gateways=True,
        beats_while_draining=False,
        under=("drain",),
    ),
    Design(
        "pid-veto",
        "A suspect is spared for as long as its pid is alive on the sweeper's host.",
        frozenset({"L13"}),
        of_gateways=True,
        pid_vetoes=True,
        under=("crash", "pid-reuse"),
    ),
    Design(
        "boot-only-sweep",
        "An instance looks for suspects at its start, and never again.",
        frozenset({"L13"}),
        of_gateways=True,
        sweeps_again=False,
        under=("crash",),
    ),
    Design(
        "evicts-at-first-sight",
        "What a look finds overdue is evicted, expired or forgotten at once.",
        frozenset({"L12a"}),
        of_gateways=True,
        looks_twice=False,
        under=("clock-forward",),
    ),
    Design(
        "deadline-deaf",
        "Work that may be requeued goes on after its local deadline.",
        frozenset({"F3"}),
        heeds_deadlines=False,
        excused=frozenset({"L11"}),
        under=("cut",),
    ),
    Design(
        "early-acknowledgement",
        "A consumer acknowledges the events that it has read, and then handles them.",
        frozenset({"F4"}),
        acknowledges_first=True,
        under=("consumer-lost",),
    ),
)


def _store(
    name: str,
    sentence: str,
    decide: Decide,
    *caught_by: str,
    excused: tuple[str, ...] = (),
    under: tuple[str, ...] = (),
    of_gateways: bool = False,
) -> Design:
    """A store that lacks one rule; the instances are the real ones."""
    return Design(
        name,
        sentence,
        frozenset(caught_by),
        of_gateways,
        under,
        decide=decide,
        excused=frozenset(excused),
    )


_OF_LEASES: Final = (
    _store(
        "owner-wide-renewal",
        "A heartbeat renews all that its instance owns, not the holds that it names.",
        broken_leases.renews_all,
        "L3",
        under=("lost-answer",),
    ),
    _store(
        "all-or-nothing",
        "One bad hold spoils the whole heartbeat.",
        broken_leases.all_or_nothing,
        "L8",
        under=("lost-answer",),
    ),
    _store(
        "orphan-revived",
        "A heartbeat makes an orphan run again.",
        broken_leases.revives,
        "L4",
        under=("heart-killed",),
        of_gateways=True,
    ),
    _store(
        "client-clock",
        "A deadline is reckoned by the clock of the owner's host.",
        broken_leases.client_clock,
        "L1",
        "L13",
        excused=("L8",),
        under=("crash",),
    ),
    _store(
        "greatest-deadline",
        "A stamp takes the greater of two deadlines, so that a step of the clock stays for ever.",
        broken_leases.never_shortens,
        "L13",
        excused=("L8",),
        under=("clock-back", "crash"),
        of_gateways=True,
    ),
    _store(
        "start-restamps",
        "A repeated start stamps the deadline once more.",
        broken_leases.start_restamps,
        "L3",
        "L5",
        under=("duplicate",),
    ),
    _store(
        "two-step-claim",
        "A claim takes a job, and gives it a lease in a second write.",
        broken_leases.two_step_claim,
        "WF",
        under=("loss",),
    ),
    _store(
        "inclusive-deadline",
        "A lease is over in the very millisecond of its deadline: `<=` for `<`.",
        broken_leases.inclusive,
        "L1",
        "L2",
        under=("clock-edge", "crash"),
        of_gateways=True,
    ),
    _store(
        "sweep-by-id",
        "A sweep writes by id alone: what was seen is not tested again.",
        broken_leases.sweeps_by_id,
        "L1",
        "L2",
        under=("duplicate", "crash"),
    ),
    _store(
        "deadline-identity",
        "A stamp is told by its deadline, not by epoch and beats.",
        broken_leases.by_deadline,
        "L12",
        excused=("L2", "L10", "L12a"),
        under=("clock-repeat",),
        of_gateways=True,
    ),
    _store(
        "first-page",
        "A look at the suspects ends with its first page, and what stands there hides the rest.",
        broken_leases.first_page,
        "L13",
        under=("crash", "poison-row"),
        of_gateways=True,
    ),
    _store(
        "endless-delay",
        "A living pid delays a sweep as often as it is seen.",
        broken_leases.delays_for_ever,
        "L5",
        "L9",
        under=("crash",),
    ),
    _store(
        "output-unguarded",
        "Output is stored whoever sends it, under whatever epoch.",
        broken_leases.output_unguarded,
        "L3",
        under=("duplicate", "crash"),
    ),
    _store(
        "epoch-kept",
        "A job goes back to the queue under the epoch that it had.",
        broken_leases.keeps_epoch,
        "L5",
        under=("drain",),
    ),
    _store(
        "retention-by-birth",
        "The retention is reckoned from the admission, whatever became of the job since.",
        broken_leases.evicts_by_birth,
        "L14",
        under=("loss",),
    ),
)

_OF_JOBS: Final = (
    _store(
        "cancel-blind",
        "A cancel of a queued job is noted on its row, and a claim does not look at it.",
        broken_stores.cancel_blind,
        "F1",
        excused=("L7",),
        under=("loss",),
    ),
    _store(
        "cancel-lost",
        "A cancel of somebody's job is answered, and stays nowhere.",
        broken_stores.cancel_lost,
        "L7",
        under=("loss",),
    ),
    _store(
        "double-claim",
        "Two claims at about the same time take the same job.",
        broken_stores.double_claim,
        "L5",
        under=("two-sweepers",),
    ),
    _store(
        "number-blind",
        "A claim that is repeated takes more jobs.",
        broken_stores.number_blind,
        "F1",
        under=("lost-answer", "duplicate"),
    ),
    _store(
        "budget-blind",
        "A claim does not look at its owner's budget.",
        broken_stores.over_budget,
        "F1",
        under=("loss",),
    ),
    _store(
        "label-blind",
        "A claim takes jobs that its owner cannot run.",
        broken_stores.label_blind,
        "F1",
        under=("loss",),
    ),
    _store(
        "epoch-blind",
        "A completion ends the job whoever holds it by now.",
        broken_stores.epoch_blind,
        "L3",
        under=("cut",),
    ),
    _store(
        "forgetful",
        "An enqueue looks only at the jobs that are there, not at the ids that were used.",
        broken_stores.forgetful,
        "L6",
        under=("duplicate",),
    ),
    _store(
        "expires-claimed",
        "An expiry ends its job also when that has been claimed meanwhile.",
        broken_stores.expires_claimed,
        "L5",
        under=("loss",),
    ),
    _store(
        "expires-early",
        "An expiry does not look at the queue deadline, which was over when its sender looked.",
        broken_stores.expires_early,
        "L14",
        under=("clock-edge",),
    ),
    _store(
        "endless-requeue",
        "A sweep requeues a job however often it has been begun.",
        broken_stores.endless,
        "F2",
        under=("crash",),
    ),
    _store(
        "joins-corpses",
        "An admit joins its twin whatever became of it: orphaned, failed or canceled.",
        broken_stores.joins_corpses,
        "L15",
        under=("crash",),
        of_gateways=True,
    ),
    _store(
        "event-outside",
        "An event is written after the commit, in a transaction of its own, which may fail.",
        broken_stores.event_outside,
        "L5",
        under=("loss",),
    ),
    _store(
        "events-go-too",
        "An eviction takes the job's events with it, read or not.",
        broken_stores.events_go_too,
        "F5",
        under=("loss",),
    ),
    _store(
        "event-again",
        "A repeated completion tells its event again.",
        broken_stores.event_again,
        "L5",
        under=("duplicate",),
    ),
    _store(
        "silent-fence",
        "A late result is refused, and leaves no event.",
        broken_stores.silent_fence,
        "L3",
        under=("cut",),
    ),
)

_OF_OUTBOXES: Final = (
    _store(
        "old-token",
        "An acknowledgement is taken under whatever token, also when another has the lease by now.",
        broken_outboxes.old_token,
        "F5",
        under=("consumer-lost", "duplicate"),
    ),
    _store(
        "position-back",
        "An acknowledgement that comes late sets the consumer's position back.",
        broken_outboxes.goes_back,
        "F5",
        under=("duplicate",),
    ),
    _store(
        "lease-for-two",
        "A consumer's lease is granted to whoever asks, whether it is another's or not.",
        broken_outboxes.lease_for_two,
        "F5",
        under=("consumer-lost",),
    ),
    _store(
        "unread-forgotten",
        "The events of a job go when their retention is over, whoever has not come so far.",
        broken_outboxes.forgets_unread,
        "F5",
        under=("clock-forward", "flaps"),
    ),
    _store(
        "letter-forgotten",
        "The events of a job go also where one of them is a dead letter.",
        broken_outboxes.forgets_letters,
        "F5",
        under=("flaps",),
    ),
    _store(
        "row-alone",
        "An eviction removes the job's row, and leaves its request and its output behind.",
        broken_outboxes.row_alone,
        "L14",
        under=("loss",),
    ),
)

DESIGNS: Final[Mapping[str, Design]] = MappingProxyType(
    {
        design.name: design
        for design in (_SOUND, *_OF_INSTANCES, *_OF_LEASES, *_OF_JOBS, *_OF_OUTBOXES)
    }
)
