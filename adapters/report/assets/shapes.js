// Marks that stand for one kind of moment each, alike on every lane.

/** Diagonal lines: told apart from a plain fill without its colour. */
function hatch(painter, x, y, width, height, stroke, gap = 6) {
  painter.clip(x, y, width, height, () => {
    for (let from = Math.floor((x - height) / gap) * gap; from < x + width; from += gap)
      painter.line(from, y + height, from + height, y, { stroke });
  });
}

const sweepMark = (painter, x, y, fill, stroke) =>
  painter.polygon([[x - 5, y], [x + 5, y], [x, y + 8]], { fill, stroke });

const healMark = (painter, x, y, fill) =>
  painter.polygon([[x - 5, y + 8], [x + 5, y + 8], [x, y]], { fill });

const sightMark = (painter, x, y, fill, stroke) =>
  painter.polygon([[x, y - 4.5], [x + 4.5, y], [x, y + 4.5], [x - 4.5, y]], { fill, stroke });

const crossMark = (painter, x, y, stroke) => {
  painter.line(x - 4, y - 4, x + 4, y + 4, { stroke, width: 2 });
  painter.line(x - 4, y + 4, x + 4, y - 4, { stroke, width: 2 });
};

/** A deadline that came: a mast with a flag. */
function deadlineMark(painter, x, y, height, stroke) {
  painter.line(x, y, x, y + height, { stroke, width: 1.5 });
  painter.polygon([[x, y], [x + 6, y + 3], [x, y + 6]], { fill: stroke });
}

/** The first of these texts that has room; the last one is cut, if at least `least` letters have. */
function fitted(texts, room, size = 11, least = 7) {
  const letters = Math.floor(room / (size * 0.58));
  const whole = texts.find((words) => words.length <= letters);
  if (whole !== undefined) return whole;
  return letters >= least ? `${texts.at(-1).slice(0, letters - 1)}…` : "";
}
