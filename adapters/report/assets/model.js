// The view model: unpacks what the page carries into lanes of items, each item a moment to look at.

/** The JSON that `packing.py` wrote: base64 of gzip. */
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const COMMAND = ["at", "n", "sender", "verb", "storeAt", "reply", "refusal", "job", "epoch"];
const BAR = ["begins", "ends", "status", "owner", "epoch"];
const STAMP = ["at", "deadline", "outlived"];
const BAND = ["name", "begins", "ends", "on"];
const SIGHT = ["at", "instance", "job", "epoch", "beats", "event"];

const RUNS_JOBS = new Set(["gateway", "runner"]);

const named = (names) => (values) => Object.fromEntries(names.map((name, i) => [name, values[i]]));

/** A lane has an `id`, a `kind` (shared, instance, job or client) and its `items` in order of time. */
class Model {
  constructor(packed) {
    this.ends = packed.ends;
    this.storeClock = packed.storeClock;
    this.stories = packed.stories;
    this.violation = packed.violation;
    this.commands = packed.commands.map(named(COMMAND));
    this.steps = packed.steps.map(([at, by]) => ({ at, by }));
    const sights = packed.sights.map(named(SIGHT));
    const bands = packed.bands.map(named(BAND));
    const names = new Set(packed.instances.map((lane) => lane.name));
    const ids = new Set(packed.jobs.map((lane) => lane.id));
    const hosts = new Set(packed.instances.map((lane) => lane.host));
    const known = (on) => names.has(on) || ids.has(on) || hosts.has(on);
    this.sharedBands = bands.filter(({ on }) => on === null || !known(on));
    const bandsOn = grouped(bands, "on");
    const sightsBy = grouped(sights, "instance");
    const sightsOf = grouped(sights, "job");
    const saidBy = grouped(this.commands, "sender");
    this.shared = this.sharedLane();
    this.instances = packed.instances.map((lane) =>
      instanceLane(lane, {
        bands: [...(bandsOn.get(lane.name) ?? []), ...(lane.host ? bandsOn.get(lane.host) ?? [] : [])],
        said: saidBy.get(lane.name) ?? [],
        sights: sightsBy.get(lane.name) ?? [],
      }),
    );
    this.jobs = packed.jobs.map((lane) =>
      jobLane(lane, {
        bands: bandsOn.get(lane.id) ?? [],
        sights: sightsOf.get(lane.id) ?? [],
        commands: this.commands,
        violation: this.violation?.job === lane.id ? this.violation : null,
      }),
    );
  }

  sharedLane() {
    const items = [
      ...this.sharedBands.map((band) => ({ at: band.begins, kind: "fault", band })),
      ...this.steps.map((step) => ({ at: step.at, kind: "step", step })),
    ];
    if (this.violation) items.push(violationItem(this.violation));
    return { id: "faults", kind: "shared", bands: this.sharedBands, steps: this.steps, ...arranged(items) };
  }

  /** Where `v` leads: on the lane of the job that it names, if it names one. */
  violationPlace(lanes) {
    if (!this.violation) return null;
    const lane = lanes.find(({ id, kind }) => kind === "job" && id === this.violation.job) ?? this.shared;
    return { lane, item: lane.items.find(({ kind }) => kind === "violation") };
  }

  /** The lanes that a search leaves: instances stay, since they explain the jobs, unless all the
      jobs that a violation touches came after their end. */
  lanes(query, touchedOnly) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const jobs = this.jobs.filter(
      (job) => (!touchedOnly || job.touched) && words.every((word) => job.words.includes(word)),
    );
    const first = touchedOnly ? Math.min(...jobs.map(({ bars }) => bars[0]?.begins ?? 0)) : 0;
    const there = ({ lives }) => !touchedOnly || !jobs.length || lives.some(([, ends]) => ends >= first);
    const instances = this.instances.filter(there);
    const of = (kind) => instances.filter((lane) => lane.kind === kind);
    return [this.shared, ...of("instance"), ...jobs, ...of("client")];
  }
}

function grouped(values, key) {
  const groups = new Map();
  for (const value of values) {
    if (!groups.has(value[key])) groups.set(value[key], []);
    groups.get(value[key]).push(value);
  }
  return groups;
}

const violationItem = (violation) => ({ at: violation.at, kind: "violation", violation });

/** What one moment did to a job, by all its changes: a sweep may orphan and requeue it at once. */
function changeAt(changes, at) {
  const there = changes.filter((change) => change.at === at);
  if (!there.length) return null;
  const [first, last] = [there[0], there.at(-1)];
  return { transition: last.transition, before: first.before, after: last.after, command: last.command };
}

/** The items in order of time, and those of each mark by themselves. */
function arranged(items) {
  items.sort((a, b) => a.at - b.at);
  for (const item of items) item.mark = markOf(item);
  return { items, marks: grouped(items, "mark") };
}

/** What an item is drawn as. */
function markOf({ kind, command, transition, before, after, sight }) {
  if (kind === "command") return { Heartbeat: "beat", Sweep: "sweep" }[command.verb] ?? "other";
  if (kind === "sight") return sight.event;
  if (kind !== "change") return kind;
  if (after?.status === "orphaned" && before?.status !== "orphaned") return "orphan";
  return transition;
}

function instanceLane(packed, { bands, said, sights }) {
  const items = [
    ...said.map((command) => ({ at: command.at, kind: "command", command })),
    ...sights.map((sight) => ({ at: sight.at, kind: "sight", sight })),
    ...packed.events.map(([at, event]) => ({ at, kind: "life", event })),
    ...packed.phases.map(([at, , phase]) => ({ at, kind: "phase", phase })),
    ...bands.map((band) => ({ at: band.begins, kind: "fault", band })),
  ];
  return {
    id: packed.name,
    kind: RUNS_JOBS.has(packed.kind) ? "instance" : "client",
    what: packed.kind,
    host: packed.host,
    heartbeat: packed.heartbeat_ms,
    ttl: packed.ttl_ms,
    lives: packed.lives,
    stills: packed.stills,
    phases: packed.phases,
    bands,
    ...arranged(items),
  };
}

function jobLane(packed, { bands, sights, commands, violation }) {
  const stamps = packed.stamps.map(named(STAMP));
  const stampAt = new Map(stamps.map((stamp) => [stamp.at, stamp]));
  let row = null;
  const changes = packed.changes.map(([at, place, transition, news, before = row]) => {
    row = news === null ? null : { ...before, ...news };
    const item = { at, kind: "change", transition, command: commands[place], before, after: row };
    item.stamp = stampAt.get(at) ?? null;
    (commands[place].changes ??= []).push({ job: packed.id, ...item });
    return item;
  });
  const bars = packed.bars.map(named(BAR));
  const items = [
    ...changes,
    ...sights.map((sight) => ({ at: sight.at, kind: "sight", sight })),
    ...bands.map((band) => ({ at: band.begins, kind: "fault", band })),
  ];
  if (violation) items.push({ ...violationItem(violation), change: changeAt(changes, violation.at) });
  const words = new Set([packed.id, ...bars.flatMap(({ status, owner }) => [status, owner ?? "nobody"])]);
  return {
    id: packed.id,
    kind: "job",
    touched: packed.touched,
    words: [...words].join(" ").toLowerCase(),
    bars,
    stamps,
    bands,
    ...arranged(items),
  };
}

/** The place of the first value whose `at` is not before `time`. */
function firstFrom(values, time) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle].at < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
