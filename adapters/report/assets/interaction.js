// Pointer, wheel and keys: each turned into one verb of the timeline.

const ZOOM = 1.6;

function listenToKeys(timeline, { box, onHelp, onDetails, onSearch, onEscape }) {
  const verbs = {
    ArrowRight: () => timeline.step(1),
    ArrowLeft: () => timeline.step(-1),
    ArrowDown: () => timeline.stepLane(1),
    ArrowUp: () => timeline.stepLane(-1),
    Home: () => timeline.stepToEnd(false),
    End: () => timeline.stepToEnd(true),
    PageDown: () => timeline.pan(timeline.scale.width * 0.8),
    PageUp: () => timeline.pan(-timeline.scale.width * 0.8),
    "+": () => timeline.zoom(ZOOM),
    "=": () => timeline.zoom(ZOOM),
    "-": () => timeline.zoom(1 / ZOOM),
    0: () => timeline.fit(),
    Enter: onDetails,
    Escape: onEscape,
  };
  const anywhere = { v: () => (box.focus(), timeline.toViolation()), "?": onHelp, "/": onSearch };
  const act = (verb, event) => {
    if (!verb || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    verb();
  };
  box.addEventListener("keydown", (event) => act(verbs[event.key], event));
  document.addEventListener("keydown", (event) => {
    if (!event.target.closest("input, textarea, select, dialog")) act(anywhere[event.key], event);
  });
}

function listenToWheel(timeline, box) {
  box.addEventListener(
    "wheel",
    (event) => {
      const onAxis = event.offsetY < AXIS;
      if (event.ctrlKey || event.metaKey || onAxis) {
        event.preventDefault();
        timeline.zoom(Math.exp(-event.deltaY * 0.0025), timeline.scale.time(event.offsetX));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        timeline.pan(event.deltaX || event.deltaY);
      }
    },
    { passive: false },
  );
}

/** One pointer pans or taps, two pinch, and a mouse that only moves hovers. */
function listenToPointers(timeline, canvas, onHover) {
  const down = new Map();
  let moved = 0;
  const middle = () => [...down.values()].reduce((sum, { x }) => sum + x, 0) / down.size;
  const apart = () => {
    const [a, b] = [...down.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  const here = (event) => ({ x: event.offsetX, y: event.offsetY });

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, here(event));
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId)) {
      onHover(timeline.at(event.offsetX, event.offsetY), event);
      return;
    }
    const [centre, size] = [middle(), down.size === 2 ? apart() : 0];
    const last = down.get(event.pointerId);
    down.set(event.pointerId, here(event));
    moved += Math.abs(event.offsetX - last.x);
    timeline.pan(centre - middle());
    if (down.size === 2 && size > 0) timeline.zoom(apart() / size, timeline.scale.time(middle()));
    onHover(null, event);
  });
  const up = (event) => {
    const tapped = down.delete(event.pointerId) && moved < 5 && event.type === "pointerup";
    const found = tapped ? timeline.at(event.offsetX, event.offsetY) : null;
    if (found?.item) timeline.select(found.lane, found.item);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", (event) => onHover(null, event));
}

/** The strip of the whole run: a drag moves the stretch that is shown. */
function listenToOverview(timeline, canvas) {
  const go = (event) => {
    const { scale, whole } = timeline;
    const half = (scale.to - scale.from) / 2;
    const time = whole.time(event.offsetX);
    scale.show(time - half, time + half);
    timeline.redraw();
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    go(event);
  });
  canvas.addEventListener("pointermove", (event) => event.buttons && go(event));
}
