"""Who runs and who waits: told in lines, and judged against a model that is slow and plain.

    10  ask n2 north   -> queued  [n1] n2/60

A line is a time, what is said, the answer, who runs, and who waits until when. Two may run in all,
one of a provider, three may wait, each for 50 ms.
"""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from unswept.core import limiter as limiters
from unswept.core.errors import MisuseError
from unswept.core.limiter import Limiter, Limits, Verdict, Waiter
from unswept.core.units import MonoMs, Ms

LIMITS: Final = Limits(
    max_running=2, max_running_per_provider=1, max_queued=3, queue_timeout_ms=Ms(50)
)


def story(text: str, limits: Limits = LIMITS) -> None:
    """Say the lines of `text` and compare the answers, all at once."""
    limiter = Limiter(limits, {})
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told: list[str] = []
    for line in lines:
        said = line.partition("->")[0]
        at, verb, *words = said.split()
        limiter, answer = do(limiter, MonoMs(int(at)), verb, words)
        runs = f"[{' '.join(limiter.running)}]"
        waits = [f"{waiter.ticket}/{waiter.gives_up_at}" for waiter in limiter.queue]
        told.append(" ".join([f"{said}-> {answer}", runs, *waits]))
    assert told == lines, "the limiter's side:\n" + "\n".join(told)


def do(limiter: Limiter, now: MonoMs, verb: str, words: list[str]) -> tuple[Limiter, str]:
    match verb:
        case "ask":
            return limiters.acquire(limiter, words[0], words[1], now)
        case "give":
            limiter, granted = limiters.release(limiter, words[0])
            return limiter, " ".join(granted) or "-"
        case "time":
            limiter, late = limiters.time_out(limiter, now)
            return limiter, " ".join(late) or "-"
    raise ValueError(f"no such thing to say: {verb}")


def test_a_provider_has_its_own_cap_below_the_one_for_all() -> None:
    """A slot needs room in both; who finds none waits, and is granted when one is given back."""
    story(
        """
        0   ask n1 north   -> granted [n1]
        1   ask n2 north   -> queued [n1] n2/51
        2   ask s1 south   -> granted [n1 s1] n2/51
        3   ask w1 west    -> queued [n1 s1] n2/51 w1/53
        4   give s1        -> w1 [n1 w1] n2/51
        5   give n1        -> n2 [w1 n2]
        6   give w1        -> - [n2]
        7   give n2        -> - []
        """
    )


def test_a_queue_is_served_in_its_order_but_not_held_up_by_a_full_provider() -> None:
    """First come, first served among those whose provider has room."""
    story(
        """
        0   ask n1 north   -> granted [n1]
        0   ask s1 south   -> granted [n1 s1]
        1   ask n2 north   -> queued [n1 s1] n2/51
        2   ask w1 west    -> queued [n1 s1] n2/51 w1/52
        3   ask w2 west    -> queued [n1 s1] n2/51 w1/52 w2/53
        4   give s1        -> w1 [n1 w1] n2/51 w2/53
        5   give n1        -> n2 [w1 n2] w2/53
        6   give w1        -> w2 [n2 w2]
        """
    )


def test_a_full_queue_is_said_at_once() -> None:
    """Who finds the queue full is turned away and is not remembered."""
    story(
        """
        0   ask n1 north   -> granted [n1]
        0   ask n2 north   -> queued [n1] n2/50
        0   ask n3 north   -> queued [n1] n2/50 n3/50
        0   ask n4 north   -> queued [n1] n2/50 n3/50 n4/50
        0   ask n5 north   -> saturated [n1] n2/50 n3/50 n4/50
        0   ask s1 south   -> granted [n1 s1] n2/50 n3/50 n4/50
        1   give n5        -> - [n1 s1] n2/50 n3/50 n4/50
        1   give n3        -> - [n1 s1] n2/50 n4/50
        2   ask n5 north   -> queued [n1 s1] n2/50 n4/50 n5/52
        """
    )


def test_a_queue_of_none_turns_away_whoever_finds_no_slot() -> None:
    """max_queued may be 0."""
    story(
        """
        0   ask n1 north   -> granted [n1]
        0   ask n2 north   -> saturated [n1]
        """,
        Limits(max_running=2, max_running_per_provider=1, max_queued=0),
    )


def test_a_waiter_gives_up_at_its_time_and_not_before() -> None:
    """One millisecond before the queue timeout it still waits; at the timeout it is gone."""
    story(
        """
        0   ask n1 north   -> granted [n1]
        5   ask n2 north   -> queued [n1] n2/55
        6   ask n3 north   -> queued [n1] n2/55 n3/56
        54  time           -> - [n1] n2/55 n3/56
        55  time           -> n2 [n1] n3/56
        56  time           -> n3 [n1]
        57  give n1        -> - []
        """
    )


def test_asking_and_giving_back_twice_change_nothing() -> None:
    """A ticket keeps the slot or the place that it has; an unknown one has nothing to give."""
    story(
        """
        0   ask n1 north   -> granted [n1]
        1   ask n1 north   -> granted [n1]
        1   ask n1 south   -> granted [n1]
        2   ask n2 north   -> queued [n1] n2/52
        9   ask n2 north   -> queued [n1] n2/52
        10  give n1        -> n2 [n2]
        11  give n1        -> - [n2]
        12  give nobody    -> - [n2]
        13  ask n2 north   -> granted [n2]
        """
    )


def test_it_wants_to_be_woken_when_the_first_waiter_gives_up() -> None:
    """The earliest of the waiters' times; never, when nobody waits."""
    waiters = tuple(Waiter(name, "p", MonoMs(at)) for name, at in (("a", 70), ("b", 60)))
    assert limiters.wake_at(Limiter(LIMITS, {}, waiters)) == 60
    assert limiters.wake_at(Limiter(LIMITS, {"c": "p"})) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_running", 0),
        ("max_running_per_provider", 0),
        ("max_queued", -1),
        ("queue_timeout_ms", 0),
        ("max_running", True),
        ("max_queued", 1.5),
    ],
)
def test_limits_that_cannot_work_are_refused_by_name(field: str, value: object) -> None:
    """A cap below one, or one that is no whole number, is named in the message."""
    with pytest.raises(MisuseError, match=field):
        Limits(**{field: value})  # type: ignore[arg-type]


PROVIDERS: Final = ("north", "south", "west")


class AnyCrowd(RuleBasedStateMachine):
    """Random asking, giving back and waiting, beside a plain list of what should come of it."""

    @initialize(
        in_all=st.integers(1, 4),
        each=st.integers(1, 3),
        queued=st.integers(0, 4),
        timeout=st.integers(1, 20),
    )
    def begin(self, in_all: int, each: int, queued: int, timeout: int) -> None:
        self.limits = Limits(in_all, each, queued, Ms(timeout))
        self.limiter = Limiter(self.limits, {})
        self.now = MonoMs(0)
        self.runs: dict[str, str] = {}
        self.waits: list[tuple[str, str, int]] = []
        """(ticket, provider, when it began to wait), in the order of coming."""

    @property
    def providers(self) -> dict[str, int]:
        return {name: list(self.runs.values()).count(name) for name in PROVIDERS}

    def room(self, provider: str) -> bool:
        in_all, each = self.limits.max_running, self.limits.max_running_per_provider
        return len(self.runs) + 1 <= in_all and self.providers[provider] + 1 <= each

    @rule(ticket=st.integers(0, 12), provider=st.sampled_from(PROVIDERS))
    def ask(self, ticket: int, provider: str) -> None:
        """Somebody asks, perhaps again."""
        name = f"t{ticket}"
        waiting = [waiter[0] for waiter in self.waits]
        self.limiter, verdict = limiters.acquire(self.limiter, name, provider, self.now)
        if name in self.runs:
            assert verdict is Verdict.GRANTED
        elif name in waiting:
            assert verdict is Verdict.QUEUED
        elif self.room(provider):
            assert verdict is Verdict.GRANTED
            self.runs[name] = provider
        elif len(self.waits) < self.limits.max_queued:
            assert verdict is Verdict.QUEUED
            self.waits.append((name, provider, self.now))
        else:
            assert verdict is Verdict.SATURATED

    @rule(ticket=st.integers(0, 12))
    def give(self, ticket: int) -> None:
        """Somebody gives back a slot, a place in the queue, or nothing."""
        name = f"t{ticket}"
        self.limiter, granted = limiters.release(self.limiter, name)
        self.runs.pop(name, None)
        self.waits = [waiter for waiter in self.waits if waiter[0] != name]
        expected: list[str] = []
        while fitting := [waiter for waiter in self.waits if self.room(waiter[1])]:
            first = fitting[0]
            self.waits.remove(first)
            self.runs[first[0]] = first[1]
            expected.append(first[0])
        assert list(granted) == expected

    @rule(ms=st.integers(1, 15))
    def wait(self, ms: int) -> None:
        """Time passes, and whoever has waited too long leaves."""
        self.now = MonoMs(self.now + ms)
        self.limiter, late = limiters.time_out(self.limiter, self.now)
        timeout = self.limits.queue_timeout_ms
        assert set(late) == {name for name, _, since in self.waits if self.now - since >= timeout}
        self.waits = [waiter for waiter in self.waits if waiter[0] not in late]

    @invariant()
    def the_limiter_says_what_the_list_says(self) -> None:
        """The same run, the same wait in the same order, and it wakes for the first to give up."""
        assert dict(self.limiter.running) == self.runs
        assert [waiter.ticket for waiter in self.limiter.queue] == [name for name, *_ in self.waits]
        times = [since + self.limits.queue_timeout_ms for *_, since in self.waits]
        assert limiters.wake_at(self.limiter) == min(times, default=None)

    @invariant()
    def caps_hold_and_nobody_who_fits_waits(self) -> None:
        """Slots never exceed the caps, and no waiter could run now."""
        assert len(self.limiter.running) <= self.limits.max_running
        assert len(self.limiter.queue) <= self.limits.max_queued
        assert max(self.providers.values()) <= self.limits.max_running_per_provider
        assert not any(self.room(waiter.provider) for waiter in self.limiter.queue)


TestAnyCrowd = AnyCrowd.TestCase
