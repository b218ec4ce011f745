// The timeline as a file: what is shown now, with all lanes that the search leaves.

const MOST_LANES = 250; // a canvas has a greatest height
const SHARPNESS = 2; // pixels of a PNG per unit of the timeline

/** The view without its scrolling and its selection. */
function wholeView(view) {
  const lanes = view.rows.filter(({ lane }) => lane).map(({ lane }) => lane).slice(0, MOST_LANES);
  const { rows, height } = layout(lanes);
  return { ...view, rows, top: 0, height: height + AXIS, selected: null };
}

function timelineSvg(view, colours) {
  const whole = wholeView(view);
  const painter = new SvgPainter(whole.width, whole.height);
  drawTimeline(painter, whole, colours);
  return new Blob([painter.toString()], { type: "image/svg+xml" });
}

function timelinePng(view, colours) {
  const whole = wholeView(view);
  const canvas = document.createElement("canvas");
  canvas.width = whole.width * SHARPNESS;
  canvas.height = whole.height * SHARPNESS;
  const context = canvas.getContext("2d");
  context.scale(SHARPNESS, SHARPNESS);
  drawTimeline(new CanvasPainter(context), whole, colours);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
