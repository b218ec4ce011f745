// Puts the page together once its data are unpacked.

const $ = (id) => document.getElementById(id);
const BEFORE = 300_000; // milliseconds before a violation that are shown first
const AFTER = 20_000;

async function main() {
  const model = new Model(await unpack($("run").textContent));
  const panel = { title: $("moment-title"), sentence: $("moment-sentence"), body: $("moment-body") };
  const box = $("lanes");
  const timeline = new Timeline(model, {
    scroller: box,
    canvas: $("canvas"),
    spacer: $("spacer"),
    overview: $("overview"),
    onSelect: (told) => showDetails(panel, told, model),
  });
  beginAtViolation(timeline, model);
  wireSearch(timeline, model);
  wireButtons(timeline, model);
  wireTheme(timeline);
  listenToKeys(timeline, {
    box,
    onHelp: () => $("help").showModal(),
    onDetails: () => $("moment").focus(),
    onSearch: () => $("search").focus(),
    onEscape: hideTip,
  });
  $("moment").addEventListener("keydown", ({ key }) => key === "Escape" && box.focus());
  box.addEventListener("focus", () => timeline.selected || timeline.begin());
  listenToWheel(timeline, $("canvas"));
  listenToPointers(timeline, $("canvas"), (found, event) => hover(timeline, found, event));
  listenToOverview(timeline, $("overview"));
  $("timeline").dataset.ready = "yes";
}

function beginAtViolation(timeline, model) {
  timeline.fit();
  if (!model.violation) return;
  timeline.filter("", $("touched").checked);
  timeline.scale.show(model.violation.at - BEFORE, model.violation.at + AFTER);
  timeline.toViolation();
}

function wireSearch(timeline, model) {
  const [search, touched, found] = [$("search"), $("touched"), $("found")];
  const apply = () => {
    timeline.filter(search.value, touched.checked);
    const shown = timeline.lanes.filter(({ kind }) => kind === "job").length;
    found.textContent = `${shown} of ${model.jobs.length} jobs`;
  };
  search.addEventListener("input", apply);
  touched.addEventListener("change", apply);
  apply();
}

function wireButtons(timeline, model) {
  const on = (id, act) => $(id)?.addEventListener("click", act);
  on("zoom-in", () => timeline.zoom(ZOOM));
  on("zoom-out", () => timeline.zoom(1 / ZOOM));
  on("fit", () => timeline.fit());
  on("to-violation", () => timeline.toViolation());
  on("help-button", () => $("help").showModal());
  const name = document.documentElement.dataset.name;
  on("save-svg", () => save(timelineSvg(timeline.view, timeline.colours), `${name}.svg`));
  on("save-png", async () => save(await timelinePng(timeline.view, timeline.colours), `${name}.png`));
  on("copy", async () => {
    try {
      await navigator.clipboard.writeText($("replay").textContent);
      $("copy").textContent = "Copied";
    } catch {
      getSelection().selectAllChildren($("replay"));
      $("copy").textContent = "Selected";
    }
  });
}

function wireTheme(timeline) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const tell = () => {
    $("theme").textContent = isDark() ? "Light" : "Dark";
    timeline.recolour();
  };
  $("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    tell();
  });
  dark.addEventListener("change", tell);
  tell();
}

function hover(timeline, found, event) {
  if (!found?.item || event.pointerType === "touch") return hideTip();
  const tip = $("tip");
  showTip(tip, describe(found.lane, found.item, timeline.model), timeline.model);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, window.innerWidth - width - 8);
  const below = event.clientY + 18;
  const top = below + height > window.innerHeight ? event.clientY - height - 12 : below;
  Object.assign(tip.style, { left: `${Math.max(8, left)}px`, top: `${Math.max(8, top)}px` });
}

function hideTip() {
  $("tip").hidden = true;
}

main().catch((error) => {
  $("found").textContent = `The timeline cannot be shown: ${error.message}`;
  throw error;
});
