"""What a doctor finds amiss with a store, for tests that plant a fault in a sound one."""

from __future__ import annotations

import json

from tests.adapters.cli.places import Place

POLICY = """
[policy]
heartbeat_interval_ms = 8000
operation_timeout_ms = 1000
lease_ttl_ms = 60000
"""
TEST_SERVER = {"durability", "idle transactions", "autovacuum"}
"""What is amiss with the server of the tests, to make them fast."""


class Doctor:
    """What it finds amiss, each row by its check's name."""

    def __init__(self, place: Place, config: str) -> None:
        self.place = place
        self.config = config
        self.rows: dict[str, dict[str, str]] = {}

    def look(self, *words: str) -> dict[str, str]:
        """Verdicts that are not ok, but for those of the server of the tests."""
        result = self.place.run("doctor", "--config", self.config, "--json", *words)
        told = json.loads(result.stdout)
        self.rows = {each["check"]: each for each in told["findings"]}
        verdicts = {name: each["verdict"] for name, each in self.rows.items()}
        assert result.exit_code == told["exit_code"] == int("bad" in verdicts.values())
        assert all(each["advice"] for each in told["findings"] if each["verdict"] == "warn")
        return {
            name: verdict
            for name, verdict in verdicts.items()
            if verdict != "ok" and name not in TEST_SERVER
        }

    def found(self, check: str) -> str:
        return self.rows[check]["found"]
