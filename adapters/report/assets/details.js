// What is said of one moment: a title, a sentence, facts, and the row before and after.

const MOST_NAMED = 12; // jobs in one list
const FIRST = ["status", "owner", "epoch", "beats", "deadline"]; // of a row's fields

/** {title, sentence, facts: [[name, value]], before, after} of an item on its lane. */
function describe(lane, item, model) {
  const told = { facts: [["time", clock(item.at)]], before: null, after: null };
  const add = (name, value) => value !== null && value !== undefined && told.facts.push([name, value]);
  const say = (title, sentence) => Object.assign(told, { title, sentence });
  switch (item.kind) {
    case "change":
      say(`${lane.id}: ${(item.transition ?? item.command.verb).replaceAll("_", " ")}`, changed(item));
      Object.assign(told, { row: true, before: item.before, after: item.after });
      if (item.stamp) add("deadline", `${clock(item.stamp.deadline)}${item.stamp.outlived ? ", not renewed in time" : ""}`);
      addCommand(add, item.command, model);
      break;
    case "command":
      say(`${lane.id}: ${item.command.verb}`, item.command.reply);
      addCommand(add, item.command, model);
      addChanges(told, add, item.command.changes ?? []);
      break;
    case "sight": {
      const { instance, job, epoch, beats, event } = item.sight;
      say(`${job}: ${event}`, `${event} by ${instance}, at epoch ${epoch} and beat ${beats}`);
      break;
    }
    case "fault": {
      const { band } = item;
      const lasts = band.ends > band.begins ? `for ${span(band.ends - band.begins)}` : "at this moment";
      say(`fault: ${band.name}`, model.stories[band.name] ?? lasts);
      if (band.ends > band.begins) add("until", `${clock(band.ends)}, ${lasts}`);
      add("befalls", band.on ?? "everyone");
      break;
    }
    case "step":
      say(`store clock steps ${signed(item.step.by)}`, "Every lease is judged by the new time.");
      break;
    case "life":
      say(`${lane.id} ${item.event.replaceAll("_", " ")}`, `${lane.what} on ${lane.host ?? "a host of its own"}`);
      if (lane.heartbeat) add("heartbeat", span(lane.heartbeat));
      if (lane.ttl) add("lease ttl", span(lane.ttl));
      break;
    case "phase":
      say(`${lane.id} is ${item.phase}`, `${lane.what} on ${lane.host ?? "a host of its own"}`);
      break;
    case "violation":
      say(`${item.violation.law} was broken`, item.violation.offence);
      if (item.change) {
        Object.assign(told, { row: true, before: item.change.before, after: item.change.after });
        addCommand(add, item.change.command, model);
      }
      break;
  }
  return told;
}

function changed({ before, after }) {
  if (!before) return `a new job, ${after.status}`;
  if (!after) return "its row is removed";
  if (before.status !== after.status) return `${before.status} → ${after.status}`;
  return before.beats === after.beats ? after.status : `${after.status}, its deadline stamped anew`;
}

function addCommand(add, command, model) {
  add("store clock", clock(command.storeAt - model.storeClock));
  add("command", `${command.n}: ${command.verb} by ${command.sender}`);
  if (command.job) add("of", command.epoch === null ? command.job : `${command.job}, epoch ${command.epoch}`);
  add("answer", command.reply);
  add("refused", command.refusal);
}

/** The jobs that a command changed; of a single one also its row. */
function addChanges(told, add, changes) {
  const jobs = [...new Set(changes.map(({ job }) => job))];
  if (!jobs.length) return;
  const more = jobs.length > MOST_NAMED ? ` and ${jobs.length - MOST_NAMED} more` : "";
  add("changed", jobs.slice(0, MOST_NAMED).join(", ") + more);
  if (jobs.length === 1) Object.assign(told, { row: true, before: changes[0].before, after: changes.at(-1).after });
}

/** Names of a row's fields: those that the change moved, and the others. */
function fields({ before, after }) {
  const names = [...new Set([...FIRST, ...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const moved = names.filter((name) => JSON.stringify(before?.[name] ?? null) !== JSON.stringify(after?.[name] ?? null));
  return { moved, still: names.filter((name) => !moved.includes(name)) };
}

const make = (tag, words, className) => {
  const node = document.createElement(tag);
  if (words !== undefined) node.textContent = words;
  if (className) node.className = className;
  return node;
};

function rowTable(told, names, model, caption) {
  const table = make("table", undefined, "row");
  table.append(make("caption", caption, "hidden"));
  const head = table.createTHead().insertRow();
  for (const words of ["field", "before", "after"]) {
    const cell = make("th", words);
    cell.scope = "col";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const name of names) {
    const row = body.insertRow();
    const title = make("th", name);
    title.scope = "row";
    row.append(title);
    for (const side of [told.before, told.after]) row.append(make("td", side ? cell(name, side[name], model) : "–"));
  }
  return table;
}

/** Fills the panel; its heading and sentence are read aloud, for they stand in a live region. */
function showDetails(panel, told, model) {
  panel.title.textContent = told.title;
  panel.sentence.textContent = told.sentence;
  const list = make("dl");
  for (const [name, value] of told.facts) list.append(make("dt", name), make("dd", value));
  const parts = [list];
  if (told.row) {
    const { moved, still } = fields(told);
    parts.push(rowTable(told, moved, model, "What the command changed in the row"));
    if (still.length) {
      const more = make("details");
      more.append(make("summary", `${still.length} fields stayed as they were`));
      more.append(rowTable(told, still, model, "What stayed as it was"));
      parts.push(more);
    }
  }
  panel.body.replaceChildren(...parts);
}

/** The same, short, beside the pointer. */
function showTip(tip, told, model) {
  const parts = [make("strong", told.title), make("span", `${told.facts[0][1]} · ${told.sentence}`)];
  const { moved } = told.row ? fields(told) : { moved: [] };
  if (told.before && told.after && moved.length) parts.push(rowTable(told, moved.slice(0, 8), model, "Changes"));
  tip.replaceChildren(...parts);
}
