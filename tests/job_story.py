"""What a job goes through in a simulated run, as words: the table of faults names them, and a
reader sees them with `unswept replay SEED --job ID`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from attrs import define, field

from unswept.simulations.campaign import EPOCH
from unswept.simulations.run import Outcome, Run, Settings
from unswept.simulations.timeline import StoreClock, Timeline
from unswept.simulations.trace import Trace

_OWNED = ("queued", "running", "orphaned")
_OF_THE_OWNER = {
    "killed": "owner killed",
    "drains": "owner drains",
    "stopped": "owner stopped",
    "stands_still": "owner stands still",
    "goes_on": "owner goes on",
}


@define
class Stories:
    """Reads a trace line by line; `of[job]` is what the job went through, in order."""

    fault: str
    of: dict[str, list[tuple[int, str]]] = field(factory=dict)
    """By job: true milliseconds and a word."""
    _owner: dict[str, str] = field(factory=dict)
    _event_of: list[str] = field(factory=list)
    """By its number, from 0: the job that an event is of."""
    _handled: set[tuple[str, int]] = field(factory=set)

    def read(self, line: str) -> None:
        """One more record."""
        record = json.loads(line)
        for job, word in self._words(record):
            self.of.setdefault(job, []).append((record["at"], word))

    def _words(self, record: dict[str, Any]) -> Iterator[tuple[str, str]]:
        kind = record["type"]
        if kind == "command":
            yield from self._command(record)
        elif kind == "sight":
            word = {"confirmed": "sweep sent"}.get(record["event"], record["event"])
            yield record["job"], word
        elif kind == "delivery":
            number = record["number"]
            seen = (record["consumer"], number)
            again = " again" if seen in self._handled else ""
            self._handled.add(seen)
            if number <= len(self._event_of):
                yield self._event_of[number - 1], f"event handled{again}"
        elif kind == "fault" and record["name"] == self.fault:
            yield from self._fault(record)
        elif kind == "instance":
            yield from self._instance(record)

    def _command(self, record: dict[str, Any]) -> Iterator[tuple[str, str]]:
        self._event_of += [event["job"] for event in record["events"]]
        changed = set()
        for change in record["changes"]:
            job, after, before = change["job"], change["after"], change["before"]
            changed.add(job)
            yield job, _move(record, change["transition"], before, after)
            if after is not None and after.get("owner") and after["status"] in _OWNED:
                self._owner[job] = after["owner"]
            else:
                self._owner.pop(job, None)
        answer = record["answer"]
        if record["verb"] == "Heartbeat":
            for each in answer["answers"]:
                if each["answer"] != "renewed":
                    yield each["job_id"], f"heartbeat answered {each['answer']}"
        elif record["verb"] == "Sweep":
            for each in answer.get("answers", ()):
                if each.get("refusal"):
                    yield each["job_id"], f"sweep refused: {each['refusal']}"
                elif each.get("repeated"):
                    yield each["job_id"], "sweep again"
        elif record["job"] and record["refusal"]:
            yield record["job"], f"{_verb(record)} refused: {record['refusal']}"
        elif record["job"] and record["job"] not in changed and _is_repeat(answer):
            yield record["job"], f"{_verb(record)} again"

    def _fault(self, record: dict[str, Any]) -> Iterator[tuple[str, str]]:
        word = f"{self.fault} ends" if record["event"] == "ends" else self.fault
        on = record["on"]
        held = [job for job, owner in self._owner.items() if on in (None, job, owner)]
        for job in held:
            said = self.of.get(job)
            if not said or said[-1][1] != word:
                yield job, word

    def _instance(self, record: dict[str, Any]) -> Iterator[tuple[str, str]]:
        event = record["event"]
        word = f"owner {record['phase']}" if event == "phase" else _OF_THE_OWNER.get(event, event)
        for job, owner in self._owner.items():
            if owner == record["name"]:
                yield job, word


def _verb(record: dict[str, Any]) -> str:
    verb = record["verb"]
    return {"RequestCancel": "cancel", "ExpireQueued": "expire"}.get(verb, str(verb).lower())


def _is_repeat(answer: dict[str, Any]) -> bool:
    return answer["type"] == "Accepted" and answer["transition"] is None


def _move(record: dict[str, Any], move: str | None, before: Any, after: Any) -> str:
    """A renewal says more where its lease had run out, or gets shorter."""
    if move is None:
        return "process recorded"
    if move == "renew" and before and before.get("deadline") and after.get("deadline"):
        if before["deadline"] < record["store_at"]:
            return "revived"
        if after["deadline"] < before["deadline"]:
            return "shortened"
    return move


def stories(settings: Settings, fault: str) -> tuple[Outcome, Stories]:
    """Run a seed on the pure store; the stories tell of this one fault among what befalls jobs."""
    found = Stories(fault)
    clock = StoreClock(Timeline(), EPOCH)
    trace = Trace(found.read, "", "memory:")
    return Run(settings, None, clock, trace).outcome(), found
