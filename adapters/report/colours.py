"""The light colours of the page's style sheet, for pictures that are drawn without a browser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from attrs import frozen

from unswept.adapters.report import assets

_NAMED: Final = re.compile(r"--([\w-]+):\s*([^;]+);")
_MIXED: Final = re.compile(r"rgb\((\d+) (\d+) (\d+) / ([\d.]+)\)")


@frozen
class Colour:
    """Red, green and blue, 0 to 255, and how opaque it is, 0 to 1."""

    red: int
    green: int
    blue: int
    opacity: float = 1.0

    @property
    def hex(self) -> str:
        """Without its opacity."""
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"


@cache
def palette() -> Mapping[str, Colour]:
    """By the names that the style sheet gives them; its first block is the light scheme."""
    return named(assets.text("page.css").partition("}")[0])


def named(block: str) -> Mapping[str, Colour]:
    """The colours of one block of a style sheet."""
    return {name: _colour(value.strip()) for name, value in _NAMED.findall(block)}


def _colour(value: str) -> Colour:
    mixed = _MIXED.fullmatch(value)
    if mixed is not None:
        return Colour(int(mixed[1]), int(mixed[2]), int(mixed[3]), float(mixed[4]))
    red, green, blue = (int(value[place : place + 2], 16) for place in (1, 3, 5))
    return Colour(red, green, blue)
