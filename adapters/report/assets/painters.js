// Two ways to draw the same few shapes: on a canvas, and as SVG text.

const FONT = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

class CanvasPainter {
  constructor(context) {
    this.context = context;
  }

  rect(x, y, width, height, { fill, stroke, radius = 0, dash = [] }) {
    const { context } = this;
    context.beginPath();
    if (radius && width > radius) context.roundRect(x, y, width, height, radius);
    else context.rect(x, y, width, height);
    if (fill) this.with({ fillStyle: fill }, () => context.fill());
    if (stroke) this.with({ strokeStyle: stroke, lineWidth: 1 }, () => this.dashed(dash));
  }

  line(x1, y1, x2, y2, { stroke, width = 1, dash = [] }) {
    const { context } = this;
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    this.with({ strokeStyle: stroke, lineWidth: width }, () => this.dashed(dash));
  }

  polygon(points, { fill, stroke }) {
    const { context } = this;
    context.beginPath();
    points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    if (fill) this.with({ fillStyle: fill }, () => context.fill());
    if (stroke) this.with({ strokeStyle: stroke, lineWidth: 1 }, () => context.stroke());
  }

  circle(x, y, radius, { fill, stroke, width = 1.5 }) {
    const { context } = this;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    if (fill) this.with({ fillStyle: fill }, () => context.fill());
    if (stroke) this.with({ strokeStyle: stroke, lineWidth: width }, () => context.stroke());
  }

  text(x, y, words, { fill, size = 12, anchor = "start", weight = 400 }) {
    const font = `${weight} ${size}px ${FONT}`;
    this.with({ fillStyle: fill, font, textAlign: anchor, textBaseline: "alphabetic" }, () =>
      this.context.fillText(words, x, y),
    );
  }

  clip(x, y, width, height, draw) {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    draw();
    context.restore();
  }

  with(style, draw) {
    Object.assign(this.context, style);
    draw();
  }

  dashed(dash) {
    this.context.setLineDash(dash);
    this.context.stroke();
    if (dash.length) this.context.setLineDash([]);
  }
}

const escaped = (text) =>
  String(text).replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);

class SvgPainter {
  constructor(width, height) {
    this.size = [width, height];
    this.parts = [];
    this.clips = 0;
  }

  rect(x, y, width, height, { fill, stroke, radius = 0, dash = [] }) {
    this.add("rect", { x, y, width: Math.max(0, width), height, rx: radius || null, ...this.paint(fill, stroke, 1, dash) });
  }

  line(x1, y1, x2, y2, { stroke, width = 1, dash = [] }) {
    this.add("line", { x1, y1, x2, y2, ...this.paint(null, stroke, width, dash) });
  }

  polygon(points, { fill, stroke }) {
    this.add("polygon", { points: points.map(([x, y]) => `${round(x)},${round(y)}`).join(" "), ...this.paint(fill, stroke, 1) });
  }

  circle(cx, cy, r, { fill, stroke, width = 1.5 }) {
    this.add("circle", { cx, cy, r, ...this.paint(fill, stroke, width) });
  }

  text(x, y, words, { fill, size = 12, anchor = "start", weight = 400 }) {
    const ends = { start: null, center: "middle", end: "end" }[anchor];
    this.add("text", { x, y, fill, "font-size": size, "font-weight": weight === 400 ? null : weight, "text-anchor": ends }, words);
  }

  clip(x, y, width, height, draw) {
    const id = `clip${(this.clips += 1)}`;
    this.parts.push(`<clipPath id="${id}"><rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"/></clipPath>`);
    this.parts.push(`<g clip-path="url(#${id})">`);
    draw();
    this.parts.push("</g>");
  }

  paint(fill, stroke, width, dash = []) {
    return {
      fill: fill ?? "none",
      stroke: stroke ?? null,
      "stroke-width": stroke ? width : null,
      "stroke-dasharray": dash.length ? dash.join(" ") : null,
    };
  }

  add(tag, attributes, words) {
    const told = Object.entries(attributes)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => ` ${name}="${typeof value === "number" ? round(value) : escaped(value)}"`)
      .join("");
    this.parts.push(words === undefined ? `<${tag}${told}/>` : `<${tag}${told}>${escaped(words)}</${tag}>`);
  }

  toString() {
    const [width, height] = this.size;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${width} ${height}" font-family="${escaped(FONT)}">\n${this.parts.join("\n")}\n</svg>\n`
    );
  }
}

const round = (number) => Math.round(number * 100) / 100;
