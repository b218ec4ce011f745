"""Scripts as JSON Lines: the first line says what was found and where, each other line is one step.
What cannot be read is named by its line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from attrs import asdict, evolve
from cattrs import Converter

from unswept.core.checks import check_time, shown
from unswept.core.commands import Command
from unswept.core.errors import MisuseError
from unswept.core.heart import Phase
from unswept.core.units import StoreMs
from unswept.simulations.commands_json import Fields, command_fields, command_of, verb_of
from unswept.simulations.designs import DESIGNS
from unswept.simulations.faults import FAULTS
from unswept.simulations.run import Settings
from unswept.simulations.script import Script, Told
from unswept.simulations.witness import Observation, Truth
from unswept.spec.laws import BY_ID
from unswept.spec.observations import Delivery, Neglect, Send, Sight, SweepTruth, Work

R = TypeVar("R")

FORMAT: Final = 1
SUFFIX: Final = ".script.jsonl"
_OBSERVATIONS: Final[Mapping[str, type]] = MappingProxyType(
    {kind.__name__: kind for kind in (Delivery, Neglect, Send, SweepTruth, Work)}
)
_CONVERTER: Final = Converter(forbid_extra_keys=True, detailed_validation=False)


def lines_of(script: Script) -> Iterator[str]:
    """The lines of a script's file, without their ends."""
    yield json.dumps(
        {
            "type": "script",
            "format": FORMAT,
            "version": script.version,
            "law": script.law,
            "offence": script.offence,
            "verb": script.verb,
            "store": script.store,
            "design": script.settings.design,
            "settings": asdict(script.settings),
            "steps": len(script.steps),
        }
    )
    for told in script.steps:
        yield json.dumps(_step_fields(told))


def script_of(lines: Iterable[str], name: str) -> Script:
    """The script that a file called `name` holds; `MisuseError` names the line and the reason."""
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise MisuseError(f"{name} is empty, it should begin with the line of a script")
    head = _read(name, *numbered[0], _head)
    steps = tuple(_read(name, number, line, _told) for number, line in numbered[1:])
    if not steps:
        raise MisuseError(f"{name} holds no step, it ends behind line {numbered[0][0]}")
    whole = object_of(numbered[0][1]).get("steps", len(steps))
    if whole != len(steps):
        raise MisuseError(
            f"{name} holds {len(steps)} of {shown(whole)} steps: it was cut. If that is wanted,"
            " change `steps` in its first line"
        )
    return evolve(head, steps=steps)


def settings_of(fields: Any) -> Settings:
    """The settings of a run as a first line says them; refuses what this version does not have."""
    if not isinstance(fields, dict):
        raise MisuseError(f"settings must be an object, got {shown(fields)}")
    try:
        settings = _CONVERTER.structure(fields, Settings)
    except Exception as error:  # cattrs lets through whatever a field's own type raises
        raise MisuseError(f"these are no settings of this version: {error}") from None
    if settings.design not in DESIGNS:
        raise MisuseError(f"this version has no design {settings.design!r}")
    if unknown := [fault for fault in settings.faults if fault not in FAULTS]:
        raise MisuseError(f"this version has no fault {unknown[0]!r}")
    return settings


def object_of(line: str) -> Fields:
    """The object of JSON that a line holds."""
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise MisuseError(f"this is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise MisuseError(f"this is no object, but {shown(fields)}")
    return fields


def _read(name: str, number: int, line: str, read: Callable[[Fields], R]) -> R:
    try:
        return read(object_of(line))
    except MisuseError as error:
        raise MisuseError(f"{name}, line {number}: {error}") from None


def _head(fields: Fields) -> Script:
    if fields.get("type") != "script":
        raise MisuseError(f"the type must be script, got {shown(fields.get('type'))}")
    if fields.get("format") != FORMAT:
        raise MisuseError(
            f"the format is {shown(fields.get('format'))}, and this version reads {FORMAT}"
        )
    law, offence, verb, store, version = (
        _text(fields, key) for key in ("law", "offence", "verb", "store", "version")
    )
    if law not in BY_ID and law != "LOCKSTEP":
        raise MisuseError(f"this version has no law {law}")
    return Script(law, offence, verb, store, settings_of(fields.get("settings")), version, ())


def _text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise MisuseError(f"{key} must be a string, got {shown(value)}")
    return value


# Steps --------------------------------------------------------------------------------------------


def _step_fields(told: Told) -> Fields:
    command = told.command
    fields: Fields = {
        "store_at": told.store_at,
        "sender": told.sender,
        "verb": None if command is None else verb_of(command),
        "command": None if command is None else command_fields(command),
    }
    if told.truth is not None:
        fields["truth"] = _truth_fields(told.truth)
    if told.blanket:
        fields["blanket"] = True
    return fields


def _truth_fields(truth: Truth) -> Fields:
    seen = asdict(truth.observation)
    seen.pop("command", None)
    observation = {"type": type(truth.observation).__name__, **seen}
    return {"law": truth.law, "observation": observation, "facts": dict(truth.facts)}


def _told(fields: Fields) -> Told:
    known = {"store_at", "sender", "verb", "command", "truth", "blanket"}
    if strangers := sorted(fields.keys() - known):
        raise MisuseError(f"a step has no {strangers[0]!r}")
    at: Any = fields.get("store_at")
    check_time("store_at", at)
    command = None
    if fields.get("command") is not None:
        if not isinstance(fields["command"], dict):
            raise MisuseError(f"command must be an object, got {shown(fields['command'])}")
        command = command_of(_text(fields, "verb"), fields["command"])
    truth = None if fields.get("truth") is None else _truth(fields["truth"], command)
    if command is None and truth is None:
        raise MisuseError("a step needs a command or a truth")
    return Told(StoreMs(at), _text(fields, "sender"), command, truth, fields.get("blanket") is True)


def _truth(fields: Any, command: Command[Any] | None) -> Truth:
    try:
        seen = dict(fields["observation"])
        kind = _OBSERVATIONS[seen.pop("type")]
        law = str(fields["law"])
        facts = {str(key): value for key, value in dict(fields["facts"]).items()}
        observation: Observation = _observation(kind, seen, command)
    except MisuseError:
        raise
    except Exception as error:  # cattrs lets through whatever a field's own type raises
        raise MisuseError(f"this is no truth: {error!r}") from None
    if law not in BY_ID:
        raise MisuseError(f"this version has no law {law}")
    return Truth(law, observation, facts)


def _observation(kind: type, seen: Fields, command: Command[Any] | None) -> Any:
    if kind is not Send:
        return _CONVERTER.structure(seen, kind)
    if command is None:
        raise MisuseError("the truth of a send needs its command")
    return Send(
        str(seen["instance"]),
        command,
        Phase(seen["phase"]),
        bool(seen["repeat"]),
        tuple(_CONVERTER.structure(sight, Sight) for sight in seen["sights"]),
    )
