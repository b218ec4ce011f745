"""The end of a run: guards that no simulated consumer ever leans on are leaned on once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from unswept.core import commands as c
from unswept.core import outbox, world
from unswept.core.refusal import Refusal
from unswept.core.units import StoreMs
from unswept.simulations.campaign import pure_alone, run_seed
from unswept.simulations.examiner import NAME
from unswept.simulations.run import Run, Settings
from unswept.simulations.shrinking import shrink
from unswept.simulations.timeline import StoreClock, Timeline

CALM = Settings(seed=1, hours=1.0, faults=())
"""An hour in which nothing goes wrong, and nobody asks anything odd."""


def lives_too_short(row: outbox.Consumer, now: StoreMs) -> bool:
    return row.holder is not None and row.expires_at > now


def takes_newer_tokens(row: Any, token: int, upto: int, newest: int, last: bool) -> Any:
    return outbox_acknowledge(row, min(token, row.token), upto, newest, last)


def takes_after_the_end(row: Any, token: int, upto: int, newest: int, last: bool) -> Any:
    held = evolve(row, holder=row.holder or "somebody")
    return outbox_acknowledge(held, token, upto, newest, last)


def goes_ahead(row: Any, token: int, upto: int, newest: int, last: bool) -> Any:
    return outbox_acknowledge(row, token, upto, upto, last)


def old_at_once(
    number: int, at: int, newest: int, behind: int, dead: bool, ms: int, now: int
) -> bool:
    return outbox_may_forget(number, at, newest, behind, dead, ms - 1, now)


def takes_the_newest(
    number: int, at: int, newest: int, behind: int, dead: bool, ms: int, now: int
) -> bool:
    return outbox_may_forget(number, at, newest + 1, behind, dead, ms, now)


def reads_for_others(
    number: int, at: int, newest: int, behind: int, dead: bool, ms: int, now: int
) -> bool:
    return outbox_may_forget(number, at, newest, newest, dead, ms, now)


outbox_acknowledge: Callable[..., Any] = outbox.acknowledge
outbox_may_forget: Callable[..., bool] = outbox.may_forget


@pytest.mark.parametrize(
    ("guard", "broken"),
    [
        ("is_leased", lives_too_short),
        ("acknowledge", takes_newer_tokens),
        ("acknowledge", takes_after_the_end),
        ("acknowledge", goes_ahead),
        ("may_forget", old_at_once),
        ("may_forget", takes_the_newest),
        ("may_forget", reads_for_others),
    ],
    ids=lambda case: case if isinstance(case, str) else case.__name__,
)
def test_a_guard_that_no_client_leans_on_is_missed(
    monkeypatch: pytest.MonkeyPatch, guard: str, broken: Callable[..., Any]
) -> None:
    """In every run, whatever its faults: by F5."""
    monkeypatch.setattr(outbox, guard, broken)
    found = run_seed(CALM, pure_alone).violation
    assert found is not None
    assert found.law == "F5"


def test_a_consumer_that_is_leased_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """By F5, where only its lease keeps it."""

    def unguarded(rows: world.World, command: c.ForgetConsumer, now: StoreMs) -> Any:
        row = rows.consumers.get(command.consumer)
        free = {} if row is None else {row.name: evolve(row, holder=None)}
        return forget(evolve(rows, consumers={**rows.consumers, **free}), command, now)

    forget: Callable[..., Any] = world._DECIDERS[c.ForgetConsumer]
    deciders = {**world._DECIDERS, c.ForgetConsumer: unguarded}
    monkeypatch.setattr(world, "_DECIDERS", deciders)
    found = run_seed(CALM, pure_alone).violation
    assert found is not None
    assert found.law == "F5"


def test_what_is_asked_at_the_end_is_refused_and_counts_for_nothing() -> None:
    """The edges are reached: each refusal is given, and no events go."""
    refused: list[Refusal] = []
    clock = StoreClock(Timeline(), 0)
    run = Run(CALM, None, clock)
    ask = run.server.examined

    def heard(command: c.Command[Any], sender: str) -> Any:
        assert sender == NAME
        reply = ask(command, sender)
        if isinstance(command, c.ForgetEvents):
            assert reply.count == 0
        if hasattr(reply, "reason"):
            refused.append(reply.reason)
        return reply

    run.server.examined = heard  # type: ignore[method-assign]
    outcome = run.outcome()
    assert outcome.violation is None
    assert refused == [
        Refusal.LEASED,
        Refusal.LEASED,
        Refusal.AHEAD,
        Refusal.STALE_TOKEN,
        Refusal.STALE_TOKEN,
    ]
    assert "examined" not in "".join(entry for entry in run.transcript.last)


def test_what_it_finds_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event past the newest stays one, however few there are: a lease and an acknowledgement."""
    monkeypatch.setattr(outbox, "acknowledge", goes_ahead)
    script = shrink(CALM, pure_alone, "memory:", "1.2.3").script
    assert [type(step.command) for step in script.steps] == [c.LeaseEvents, c.Acknowledge]
    assert script.law == "F5"
