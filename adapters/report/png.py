"""A drawing as PNG, by Pillow: no browser, and no font of the system's."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Final

from unswept.adapters.extras import need
from unswept.adapters.report.colours import Colour
from unswept.adapters.report.shapes import Disc, Drawing, Line, Polygon, Rect, Shape

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_SHARPNESS: Final = 2
"""Pixels per unit of a drawing."""


def png(drawing: Drawing) -> bytes:
    """The whole file."""
    need("an SVG (--svg) needs nothing, a PNG needs Pillow", "report", "PIL")
    from PIL import Image, ImageDraw

    size = (drawing.width * _SHARPNESS, drawing.height * _SHARPNESS)
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image, "RGBA")
    for shape in drawing.shapes:
        _draw(draw, shape)
    file = BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _draw(draw: ImageDraw, shape: Shape) -> None:
    if isinstance(shape, Rect):
        corners = _scaled(shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
        outline = None if shape.outline is None else _rgba(shape.outline)
        radius = min(shape.radius, shape.width / 2, shape.height / 2) * _SHARPNESS
        draw.rounded_rectangle(corners, radius, _rgba(shape.fill), outline)
    elif isinstance(shape, Line):
        width = max(1, round(shape.width * _SHARPNESS))
        draw.line(_scaled(*shape.begins, *shape.ends), _rgba(shape.stroke), width)
    elif isinstance(shape, Polygon):
        draw.polygon([(x * _SHARPNESS, y * _SHARPNESS) for x, y in shape.points], _rgba(shape.fill))
    elif isinstance(shape, Disc):
        centre = (shape.centre[0] * _SHARPNESS, shape.centre[1] * _SHARPNESS)
        draw.circle(centre, shape.radius * _SHARPNESS, _rgba(shape.fill))
    else:
        _write(draw, shape.x, shape.y, shape.text, shape.size, _rgba(shape.fill), shape.bold)


def _write(
    draw: ImageDraw,
    x: float,
    y: float,
    text: str,
    size: float,
    fill: tuple[int, int, int, int],
    bold: bool,
) -> None:
    from PIL.ImageFont import load_default

    stroke = 0.5 if bold else 0  # Pillow's own font has one weight
    font = load_default(size * _SHARPNESS)
    at = (x * _SHARPNESS, y * _SHARPNESS)
    text = text.replace("−", "-")  # its font has no minus
    draw.text(at, text, fill, font, anchor="ls", stroke_width=stroke)


def _scaled(*numbers: float) -> tuple[float, ...]:
    return tuple(number * _SHARPNESS for number in numbers)


def _rgba(colour: Colour) -> tuple[int, int, int, int]:
    return colour.red, colour.green, colour.blue, round(colour.opacity * 255)
