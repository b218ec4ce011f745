// Draws one lane: what everybody shares, an instance, or a job.

const LANE = 28;

/** Draws the items of one mark that lie in view; of many on one pixel, the first. */
function eachInView(lane, mark, scale, draw) {
  const values = lane.marks.get(mark) ?? [];
  let last = -Infinity;
  for (let i = firstFrom(values, scale.from - 8 * scale.grain); i < values.length; i += 1) {
    const x = scale.x(values[i].at);
    if (values[i].at > scale.to + 8 * scale.grain) break;
    if (x - last < 1) continue;
    last = x;
    draw(x, values[i]);
  }
}

/** The stretch of a span that lies in view, as x and width; null if none does. */
function stretch(scale, begins, ends) {
  if (ends < scale.from || begins > scale.to) return null;
  const x = Math.max(scale.x(begins), scale.left - 4);
  return { x, width: Math.max(Math.min(scale.x(ends), scale.left + scale.width + 4) - x, 0) };
}

/** A name is written from where its fault or step begins to where the next one does. */
function drawShared(painter, lane, scale, y, colours) {
  const long = lane.bands.filter(({ begins, ends }) => begins < ends && stretch(scale, begins, ends));
  const steps = lane.steps.filter(({ at }) => at >= scale.from && at <= scale.to);
  const edges = [...long.map(({ begins }) => scale.x(begins)), ...steps.map(({ at }) => scale.x(at) - 6)];
  const room = (x) => Math.min(...edges.filter((edge) => edge > x), scale.left + scale.width) - x;
  const write = (x, words, space) => {
    const told = fitted([words], space, 11);
    if (told) painter.text(x, y + 20, told, { fill: colours.faultInk, size: 11 });
  };
  for (const { begins, ends } of lane.bands) {
    const seen = stretch(scale, begins, ends);
    if (!seen) continue;
    if (begins < ends) painter.rect(seen.x, y + 9, Math.max(seen.width, 2), 15, { fill: colours.fault, radius: 2 });
    else painter.line(seen.x, y + 3, seen.x, y + 8, { stroke: colours.ownFaultLine, width: 2 });
  }
  for (const { name, begins, ends } of long) {
    const { x, width } = stretch(scale, begins, ends);
    write(Math.max(x, scale.left) + 4, name, Math.min(width, room(Math.max(x, scale.left))) - 8);
  }
  for (const { at, by } of steps) {
    const x = scale.x(at);
    sightMark(painter, x, y + 16, colours.panel, colours.faultInk);
    write(x + 8, `clock ${signed(by)}`, room(x) - 12);
  }
}

function drawInstance(painter, lane, scale, y, colours) {
  for (const [begins, ends] of lane.lives) {
    const seen = stretch(scale, begins, ends);
    if (seen) painter.rect(seen.x, y + 10, seen.width, 9, { fill: colours.life, radius: 2 });
  }
  for (const [begins, ends, phase] of lane.phases) {
    const seen = phase === "steady" ? null : stretch(scale, begins, ends);
    if (!seen) continue;
    painter.rect(seen.x, y + 10, Math.max(seen.width, 1), 9, { fill: colours.phases[phase] ?? colours.muted });
  }
  for (const [begins, ends] of lane.stills) {
    const seen = stretch(scale, begins, ends);
    if (seen) hatch(painter, seen.x, y + 8, Math.max(seen.width, 2), 13, colours.ink, 4);
  }
  drawOwnBands(painter, lane, scale, y, colours);
  eachInView(lane, "beat", scale, (x) => painter.line(x, y + 4, x, y + 10, { stroke: colours.beat, width: 1.2 }));
  eachInView(lane, "other", scale, (x) => painter.line(x, y + 20, x, y + 23, { stroke: colours.muted }));
  eachInView(lane, "sweep", scale, (x, { command }) =>
    sweepMark(painter, x, y + 1, command.changes ? colours.sweep : colours.panel, colours.sweep),
  );
  eachInView(lane, "suspected", scale, (x) => sightMark(painter, x, y + 14, colours.suspect, colours.panel));
  eachInView(lane, "life", scale, (x, { event }) => drawLife(painter, event, x, y, colours));
  nameOwnBands(painter, lane, scale, y, colours);
}

function drawLife(painter, event, x, y, colours) {
  if (event === "boots") painter.circle(x, y + 14, 4, { fill: colours.panel, stroke: colours.ink });
  else if (event === "killed") crossMark(painter, x, y + 14, colours.sweep);
  else if (event === "drains" || event === "stopped") painter.rect(x - 3.5, y + 10.5, 7, 7, { fill: colours.ink });
}

function drawOwnBands(painter, lane, scale, y, colours) {
  for (const band of lane.bands) {
    const seen = stretch(scale, band.begins, band.ends);
    if (!seen) continue;
    const width = Math.max(seen.width, 2);
    painter.rect(seen.x, y + 2, width, LANE - 4, { fill: colours.ownFault });
    hatch(painter, seen.x, y + 2, width, LANE - 4, colours.ownFaultLine, 7);
  }
}

/** Above all else on the lane, on a ground of their own. */
function nameOwnBands(painter, lane, scale, y, colours) {
  for (const band of lane.bands) {
    const seen = stretch(scale, band.begins, band.ends);
    const words = seen && fitted([band.name], seen.width - 10, 10, Infinity);
    if (!words) continue;
    const x = Math.max(seen.x, scale.left) + 3;
    painter.rect(x, y + LANE - 13, words.length * 5.3 + 8, 12, { fill: colours.fault, radius: 3 });
    painter.text(x + 4, y + LANE - 4, words, { fill: colours.faultInk, size: 10 });
  }
}

const ENDED = new Set(["completed", "failed", "canceled", "expired"]);

function drawJob(painter, lane, scale, y, colours) {
  drawOwnBands(painter, lane, scale, y, colours);
  for (const bar of lane.bars) {
    const seen = stretch(scale, bar.begins, bar.ends);
    if (seen) drawBar(painter, bar, seen, scale, y, colours);
  }
  eachInView(lane, "renew", scale, (x) => painter.line(x, y + 18, x, y + 22, { stroke: colours.beat, width: 1.2 }));
  for (const bar of lane.bars) {
    const seen = stretch(scale, bar.begins, bar.ends);
    if (seen) drawOwner(painter, bar, seen, y, colours);
  }
  for (const { deadline, outlived } of lane.stamps) {
    if (outlived && deadline >= scale.from && deadline <= scale.to)
      deadlineMark(painter, scale.x(deadline), y + 3, 22, colours.deadline);
  }
  for (const sight of ["suspected", "confirmed"])
    eachInView(lane, sight, scale, (x) => sightMark(painter, x, y + 14, colours.suspect, colours.deadline));
  eachInView(lane, "dropped", scale, (x) => sightMark(painter, x, y + 14, colours.panel, colours.deadline));
  eachInView(lane, "delay", scale, (x) => painter.circle(x, y + 4, 3, { fill: colours.suspect }));
  eachInView(lane, "heal", scale, (x) => healMark(painter, x, y + 19, colours.statuses.completed));
  eachInView(lane, "orphan", scale, (x) => sweepMark(painter, x, y, colours.sweep));
  nameOwnBands(painter, lane, scale, y, colours);
}

function drawBar(painter, bar, { x, width }, scale, y, colours) {
  const colour = colours.statuses[bar.status] ?? colours.muted;
  if (ENDED.has(bar.status)) {
    painter.line(x, y + 14, x + width, y + 14, { stroke: colour, width: 1.5 });
    if (bar.begins >= scale.from) {
      if (bar.status === "completed") painter.circle(scale.x(bar.begins), y + 14, 4, { fill: colour });
      else crossMark(painter, scale.x(bar.begins), y + 14, colour);
    }
    const words = fitted([bar.status], width - 16, 10, Infinity);
    if (words && bar.begins >= scale.from)
      painter.text(scale.x(bar.begins) + 9, y + 11, words, { fill: colours.muted, size: 10 });
    return;
  }
  const waits = bar.owner === null;
  const box = waits ? [x, y + 11, Math.max(width, 1), 6] : [x, y + 6, Math.max(width, 1), 16];
  const outline = bar.status === "queued" ? colours.barLine : null;
  painter.rect(...box, { fill: colour, stroke: width > 2 ? outline : null, radius: 3 });
  if (bar.status === "orphaned") hatch(painter, ...box, colours.orphanLine);
}

function drawOwner(painter, { status, owner, epoch }, { x, width }, y, colours) {
  if (owner === null || ENDED.has(status)) return;
  const words = fitted([`${owner} · epoch ${epoch}`, owner], width - 10, 10.5, Infinity);
  if (words) painter.text(x + 5, y + 15.5, words, { fill: colours.barInk, size: 10.5, weight: 500 });
}
