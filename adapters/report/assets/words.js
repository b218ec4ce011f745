// How times, verbs and rows are worded.

const pad = (number, digits = 2) => String(number).padStart(digits, "0");

/** A simulated time as 0:04:30.150; as much of the fraction as the stride of an axis needs. */
function clock(ms, stride = 1) {
  const sign = ms < 0 ? "−" : "";
  const all = Math.round(Math.abs(ms));
  const seconds = Math.floor(all / 1000);
  const text = `${sign}${Math.floor(seconds / 3600)}:${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}`;
  return stride >= 1000 ? text : `${text}.${pad(all % 1000, 3)}`;
}

/** A length of time in its greatest fitting unit. */
function span(ms) {
  const size = Math.abs(ms);
  const unit = [[86400e3, "d"], [3600e3, "h"], [60e3, "min"], [1e3, "s"]].find(([each]) => size >= each);
  return unit ? `${Number((ms / unit[0]).toPrecision(3))} ${unit[1]}` : `${Math.round(ms)} ms`;
}

const signed = (ms) => (ms < 0 ? `−${span(-ms)}` : `+${span(ms)}`);

const STORE_TIMES = new Set(["deadline", "not_before", "queue_deadline"]);
const isStoreTime = (name) => STORE_TIMES.has(name) || name.endsWith("_at");

/** A value of a row; the store's times count from the start of the run. */
function cell(name, value, model) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number" && isStoreTime(name)) return clock(value - model.storeClock);
  if (typeof value === "number" && name.endsWith("_ms")) return span(value);
  if (Array.isArray(value)) return value.join(", ") || "none";
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}
