// The colours of the style sheet, for what is drawn.

const PHASES = ["registering", "faint", "quiesced", "recovering", "draining", "stopped"];
const STATUSES = ["queued", "running", "orphaned", "completed", "failed", "canceled", "expired"];
const COLOURS = [
  "panel", "ink", "muted", "line", "grid", "lit", "shade", "focus", "band", "fault", "fault-ink", "own-fault",
  "own-fault-line", "life", "beat", "sweep", "suspect", "deadline", "bar-ink", "bar-line", "orphan-line", "violation", "violation-ink",
];

/** Read anew whenever the scheme changes. */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const camel = (name) => name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
  const colours = Object.fromEntries(COLOURS.map((name) => [camel(name), read(name)]));
  colours.phases = Object.fromEntries(PHASES.map((name) => [name, read(`phase-${name}`)]));
  colours.statuses = Object.fromEntries(STATUSES.map((name) => [name, read(`status-${name}`)]));
  return colours;
}
