"""Profiles: the faults of a kind of place, under one name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from unswept.core.errors import MisuseError
from unswept.simulations.faults import FAULTS

_CALM: Final = ("loss", "lost-answer", "delay", "drift", "drain", "cancel-at-step")
_LAPTOP: Final = (
    *_CALM,
    "suspend",
    "suspend-all",
    "stall",
    "crash",
    "restart",
    "pid-reuse",
    "heart-killed",
    "clock-forward",
    "clock-back",
    "outage",
    "row-lock",
    "consumer-lost",
)
_DATACENTRE: Final = (
    *_CALM,
    "duplicate",
    "cut",
    "connection-killed",
    "pool-exhausted",
    "outage",
    "read-only",
    "renewals-blocked",
    "row-lock",
    "slow-commit",
    "poison-row",
    "clock-forward",
    "clock-back",
    "stall",
    "crash",
    "restart",
    "kill-in-drain",
    "mixed-policies",
    "consumer-lost",
)
_HOSTILE: Final = (
    "lost-answer",
    "duplicate",
    "old-echo",
    "flaps",
    "renewals-blocked",
    "row-lock",
    "poison-row",
    "clock-forward",
    "clock-back",
    "clock-edge",
    "clock-repeat",
    "drift",
    "suspend-all",
    "pid-reuse",
    "kill-in-drain",
    "mixed-policies",
    "consumer-lost",
    "crash-at-step",
    "cancel-at-step",
    "two-sweepers",
)

PROFILES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "none": (),
        "calm": _CALM,
        "laptop": _LAPTOP,
        "datacentre": _DATACENTRE,
        "hostile": _HOSTILE,
        "all": tuple(FAULTS),
    }
)
"""`calm` is what every network and every deployment does; `hostile` waits for the worst moments."""


def faults_of(text: str) -> tuple[str, ...]:
    """The faults that a profile, or a list of profiles and faults with commas, names."""
    names: set[str] = set()
    for word in (part.strip() for part in text.split(",")):
        if word not in PROFILES and word not in FAULTS:
            known = ", ".join((*PROFILES, *FAULTS))
            raise MisuseError(f"--faults must be of {known}, got {word}")
        names.update(PROFILES.get(word, (word,)))
    return tuple(name for name in FAULTS if name in names)


def named(faults: tuple[str, ...]) -> str:
    """The shortest text that `faults_of` reads as these faults."""
    for profile, members in PROFILES.items():
        if set(faults) == set(members):
            return profile
    return ",".join(faults)
