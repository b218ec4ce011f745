"""What a timeline shows: lanes of instances and jobs, and what befell them, by true time.

Both drawings, the page's and the one without a browser, show these values and work out nothing.
All times are true simulated milliseconds; rows keep the store clock's.
"""

from __future__ import annotations

from typing import Any

from attrs import define, field, frozen

Row = dict[str, Any]
"""A job's row, as its store had it."""


@frozen
class Said:
    """A command that the store carried out, and its answer."""

    at: int
    n: int
    sender: str
    verb: str
    store_at: int
    reply: str
    refusal: str | None
    job: str | None
    epoch: int | None


@frozen
class Change:
    """What a command did to one job."""

    at: int
    command: int
    """Its place among the commands."""
    transition: str | None
    before: Row | None
    after: Row | None


@frozen
class Bar:
    """A stretch during which a job had one status, owner and epoch."""

    begins: int
    ends: int
    status: str
    owner: str | None
    epoch: int


@frozen
class Stamp:
    """A deadline as it was stamped, at true time; the store clock may step before it comes."""

    at: int
    deadline: int
    outlived: bool
    """It was not stamped anew before its deadline came."""


@frozen
class Band:
    """A fault while it lasts; of no length where it only strikes."""

    name: str
    begins: int
    ends: int
    on: str | None
    """An instance, a host or a job; None: it befalls all."""


@frozen
class Sight:
    """A sweeper's step with a suspect: suspected, confirmed or dropped."""

    at: int
    instance: str
    job: str
    epoch: int
    beats: int
    event: str


@define
class InstanceLane:
    """An instance, or another who talks with the store."""

    name: str
    kind: str
    host: str | None
    heartbeat_ms: int | None = None
    ttl_ms: int | None = None
    lives: list[tuple[int, int]] = field(factory=list)
    """From its boot to its end."""
    stills: list[tuple[int, int]] = field(factory=list)
    """While it stands still."""
    phases: list[tuple[int, int, str]] = field(factory=list)
    events: list[tuple[int, str]] = field(factory=list)


@define
class JobLane:
    """A job."""

    id: str
    changes: list[Change] = field(factory=list)
    bars: list[Bar] = field(factory=list)
    stamps: list[Stamp] = field(factory=list)
    touched: bool = False
    """The violation has to do with it."""


@frozen
class Violation:
    """A law that was broken, and where."""

    at: int
    law: str
    offence: str
    job: str | None


@frozen
class Picture:
    """All that a timeline shows."""

    ends: int
    store_clock: int
    """What the store clock showed at true time 0."""
    commands: tuple[Said, ...]
    instances: tuple[InstanceLane, ...]
    jobs: tuple[JobLane, ...]
    bands: tuple[Band, ...]
    steps: tuple[tuple[int, int], ...]
    """When the store clock stepped, and by how much."""
    sights: tuple[Sight, ...]
    violation: Violation | None
