"""Measures a gateway with an OpenTelemetry meter; needs the package `opentelemetry-api`.

meters = Meters(get_meter("my.gateway"))
async with Gateway(store, observer=meters) as gateway:
meters.watch(gateway)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final, Protocol

from unswept.adapters.gateway.gateway import Gateway, Health
from unswept.adapters.gateway.observer import Fact
from unswept.core.errors import MisuseError

GAUGES: Final[Mapping[str, tuple[str, str, Callable[[Health], int]]]] = {
    "unswept.jobs.running": ("{job}", "Jobs that have a slot.", lambda h: h.running),
    "unswept.jobs.queued": ("{job}", "Jobs that wait for a slot.", lambda h: h.queued),
    "unswept.jobs.finishing": (
        "{job}",
        "Jobs whose terminal write is not acknowledged.",
        lambda h: h.finishing,
    ),
    "unswept.holds": ("{hold}", "Jobs that this instance beats for.", lambda h: h.held),
    "unswept.admitting": ("1", "1 while jobs are admitted, else 0.", lambda h: int(h.admitting)),
    "unswept.heartbeat.failures": (
        "{beat}",
        "Heartbeats in a row that failed.",
        lambda h: h.failures,
    ),
    "unswept.loop.stalled": (
        "ms",
        "How long the event loop has not turned.",
        lambda h: h.loop_stalled_ms,
    ),
}
"""Name, unit, description and value of each gauge."""


class Counter(Protocol):
    """The part of an OpenTelemetry counter that is used."""

    def add(self, amount: int, attributes: Mapping[str, str]) -> None:
        """Count."""
        ...


class Meter(Protocol):
    """The part of an OpenTelemetry meter that is used."""

    def create_counter(self, name: str, unit: str = "", description: str = "") -> Counter:
        """A number that grows."""
        ...

    def create_observable_gauge(
        self,
        name: str,
        callbacks: list[Callable[[Any], Iterable[Any]]] | None = None,
        unit: str = "",
        description: str = "",
    ) -> object:
        """A number that is asked for."""
        ...


class Meters:
    """An `Observer` that counts facts, and gauges of a gateway's health."""

    def __init__(self, meter: Meter) -> None:
        """`MisuseError` where the package is not installed."""
        try:
            self._observation = import_module("opentelemetry.metrics").Observation
        except ImportError:
            raise MisuseError("metrics need: pip install opentelemetry-api") from None
        self._meter = meter
        self._facts = meter.create_counter(
            "unswept.jobs.facts", "{fact}", "What has happened to jobs, by kind and status."
        )

    def observe(self, fact: Fact) -> None:
        """One more fact."""
        self._facts.add(1, {"kind": fact.kind.value, "status": fact.status.value})

    def watch(self, gateway: Gateway) -> None:
        """Measure this gateway's health, as often as the reader asks."""
        instance = {"unswept.instance": gateway.identity.instance}

        def reader(value: Callable[[Health], int]) -> Callable[[Any], Iterable[Any]]:
            return lambda options: [self._observation(value(gateway.health()), instance)]

        for name, (unit, description, value) in GAUGES.items():
            self._meter.create_observable_gauge(name, [reader(value)], unit, description)
