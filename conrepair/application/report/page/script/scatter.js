"use strict";
// The same elements of both models against each other: the diagonal is where they are the same.
const SIDE = 260, EDGE = 46;

function scatterOf(kept) {
  const { source, target, factor, offset } = kept.scatter, all = [...source, ...target];
  const worst = kept.worst.map((item) => [numeric(item.source), numeric(item.target)]).filter((pair) => pair.every(Number.isFinite));
  const ends = [Math.min(...all), Math.max(...all)], room = (ends[1] - ends[0]) / 2; // far ones stand at the edge
  const low = Math.max(Math.min(ends[0], ...worst.flat()), ends[0] - room), high = Math.min(Math.max(ends[1], ...worst.flat()), ends[1] + room), span = high - low || 1;
  const x = (value) => EDGE + 6 + ((value - low) / span) * (SIDE - 12), y = (value) => 6 + ((high - value) / span) * (SIDE - 12);
  const points = source.map((value, place) => drawn("circle", { cx: x(value).toFixed(1), cy: y(target[place]).toFixed(1), r: 2.2 }));
  const inside = (value) => Math.min(Math.max(value, low), high);
  const rings = worst.map(([one, two]) => drawn("circle", { class: "worst", cx: x(inside(one)).toFixed(1), cy: y(inside(two)).toFixed(1), r: 4 }));
  const text = (words, more) => drawn("text", more, words);
  const svg = drawn("svg", { class: "scatter", width: SIDE + EDGE + 6, height: SIDE + 36, viewBox: `0 0 ${SIDE + EDGE + 6} ${SIDE + 36}`, role: "img", "aria-label": `Original against converted values: ${kept.scatter_words}` },
    drawn("rect", { class: "axis", x: EDGE, y: 0, width: SIDE, height: SIDE }),
    drawn("line", { class: "diagonal", x1: x(low), y1: y(low), x2: x(high), y2: y(high) }),
    fitted(numeric(factor), numeric(offset), low, high, x, y), ...points, ...rings,
    text(figure(low), { x: EDGE, y: SIDE + 14 }), text(figure(high), { x: EDGE + SIDE, y: SIDE + 14, "text-anchor": "end" }), text("original", { x: EDGE + SIDE / 2, y: SIDE + 30, "text-anchor": "middle" }),
    text(figure(high), { x: EDGE - 4, y: 12, "text-anchor": "end" }), text(figure(low), { x: EDGE - 4, y: SIDE, "text-anchor": "end" }), text("converted", { x: 12, y: SIDE / 2, transform: `rotate(-90 12 ${SIDE / 2})`, "text-anchor": "middle" }));
  const [seen, ...rest] = kept.scatter_words.split(/(?<=\.) (?=The fitted line)/);
  return element("figure", { class: "scattered" }, svg,
    element("figcaption", {}, element("b", {}, seen), " ", ...rest, ` Dashed: where both are the same; line: fitted; ${source.length} values${rings.length ? `, and the ${rings.length} that differ most as rings` : ""}.`));
}

// The fitted line as far as it lies within the square.
function fitted(factor, offset, low, high, x, y) {
  const ends = [low, high, (low - offset) / factor, (high - offset) / factor].filter((value) => Number.isFinite(value) && value >= low && value <= high);
  const kept = ends.map((value) => [value, factor * value + offset]).filter(([, value]) => value >= low - 1e-9 * (high - low) && value <= high + 1e-9 * (high - low));
  if (kept.length < 2) return null;
  kept.sort(([one], [two]) => one - two);
  const [[x1, y1], [x2, y2]] = [kept[0], kept.at(-1)];
  return drawn("line", { class: "fitted", x1: x(x1), y1: y(y1), x2: x(x2), y2: y(y2) });
}
