// Draws the timeline: the axis, the lanes that are in sight, and what runs across all of them.

const AXIS = 30;
const GROUP = 26;

/** Where each lane and each heading lies, from the top of all lanes. */
function layout(lanes) {
  const rows = [];
  let y = 0;
  let group = "shared";
  for (const lane of lanes) {
    if (lane.kind !== group) {
      group = lane.kind;
      rows.push({ heading: group, y, height: GROUP });
      y += GROUP;
    }
    rows.push({ lane, y, height: LANE });
    y += LANE;
  }
  return { rows, height: y + 6 };
}

/** Draws what `view` shows: model, scale, rows, top (scrolled), width, height, selected, headings. */
function drawTimeline(painter, view, colours) {
  const { scale, width, height } = view;
  painter.rect(0, 0, width, height, { fill: colours.panel });
  const seen = view.rows.filter((row) => row.y + row.height > view.top && row.y < view.top + height - AXIS);
  painter.clip(scale.left, AXIS, scale.width, height - AXIS, () => {
    drawBands(painter, view, colours);
    drawGrid(painter, view, colours);
    for (const row of seen) drawRow(painter, row, view, colours);
    drawSelection(painter, view, colours);
    drawViolation(painter, view, colours);
  });
  painter.clip(0, AXIS, width, height - AXIS, () => {
    for (const row of seen) drawLabel(painter, row, view, colours);
  });
  drawAxis(painter, view, colours);
}

function drawBands(painter, { model, scale, height }, colours) {
  for (const band of model.sharedBands) {
    const seen = band.ends > band.begins ? stretch(scale, band.begins, band.ends) : null;
    if (seen) painter.rect(seen.x, AXIS, Math.max(seen.width, 1), height - AXIS, { fill: colours.band });
  }
  for (const step of model.steps) {
    const x = scale.x(step.at);
    painter.line(x, AXIS, x, height, { stroke: colours.deadline, dash: [2, 4] });
  }
}

function drawGrid(painter, { scale, height }, colours) {
  for (const time of scale.ticks(90).times) {
    const x = Math.round(scale.x(time)) + 0.5;
    painter.line(x, AXIS, x, height, { stroke: colours.grid });
  }
}

const DRAW = { shared: drawShared, instance: drawInstance, client: drawInstance, job: drawJob };

function drawRow(painter, row, view, colours) {
  const y = AXIS + row.y - view.top;
  if (!row.lane) return;
  if (row.lane === view.selected?.lane) painter.rect(0, y, view.width, LANE, { fill: colours.lit });
  DRAW[row.lane.kind](painter, row.lane, view.scale, y, colours);
  painter.line(view.scale.left, y + LANE - 0.5, view.width, y + LANE - 0.5, { stroke: colours.grid });
}

function drawLabel(painter, row, view, colours) {
  const y = AXIS + row.y - view.top;
  const room = view.scale.left - 16;
  if (row.heading) {
    painter.text(12, y + 18, view.headings[row.heading], { fill: colours.muted, size: 11, weight: 600 });
    return;
  }
  const chosen = row.lane === view.selected?.lane;
  const weight = chosen || row.lane.touched ? 600 : 400;
  const fill = row.lane.touched && view.model.violation ? colours.violation : colours.ink;
  painter.text(12, y + 18, fitted([row.lane.id], room, 12, 3), { fill, size: 12, weight });
  const rest = room - row.lane.id.length * 7.4;
  const { what } = row.lane;
  if (what && fitted([what], rest, 10, Infinity))
    painter.text(view.scale.left - 8, y + 18, what, { fill: colours.muted, size: 10, anchor: "end" });
}

function drawAxis(painter, { scale, width }, colours) {
  painter.rect(0, 0, width, AXIS, { fill: colours.panel });
  painter.line(0, AXIS - 0.5, width, AXIS - 0.5, { stroke: colours.line });
  const { times, stride } = scale.ticks(90);
  painter.clip(scale.left, 0, scale.width, AXIS, () => {
    for (const time of times) {
      const x = scale.x(time);
      painter.line(x, AXIS - 6, x, AXIS, { stroke: colours.line });
      painter.text(x + 4, AXIS - 10, clock(time, stride), { fill: colours.muted, size: 11 });
    }
  });
}

function drawViolation(painter, { model, scale, height }, colours) {
  if (!model.violation) return;
  const x = scale.x(model.violation.at);
  painter.line(x, AXIS, x, height, { stroke: colours.violation, width: 2 });
  const words = model.violation.law;
  const width = words.length * 7.5 + 12;
  const left = x + width > scale.left + scale.width ? x - width : x;
  painter.rect(left, AXIS, width, 18, { fill: colours.violation });
  painter.text(left + 6, AXIS + 13, words, { fill: colours.violationInk, size: 11, weight: 700 });
}

function drawSelection(painter, view, colours) {
  const { selected, scale } = view;
  const row = selected && view.rows.find(({ lane }) => lane === selected.lane);
  if (!row || !selected.item) return;
  const y = AXIS + row.y - view.top;
  const x = scale.x(selected.item.at);
  painter.line(x, AXIS, x, view.height, { stroke: colours.focus, dash: [1, 3] });
  const { stamp } = selected.item;
  if (stamp) {
    const ends = scale.x(stamp.deadline);
    painter.line(x, y + 25, ends, y + 25, { stroke: colours.deadline, width: 1.5, dash: [4, 3] });
    deadlineMark(painter, ends, y + 3, 22, colours.deadline);
  }
  painter.rect(x - 7.5, y + 1.5, 15, LANE - 3, { stroke: colours.focus, radius: 4 });
  painter.rect(x - 6.5, y + 2.5, 13, LANE - 5, { stroke: colours.focus, radius: 3 });
}

/** The whole run in one strip, with the stretch that is shown. */
function drawOverview(painter, view, colours) {
  const { model, scale, width, overviewHeight: height } = view;
  const whole = new Scale(model.ends);
  whole.left = scale.left;
  whole.width = scale.width;
  whole.fit();
  painter.rect(0, 0, width, height, { fill: colours.panel });
  painter.text(12, height / 2 + 4, fitted(["whole run", "all"], scale.left - 16, 11), { fill: colours.muted, size: 11 });
  painter.clip(whole.left, 0, whole.width, height, () => {
    for (const band of model.sharedBands) {
      const seen = stretch(whole, band.begins, band.ends);
      painter.rect(seen.x, 4, Math.max(seen.width, 1), height - 8, { fill: colours.fault });
    }
    for (const lane of model.jobs)
      eachInView(lane, "orphan", whole, (x) => sweepMark(painter, x, 4, colours.sweep));
    if (model.violation) {
      const x = whole.x(model.violation.at);
      painter.line(x, 0, x, height, { stroke: colours.violation, width: 2 });
    }
    const [from, to] = [whole.x(scale.from), whole.x(scale.to)];
    painter.rect(whole.left, 0, from - whole.left, height, { fill: colours.shade });
    painter.rect(to, 0, whole.left + whole.width - to, height, { fill: colours.shade });
    painter.rect(from + 0.5, 0.5, Math.max(to - from - 1, 3), height - 1, { stroke: colours.focus, radius: 3 });
  });
  return whole;
}
