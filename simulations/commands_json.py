"""Commands and replies as plain JSON values, and back exactly: what a trace holds can be asked
again."""

from __future__ import annotations

import inspect
from base64 import b64decode, b64encode
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from attrs import has
from cattrs import Converter

from unswept.core import commands, replies
from unswept.core.commands import Command
from unswept.core.errors import MisuseError

Fields = dict[str, Any]
"""An object of JSON: the fields of a value under their names."""


def _bytes(value: str, _: type) -> bytes:
    return b64decode(value, validate=True)


def _converter() -> Converter:
    converter = Converter(forbid_extra_keys=True, detailed_validation=False)
    converter.register_unstructure_hook(bytes, lambda value: b64encode(value).decode("ascii"))
    converter.register_structure_hook(bytes, _bytes)
    converter.register_unstructure_hook(Enum, lambda member: member.value)
    return converter


_CONVERTER: Final = _converter()

COMMANDS: Final[Mapping[str, type[Command[Any]]]] = MappingProxyType(
    {
        name: kind
        for name, kind in inspect.getmembers(commands, inspect.isclass)
        if issubclass(kind, Command) and kind is not Command
    }
)
"""Every command, by its verb."""

REPLIES: Final[Mapping[str, type]] = MappingProxyType(
    {
        name: kind
        for name, kind in inspect.getmembers(replies, inspect.isclass)
        if kind.__module__ == replies.__name__ and has(kind)
    }
)
"""Every reply, and whatever one is made of, by its name."""


def verb_of(command: Command[Any]) -> str:
    """The name of a command's class."""
    return type(command).__name__


def command_fields(command: Command[Any]) -> Fields:
    """A command's fields as JSON has them: enums by value, bytes in base64, tuples as lists."""
    fields: Fields = _CONVERTER.unstructure(command)
    return fields


def command_of(verb: str, fields: Fields) -> Command[Any]:
    """The command that `command_fields` was given."""
    kind = COMMANDS.get(verb)
    if kind is None:
        raise MisuseError(f"verb must be one of {', '.join(COMMANDS)}, got {verb!r}")
    command: Command[Any] = _read(verb, fields, kind)
    return command


def reply_fields(reply: Any) -> Fields:
    """A reply's fields behind `type`, the name of its class."""
    return {"type": type(reply).__name__, **_CONVERTER.unstructure(reply)}


def reply_of(fields: Fields) -> Any:
    """The reply that `reply_fields` was given."""
    name = fields.get("type")
    kind = REPLIES.get(str(name))
    if kind is None:
        raise MisuseError(f"type must be one of {', '.join(REPLIES)}, got {name!r}")
    return _read(str(name), {key: fields[key] for key in fields if key != "type"}, kind)


def _read(name: str, fields: Fields, kind: type) -> Any:
    try:
        return _CONVERTER.structure(fields, kind)
    except MisuseError:
        raise
    except Exception as error:  # cattrs lets through whatever a field's own type raises
        raise MisuseError(f"this is no {name}: {error!r}") from None
