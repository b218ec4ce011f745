"""Values that ride along, errors, and the small tools that the core is made of."""

from __future__ import annotations

import inspect
import pickle

import attrs
import pytest

from unswept.core import errors
from unswept.core.checks import storable_text
from unswept.core.errors import MisuseError, StoreError, UnsweptError
from unswept.core.lease import RequeueRule, enqueue
from unswept.core.records import changed
from unswept.core.units import Ms
from unswept.core.values import Result


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (None, None),
        ("", ""),
        ("went wrong\n\tat line 3", "went wrong\n\tat line 3"),
        ("a\0b", "a\ufffdb"),
        ("a\ud800b\udfffc", "a\ufffdb\ufffdc"),
        ("\ud7ff\ue000\U0001f600", "\ud7ff\ue000\U0001f600"),
    ],
)
def test_an_error_text_is_made_storable(said: str | None, kept: str | None) -> None:
    """NUL and lone surrogates become U+FFFD: a message never loses the result that bears it."""
    assert Result(error=said).error == kept
    if kept is not None:
        assert storable_text(kept) == kept
        kept.encode()


def test_an_error_that_is_no_text_is_refused() -> None:
    """Only text is cleaned; what is no text is a mistake."""
    with pytest.raises(MisuseError, match="error must be a string"):
        Result(error=b"bytes")  # type: ignore[arg-type]


def test_the_tree_of_errors() -> None:
    """Every error is the caller's misuse or the outside world's failure, under one base."""
    kinds = {
        name: kind
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, Exception)
    }
    assert set(kinds) == {
        "UnsweptError",
        "MisuseError",
        "StoreError",
        "StoreUnavailableError",
        "OutcomeUnknownError",
        "StoreFullError",
        "StoreReadOnlyError",
        "NotAStoreError",
        "StoreVersionError",
        "RowRefusedError",
    }
    for kind in kinds.values():
        assert issubclass(kind, UnsweptError)
        if kind is not UnsweptError:
            assert issubclass(kind, MisuseError) != issubclass(kind, StoreError)
    assert issubclass(MisuseError, ValueError)


def test_a_changed_row_is_a_copy() -> None:
    """`changed` does what `attrs.evolve` does, and leaves the row as it was."""
    row = enqueue(RequeueRule.NEVER)
    other = changed(row, epoch=1, ttl_ms=Ms(5))
    assert other == attrs.evolve(row, epoch=1, ttl_ms=Ms(5))
    assert row == enqueue(RequeueRule.NEVER)
    assert pickle.loads(pickle.dumps(other)) == other


def test_rows_are_frozen() -> None:
    """No row of the core can be changed in place."""
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        enqueue(RequeueRule.NEVER).epoch = 1  # type: ignore[misc]
