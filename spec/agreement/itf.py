"""Reads the traces that Quint writes (ITF, JSON): what each step asked, and the rows after it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from unswept.spec.agreement.rules import Row, Write


@frozen
class Event:
    """One step of a trace in which the store carried out a command."""

    number: int
    name: str
    """The command: heartbeat, sweep, claim, ..."""
    by: str
    at: int
    """The store clock."""
    writes: Mapping[str, Write]
    """What it asked, by job."""
    rows: Mapping[str, Row]
    """All jobs afterwards; a state of the file has those that were asked about."""


def read(path: Path) -> tuple[Event, ...]:
    """The commands of a trace, in order."""
    return tuple(_events(json.loads(path.read_text("utf-8"))))


def _events(trace: Mapping[str, Any]) -> Iterator[Event]:
    rows: dict[str, Row] = {}
    for number, state in enumerate(trace["states"]):
        did = _value(state["did"])
        rows = {**rows, **_value(state["jobs"])}
        if did["writes"]:
            yield Event(number, did["name"], did["by"], did["at"], did["writes"], rows)


def _value(encoded: Any) -> Any:
    """A value of ITF as `quint.py` has it."""
    if isinstance(encoded, list):
        return [_value(member) for member in encoded]
    if not isinstance(encoded, dict):
        return encoded
    if "#bigint" in encoded:
        return int(encoded["#bigint"])
    if "#map" in encoded:
        return {_value(key): _value(value) for key, value in encoded["#map"]}
    if "#tup" in encoded:
        return tuple(_value(member) for member in encoded["#tup"])
    if "#set" in encoded:
        return [_value(member) for member in encoded["#set"]]
    if encoded.keys() == {"tag", "value"}:
        return (encoded["tag"], _value(encoded["value"]))
    return {name: _value(value) for name, value in encoded.items()}
