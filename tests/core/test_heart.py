"""The heart's life, told in lines that a reader can check by eye.

    0    tick        -> registering 100: register, beat 1
    1    registered  -> registering 100
    2    answer 1    -> steady 800

Each line is a time, an event, the phase after it, when the heart wants to be woken (- for never),
and what it sends. It beats every 800 ms, a store operation may take 100, so a retry comes after
200, a gap of more than 300 restarts a sweeper's window, and it is steady for 900 after an answer.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from unswept.core import heart as hearts
from unswept.core.heart import MAY, Act, Heart, Phase, Pulse, SendBeat, SendRegister
from unswept.core.policy import LeasePolicy
from unswept.core.units import MonoMs, Ms

POLICY: Final = LeasePolicy(
    heartbeat_interval_ms=Ms(800), operation_timeout_ms=Ms(100), lease_ttl_ms=Ms(4_000)
)
BEAT_MS: Final = 800
RETRY_MS: Final = 200
TIMEOUT_MS: Final = 100
GAP_MS: Final = 300
STEADY_MS: Final = 900

BOOTED: Final = """
    0    tick        -> registering 100: register, beat 1
    1    registered  -> registering 100
    2    answer 1    -> steady 800
"""
QUIESCED: Final = """
    800  tick        -> steady 900: beat 2
    810  fail 2      -> faint 1000
    1000 tick        -> faint 1100: beat 3
    1100 tick        -> faint 1200
    1200 tick        -> faint 1300: beat 4
    1299 fail 4      -> quiesced 1400
"""
RECOVERING: Final = """
    1400 tick        -> quiesced 1500: register, beat 5
    1401 registered  -> recovering 1500
    1402 answer 5    -> recovering 1600
"""


class Life:
    """One heart, spoken to in lines of text."""

    def __init__(self) -> None:
        self.now = MonoMs(0)
        self.heart = hearts.boot(POLICY, self.now)

    def tell(self, line: str) -> str:
        """The line with what the heart really made of it."""
        said = line.partition("->")[0].rstrip()
        at, *words = said.split()
        self.now = MonoMs(int(at))
        sends = self.do(words)
        wake = hearts.wake_at(self.heart)
        became = f"{hearts.phase_at(self.heart, self.now)} {'-' if wake is None else wake}"
        return f"{line.partition('->')[0]}-> {became}{sends}"

    def do(self, words: list[str]) -> str:
        """Let one event happen; what the heart sends comes back as text."""
        match words:
            case ["tick"]:
                self.heart, effects = hearts.tick(self.heart, self.now)
                return f": {', '.join(map(name, effects))}" if effects else ""
            case ["registered"]:
                self.heart = hearts.registered(self.heart, self.now)
            case ["answer", number, *rest]:
                known, busy = "unknown" not in rest, "busy" in rest
                self.heart = hearts.answered(self.heart, int(number), self.now, known, busy)
            case ["fail", number]:
                self.heart = hearts.failed(self.heart, int(number), self.now)
            case ["hurry" | "calm" as word]:
                self.heart = hearts.hurry(self.heart, word == "hurry", self.now)
            case ["drain"]:
                self.heart = hearts.drain(self.heart)
            case ["stop"]:
                self.heart = hearts.stop(self.heart)
            case ["look"]:
                pass
            case _:
                raise ValueError(f"no such event: {words}")
        return ""


def name(effect: hearts.Effect) -> str:
    return "register" if isinstance(effect, SendRegister) else f"beat {effect.number}"


def told(*texts: str) -> Life:
    """Tell the lines to a new heart and compare them all at once."""
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    life = Life()
    heard = "\n".join(life.tell(line) for line in lines)
    assert heard == "\n".join(lines), f"the heart's side:\n{heard}"
    return life


# Booting and beating ----------------------------------------------------------------------------


def test_a_new_instance_registers_beats_and_is_steady_by_its_first_answer() -> None:
    """The first tick registers and beats; the answer to a registered instance makes it steady."""
    told(
        BOOTED,
        """
        799  tick        -> steady 800
        800  tick        -> steady 900: beat 2
        899  answer 2    -> steady 1600
        1600 tick        -> steady 1700: beat 3
        """,
    )


def test_an_answer_before_the_registration_leaves_it_registering() -> None:
    """A beat that outran the registration proves nothing; the registration beats at once."""
    told(
        """
        0    tick        -> registering 100: register, beat 1
        1    answer 1    -> registering 200
        50   registered  -> registering 50
        50   tick        -> registering 150: beat 2
        51   answer 2    -> steady 850
        """
    )


def test_a_registration_that_is_lost_is_asked_for_with_every_beat() -> None:
    """Until the store knows the instance, each beat brings a registration, every quarter."""
    told(
        """
        0    tick        -> registering 100: register, beat 1
        100  tick        -> registering 200
        200  tick        -> registering 300: register, beat 2
        210  answer 2    -> registering 400
        400  tick        -> registering 500: register, beat 3
        401  registered  -> registering 500
        402  answer 3    -> steady 1200
        """
    )


def test_failures_before_the_first_answer_do_not_quiesce() -> None:
    """Who has never been steady has nothing to lose, and goes on registering."""
    told(
        """
        0    tick        -> registering 100: register, beat 1
        10   fail 1      -> registering 200
        200  tick        -> registering 300: register, beat 2
        210  fail 2      -> registering 400
        400  tick        -> registering 500: register, beat 3
        410  fail 3      -> registering 600
        600  tick        -> registering 700: register, beat 4
        601  registered  -> registering 700
        602  answer 4    -> steady 1400
        """
    )


def test_steady_ends_an_interval_and_a_timeout_after_the_last_answer() -> None:
    """At exactly that age the answer still counts, one millisecond later it is faint."""
    told(
        BOOTED,
        """
        902  look        -> steady 800
        903  look        -> faint 800
        903  tick        -> faint 1003: beat 2
        904  answer 2    -> steady 1703
        """,
    )


@pytest.mark.parametrize(
    ("event", "outcome"),
    [("899  answer 2", "steady 1600"), ("900  answer 2", "faint 1000")],
)
def test_an_answer_counts_only_within_the_operation_timeout(event: str, outcome: str) -> None:
    """One millisecond before the timeout is in time, at the timeout the beat has failed."""
    told(BOOTED, "800  tick        -> steady 900: beat 2", f"{event} -> {outcome}")


def test_in_time_is_the_same_boundary_for_whoever_reads_renewals() -> None:
    """The renewals of an answer are relied on exactly where the beat itself counts."""
    heart = told(BOOTED, "800  tick        -> steady 900: beat 2").heart
    times = {now: hearts.in_time(heart, 2, MonoMs(now)) for now in (800, 899, 900, 5_000)}
    assert times == {800: True, 899: True, 900: False, 5_000: False}
    assert not hearts.in_time(heart, 1, MonoMs(801))


def test_a_beat_is_given_up_at_its_timeout_and_not_before() -> None:
    """A tick before the timeout waits; at the timeout the beat has failed."""
    told(
        BOOTED,
        """
        800  tick        -> steady 900: beat 2
        899  tick        -> steady 900
        900  tick        -> faint 1000
        """,
    )


# Failing and recovering -------------------------------------------------------------------------


def test_one_and_two_failures_make_faint_and_one_answer_makes_steady() -> None:
    """A failed beat is tried again a quarter of a heartbeat after it; an answer ends the spell."""
    told(
        BOOTED,
        """
        800  tick        -> steady 900: beat 2
        810  fail 2      -> faint 1000
        1000 tick        -> faint 1100: beat 3
        1100 tick        -> faint 1200
        1200 tick        -> faint 1300: beat 4
        1299 answer 4    -> steady 2000
        2000 tick        -> steady 2100: beat 5
        2010 fail 5      -> faint 2200
        2200 tick        -> faint 2300: beat 6
        2210 fail 6      -> faint 2400
        """,
    )


def test_three_failures_quiesce_and_three_good_beats_after_registering_readmit() -> None:
    """The beat that went out with the registration is none of the three."""
    told(
        BOOTED,
        QUIESCED,
        RECOVERING,
        """
        1600 tick        -> recovering 1700: beat 6
        1601 answer 6    -> recovering 1800
        1800 tick        -> recovering 1900: beat 7
        1801 answer 7    -> recovering 2000
        2000 tick        -> recovering 2100: beat 8
        2001 answer 8    -> steady 2800
        """,
    )


def test_a_failure_while_recovering_quiesces_again_and_the_count_begins_anew() -> None:
    """Three good beats in a row are asked for, each time after a new registration."""
    told(
        BOOTED,
        QUIESCED,
        RECOVERING,
        """
        1600 tick        -> recovering 1700: beat 6
        1601 answer 6    -> recovering 1800
        1800 tick        -> recovering 1900: beat 7
        1801 answer 7    -> recovering 2000
        2000 tick        -> recovering 2100: beat 8
        2010 fail 8      -> quiesced 2200
        2200 tick        -> quiesced 2300: register, beat 9
        2201 registered  -> recovering 2300
        2202 answer 9    -> recovering 2400
        2400 tick        -> recovering 2500: beat 10
        2401 answer 10   -> recovering 2600
        2600 tick        -> recovering 2700: beat 11
        2601 answer 11   -> recovering 2800
        2800 tick        -> recovering 2900: beat 12
        2801 answer 12   -> steady 3600
        """,
    )


def test_a_quiesced_heart_beats_and_registers_every_quarter_until_it_is_heard() -> None:
    """Answers alone do not end quiescence; only the registration does."""
    told(
        BOOTED,
        QUIESCED,
        """
        1400 tick        -> quiesced 1500: register, beat 5
        1401 answer 5    -> quiesced 1600
        1600 tick        -> quiesced 1700: register, beat 6
        1700 tick        -> quiesced 1800
        1800 tick        -> quiesced 1900: register, beat 7
        1801 answer 7    -> quiesced 2000
        1900 registered  -> recovering 1900
        1900 tick        -> recovering 2000: beat 8
        """,
    )


def test_a_store_that_does_not_know_a_steady_instance_makes_it_register() -> None:
    """The instances row was cleaned up: nothing is sent but beats until it is registered again."""
    told(
        BOOTED,
        """
        800  tick        -> steady 900: beat 2
        801  answer 2 unknown -> registering 1000
        1000 tick        -> registering 1100: register, beat 3
        1001 registered  -> registering 1100
        1002 answer 3    -> steady 1800
        """,
    )


def test_an_unknown_that_was_said_before_the_registration_is_old_news() -> None:
    """A beat that was sent before the store knew the instance may say so, and changes nothing."""
    told(
        """
        0    tick        -> registering 100: register, beat 1
        1    registered  -> registering 100
        2    answer 1 unknown -> steady 800
        800  tick        -> steady 900: beat 2
        """
    )


def test_a_store_that_does_not_know_a_recovering_instance_starts_its_trial_anew() -> None:
    """Three good beats after the latest registration readmit, never fewer."""
    told(
        BOOTED,
        QUIESCED,
        RECOVERING,
        """
        1600 tick        -> recovering 1700: beat 6
        1601 answer 6 unknown -> quiesced 1800
        1800 tick        -> quiesced 1900: register, beat 7
        1801 registered  -> recovering 1900
        1802 answer 7    -> recovering 2000
        2000 tick        -> recovering 2100: beat 8
        2001 answer 8    -> recovering 2200
        2200 tick        -> recovering 2300: beat 9
        2201 answer 9    -> recovering 2400
        2400 tick        -> recovering 2500: beat 10
        2401 answer 10   -> steady 3200
        """,
    )


def test_a_suspension_makes_faint_until_the_next_accepted_beat() -> None:
    """Time in which the instance did not run counts against it, whether a beat was out or not."""
    assert told(BOOTED, "9000 tick -> faint 9100: beat 2").heart.phase is Phase.FAINT
    told(
        BOOTED,
        """
        9000 look        -> faint 800
        9000 tick        -> faint 9100: beat 2
        9001 answer 2    -> steady 9800
        9800 tick        -> steady 9900: beat 3
        """,
        """
        60000 answer 3   -> faint 60000
        60000 tick       -> faint 60100: beat 4
        60001 answer 4   -> steady 60800
        """,
    )


@pytest.mark.parametrize("event", ["answer 2", "answer 2 unknown", "answer 4 busy", "fail 2"])
def test_what_comes_under_an_old_or_strange_number_changes_nothing(event: str) -> None:
    """Only the beat that is on its way can be answered or fail."""
    life = told(
        BOOTED,
        """
        800  tick        -> steady 900: beat 2
        900  tick        -> faint 1000
        1000 tick        -> faint 1100: beat 3
        """,
    )
    before = life.heart
    life.tell(f"1050 {event}")
    assert life.heart == before
    life.tell("1051 answer 3")
    after = life.heart
    life.tell(f"1052 {event}")
    assert life.heart == after


# Haste ------------------------------------------------------------------------------------------


def test_a_hurried_heart_beats_every_quarter_beginning_at_once() -> None:
    """An open suspicion makes a late beat due now, and ends with its last quarter."""
    told(
        BOOTED,
        """
        500  hurry       -> steady 500
        500  tick        -> steady 600: beat 2
        510  answer 2    -> steady 700
        700  tick        -> steady 800: beat 3
        710  answer 3    -> steady 900
        720  calm        -> steady 900
        900  tick        -> steady 1000: beat 4
        910  answer 4    -> steady 1700
        """,
    )


def test_a_heart_that_beat_a_moment_ago_hurries_from_that_beat_on() -> None:
    """At once means a quarter after the last accepted beat, not twice within it."""
    told(
        BOOTED,
        """
        50   hurry       -> steady 200
        60   hurry       -> steady 200
        200  tick        -> steady 300: beat 2
        """,
    )


def test_a_hurry_while_a_beat_is_out_waits_for_its_answer() -> None:
    """One beat is on its way at a time."""
    told(
        BOOTED,
        """
        800  tick        -> steady 900: beat 2
        810  hurry       -> steady 900
        810  tick        -> steady 900
        820  answer 2    -> steady 1000
        """,
    )


def test_a_busy_hold_is_asked_for_again_after_a_quarter() -> None:
    """A locked row of ours does not wait a whole heartbeat, and costs no standing. (L8)"""
    told(
        BOOTED,
        """
        800  tick        -> steady 900: beat 2
        810  answer 2 busy -> steady 1000
        1000 tick        -> steady 1100: beat 3
        1010 answer 3    -> steady 1800
        """,
    )


# Leaving ----------------------------------------------------------------------------------------


def test_a_draining_heart_goes_on_beating_through_failures_until_it_is_stopped() -> None:
    """Renewing is never forbidden; after the stop nothing is sent, whatever comes."""
    life = told(
        BOOTED,
        """
        500  drain       -> draining 800
        800  tick        -> draining 900: beat 2
        810  answer 2    -> draining 1600
        1600 tick        -> draining 1700: beat 3
        1700 tick        -> draining 1800
        1800 tick        -> draining 1900: beat 4
        1810 fail 4      -> draining 2000
        2000 tick        -> draining 2100: beat 5
        2010 fail 5      -> draining 2200
        2200 tick        -> draining 2300: beat 6
        2201 answer 6    -> draining 3000
        3000 tick        -> draining 3100: beat 7
        3001 stop        -> stopped -
        3002 answer 7    -> stopped -
        3003 registered  -> stopped -
        3004 drain       -> stopped -
        3005 hurry       -> stopped -
        9000 tick        -> stopped -
        """,
    )
    assert life.heart.flight is None


def test_a_draining_heart_whose_row_was_cleaned_up_registers_with_its_beats() -> None:
    """The store must know it to the end, and it stays draining."""
    told(
        BOOTED,
        """
        500  drain       -> draining 800
        800  tick        -> draining 900: beat 2
        801  answer 2 unknown -> draining 1600
        1600 tick        -> draining 1700: register, beat 3
        1601 registered  -> draining 1700
        1602 answer 3    -> draining 2400
        2400 tick        -> draining 2500: beat 4
        """,
    )


# Every phase and every event --------------------------------------------------------------------

LIVES: Final = MappingProxyType(
    {
        "unknown": "0 tick",
        "registered": "0 tick; 1 registered; 2 fail 1",
        "steady": "0 tick; 1 registered; 2 answer 1",
        "faint": "0 tick; 1 registered; 2 answer 1; 800 tick; 801 fail 2",
        "fainter": "0 tick; 1 registered; 2 answer 1; 800 tick; 801 fail 2; 1000 tick; 1001 fail 3",
        "suspended": "0 tick; 1 registered; 2 answer 1; 5000 tick",
    }
)
"""How a heart gets into each state; quiesced and the rest go on from `fainter`."""
_QUIET = f"{LIVES['fainter']}; 1200 tick; 1201 fail 4"
_TRIED = f"{_QUIET}; 1400 tick; 1401 registered; 1402 answer 5"
STATES: Final = MappingProxyType(
    {
        **LIVES,
        "quiesced": _QUIET,
        "recovering": _TRIED,
        "recovering, 2 good": f"{_TRIED}; 1600 tick; 1601 answer 6; 1800 tick; 1801 answer 7",
        "draining": f"{LIVES['steady']}; 3 drain",
        "stopped": f"{LIVES['steady']}; 3 stop",
    }
)

# The phase in which each event leaves a heart that is in each state.
CHART: Final = """
state              | failure     | answer      | strange     | registered  | drain    | stop
unknown            | registering | registering | registering | registering | draining | stopped
registered         | registering | steady      | registering | registering | draining | stopped
steady             | faint       | steady      | registering | steady      | draining | stopped
faint              | faint       | steady      | registering | faint       | draining | stopped
fainter            | quiesced    | steady      | registering | faint       | draining | stopped
suspended          | faint       | steady      | registering | faint       | draining | stopped
quiesced           | quiesced    | quiesced    | quiesced    | recovering  | draining | stopped
recovering         | quiesced    | recovering  | quiesced    | recovering  | draining | stopped
recovering, 2 good | quiesced    | steady      | quiesced    | recovering  | draining | stopped
draining           | draining    | draining    | draining    | draining    | draining | stopped
stopped            | stopped     | stopped     | stopped     | stopped     | stopped  | stopped
"""


def chart() -> list[tuple[str, str, str]]:
    head, *rows = [
        [cell.strip() for cell in line.split("|")] for line in CHART.strip().splitlines()
    ]
    return [
        (row[0], event, phase)
        for row in rows
        for event, phase in zip(head[1:], row[1:], strict=True)
    ]


@pytest.mark.parametrize(("state", "event", "phase"), chart())
def test_every_event_leaves_every_state_as_the_chart_says(
    state: str, event: str, phase: str
) -> None:
    """The whole chart: what a failure, an answer, an answer from a store that does not know the
    instance, a registration, a drain and a stop make of each state."""
    life = Life()
    for line in STATES[state].split("; "):
        life.tell(line)
    if event in ("failure", "answer", "strange"):
        wake = hearts.wake_at(life.heart)
        if life.heart.flight is None and wake is not None:
            life.tell(f"{wake} tick")
    number, soon = life.heart.last_number, life.now + 1
    words = {
        "failure": f"fail {number}",
        "answer": f"answer {number}",
        "strange": f"answer {number} unknown",
    }
    life.tell(f"{soon} {words.get(event, event)}")
    assert hearts.phase_at(life.heart, life.now) == phase


def test_the_table_of_what_may_be_sent_is_law_l10() -> None:
    """Registering, quiesced, recovering and draining send none of the five; faint sends no delay
    and no sweep; steady sends all. (L10)"""
    assert set(MAY) == set(Phase)
    assert {act.value for act in Act} == {"admit", "claim", "start", "delay", "sweep"}
    silent = (Phase.REGISTERING, Phase.QUIESCED, Phase.RECOVERING, Phase.DRAINING, Phase.STOPPED)
    assert all(not MAY[phase] for phase in silent)
    assert MAY[Phase.FAINT] == set(Act) - {Act.DELAY, Act.SWEEP}
    assert MAY[Phase.STEADY] == set(Act)


@pytest.mark.parametrize(("now", "allowed"), [(902, True), (903, False)])
def test_may_judges_by_the_clock_and_not_by_the_last_tick(now: int, allowed: bool) -> None:
    """A heart that nobody has ticked is faint all the same when its answer is too old."""
    heart = told(BOOTED).heart
    assert hearts.may(heart, Act.SWEEP, MonoMs(now)) is allowed
    assert hearts.may(heart, Act.DELAY, MonoMs(now)) is allowed
    assert hearts.may(heart, Act.ADMIT, MonoMs(now))


# What the accepted beats prove ------------------------------------------------------------------


def test_the_first_accepted_beat_proves_nothing_before_its_answer() -> None:
    """What stood before the first answer is unknown."""
    pulse = hearts.accepted(None, MonoMs(5), MonoMs(9), Ms(STEADY_MS), Ms(GAP_MS))
    assert pulse == Pulse(MonoMs(5), MonoMs(9), MonoMs(9), MonoMs(9))


@pytest.mark.parametrize(
    ("gap", "steady_restarts", "close_restarts"),
    [
        (1, False, False),
        (GAP_MS, False, False),
        (GAP_MS + 1, False, True),
        (STEADY_MS, False, True),
        (STEADY_MS + 1, True, True),
    ],
)
def test_a_gap_runs_from_a_send_to_the_next_answer(
    gap: int, steady_restarts: bool, close_restarts: bool
) -> None:
    """At exactly the bound nothing restarts; a millisecond more, and the proof begins anew."""
    before = Pulse(MonoMs(1_000), MonoMs(1_050), MonoMs(10), MonoMs(20))
    now = MonoMs(1_000 + gap)
    after = hearts.accepted(before, MonoMs(999 + gap), now, Ms(STEADY_MS), Ms(GAP_MS))
    assert (after.sent_at, after.answered_at) == (999 + gap, now)
    assert after.steady_since == (now if steady_restarts else 10)
    assert after.close_since == (now if close_restarts else 20)


def test_a_failed_beat_between_two_accepted_ones_is_a_gap() -> None:
    """Beats every quarter are close; with one of them lost they are not. (L12)"""
    life = told(
        BOOTED,
        """
        200  hurry       -> steady 200
        200  tick        -> steady 300: beat 2
        299  answer 2    -> steady 400
        400  tick        -> steady 500: beat 3
        499  answer 3    -> steady 600
        """,
    )
    assert life.heart.pulse is not None
    assert life.heart.pulse.close_since == 2
    for line in ("600 tick", "700 tick", "800 tick", "801 answer 5"):
        life.tell(line)
    assert life.heart.pulse is not None
    assert life.heart.pulse.close_since == 801
    assert life.heart.pulse.steady_since == 2


# Whatever happens -------------------------------------------------------------------------------


class AnyLife(RuleBasedStateMachine):
    """A heart under random answers, losses, suspensions and wishes, judged by a log of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.now = MonoMs(0)
        self.heart: Heart = hearts.boot(POLICY, self.now)
        self.sent: list[int] = []
        """When each beat was sent; beat n is entry n - 1."""
        self.over = 0
        """The last beat that was answered or given up."""
        self.heard_at: int | None = None
        """When the last beat was accepted, unless one has failed since."""
        self.failures = 0
        self.registered_at: int | None = None
        """When the store last said so, since the last time that it did not know us."""
        self.served = False
        """It was steady since it last had to register."""
        self.good: int | None = None
        """Beats accepted since it registered after three failures; None: it need not prove any."""
        self.draining = self.stopped = False
        self.jumped = False
        """A registration or a wish for haste came since the last beat."""

    @initialize()
    def begin(self) -> None:
        self.tick()
        assert len(self.sent) == 1

    def tick(self) -> None:
        due = hearts.wake_at(self.heart)
        before = self.heart
        self._give_up()
        self.heart, effects = hearts.tick(self.heart, self.now)
        beats = [effect for effect in effects if isinstance(effect, SendBeat)]
        for beat in beats:
            assert beat.number == len(self.sent) + 1 == self.over + 1
            if self.sent and not self.jumped:
                assert self.now - self.sent[-1] >= RETRY_MS, "beats twice within a quarter"
            self.sent.append(self.now)
            self.jumped = False
        if due is None:
            assert not effects
            return
        if self.now >= due:
            assert beats or self.heart.failures > before.failures, "woken for nothing"
        wake = hearts.wake_at(self.heart)
        assert wake is not None
        assert self.now < wake <= self.sent[-1] + BEAT_MS, "too soon or too late"

    def _give_up(self) -> None:
        if len(self.sent) > self.over and self.now - self.sent[-1] >= TIMEOUT_MS:
            self._fail()

    def _fail(self) -> None:
        self.over = len(self.sent)
        self.heard_at = None
        self.failures += 1
        if self.good is not None or (self.served and self.failures >= 3):
            self.good = 0
            self.served = False
            self.registered_at = None

    @rule()
    def wake(self) -> None:
        """The timer fires when it should."""
        due = hearts.wake_at(self.heart)
        if due is not None:
            self.now = max(self.now, due)
        self.tick()

    @rule(ms=st.integers(1, RETRY_MS))
    def wait(self, ms: int) -> None:
        """Something else wakes the process, at or before the timer."""
        due = hearts.wake_at(self.heart)
        late = MonoMs(self.now + ms)
        self.now = late if due is None else max(self.now, min(late, due))
        self.tick()

    @rule(ms=st.integers(1, 4 * BEAT_MS))
    def suspend(self, ms: int) -> None:
        """The instance does not run; what it does first afterwards is another rule's draw."""
        self.now = MonoMs(self.now + ms)

    @rule(known=st.booleans(), busy=st.booleans())
    def beat(self, known: bool, busy: bool) -> None:
        """The next beat, and its answer at once."""
        while len(self.sent) == self.over and not self.stopped:
            self.wake()
        self.answer(1, known, busy)

    @rule(ms=st.integers(0, TIMEOUT_MS + 1), known=st.booleans(), busy=st.booleans())
    def answer(self, ms: int, known: bool, busy: bool) -> None:
        """An answer to the last beat, in time or not."""
        if len(self.sent) > self.over:
            self.now = max(self.now, MonoMs(self.sent[-1] + ms))
        self._answered(len(self.sent), known, busy)
        self.tick()

    @rule(back=st.integers(1, 3), known=st.booleans())
    def answer_late(self, back: int, known: bool) -> None:
        """An answer to an older beat."""
        before = self.heart
        self._answered(len(self.sent) - back, known, False)
        assert self.heart == before

    def _answered(self, number: int, known: bool, busy: bool) -> None:
        self.heart = hearts.answered(self.heart, number, self.now, known, busy)
        if number != len(self.sent) or number <= self.over or self.stopped:
            return
        sent_at = self.sent[-1]
        if self.now - sent_at >= TIMEOUT_MS:
            self._fail()
            return
        self.over = number
        self.failures = 0
        self.heard_at = self.now
        asked_as_known = self.registered_at is not None and sent_at >= self.registered_at
        if asked_as_known and not known:
            self.registered_at = None
            self.served = False
            self.good = None if self.good is None else 0
        elif asked_as_known and self.good is not None:
            self.good = None if self.good == 2 else self.good + 1
        if self.registered_at is not None and self.good is None:
            self.served = True

    @rule()
    def fail(self) -> None:
        """The last beat fails at once."""
        was_out = len(self.sent) > self.over
        self.heart = hearts.failed(self.heart, len(self.sent), self.now)
        if was_out and not self.stopped:
            self._fail()
        self.tick()

    @rule(beats=st.integers(1, 4), known=st.booleans())
    def outage(self, beats: int, known: bool) -> None:
        """Some beats in a row are not answered; perhaps it registers as soon as it is over."""
        for _ in range(2 * beats):
            self.wake()
        if known:
            self.register()

    @rule()
    def register(self) -> None:
        """The store says that it knows the instance."""
        self.registered_at = self.now
        self.heart = hearts.registered(self.heart, self.now)
        self.jumped = True
        self.tick()

    @rule(hurried=st.booleans())
    def hurry(self, hurried: bool) -> None:
        """A suspicion opens or closes."""
        self.heart = hearts.hurry(self.heart, hurried, self.now)
        self.jumped = True
        self.tick()

    @rule()
    def calm_sea(self) -> None:
        """When the store answers everything at once, the heart is steady again soon."""
        bound = self.now + TIMEOUT_MS + 5 * RETRY_MS
        while not self.draining and not hearts.may(self.heart, Act.SWEEP, self.now):
            assert self.now <= bound, f"still {self.heart.phase}"
            self.wake()
            if self.heart.known_since is None:
                self.register()
            self.answer(0, True, False)

    @precondition(lambda self: len(self.sent) > 8)
    @rule(stop=st.booleans())
    def leave(self, stop: bool) -> None:
        """Drain, and perhaps stop."""
        self.heart = hearts.drain(self.heart)
        self.draining = True
        if stop:
            self.heart = hearts.stop(self.heart)
            self.stopped = True

    @invariant()
    def sweeps_only_by_fresh_answers(self) -> None:
        """It may sweep only by an answer within an interval and a timeout, with no failure since,
        known to the store, not leaving, and after three good beats if it had been quiet."""
        if not hearts.may(self.heart, Act.SWEEP, self.now):
            return
        assert self.heard_at is not None, "no answer since the last failure"
        assert self.now - self.heard_at <= STEADY_MS, "the last answer is too old"
        assert self.registered_at is not None, "the store does not know it"
        assert self.good is None, "it was quiet, and has not proved itself"
        assert not self.draining, "it is leaving"

    @invariant()
    def admits_nothing_while_quiet(self) -> None:
        """After three failures it sends nothing but beats until it is readmitted; before the store
        knows it and while it leaves, neither."""
        if self.good is not None or self.registered_at is None or self.draining:
            assert not any(hearts.may(self.heart, act, self.now) for act in Act)


TestAnyLife = AnyLife.TestCase
