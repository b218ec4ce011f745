"""Metrics in OpenTelemetry's shape, if it is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import open_store, policy, run, sh
from unswept.adapters.gateway import Gateway
from unswept.adapters.gateway.metrics import GAUGES, Meters
from unswept.core.errors import MisuseError


def test_facts_are_counted_and_health_is_measured(tmp_path: Path) -> None:
    """A reader of the real library sees every gauge, and the counts by kind and status."""
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")

    async def scenario() -> None:
        reader = export.InMemoryMetricReader()
        meters = Meters(sdk.MeterProvider([reader]).get_meter("test"))
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy(), observer=meters) as gateway:
                meters.watch(gateway)
                await (await gateway.submit(sh("exit 0"), provider="shell")).wait()
            scope = reader.get_metrics_data().resource_metrics[0].scope_metrics[0]
            points = {metric.name: metric.data.data_points for metric in scope.metrics}
            assert points.keys() == {"unswept.jobs.facts", *GAUGES}
            facts = [
                (*sorted(p.attributes.values()), p.value) for p in points["unswept.jobs.facts"]
            ]
            assert facts == [("running", "start", 1), ("complete", "completed", 1)]
            assert points["unswept.jobs.running"][0].value == 0

    run(scenario)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway itself does not need it."""
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", None)
    with pytest.raises(MisuseError, match="pip install opentelemetry-api"):
        Meters(None)  # type: ignore[arg-type]
