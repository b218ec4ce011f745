"""The few shapes of which a picture is made; SVG and PNG each draw them in their own way."""

from __future__ import annotations

from attrs import frozen

from unswept.adapters.report.colours import Colour

Point = tuple[float, float]


@frozen
class Rect:
    """A filled box."""

    x: float
    y: float
    width: float
    height: float
    fill: Colour
    radius: float = 0
    outline: Colour | None = None


@frozen
class Line:
    """A straight stroke."""

    begins: Point
    ends: Point
    stroke: Colour
    width: float = 1


@frozen
class Polygon:
    """A filled shape."""

    points: tuple[Point, ...]
    fill: Colour


@frozen
class Disc:
    """A filled circle."""

    centre: Point
    radius: float
    fill: Colour


@frozen
class Words:
    """A line of text on its baseline, from its left end."""

    x: float
    y: float
    text: str
    fill: Colour
    size: float = 11
    bold: bool = False


Shape = Rect | Line | Polygon | Disc | Words


@frozen
class Drawing:
    """Shapes, in the order in which they are drawn, on a sheet."""

    width: int
    height: int
    shapes: tuple[Shape, ...]


def fits(words: str, room: float, size: float) -> bool:
    """Has a text room? By the width of a middling letter."""
    return len(words) * size * 0.58 <= room


def fitted(words: str, room: float, size: float) -> str:
    """A text, cut where it has no room; nothing where not even three letters have."""
    letters = int(room / (size * 0.58))
    if fits(words, room, size):
        return words
    return f"{words[: letters - 1]}…" if letters >= 3 else ""
