"""Designs under exploration, as data: the real one, and broken ones that must be refuted."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import asdict, frozen

from unswept.core.policy import LeasePolicy
from unswept.core.units import Ms


@frozen
class Faults:
    """How much may go wrong, in one schedule."""

    steps_forward: int = 0
    steps_back: int = 0
    outages: int = 0
    """Times in which the store answers nobody, of any length."""
    lost: int = 0
    """Messages or answers that get lost."""
    row_locks: int = 0
    """Times in which a stranger has locked the job's row."""
    table_locks: int = 0
    """Times in which the lease table takes no writes, while reads and other tables work."""
    deaths: int = 0
    """The owner dies; law L13 is judged beside the sweep of a live job."""

    def __str__(self) -> str:
        """The faults in words."""
        counts = asdict(self)
        return ", ".join(_counted(count, _WORDS[name]) for name, count in counts.items() if count)


def _counted(count: int, word: str) -> str:
    return f"1 {word}" if count == 1 else f"{count} {_PLURALS.get(word, word + 's')}"


_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "steps_forward": "step forward",
        "steps_back": "step back",
        "outages": "outage",
        "lost": "lost message",
        "row_locks": "lock on the row",
        "table_locks": "lock on the table",
        "deaths": "death of the owner",
    }
)
_PLURALS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "step forward": "steps forward",
        "step back": "steps back",
        "lock on the row": "locks on the row",
        "lock on the table": "locks on the table",
    }
)


@frozen
class Mix:
    """What may go wrong together, and under which policy."""

    faults: Faults
    window: int = 12
    """In ticks."""
    sweep_interval: int = 4
    """In ticks."""
    back_further: int = 0
    """Ticks by which a step back is longer than a step forward."""
    at_the_step: bool = False
    """Begin in the tick of a step forward, when both hearts' beats and a look are on their way, and
    end with the owner's next renewal; what else may go wrong comes between."""

    def __str__(self) -> str:
        """The mix in words; numbers of time are ticks."""
        words = [str(self.faults)]
        if self.at_the_step:
            words.append("until the next renewal")
        if self.window != 12:
            words.append(f"window {self.window}")
        if self.sweep_interval != 4:
            words.append(f"passes every {self.sweep_interval}")
        if self.back_further:
            words.append(f"back by {self.back_further} more")
        return "; ".join(words)


@frozen
class Design:
    """How a sweeper, or the store's sweep, differs from the real design."""

    name: str
    sentence: str
    mixes: tuple[Mix, ...]
    """Under which faults it is searched."""
    window: int | None = None
    """In ticks; None: the mix's."""
    one_observation: bool = False
    deadline_is_identity: bool = False
    """The deadline's value stands for the stamp, instead of (epoch, beats)."""
    deadline_alone: bool = False
    """The sweep's write tests nothing but deadline < now."""
    hurries: bool = True
    beats_renew: bool = True
    heeds_locks: bool = True

    @property
    def sound(self) -> bool:
        """The real design, in which none may be found."""
        return self.name == REAL


class SlowHeartPolicy(LeasePolicy):
    """The policy of a sweeper that takes one beat per heartbeat for proof."""

    @property
    def gap_ms(self) -> Ms:
        """What it believes to be a closely beating heart."""
        return self.steady_ms


def policy_of(
    heartbeat: int = 4,
    timeout: int = 1,
    window: int = 12,
    ttl: int = 8,
    sweep: int = 4,
    slow: bool = False,
) -> LeasePolicy:
    """A policy in ticks, a quarter of a heartbeat each by default, past all validation."""
    kind = SlowHeartPolicy if slow else LeasePolicy
    return kind.unchecked(
        heartbeat_interval_ms=heartbeat,
        operation_timeout_ms=timeout,
        confirm_after_ms=window,
        lease_ttl_ms=ttl,
        http_grace_ms=ttl,
        first_beat_ttl_ms=ttl,
        sweep_interval_ms=sweep,
    )


REAL: Final = "unswept"

_STEP: Final = Mix(Faults(steps_forward=1))
_STEP_AND_FLAP: Final = Mix(Faults(steps_forward=1, outages=1), window=8, at_the_step=True)
_STEP_AND_FLAPS: Final = Mix(Faults(steps_forward=1, outages=2), at_the_step=True)
_TWO_STEPS: Final = Mix(Faults(steps_forward=2), sweep_interval=13)
_TO_AND_FRO: Final = Mix(Faults(steps_forward=2, steps_back=1), sweep_interval=13, back_further=12)
_ROW_LOCK: Final = Mix(Faults(row_locks=1))
_DEATH: Final = Mix(Faults(deaths=1))
_TABLE_LOCK: Final = Mix(Faults(table_locks=1))

DESIGNS: Final[Mapping[str, Design]] = MappingProxyType(
    {
        design.name: design
        for design in (
            Design(
                REAL,
                "The real design.",
                (
                    Mix(Faults(steps_forward=1, outages=1)),
                    _STEP_AND_FLAPS,
                    Mix(Faults(outages=1, lost=1)),
                    _TO_AND_FRO,
                    Mix(Faults(steps_forward=1, deaths=1)),
                    _TWO_STEPS,
                    Mix(Faults(steps_forward=1, lost=1)),
                    _TABLE_LOCK,
                    _STEP_AND_FLAP,
                    _DEATH,
                    Mix(Faults(steps_forward=1, steps_back=1)),
                    _ROW_LOCK,
                    _STEP,
                ),
            ),
            Design(
                "single-observation",
                "A suspect is swept as soon as an answer names it.",
                (_STEP,),
                one_observation=True,
            ),
            Design(
                "deadline-identity",
                "A suspicion, and the sweep's write, know a stamp by its deadline.",
                (_TO_AND_FRO,),
                deadline_is_identity=True,
            ),
            Design(
                "deadline-alone",
                "The sweep's write tests nothing but deadline < now.",
                (_TWO_STEPS,),
                deadline_alone=True,
            ),
            Design(
                "slow-heart",
                "The sweeper beats once per heartbeat while it suspects, and takes that for proof.",
                (_STEP_AND_FLAP,),
                hurries=False,
            ),
            Design(
                "blind-heart",
                "The sweeper's beat touches only the instances table, not the leases.",
                (_TABLE_LOCK,),
                beats_renew=False,
            ),
            Design(
                "lock-blind",
                "The sweeper suspects and sweeps a row that somebody has locked.",
                (_ROW_LOCK,),
                heeds_locks=False,
            ),
            Design(
                "short-window",
                "The window is shorter than the owner's heartbeat.",
                (_STEP,),
                window=3,
            ),
            Design(
                "long-window",
                "A suspicion must stand for twice the window that the policy says.",
                (_DEATH,),
                window=24,
            ),
        )
    }
)
