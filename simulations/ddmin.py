"""Delta debugging: a list cut down until no part of it can be left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def ddmin(items: Sequence[T], holds: Callable[[list[T]], bool]) -> list[T]:
    """The items without whatever `holds` is true without: first halves, then ever smaller parts.

    `holds(items)` must be true. Of what is left, no single item can be left out.
    """
    kept = list(items)
    size = len(kept) // 2
    while kept and size >= 1:
        begin = 0
        smaller = False
        while begin < len(kept):
            rest = kept[:begin] + kept[begin + size :]
            if holds(rest):
                kept, smaller = rest, True
            else:
                begin += size
        if size > 1:
            size = min(size // 2, max(1, len(kept) // 2))
        elif not smaller:
            break
    return kept
