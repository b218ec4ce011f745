"""What each type of line must have to be drawn; types that are not known are later versions'."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from unswept.core.heart import Phase
from unswept.core.lease import Status

_Test = Callable[[Any], bool]
_PHASES: Final = frozenset(Phase)
_STATUSES: Final = frozenset(Status)
_NOTHING: Final[Mapping[str, _Test]] = MappingProxyType({})


def fault_of(line: Mapping[str, Any]) -> str | None:
    """What is wrong with a line: which key is missing, or has a value that cannot be; None: it has
    all that its type has."""
    found = _fault(line, _NEEDS.get(line["type"], {}), _MAY.get(line["type"], {}))
    if found is None:
        found = _fault_inside(line)
    return None if found is None else f"its type is {line['type']}, and {found}"


def _fault_inside(line: Mapping[str, Any]) -> str | None:
    if line["type"] == "run":
        found = _fault(line["settings"], {}, _SETTINGS)
        return None if found is None else f"of its settings {found}"
    if line["type"] == "instance" and line["event"] == "phase":
        return _fault(line, {"phase": _phase})
    if line["type"] == "command":
        return next(filter(None, map(_fault_of_change, line["changes"])), None)
    return None


def _fault_of_change(change: Any) -> str | None:
    if not isinstance(change, dict):
        return "one of its changes is no object"
    found = _fault(change, _CHANGE)
    if found is None and "transition" not in change:
        found = "it has no 'transition'"
    for row in (change.get("before"), change.get("after")):
        if found is None and row is not None:
            found = _fault(row, _ROW, _ROW_MAY)
    return None if found is None else f"of one of its changes {found}"


def _fault(
    line: Mapping[str, Any], needs: Mapping[str, _Test], may: Mapping[str, _Test] = _NOTHING
) -> str | None:
    for key in needs:
        if key not in line:
            return f"it has no {key!r}"
    for key, fits in (*needs.items(), *may.items()):
        if key in line and not fits(line[key]):
            return f"its {key!r} cannot be {str(line[key])[:40]!r}"
    return None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, float) or _whole(value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _phase(value: Any) -> bool:
    return _text(value) and value in _PHASES


def _status(value: Any) -> bool:
    return _text(value) and value in _STATUSES


def _counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_whole, value.values()))


def _or_null(fits: _Test) -> _Test:
    return lambda value: value is None or fits(value)


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _list(value: Any) -> bool:
    return isinstance(value, list)


_ROW: Final[Mapping[str, _Test]] = MappingProxyType(
    {"status": _status, "epoch": _whole, "beats": _whole}
)
_ROW_MAY: Final[Mapping[str, _Test]] = MappingProxyType(
    {"owner": _or_null(_text), "deadline": _or_null(_whole)}
)
_CHANGE: Final[Mapping[str, _Test]] = MappingProxyType(
    {"job": _text, "before": _or_null(_object), "after": _or_null(_object)}
)
_SETTINGS: Final[Mapping[str, _Test]] = MappingProxyType(
    {"hours": _number, "faults": _texts, "job_minutes": _or_null(_number)}
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
"""The keys that a drawing takes for given."""
_MAY: Final[Mapping[str, Mapping[str, _Test]]] = MappingProxyType(
    {
        "instance": {"kind": _or_null(_text), "host": _or_null(_text)},
        "fault": {"on": _or_null(_text), "ms": _whole},
        "violation": {"job": _or_null(_text)},
        "end": {"commands": _whole, "checked": _counts, "faults": _counts, "sometimes": _counts},
    }
)
"""Those that it asks for."""
