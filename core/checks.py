"""Refuses nonsense where it is made: each check names the value, what was expected and the bound.

The rules come from faults that were seen: a NUL in an id once renewed somebody else's job through
SQLite's `json_each`, and one lone surrogate fails a whole array on Postgres.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from unswept.core.errors import MisuseError
from unswept.core.units import MAX_COUNT, MAX_MS

MAX_ID_LENGTH: Final = 200
MAX_BYTES: Final = 50 * 1024 * 1024
MAX_BATCH: Final = 100_000
MAX_LABELS: Final = 64
REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def shown(value: object) -> str:
    """A value for a message: its repr, cut where it would flood a log."""
    try:
        text = repr(value)
    except Exception:  # a number of too many digits to print, or an object whose repr fails
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_id(name: str, value: object) -> None:
    """Ids (jobs, instances, principals, request keys): 1 to 200 printable characters."""
    if not isinstance(value, str):
        raise MisuseError(f"{name} must be a string, got {shown(value)}")
    if not 1 <= len(value) <= MAX_ID_LENGTH:
        raise MisuseError(
            f"{name} must have 1 to {MAX_ID_LENGTH} characters, got {len(value)}: {shown(value)}"
        )
    if not value.isprintable():
        raise MisuseError(f"{name} must be printable characters only, got {shown(value)}")


def check_optional_id(name: str, value: object) -> None:
    """An id, or None."""
    if value is not None:
        check_id(name, value)


def check_label(name: str, value: object) -> None:
    """A name that may be empty, like a partition: 0 to 200 printable characters."""
    if value != "":
        check_id(name, value)


def canonical_labels(labels: Collection[str]) -> tuple[str, ...]:
    """A set of labels, sorted and each once: at most 64, each an id. They are compared by code
    point, as they are: nothing is trimmed, folded or normalised."""
    if not isinstance(labels, (tuple, list, set, frozenset)):
        raise MisuseError(f"labels must be a collection of strings, got {shown(labels)}")
    for label in labels:
        check_id("labels", label)
    distinct = tuple(sorted({*labels}))
    if len(distinct) > MAX_LABELS:
        raise MisuseError(f"labels must be at most {MAX_LABELS}, got {len(distinct)}")
    return distinct


def check_whole(name: str, value: object, low: int, high: int) -> None:
    """A whole number within bounds; a bool is no number here."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise MisuseError(f"{name} must be a whole number, got {shown(value)}")
    if not low <= value <= high:
        raise MisuseError(f"{name} must be {low} to {high}, got {shown(value)}")


def check_count(name: str, value: object) -> None:
    """An epoch, a beat, a chunk or claim number: 0 to 2^63 - 1."""
    check_whole(name, value, 0, MAX_COUNT)


def check_time(name: str, value: object) -> None:
    """A time in whole milliseconds, of whichever clock `name` says."""
    check_whole(name, value, 0, MAX_MS)


def check_optional_time(name: str, value: object) -> None:
    """A time in whole milliseconds, or None."""
    if value is not None:
        check_time(name, value)


def check_duration(name: str, value: object) -> None:
    """A duration of at least one millisecond."""
    check_whole(name, value, 1, MAX_MS)


def check_member(name: str, value: object, kind: type) -> None:
    """A member of an enum, not the string that it equals."""
    if not isinstance(value, kind):
        raise MisuseError(f"{name} must be a {kind.__name__}, got {shown(value)}")


def check_bool(name: str, value: object) -> None:
    """True or False, nothing that merely counts as one."""
    if not isinstance(value, bool):
        raise MisuseError(f"{name} must be True or False, got {shown(value)}")


def check_bytes(name: str, value: object) -> None:
    """A payload or an output chunk: at most 50 MiB of bytes."""
    if not isinstance(value, bytes):
        raise MisuseError(f"{name} must be bytes, got {shown(value)}")
    if len(value) > MAX_BYTES:
        raise MisuseError(f"{name} must be at most {MAX_BYTES} bytes, got {len(value)}")


def check_batch(name: str, values: object, kind: type) -> None:
    """A tuple of at most 100 000 members of one kind."""
    if not isinstance(values, tuple):
        raise MisuseError(f"{name} must be a tuple, got {shown(values)}")
    if len(values) > MAX_BATCH:
        raise MisuseError(f"{name} must have at most {MAX_BATCH} members, got {len(values)}")
    for value in values:
        if not isinstance(value, kind):
            raise MisuseError(f"{name} must hold {kind.__name__} only, got {shown(value)}")


def storable_text(value: str) -> str:
    """Free text as every store can keep it: NUL and lone surrogates become U+FFFD.

    An error message is never a reason to lose the result that carries it.
    """
    return "".join(REPLACEMENT if ch == "\0" or "\ud800" <= ch <= "\udfff" else ch for ch in value)
