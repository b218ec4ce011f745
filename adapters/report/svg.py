"""A drawing as SVG."""

from __future__ import annotations

from html import escape

from unswept.adapters.report.colours import Colour
from unswept.adapters.report.shapes import Disc, Drawing, Line, Polygon, Rect, Shape

_FONT = "ui-sans-serif, system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def svg(drawing: Drawing) -> str:
    """The whole file."""
    width, height = drawing.width, drawing.height
    body = "\n".join(map(_shape, drawing.shapes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{_FONT}">\n{body}\n</svg>\n'
    )


def _shape(shape: Shape) -> str:
    if isinstance(shape, Rect):
        outline = "" if shape.outline is None else _paint("stroke", shape.outline)
        box = f'x="{shape.x:.2f}" y="{shape.y:.2f}" width="{shape.width:.2f}"'
        round_ = f' rx="{shape.radius:g}"' if shape.radius else ""
        fill = _paint("fill", shape.fill)
        return f'<rect {box} height="{shape.height:.2f}"{round_}{fill}{outline}/>'
    if isinstance(shape, Line):
        (x1, y1), (x2, y2) = shape.begins, shape.ends
        ends = f'x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"'
        return f'<line {ends}{_paint("stroke", shape.stroke)} stroke-width="{shape.width:g}"/>'
    if isinstance(shape, Polygon):
        points = " ".join(f"{x:.2f},{y:.2f}" for x, y in shape.points)
        return f'<polygon points="{points}"{_paint("fill", shape.fill)}/>'
    if isinstance(shape, Disc):
        x, y = shape.centre
        return (
            f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{shape.radius:g}"{_paint("fill", shape.fill)}/>'
        )
    bold = ' font-weight="650"' if shape.bold else ""
    place = f'x="{shape.x:.2f}" y="{shape.y:.2f}" font-size="{shape.size:g}"{bold}'
    return f"<text {place}{_paint('fill', shape.fill)}>{escape(shape.text)}</text>"


def _paint(name: str, colour: Colour) -> str:
    opacity = "" if colour.opacity == 1 else f' {name}-opacity="{colour.opacity:g}"'
    return f' {name}="{colour.hex}"{opacity}'
