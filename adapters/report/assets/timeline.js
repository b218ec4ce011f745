// The timeline as a thing on the page: what it shows, what is chosen, and when it is drawn anew.

const OVERVIEW = 34;

class Timeline {
  constructor(model, parts) {
    this.model = model;
    this.parts = parts;
    this.scale = new Scale(model.ends);
    this.colours = palette();
    this.selected = null;
    this.query = "";
    this.touchedOnly = false;
    this.waiting = false;
    this.filter("", false);
    new ResizeObserver(() => this.resize()).observe(parts.scroller);
    parts.scroller.addEventListener("scroll", () => this.redraw());
  }

  get view() {
    const { model, scale, rows, selected, width, height } = this;
    const headings = { instance: "INSTANCES", job: this.jobsHeading, client: "CLIENTS" };
    return { model, scale, rows, selected, width, height, headings, top: this.parts.scroller.scrollTop, overviewHeight: OVERVIEW };
  }

  get jobsHeading() {
    const shown = this.lanes.filter(({ kind }) => kind === "job").length;
    const all = this.model.jobs.length;
    return shown === all ? `JOBS (${all})` : `JOBS (${shown} of ${all})`;
  }

  filter(query, touchedOnly) {
    Object.assign(this, { query, touchedOnly });
    this.lanes = this.model.lanes(query, touchedOnly);
    const { rows, height } = layout(this.lanes);
    Object.assign(this, { rows, lanesHeight: height });
    if (this.selected && !this.lanes.includes(this.selected.lane)) this.selected = null;
    this.resize();
  }

  resize() {
    const { scroller, canvas, spacer, overview } = this.parts;
    const whole = this.lanesHeight + AXIS;
    scroller.style.height = `${Math.min(whole, Math.max(280, window.innerHeight * 0.66))}px`;
    this.width = scroller.clientWidth;
    this.height = scroller.clientHeight;
    spacer.style.height = `${Math.max(0, whole - this.height)}px`;
    this.scale.left = this.width < 560 ? 64 : 132;
    this.scale.width = Math.max(this.width - this.scale.left, 1);
    fitCanvas(canvas, this.width, this.height);
    fitCanvas(overview, this.width, OVERVIEW);
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      drawTimeline(new CanvasPainter(sharp(this.parts.canvas)), this.view, this.colours);
      this.whole = drawOverview(new CanvasPainter(sharp(this.parts.overview)), this.view, this.colours);
    });
  }

  recolour() {
    this.colours = palette();
    this.redraw();
  }

  /** The lane at a height on the canvas, and its moment nearest to x. */
  at(x, y) {
    const depth = y - AXIS + this.parts.scroller.scrollTop;
    if (y < AXIS) return null;
    const row = this.rows.find((each) => depth >= each.y && depth < each.y + each.height);
    if (!row?.lane) return null;
    return { lane: row.lane, item: this.nearest(row.lane, x) };
  }

  /** The moment within reach of x; else what holds at x: a job's last change, or a fault. */
  nearest(lane, x) {
    const { scale } = this;
    const time = scale.time(x);
    const place = firstFrom(lane.items, time);
    const near = [lane.items[place - 1], lane.items[place]]
      .filter(Boolean)
      .sort((a, b) => Math.abs(a.at - time) - Math.abs(b.at - time))[0];
    if (near && Math.abs(scale.x(near.at) - x) <= 9) return near;
    const lasting = lane.items.find(({ kind, band }) => kind === "fault" && band.begins <= time && time <= band.ends);
    if (lasting || lane.kind !== "job") return lasting ?? null;
    return lane.items.slice(0, place).findLast(({ kind }) => kind === "change") ?? null;
  }

  select(lane, item) {
    this.selected = { lane, item };
    this.reveal();
    this.parts.onSelect(describe(lane, item, this.model));
    this.redraw();
  }

  reveal() {
    const { lane, item } = this.selected;
    const { scroller } = this.parts;
    this.scale.reveal(item.at);
    const { y } = this.rows.find((row) => row.lane === lane);
    const room = this.height - AXIS;
    if (y < scroller.scrollTop) scroller.scrollTop = y - GROUP;
    else if (y + LANE > scroller.scrollTop + room) scroller.scrollTop = y + LANE - room;
  }

  /** To the next moment on this lane, or the one before. */
  step(by) {
    if (!this.selected) return this.begin();
    const { lane, item } = this.selected;
    const next = lane.items[lane.items.indexOf(item) + by];
    if (next) this.select(lane, next);
  }

  /** To the nearest moment on a lane below or above that has any. */
  stepLane(by) {
    if (!this.selected) return this.begin();
    const { lane, item } = this.selected;
    for (let i = this.lanes.indexOf(lane) + by; this.lanes[i]; i += by) {
      const { items } = this.lanes[i];
      if (!items.length) continue;
      const place = firstFrom(items, item.at);
      const near = [items[place], items[place - 1]].filter(Boolean);
      near.sort((a, b) => Math.abs(a.at - item.at) - Math.abs(b.at - item.at));
      this.select(this.lanes[i], near[0]);
      return;
    }
  }

  /** To the first or the last moment on this lane. */
  stepToEnd(last) {
    if (!this.selected) return this.begin();
    const { lane } = this.selected;
    this.select(lane, lane.items.at(last ? -1 : 0));
  }

  /** Where one begins to look: at the violation, or at the first moment of the first lane. */
  begin() {
    if (this.model.violation) return this.toViolation();
    const lane = this.lanes.find(({ items }) => items.length);
    if (lane) this.select(lane, lane.items[0]);
  }

  toViolation() {
    const place = this.model.violationPlace(this.lanes);
    if (place) this.select(place.lane, place.item);
  }

  zoom(factor, time) {
    this.scale.zoom(factor, time ?? this.selectedTime());
    this.redraw();
  }

  /** Zooming by key or button keeps the chosen moment in place, if it is in view. */
  selectedTime() {
    const at = this.selected?.item.at;
    return at >= this.scale.from && at <= this.scale.to ? at : undefined;
  }

  pan(pixels) {
    this.scale.pan(pixels);
    this.redraw();
  }

  fit() {
    this.scale.fit();
    this.redraw();
  }
}

function fitCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}

function sharp(canvas) {
  const context = canvas.getContext("2d");
  const ratio = window.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
