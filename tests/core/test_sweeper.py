"""The two-observation sweep, millisecond by millisecond, and under whatever weather. (L12, L13)

A beat every 800 ms, 200 between hurried ones, 100 for a store operation, a gap of at most 300, a
window of 2400, a pass over the suspects every 1600, leases of 4000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count, cycle
from typing import Any, Final

import pytest
from attrs import define, evolve, field, frozen
from hypothesis import event, given
from hypothesis import strategies as st

from unswept.core import heart as hearts
from unswept.core import sweeper as sweepers
from unswept.core.commands import Suspects, Sweep, Target
from unswept.core.heart import Heart, Phase, Pulse
from unswept.core.lease import RequeueRule
from unswept.core.policy import LeasePolicy
from unswept.core.replies import Suspect, SuspectsPage
from unswept.core.sweeper import FirstSight, SendSuspects, SendSweep, Suspicion, Sweeper
from unswept.core.units import MonoMs, Ms, StoreMs

POLICY: Final = LeasePolicy(
    heartbeat_interval_ms=Ms(800),
    operation_timeout_ms=Ms(100),
    lease_ttl_ms=Ms(4_000),
    sweep_interval_ms=Ms(1_600),
)
BEAT_MS: Final = 800
RETRY_MS: Final = 200
TIMEOUT_MS: Final = 100
GAP_MS: Final = 300
WINDOW_MS: Final = 2_400
PASS_MS: Final = 1_600
TTL_MS: Final = 4_000
FIRST_PASS: Final = 1_600
"""When a sweeper that began at 0 looks first."""


def suspect(
    job_id: str = "j1",
    epoch: int = 1,
    beats: int = 1,
    confirm_ms: int = WINDOW_MS,
    requeue: RequeueRule = RequeueRule.NEVER,
    ttl_ms: int = TTL_MS,
) -> Suspect:
    return Suspect(
        job_id, "A", epoch, beats, StoreMs(5), Ms(ttl_ms), Ms(confirm_ms), requeue, False, None
    )


def page(*suspects: Suspect, more: bool = False, at: int = 7) -> SuspectsPage:
    return SuspectsPage(StoreMs(at), suspects, more)


def beating(now: int, close_since: int = 0, sent_at: int | None = None) -> Heart:
    """A steady heart whose last beat went out just now, and whose beats have long been close."""
    sent = MonoMs(now if sent_at is None else sent_at)
    pulse = Pulse(sent, MonoMs(now), MonoMs(0), MonoMs(close_since))
    return Heart(POLICY, Phase.STEADY, MonoMs(now), pulse=pulse, known_since=MonoMs(0))


def look(
    sweeper: Sweeper,
    now: int,
    *pages: SuspectsPage,
    own: Iterable[str] = (),
    answered_at: int | None = None,
) -> Sweeper:
    """One whole pass that begins now and is answered by these pages."""
    sweeper, sends = sweepers.tick(
        evolve(sweeper, next_pass_at=MonoMs(now)), beating(now, close_since=now), MonoMs(now), ()
    )
    assert isinstance(sends[-1], SendSuspects)
    at = MonoMs(now if answered_at is None else answered_at)
    for answer in pages:
        number = sweeper.last_number
        sweeper, _ = sweepers.answered(sweeper, number, answer, frozenset(own), at)
    assert sweeper.look is None
    return sweeper


def fresh() -> Sweeper:
    return sweepers.begin(POLICY, MonoMs(0))


def since(sweeper: Sweeper) -> dict[str, int]:
    return {job_id: suspicion.since for job_id, suspicion in sweeper.suspicions.items()}


def swept(sweeper: Sweeper, heart: Heart, now: int) -> list[str]:
    """The jobs that a tick at this time sweeps."""
    _, effects = sweepers.tick(sweeper, heart, MonoMs(now), ())
    sweeps = [effect for effect in effects if isinstance(effect, SendSweep)]
    return [target.job_id for sweep in sweeps for target in sweep.targets]


# Looking ----------------------------------------------------------------------------------------


def test_the_first_pass_begins_after_one_sweep_interval() -> None:
    """It asks for the first page of at most a thousand, and beats fast while it looks."""
    sweeper, effects = sweepers.tick(fresh(), beating(FIRST_PASS - 1), MonoMs(FIRST_PASS - 1), ())
    assert effects == ()
    assert not sweepers.wants_hurry(sweeper)
    sweeper, effects = sweepers.tick(sweeper, beating(FIRST_PASS), MonoMs(FIRST_PASS), ())
    assert effects == (SendSuspects(1, Suspects(None, 1_000)),)
    assert sweepers.wants_hurry(sweeper)


def test_passes_follow_each_other_by_the_interval_from_their_beginnings() -> None:
    """A pass that finds nobody ends the haste; the next begins an interval after its beginning."""
    sweeper = look(fresh(), FIRST_PASS, page(), answered_at=FIRST_PASS + 90)
    assert not sweepers.wants_hurry(sweeper)
    assert sweepers.wake_at(sweeper, beating(1_690), MonoMs(1_690)) == FIRST_PASS + PASS_MS
    before = FIRST_PASS + PASS_MS - 1
    assert sweepers.tick(sweeper, beating(before), MonoMs(before), ())[1] == ()
    assert sweepers.tick(sweeper, beating(before + 1), MonoMs(before + 1), ())[1] != ()


def test_an_instance_that_is_not_steady_begins_no_pass_and_sweeps_nobody() -> None:
    """Registering, faint, quiesced, recovering, draining, stopped: nothing is sent. (L10)"""
    ripe = look(fresh(), FIRST_PASS, page(suspect()))
    for phase in set(Phase) - {Phase.STEADY}:
        heart = evolve(beating(9_000), phase=phase)
        assert sweepers.tick(ripe, heart, MonoMs(9_000), ()) == (ripe, ())
    silent = beating(9_000)
    at = 9_000 + BEAT_MS + TIMEOUT_MS
    assert sweepers.tick(ripe, silent, MonoMs(at + 1), ()) == (ripe, ())
    assert sweepers.tick(ripe, hearts.boot(POLICY, MonoMs(0)), MonoMs(9_000), ()) == (ripe, ())
    assert swept(ripe, beating(9_000), 9_000) == ["j1"]


def test_a_page_that_says_more_is_followed_by_the_next_until_the_end() -> None:
    """Paging goes on behind the last id that was named, at once and in one pass."""
    sweeper, _ = sweepers.tick(fresh(), beating(FIRST_PASS), MonoMs(FIRST_PASS), ())
    first = page(suspect("a"), suspect("b"), more=True)
    sweeper, effects = sweepers.answered(sweeper, 1, first, (), MonoMs(1_650))
    assert effects[-1] == SendSuspects(2, Suspects("b", 1_000))
    assert sweeper.pass_began_at == FIRST_PASS
    sweeper, effects = sweepers.answered(sweeper, 2, page(suspect("c")), (), MonoMs(1_700))
    assert effects == (FirstSight(suspect("c")),)
    assert since(sweeper) == {"a": 1_650, "b": 1_650, "c": 1_700}
    assert (sweeper.pass_began_at, sweeper.next_pass_at) == (None, FIRST_PASS + PASS_MS)


def test_a_pass_that_takes_longer_than_the_interval_is_followed_at_once() -> None:
    """Being slow is no reason to look less often."""
    sweeper, _ = sweepers.tick(fresh(), beating(FIRST_PASS), MonoMs(FIRST_PASS), ())
    for number in range(1, 40):
        more = page(suspect(f"j{number:02}"), more=True)
        at = MonoMs(FIRST_PASS + 50 * number)
        sweeper, _ = sweepers.answered(sweeper, number, more, (), at)
    sweeper, _ = sweepers.answered(sweeper, 40, page(), (), MonoMs(3_599))
    assert sweeper.next_pass_at == 3_599


@pytest.mark.parametrize(("at", "counts"), [(1_699, True), (1_700, False)])
def test_a_page_counts_only_within_the_operation_timeout(at: int, counts: bool) -> None:
    """A millisecond before the timeout it is in time; at the timeout the look has failed."""
    sweeper, _ = sweepers.tick(fresh(), beating(FIRST_PASS), MonoMs(FIRST_PASS), ())
    sweeper, _ = sweepers.answered(sweeper, 1, page(suspect()), (), MonoMs(at))
    assert since(sweeper) == ({"j1": at} if counts else {})
    assert sweeper.next_pass_at == FIRST_PASS + (PASS_MS if counts else RETRY_MS)


def test_a_lost_page_is_looked_for_again_after_a_quarter() -> None:
    """The look is given up at its timeout; who was suspected before stays suspected."""
    sweeper = look(fresh(), FIRST_PASS, page(suspect()))
    sweeper, _ = sweepers.tick(sweeper, beating(3_200), MonoMs(3_200), ())
    assert sweepers.wake_at(sweeper, beating(3_200), MonoMs(3_200)) == 3_300
    assert sweepers.tick(sweeper, beating(3_299), MonoMs(3_299), ())[0].look is not None
    sweeper, effects = sweepers.tick(sweeper, beating(3_300), MonoMs(3_300), ())
    assert (sweeper.look, effects) == (None, ())
    assert since(sweeper) == {"j1": FIRST_PASS}
    assert sweepers.wants_hurry(sweeper)
    assert sweepers.wake_at(sweeper, beating(3_300), MonoMs(3_300)) == 3_200 + RETRY_MS
    _, effects = sweepers.tick(sweeper, beating(3_400), MonoMs(3_400), ())
    assert effects == (SendSuspects(3, Suspects(None, 1_000)),)


def test_a_look_is_given_up_also_while_the_heart_is_not_steady() -> None:
    """A faint instance forgets its look, and begins a pass when it is steady again."""
    sweeper, _ = sweepers.tick(fresh(), beating(FIRST_PASS), MonoMs(FIRST_PASS), ())
    faint = evolve(beating(1_700), phase=Phase.FAINT)
    sweeper, _ = sweepers.tick(sweeper, faint, MonoMs(1_700), ())
    assert sweeper.look is None
    assert sweepers.tick(sweeper, faint, MonoMs(9_000), ())[1] == ()
    assert sweepers.wake_at(sweeper, faint, MonoMs(9_000)) is None
    assert sweepers.tick(sweeper, beating(9_001), MonoMs(9_001), ())[1] != ()


def test_an_answer_under_an_old_number_changes_nothing() -> None:
    """A page that comes after its look was given up is not read, nor is its failure."""
    sweeper, _ = sweepers.tick(fresh(), beating(FIRST_PASS), MonoMs(FIRST_PASS), ())
    sweeper = sweepers.failed(sweeper, 1, MonoMs(1_610))
    assert sweepers.answered(sweeper, 1, page(suspect()), (), MonoMs(1_620)) == (sweeper, ())
    sweeper, _ = sweepers.tick(sweeper, beating(1_800), MonoMs(1_800), ())
    assert sweepers.answered(sweeper, 1, page(suspect()), (), MonoMs(1_801)) == (sweeper, ())
    assert sweepers.failed(sweeper, 1, MonoMs(1_801)) is sweeper


# Suspecting -------------------------------------------------------------------------------------


def test_a_suspicion_begins_when_the_answer_that_named_it_arrived() -> None:
    """Not when the look was sent; it keeps the store time of that answer for the record."""
    sweeper = look(fresh(), FIRST_PASS, page(suspect(), at=55), answered_at=1_680)
    suspicion = sweeper.suspicions["j1"]
    assert (suspicion.since, suspicion.first_seen_at) == (1_680, 55)


def test_the_same_stamp_seen_again_keeps_its_beginning() -> None:
    """A second look at the same (epoch, beats) adds nothing, and is no first sight."""
    sweeper = look(fresh(), FIRST_PASS, page(suspect(), at=55))
    sweeper, _ = sweepers.tick(sweeper, beating(3_200), MonoMs(3_200), ())
    again = page(suspect(confirm_ms=9_000), at=99)
    after, effects = sweepers.answered(sweeper, 2, again, (), MonoMs(3_210))
    assert effects == ()
    assert after.suspicions == sweeper.suspicions


@pytest.mark.parametrize("moved", [suspect(beats=2), suspect(epoch=2), suspect(epoch=2, beats=2)])
def test_another_stamp_is_another_suspicion(moved: Suspect) -> None:
    """Who was renewed and is suspect again is seen for the first time. (L2)"""
    sweeper = look(fresh(), FIRST_PASS, page(suspect()))
    sweeper, _ = sweepers.tick(sweeper, beating(3_200), MonoMs(3_200), ())
    sweeper, effects = sweepers.answered(sweeper, 2, page(moved), (), MonoMs(3_210))
    assert effects == (FirstSight(moved),)
    assert since(sweeper) == {"j1": 3_210}
    found = sweeper.suspicions["j1"]
    assert (found.epoch, found.beats) == (moved.epoch, moved.beats)


def test_a_page_forgets_whom_it_passes_over_and_nobody_else() -> None:
    """A page answers for the ids from where it began to its last one, or to the end."""
    names = ("a", "b", "c", "d", "e")
    known = look(fresh(), FIRST_PASS, page(*map(suspect, names)))
    sweeper, _ = sweepers.tick(known, beating(3_200), MonoMs(3_200), ())
    first = page(suspect("a"), suspect("c"), more=True)
    sweeper, _ = sweepers.answered(sweeper, 2, first, (), MonoMs(3_210))
    assert set(sweeper.suspicions) == {"a", "c", "d", "e"}
    sweeper, _ = sweepers.answered(sweeper, 3, page(suspect("e")), (), MonoMs(3_220))
    assert since(sweeper) == dict.fromkeys(("a", "c", "e"), FIRST_PASS)
    assert look(sweeper, 4_000, page()).suspicions == {}


def test_an_instance_never_suspects_its_own_holds() -> None:
    """What it holds is no suspect, also if it was suspected before it was its own."""
    both = page(suspect("a"), suspect("b"))
    assert set(look(fresh(), FIRST_PASS, both, own=["a"]).suspicions) == {"b"}
    known = look(fresh(), FIRST_PASS, both)
    assert set(look(known, 3_200, both, own=["b"]).suspicions) == {"a"}
    behind_its_own = (page(suspect("a"), suspect("b"), more=True), page(suspect("c")))
    assert set(look(fresh(), FIRST_PASS, *behind_its_own, own=["b"]).suspicions) == {"a", "c"}
    assert set(look(known, 3_200, *behind_its_own, own=["b"]).suspicions) == {"a", "c"}


def test_a_suspect_whose_row_is_locked_is_forgotten_and_seen_anew() -> None:
    """Its owner could not renew it either: the window begins again when it is next named."""
    known = look(fresh(), FIRST_PASS, page(suspect("a"), suspect("b")))
    assert sweepers.found_locked(known, ()) is known
    sweeper = sweepers.found_locked(known, ("a", "stranger"))
    assert since(sweeper) == {"b": FIRST_PASS}
    sweeper = look(sweeper, 3_200, page(suspect("a"), suspect("b")))
    assert since(sweeper) == {"a": 3_200, "b": FIRST_PASS}


# The window -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "row", "requeue", "ttl", "window"),
    [
        (2_400, 2_400, RequeueRule.NEVER, 9_000, 2_400),
        (2_400, 1_600, RequeueRule.NEVER, 9_000, 2_400),
        (1_600, 2_400, RequeueRule.NEVER, 9_000, 2_400),
        (2_400, 1_600, RequeueRule.ALLOWED, 2_401, 2_401),
        (2_400, 1_600, RequeueRule.ALLOWED, 2_399, 2_400),
        (1_600, 2_400, RequeueRule.ALLOWED, 2_000, 2_400),
    ],
)
def test_the_window_is_the_longest_that_anybody_asks_for(
    own: int, row: int, requeue: RequeueRule, ttl: int, window: int
) -> None:
    """The sweeper's own, the owner's, and for a job that may be requeued the row's ttl. (L12)"""
    assert sweepers.window_ms(Ms(own), Ms(row), requeue, Ms(ttl)) == window
    seen = suspect(confirm_ms=row, requeue=requeue, ttl_ms=ttl)
    suspicion = sweepers.observe(None, seen, Ms(own), MonoMs(100), StoreMs(7))
    assert suspicion.window_ms == window


WINDOWS: Final = [
    (suspect(), WINDOW_MS),
    (suspect(confirm_ms=3_000), 3_000),
    (suspect(confirm_ms=1_600), WINDOW_MS),
    (suspect(requeue=RequeueRule.ALLOWED), TTL_MS),
]


@pytest.mark.parametrize(("seen", "window"), WINDOWS)
def test_a_sweep_goes_out_when_the_window_is_over_and_not_before(
    seen: Suspect, window: int
) -> None:
    """At since + window, not a millisecond earlier, under the stamp that was first seen."""
    sweeper = look(fresh(), FIRST_PASS, page(seen, at=55), answered_at=1_650)
    sweeper = evolve(sweeper, next_pass_at=MonoMs(99_999))
    due = 1_650 + window
    assert sweepers.wake_at(sweeper, beating(2_000), MonoMs(2_000)) == due
    assert sweepers.tick(sweeper, beating(due - 1), MonoMs(due - 1), ()) == (sweeper, ())
    after, effects = sweepers.tick(sweeper, beating(due), MonoMs(due), ())
    assert effects == (SendSweep((Target("j1", 1, 1, StoreMs(55)),)),)
    assert after.suspicions == {}
    assert not sweepers.wants_hurry(after)
    assert effects[0].command("S") == Sweep("S", (Target("j1", 1, 1, StoreMs(55)),))


def test_a_sweep_that_is_lost_needs_two_observations_again() -> None:
    """What was swept is forgotten; if it is still there it is suspected anew."""
    sweeper = look(fresh(), FIRST_PASS, page(suspect()))
    sweeper, effects = sweepers.tick(sweeper, beating(4_000), MonoMs(4_000), ())
    assert any(isinstance(effect, SendSweep) for effect in effects)
    sweeper, _ = sweepers.answered(sweeper, 2, page(suspect()), (), MonoMs(4_010))
    assert since(sweeper) == {"j1": 4_010}
    assert swept(sweeper, beating(6_409), 6_409) == []
    assert swept(sweeper, beating(6_410), 6_410) == ["j1"]


@pytest.mark.parametrize(("close_since", "due"), [(1_599, 4_000), (1_600, 4_000), (1_700, 4_100)])
def test_a_gap_in_its_own_beats_restarts_the_window(close_since: int, due: int) -> None:
    """The window counts from the later of the suspicion and the first close beat. (L12)"""
    sweeper = look(fresh(), FIRST_PASS, page(suspect()))
    assert swept(sweeper, beating(due - 1, close_since), due - 1) == []
    assert swept(sweeper, beating(due, close_since), due) == ["j1"]


@pytest.mark.parametrize(("age", "ripe"), [(GAP_MS, ["j1"]), (GAP_MS + 1, [])])
def test_nothing_is_ripe_when_the_last_accepted_beat_is_too_old(age: int, ripe: list[str]) -> None:
    """The gap that is still open counts too: from the send of the last accepted beat until now."""
    sweeper = look(fresh(), FIRST_PASS, page(suspect()))
    heart = beating(9_000, sent_at=9_000 - age)
    assert hearts.may(heart, hearts.Act.SWEEP, MonoMs(9_000))
    assert swept(sweeper, heart, 9_000) == ripe


def test_only_what_is_ripe_is_swept() -> None:
    """Each suspicion has a window of its own."""
    pages = (page(suspect("a"), suspect("b", confirm_ms=2_500), suspect("c")),)
    sweeper = look(fresh(), FIRST_PASS, *pages)
    assert swept(sweeper, beating(4_000), 4_000) == ["a", "c"]
    after, _ = sweepers.tick(sweeper, beating(4_000), MonoMs(4_000), ())
    assert swept(after, beating(4_100), 4_100) == ["b"]


def test_more_than_a_page_of_ripe_suspects_goes_in_several_sweeps_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sweep names at most a page; what is over goes in the next one, and waits for nothing."""
    monkeypatch.setattr(sweepers, "PAGE", 2)
    sweeper = look(fresh(), FIRST_PASS, page(*map(suspect, "abcde")))
    sweeper = evolve(sweeper, next_pass_at=MonoMs(99_999))
    after, effects = sweepers.tick(sweeper, beating(4_000), MonoMs(4_000), ())
    sweeps = [effect for effect in effects if isinstance(effect, SendSweep)]
    assert [[target.job_id for target in sweep.targets] for sweep in sweeps] == [
        ["a", "b"],
        ["c", "d"],
        ["e"],
    ]
    assert after.suspicions == {}


# A heart and a sweeper over virtual time --------------------------------------------------------


@frozen
class Fate:
    """What becomes of one message: when it is executed, and when its answer is read."""

    there_ms: int | None
    back_ms: int | None


PROMPT: Final = Fate(0, 0)


@define
class Row:
    """A job of the fake store, in which somebody else's stamps stand."""

    job_id: str
    deadline: int
    stamped_at: int
    """True time."""
    confirm_ms: int = WINDOW_MS
    requeue: RequeueRule = RequeueRule.NEVER
    epoch: int = 1
    beats: int = 1
    locks: tuple[tuple[int, int], ...] = ()
    orphaned_at: int | None = None

    def locked(self, now: int) -> bool:
        return any(begin <= now < end for begin, end in self.locks)

    @property
    def window_ms(self) -> int:
        own = max(WINDOW_MS, self.confirm_ms)
        return max(own, TTL_MS) if self.requeue is RequeueRule.ALLOWED else own


@frozen
class Read:
    """A page that was read in time: what it named, and the ids that it answered for."""

    at: int
    stamps: dict[str, tuple[int, int]]
    after: str
    last: str | None

    def covers(self, job_id: str) -> bool:
        return job_id > self.after and (self.last is None or job_id <= self.last)


@define
class Watch:
    """One instance that holds nothing and sweeps, a fake store, and true time; it logs what an
    observer would, and judges each sweep by the log alone."""

    rows: dict[str, Row]
    fates: Callable[[], Fate]
    freezes: tuple[tuple[int, int], ...] = ()
    """When the instance does not run; its clock does."""
    clock: Callable[[int], int] = lambda now: now
    """Store time of a true time."""
    rows_per_page: int = 2
    now: int = 0
    heart: Heart = field(init=False)
    sweeper: Sweeper = field(init=False)
    reads: list[Read] = field(factory=list)
    locked: list[tuple[int, frozenset[str]]] = field(factory=list)
    beats: list[tuple[int, int]] = field(factory=list)
    """(sent, read) of the beats that were answered in time."""
    sweeps: list[tuple[int, Target]] = field(factory=list)
    _queue: list[tuple[int, int, Callable[[], None]]] = field(factory=list)
    _number: Any = field(factory=count)

    def start(self, at: int = 0) -> None:
        self.now = at
        self.heart = hearts.boot(POLICY, MonoMs(at))
        self.sweeper = sweepers.begin(POLICY, MonoMs(at))
        self.later(0, self.tick)

    def later(self, ms: int, action: Callable[[], None]) -> None:
        heappush(self._queue, (self.now + ms, next(self._number), action))

    def inside(self, ms: int, action: Callable[[], None]) -> None:
        """Something that the instance does, when it runs."""
        at = self.now + ms
        for begin, end in self.freezes:
            at = end if begin <= at < end else at
        heappush(self._queue, (at, next(self._number), action))

    def run(self, until: int) -> None:
        while self._queue and self._queue[0][0] <= until:
            self.now, _, action = heappop(self._queue)
            action()

    def tick(self) -> None:
        now = MonoMs(self.now)
        self.sweeper, effects = sweepers.tick(self.sweeper, self.heart, now, ())
        self.do(effects)
        self.heart = hearts.hurry(self.heart, sweepers.wants_hurry(self.sweeper), now)
        self.heart, sends = hearts.tick(self.heart, now)
        for send in sends:
            if isinstance(send, hearts.SendBeat):
                self.beat(send.number)
            else:
                self.send(lambda: None, lambda _: self.registered())
        times = (hearts.wake_at(self.heart), sweepers.wake_at(self.sweeper, self.heart, now))
        wake = min(time for time in times if time is not None)
        self.inside(max(1, wake - self.now), self.wake)

    def wake(self) -> None:
        """Timers that are out of date wake it for nothing, and must do no harm."""
        times = (hearts.wake_at(self.heart), self.sweeper.next_pass_at)
        if any(time is not None and time <= self.now for time in times) or self.is_due():
            self.tick()

    def is_due(self) -> bool:
        due = sweepers.wake_at(self.sweeper, self.heart, MonoMs(self.now - 1))
        return due is not None and due <= self.now

    def registered(self) -> None:
        self.heart = hearts.registered(self.heart, MonoMs(self.now))
        self.tick()

    def do(self, effects: Iterable[sweepers.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, SendSuspects):
                self.look(effect)
            elif isinstance(effect, SendSweep):
                self.sweep(effect)

    def send(self, execute: Callable[[], Any], read: Callable[[Any], None]) -> None:
        fate = self.fates()
        if fate.there_ms is None:
            return

        def arrive() -> None:
            reply = execute()
            if fate.back_ms is not None:
                self.inside(fate.back_ms, lambda: read(reply))

        self.later(fate.there_ms, arrive)

    # What it sends, and what the store makes of it ----------------------------------------------

    def beat(self, number: int) -> None:
        sent_at, watched = self.now, tuple(self.sweeper.suspicions)

        def read(locked: frozenset[str]) -> None:
            if self.now - sent_at < TIMEOUT_MS:
                self.beats.append((sent_at, self.now))
                self.locked.append((self.now, locked))
                self.sweeper = sweepers.found_locked(self.sweeper, locked)
            self.heart = hearts.answered(self.heart, number, MonoMs(self.now), True)
            self.tick()

        self.send(lambda: frozenset(i for i in watched if self.rows[i].locked(self.now)), read)

    def look(self, effect: SendSuspects) -> None:
        sent_at, number, after = self.now, effect.number, effect.command.after or ""

        def execute() -> SuspectsPage:
            store_now = self.clock(self.now)
            found = [
                row
                for job_id, row in sorted(self.rows.items())
                if job_id > after
                and row.orphaned_at is None
                and row.deadline < store_now
                and not row.locked(self.now)
            ]
            named = found[: self.rows_per_page]
            suspects = tuple(
                suspect(row.job_id, row.epoch, row.beats, row.confirm_ms, row.requeue)
                for row in named
            )
            return page(*suspects, more=len(found) > len(named), at=max(0, store_now))

        def read(answer: SuspectsPage) -> None:
            if self.now - sent_at < TIMEOUT_MS:
                stamps = {s.job_id: (s.epoch, s.beats) for s in answer.suspects}
                last = answer.suspects[-1].job_id if answer.more else None
                self.reads.append(Read(self.now, stamps, after, last))
            at = MonoMs(self.now)
            self.sweeper, effects = sweepers.answered(self.sweeper, number, answer, (), at)
            self.do(effects)
            self.tick()

        self.send(execute, read)

    def sweep(self, effect: SendSweep) -> None:
        for target in effect.targets:
            self.judge(target)
            self.sweeps.append((self.now, target))

        def execute() -> None:
            for target in effect.targets:
                row = self.rows[target.job_id]
                stands = (row.epoch, row.beats) == (target.epoch, target.beats)
                if stands and row.orphaned_at is None and row.deadline < self.clock(self.now):
                    row.orphaned_at = self.now

        self.send(execute, lambda _: None)

    def judge(self, target: Target) -> None:
        """The law's sentence, from the log: seen once, a window ago, never unseen since; and beats
        accepted all the while. (L12)"""
        row, stamp = self.rows[target.job_id], (target.epoch, target.beats)
        begin = self.now - row.window_ms
        covering = [read for read in self.reads if read.covers(row.job_id)]
        first = max((read.at for read in covering if read.at <= begin), default=None)
        assert first is not None, "nobody looked before the window"
        seen = [read for read in covering if read.at >= first]
        assert all(read.stamps.get(row.job_id) == stamp for read in seen), "it was unseen since"
        locks = [at for at, locked in self.locked if row.job_id in locked]
        assert not [at for at in locks if at > begin], "its row was found locked in the window"
        if (row.epoch, row.beats) == stamp:
            assert self.now - row.stamped_at >= row.window_ms, "it was renewed in the window"
        earlier = [beat for beat in self.beats if beat[1] <= begin]
        assert earlier, "no beat was accepted before the window"
        later = [beat for beat in self.beats if beat[1] > begin]
        chain = [earlier[-1], *later]
        gaps = [read - chain[i][0] for i, (_, read) in enumerate(later)]
        gaps.append(self.now - chain[-1][0])
        assert max(gaps) <= GAP_MS, f"its own beats had gaps of {gaps}"

    # What others do to the rows -----------------------------------------------------------------

    def renew(self, job_id: str, new_epoch: bool = False) -> None:
        row = self.rows[job_id]
        if row.orphaned_at is not None or row.locked(self.now):
            return
        row.epoch += new_epoch
        row.beats += 1
        row.stamped_at = self.now
        row.deadline = self.clock(self.now) + TTL_MS


def in_time(there: int, back: int) -> Fate:
    return Fate(there, min(back, TIMEOUT_MS - 1 - there))


prompt_fates = st.lists(
    st.builds(in_time, st.integers(0, TIMEOUT_MS - 1), st.integers(0, TIMEOUT_MS - 1)),
    min_size=1,
    max_size=12,
)


def judged_dead(watch: Watch, dead: dict[str, int]) -> None:
    """Each job that nobody renews is orphaned within law L13's bound, and after its window."""
    for job_id, deadline in dead.items():
        row = watch.rows[job_id]
        bound = deadline + PASS_MS + row.window_ms + 2 * TIMEOUT_MS
        assert row.orphaned_at is not None, f"{job_id} was never swept"
        assert deadline + row.window_ms < row.orphaned_at <= bound


@given(
    boot=st.integers(0, 2_000),
    fates=prompt_fates,
    deadlines=st.lists(st.integers(4_000, 9_000), min_size=1, max_size=4),
    requeue=st.sampled_from(RequeueRule),
)
def test_a_dead_owners_job_is_orphaned_within_the_bound(
    boot: int, fates: list[Fate], deadlines: list[int], requeue: RequeueRule
) -> None:
    """From deadline to orphan at most a sweep interval, the window and two timeouts, whatever the
    phases of the passes, the beats and the deadlines, if every answer comes in time. (L13)"""
    rows = {f"j{n}": Row(f"j{n}", at, 0, requeue=requeue) for n, at in enumerate(deadlines)}
    supply = cycle(fates)
    watch = Watch(rows, lambda: next(supply), rows_per_page=9)
    watch.start(boot)
    watch.run(20_000)
    judged_dead(watch, {row.job_id: row.deadline for row in rows.values()})


@given(boot=st.integers(0, 2_000), deadline=st.integers(4_000, 9_000))
def test_with_answers_at_once_the_timeouts_of_the_bound_are_not_needed(
    boot: int, deadline: int
) -> None:
    """A sweep is sent between the window and a pass plus the window after the deadline. (L13)"""
    watch = Watch({"j": Row("j", deadline, 0)}, lambda: PROMPT)
    watch.start(boot)
    watch.run(20_000)
    assert len(watch.sweeps) == 1
    assert deadline + WINDOW_MS < watch.sweeps[0][0] <= deadline + 1 + PASS_MS + WINDOW_MS


@given(
    fates=prompt_fates,
    boot=st.integers(0, 800),
    step=st.sampled_from([TTL_MS, 60_000, 10**9]),
    step_at=st.integers(3_000, 8_000),
    beat=st.integers(0, BEAT_MS - 1),
)
def test_a_step_of_the_store_clock_sweeps_nobody_who_renews(
    fates: list[Fate], boot: int, step: int, step_at: int, beat: int
) -> None:
    """All leases look expired at once; who renews within a heartbeat is spared, the dead is not."""
    rows = {name: Row(name, TTL_MS, 0) for name in ("alive", "dead")}
    supply = cycle(fates)
    clock: Callable[[int], int] = lambda now: now + (step if now >= step_at else 0)  # noqa: E731
    watch = Watch(rows, lambda: next(supply), clock=clock)
    watch.start(boot)
    for at in range(beat, 20_000, BEAT_MS):
        watch.later(max(0, at - boot), lambda: watch.renew("alive"))
    watch.run(20_000)
    assert rows["alive"].orphaned_at is None
    assert rows["dead"].orphaned_at is not None


FATES: Final = st.one_of(
    st.just(Fate(5, 5)),
    st.just(PROMPT),
    st.builds(Fate, st.integers(0, 60), st.integers(0, 60)),
    st.sampled_from(
        [
            Fate(None, None),
            Fate(5, None),
            Fate(50, 49),
            Fate(50, 50),
            Fate(99, 0),
            Fate(0, 99),
            Fate(250, 5),
            Fate(5, 700),
        ]
    ),
)
SPANS: Final = st.tuples(st.integers(0, 9_000), st.integers(1, 1_200)).map(
    lambda span: (span[0], span[0] + span[1])
)


@st.composite
def rows_with_a_life(draw: st.DrawFn) -> tuple[Row, list[tuple[int, bool]]]:
    """A row, and when somebody renews it or grants it anew."""
    row = Row(
        draw(st.sampled_from("abcd")),
        draw(st.integers(0, 3_000)),
        0,
        draw(st.sampled_from([1_600, WINDOW_MS, 3_000])),
        draw(st.sampled_from(RequeueRule)),
        locks=tuple(draw(st.lists(SPANS, max_size=1))),
    )
    return row, draw(st.lists(st.tuples(st.integers(0, 12_000), st.booleans()), max_size=3))


@given(
    lives=st.lists(rows_with_a_life(), min_size=1, max_size=4),
    bad=st.lists(st.tuples(st.integers(0, 30), FATES), max_size=8),
    usual=st.sampled_from([PROMPT, Fate(5, 5), Fate(40, 59)]),
    freezes=st.lists(SPANS, max_size=1),
    steps=st.lists(st.tuples(st.integers(0, 10_000), st.integers(-5_000, 20_000)), max_size=1),
)
def test_whatever_the_weather_a_sweep_was_observed_twice(
    lives: list[tuple[Row, list[tuple[int, bool]]]],
    bad: list[tuple[int, Fate]],
    usual: Fate,
    freezes: list[tuple[int, int]],
    steps: list[tuple[int, int]],
) -> None:
    """Under losses, delays, locks, suspensions, renewals and steps of the store clock, what a sweep
    names had stood, unrenewed, for its whole window, and the sweeper's beats were close. (L12)"""
    rows = {row.job_id: row for row, _ in lives}
    unusual: dict[int, Fate] = {}
    at = 0
    for pause, fate in bad:
        at += pause
        unusual[at] = fate
    number = count()

    def clock(now: int) -> int:
        return now + sum(step for step_at, step in steps if now >= step_at)

    watch = Watch(rows, lambda: unusual.get(next(number), usual), tuple(freezes), clock)
    watch.start()
    for row, renewals in lives:
        for when, new_epoch in renewals:
            watch.later(when, lambda i=row.job_id, e=new_epoch: watch.renew(i, e))  # type: ignore[misc]
    watch.run(14_000)
    event("swept some" if watch.sweeps else "swept nobody")


def test_a_grant_that_is_acknowledged_late_ends_the_suspicion() -> None:
    """A job suspected before its grant was acknowledged is ours by now, and is not swept."""
    at = 9_000
    suspicion = Suspicion("j1", 1, 1, MonoMs(0), Ms(1), StoreMs(0))
    sweeper = evolve(fresh(), suspicions={"j1": suspicion}, next_pass_at=MonoMs(99_999))
    assert sweepers.tick(sweeper, beating(at), MonoMs(at), ())[1] != ()
    after, effects = sweepers.tick(sweeper, beating(at), MonoMs(at), {"j1"})
    assert effects == ()
    assert not after.suspicions
