"""Commands and replies are read back from JSON exactly as they were."""

from __future__ import annotations

import json
import types
from enum import Enum
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

import pytest
from attrs import fields, has
from hypothesis import given, settings
from hypothesis import strategies as st

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.errors import MisuseError
from unswept.core.job import OnOrphan
from unswept.core.lease import OUTCOMES, SETTLEMENTS, RequeueRule
from unswept.core.units import MAX_COUNT, MAX_MS
from unswept.core.values import Request
from unswept.core.world import all_commands
from unswept.simulations.commands_json import (
    COMMANDS,
    REPLIES,
    command_fields,
    command_of,
    reply_fields,
    reply_of,
    verb_of,
)

_TEXT = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
_COUNTS = ("epoch", "beats", "claim_no", "token", "upto", "after", "position", "number", "count")
_POLICIES = (
    {"requeue": RequeueRule.NEVER, "on_orphan": OnOrphan.HOLD, "max_attempts": None},
    {"requeue": RequeueRule.ALLOWED, "on_orphan": OnOrphan.REQUEUE, "max_attempts": MAX_COUNT},
)


def made(kind: type) -> st.SearchStrategy[Any]:
    """Values of a class, whatever its checks allow."""
    hints = get_type_hints(kind)
    parts = {field.name: of(hints[field.name], field.name) for field in fields(kind)}
    if kind is Request:
        names = st.sampled_from([(None, None), ("ann", None), ("ann", "k é")])
        return st.tuples(parts["payload"], names).map(lambda it: Request(it[0], *it[1]))
    if kind in (c.Complete, c.Settle):
        allowed = OUTCOMES if kind is c.Complete else SETTLEMENTS
        parts["outcome"] = st.sampled_from(sorted(allowed))
    if kind in (c.Admit, c.Enqueue):
        policies = st.sampled_from(_POLICIES)
        return st.tuples(st.fixed_dictionaries(parts), policies).map(
            lambda it: kind(**{**it[0], **it[1]})
        )
    return st.builds(kind, **parts)


def of(hint: Any, name: str) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    if isinstance(hint, NewType):
        return st.integers(1, MAX_MS)
    if get_origin(hint) in (Union, types.UnionType):
        return st.one_of(*(of(part, name) for part in get_args(hint)))
    if get_origin(hint) is tuple:
        first, *others = get_args(hint)
        if others == [...]:
            return st.lists(of(first, name), max_size=3, unique_by=_key).map(tuple)
        return st.tuples(*(of(part, name) for part in (first, *others)))
    if has(hint):
        return made(hint)
    if issubclass(hint, Enum):
        return st.sampled_from([*hint])
    simple: dict[type, st.SearchStrategy[Any]] = {
        str: _TEXT,
        bool: st.booleans(),
        int: st.integers(1, MAX_COUNT if name in _COUNTS else 1_000),
        bytes: st.binary(max_size=9),
        types.NoneType: st.none(),
    }
    return simple[hint]


def _key(value: Any) -> Any:
    """What a batch may name once."""
    if isinstance(value, tuple):
        return value[:2] if len(value) == 3 else value[0]
    return getattr(value, "job_id", value)


def test_every_command_has_a_verb() -> None:
    """What a store executes, and nothing else."""
    assert set(COMMANDS.values()) == set(all_commands())


@pytest.mark.parametrize("verb", COMMANDS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_a_command_comes_back(verb: str, data: st.DataObject) -> None:
    """Through JSON text, with its types: it is the same command."""
    command = data.draw(made(COMMANDS[verb]))
    text = json.dumps(command_fields(command))
    assert verb_of(command) == verb
    back = command_of(verb, json.loads(text))
    assert back == command
    assert repr(back) == repr(command)  # a str equals its enum


@pytest.mark.parametrize("name", REPLIES)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_a_reply_comes_back(name: str, data: st.DataObject) -> None:
    """Through JSON text, with its types: it is the same reply."""
    reply = data.draw(made(REPLIES[name]))
    back = reply_of(json.loads(json.dumps(reply_fields(reply))))
    assert back == reply
    assert repr(back) == repr(reply)


@pytest.mark.parametrize(
    ("verb", "fields_", "says"),
    [
        ("Steal", {}, "verb must be one of"),
        ("Find", {"job_id": "j1", "color": "red"}, "this is no Find: .*color"),
        ("Find", {}, "this is no Find"),
        ("Find", {"job_id": ""}, "job_id must have 1 to 200 characters"),
        ("ReadOutput", {"job_id": "j", "epoch": "one", "first": 0, "limit": 1}, "no ReadOutput"),
    ],
)
def test_what_is_no_command_is_refused(verb: str, fields_: dict[str, Any], says: str) -> None:
    """A trace that was written otherwise is no reason to ask a store something else."""
    with pytest.raises(MisuseError, match=says):
        command_of(verb, fields_)


def test_what_is_no_reply_is_refused() -> None:
    """Likewise."""
    with pytest.raises(MisuseError, match="type must be one of"):
        reply_of({"at": 1})
    with pytest.raises(MisuseError, match="this is no Deregistered"):
        reply_of({"type": "Deregistered"})
    assert reply_of({"type": "Deregistered", "at": 1}) == r.Deregistered(at=1)  # type: ignore[arg-type]
