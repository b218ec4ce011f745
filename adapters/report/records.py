"""What each type of line must have to be drawn; types that are not known are later versions'."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

_Test = Callable[[Any], bool]


def fault_of(line: Mapping[str, Any]) -> str | None:
    """What is wrong with a line: which key is missing, or has a value that cannot be; None: it has
    all that its type has."""
    found = _fault(line, _NEEDS.get(line["type"], {}))
    if found is None and line["type"] == "instance" and line["event"] == "phase":
        found = _fault(line, {"phase": _text})
    if found is None and line["type"] == "command":
        found = next(filter(None, map(_fault_of_change, line["changes"])), None)
    return None if found is None else f"its type is {line['type']}, and {found}"


def _fault_of_change(change: Any) -> str | None:
    if not isinstance(change, dict):
        return "one of its changes is no object"
    found = _fault(change, {"job": _text, "before": _object_or_null, "after": _object_or_null})
    if found is None and "transition" not in change:
        found = "it has no 'transition'"
    for row in (change.get("before"), change.get("after")):
        if found is None and row is not None:
            found = _fault(row, _ROW)
    return None if found is None else f"of one of its changes {found}"


def _fault(line: Mapping[str, Any], needs: Mapping[str, _Test]) -> str | None:
    for key, fits in needs.items():
        if key not in line:
            return f"it has no {key!r}"
        if not fits(line[key]):
            return f"its {key!r} cannot be {str(line[key])[:40]!r}"
    return None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _object_or_null(value: Any) -> bool:
    return value is None or _object(value)


def _list(value: Any) -> bool:
    return isinstance(value, list)


_ROW: Final[Mapping[str, _Test]] = MappingProxyType(
    {"status": _text, "epoch": _whole, "beats": _whole}
)
_NEEDS: Final[Mapping[str, Mapping[str, _Test]]] = MappingProxyType(
    {
        "run": {
            "version": _text,
            "seed": _whole,
            "settings": _object,
            "store": _text,
            "store_clock_ms": _whole,
        },
        "instance": {"at": _whole, "name": _text, "event": _text},
        "fault": {"at": _whole, "name": _text, "event": _text},
        "command": {
            "at": _whole,
            "n": _whole,
            "sender": _text,
            "verb": _text,
            "store_at": _whole,
            "reply": _text,
            "changes": _list,
        },
        "sight": {
            "at": _whole,
            "instance": _text,
            "job": _text,
            "epoch": _whole,
            "beats": _whole,
            "event": _text,
        },
        "send": {"at": _whole},
        "work": {"at": _whole},
        "delivery": {"at": _whole},
        "violation": {"at": _whole, "law": _text, "offence": _text},
        "end": {"at": _whole},
    }
)
"""The keys that a drawing takes for given; it asks for the others."""
