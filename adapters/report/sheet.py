"""A sheet to draw a stretch of time on: where a moment lies, and the marks that lanes share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import define, field

from unswept.adapters.report.colours import Colour, palette
from unswept.adapters.report.shapes import Disc, Line, Polygon, Rect, Shape, Words, fitted


@define
class Sheet:
    """Shapes are added from the back to the front; all are cut off at the sheet's sides."""

    begins: int
    ends: int
    left: float
    right: float
    shapes: list[Shape] = field(factory=list)

    def x(self, at: float) -> float:
        """Where a moment lies."""
        share = (at - self.begins) / (self.ends - self.begins)
        return self.left + share * (self.right - self.left)

    def colour(self, name: str) -> Colour:
        """By its name in the style sheet."""
        return palette()[name]

    def shows(self, at: int) -> bool:
        """Does it lie within the stretch?"""
        return self.begins <= at <= self.ends

    def stretch(self, begins: int, ends: int) -> tuple[float, float] | None:
        """Left and width of what is seen of a span; None if nothing is."""
        if ends < self.begins or begins > self.ends:
            return None
        x = max(self.x(begins), self.left)
        return x, max(min(self.x(ends), self.right) - x, 1)

    def spread(self, moments: Iterable[int]) -> Iterator[float]:
        """Where these moments lie; of many that would run into one, the first."""
        last = -1.0
        for at in moments:
            if self.shows(at) and self.x(at) - last >= 1:
                last = self.x(at)
                yield last

    def box(self, x: float, y: float, width: float, height: float, fill: str, r: float = 0) -> None:
        """A box of a named colour."""
        self.shapes.append(Rect(x, y, width, height, self.colour(fill), r))

    def tick(self, x: float, y: float, height: float, stroke: str, width: float = 1) -> None:
        """An upright stroke."""
        self.shapes.append(Line((x, y), (x, y + height), self.colour(stroke), width))

    def dash(self, x: float, y: float, length: float, stroke: str, width: float = 1.5) -> None:
        """A level stroke."""
        self.shapes.append(Line((x, y), (x + length, y), self.colour(stroke), width))

    def down(self, x: float, y: float, fill: str) -> None:
        """A sweep."""
        self._polygon(fill, (x - 5, y), (x + 5, y), (x, y + 8))

    def up(self, x: float, y: float, fill: str) -> None:
        """A healed orphan."""
        self._polygon(fill, (x - 5, y + 8), (x + 5, y + 8), (x, y))

    def diamond(self, x: float, y: float, fill: str) -> None:
        """A suspicion, or a step of the store clock."""
        self._polygon(fill, (x, y - 4.5), (x + 4.5, y), (x, y + 4.5), (x - 4.5, y))

    def flag(self, x: float, y: float, height: float, fill: str) -> None:
        """A deadline that came."""
        self.tick(x, y, height, fill, 1.5)
        self._polygon(fill, (x, y), (x + 6, y + 3), (x, y + 6))

    def disc(self, x: float, y: float, fill: str) -> None:
        """A beginning, or a good end."""
        self.shapes.append(Disc((x, y), 4, self.colour(fill)))

    def cross(self, x: float, y: float, stroke: str) -> None:
        """A bad end."""
        colour = self.colour(stroke)
        self.shapes.append(Line((x - 4, y - 4), (x + 4, y + 4), colour, 2))
        self.shapes.append(Line((x - 4, y + 4), (x + 4, y - 4), colour, 2))

    def hatch(self, x: float, y: float, width: float, height: float, stroke: str) -> None:
        """Strokes across a box, so that it is told apart without its colour."""
        colour = self.colour(stroke)
        gap = 6.0
        start = x - height
        while start < x + width:
            low, high = max(start, x), min(start + height, x + width)
            if low < high:
                ends = (low, y + height - (low - start)), (high, y + height - (high - start))
                self.shapes.append(Line(*ends, colour))
            start += gap

    def say(
        self,
        x: float,
        y: float,
        words: str,
        fill: str = "ink",
        room: float = 10_000,
        size: float = 11,
        bold: bool = False,
    ) -> float:
        """Words, as far as they have room; and how wide they are."""
        told = fitted(words, room, size)
        if told:
            self.shapes.append(Words(x, y, told, self.colour(fill), size, bold))
        return len(told) * size * 0.58

    def _polygon(self, fill: str, *points: tuple[float, float]) -> None:
        self.shapes.append(Polygon(points, self.colour(fill)))
