"""How the replies of two stores to one command differ: in a sentence, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from unswept.core.commands import Command
from unswept.core.replies import Refused
from unswept.simulations.words import command_words, value_words

_SHOWN: Final = 3
"""So many differences are shown, and so many of whatever a command names."""
_LONGEST: Final = 80
"""So many characters of one value are shown."""


def difference(command: Command[Any], found: Any, expected: Any) -> str:
    """How the reply of the store under test, `found`, differs from the pure store's."""
    return f"{command_words(command, _SHOWN)}: {'; '.join(differing(found, expected))}"


def raised(command: Command[Any], error: str, expected: Any) -> str:
    """That the store under test raised this error, and the pure store had a reply."""
    said = f"the store under test raised {error}, the pure store answered {_sort(expected)}"
    return f"{command_words(command, _SHOWN)}: {said}"


def differing(found: Any, expected: Any) -> list[str]:
    """What differs between two replies, the first few; how many more there are comes last."""
    if type(found) is not type(expected):
        return [f"the store under test answered {_sort(found)}, the pure store {_sort(expected)}"]
    each = list(_fields("", found, expected))
    more = len(each) - _SHOWN
    return [*each[:_SHOWN], f"and {more} more"] if more > 0 else each


def _fields(path: str, found: Any, expected: Any) -> Iterator[str]:
    """What differs in two values that stand under the same name."""
    if found == expected:
        return
    if isinstance(found, tuple) and isinstance(expected, tuple):
        yield from _items(path, found, expected)
    elif attrs.has(type(found)) and type(found) is type(expected):
        for field in attrs.fields(type(found)):
            below = f"{path}.{field.name}" if path else field.name
            yield from _fields(below, getattr(found, field.name), getattr(expected, field.name))
    else:
        yield _says(path, _cut(found), _cut(expected))


def _items(path: str, found: tuple[Any, ...], expected: tuple[Any, ...]) -> Iterator[str]:
    if len(found) == len(expected):
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            for said in _fields(f"{path}[{index}]", one, other):
                yield f"{_name(one)}{said}"
        return
    yield _says(path, f"{len(found)} of them", f"{len(expected)}")
    for item in found:
        if item not in expected:
            yield f"only the store under test says {_cut(item)}"
    for item in expected:
        if item not in found:
            yield f"only the pure store says {_cut(item)}"


def _says(path: str, found: str, expected: str) -> str:
    if found == expected:
        return f"{path}: both stores say {found}, and go on differently"
    return f"{path}: the store under test says {found}, the pure store {expected}"


def _name(item: Any) -> str:
    """Which job an item of a list is about."""
    job_id = getattr(getattr(item, "standing", item), "job_id", None)
    return "" if job_id is None else f"{job_id} "


def _sort(reply: Any) -> str:
    """What kind of reply it is; of a refusal, why."""
    kind = type(reply).__name__
    return f"{kind} ({value_words(reply.reason)})" if isinstance(reply, Refused) else kind


def _cut(value: Any) -> str:
    text = value_words(value, _SHOWN)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
