"""Commands and values in a few words, for people."""

from __future__ import annotations

from typing import Any

import attrs

from unswept.core.checks import shown
from unswept.core.commands import Command
from unswept.core.job import Terms


def command_words(command: Command[Any], at_most: int | None = None) -> str:
    """A command with whatever it says that is not its default; of a batch the first `at_most`."""
    kind: Any = type(command)
    said: list[str] = []
    for each in attrs.fields(kind):
        value = getattr(command, each.name)
        if isinstance(value, Terms):
            said.append(
                f"terms={value.lease_ttl_ms}/{value.http_grace_ms}/{value.first_beat_ttl_ms}"
                f"/{value.confirm_ms} ms"
            )
        elif value != each.default:
            said.append(f"{each.name}={value_words(value, at_most)}")
    return f"{kind.__name__} {', '.join(said)}".rstrip()


def value_words(value: Any, at_most: int | None = None) -> str:
    """A value as people say it: an enum by its value, a record by its fields, of a list the first
    `at_most`."""
    if isinstance(value, tuple):
        parts = [value_words(part, at_most) for part in value[:at_most]]
        if len(parts) < len(value):
            parts.append(f"and {len(value) - len(parts)} more")
        return f"[{', '.join(parts)}]"
    if attrs.has(type(value)):
        return "/".join(value_words(part, at_most) for part in attrs.astuple(value, recurse=False))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return shown(value) if isinstance(value, bytes) else str(value)
