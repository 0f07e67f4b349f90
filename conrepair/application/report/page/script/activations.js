"use strict";
// What both sides have at a layer: pictures on one colour scale, histograms, and the elements that differ most.
const ODD = -128, LEVELS = 127, COLD = [33, 102, 172], NONE = [247, 247, 247], WARM = [178, 24, 43];

// What is seen first of a layer (scatter and pictures), and what stands below its attributes.
function activationsOf(data, number, choose) {
  const kept = data.kept[number], heading = element("h4", {}, "Activations");
  if (!kept) return { first: [heading, ...otherLayers(data, choose)], more: [] };
  const fed = kept.full_run ? "both models ran from their inputs on" : "the converted model was fed the original's activations in front of the layer";
  const sizes = `${kept.dtype}[${kept.shape.join(", ")}]`, theirs = `${kept.target_dtype}[${kept.target_shape.join(", ")}]`;
  const first = [heading, element("p", {}, `Of the first batch; ${fed}. `, sizes === theirs ? sizes : `${sizes} in the original, ${theirs} in the converted model.`)];
  if (!kept.pictures.length) first.push(element("p", { class: "missing" }, "The two tensors have different shapes: there's no picture of their difference."));
  const scatter = kept.scatter ? scatterOf(kept) : null, pictures = kept.pictures.length ? picturesOf(kept) : [];
  first.push(element("div", { class: "activations" }, scatter, pictures.length ? element("div", {}, ...pictures) : null));
  return { first, more: [...histogramsOf(kept), ...worstOf(kept)] };
}

function otherLayers(data, choose) {
  const places = Object.keys(data.kept).map(Number);
  if (!places.length) return [element("p", { class: "missing" }, "None were kept in this run.")];
  const button = (place) => element("button", { type: "button", title: data.layers[place].source_layer, onclick: () => choose(place) }, shortened(data.layers[place].source_layer, 60));
  return [
    element("p", { class: "missing" }, "They were kept of the layers with the largest errors and of outputs, and not of this one. Kept were:"),
    element("div", { class: "buttons" }, ...places.map(button)),
  ];
}

function picturesOf(kept) {
  const maps = kept.pictures.map((picture) => mapsOf(picture, kept)), magnified = { value: 1 };
  const limit = Math.max(...maps.flatMap((item) => [...item.source, ...item.target].filter(Number.isFinite).map(Math.abs)), 0) || 1;
  const most = numeric(kept.difference_scale);
  if (most > 0 && most < limit / 10) magnified.value = 10 ** Math.floor(Math.log10(limit / most));
  const odd = maps.some((item) => item.target.some(Number.isNaN));
  const several = kept.pictures.length > 1, alone = kept.pictures[0].channel === null;
  const what = `${alone ? "" : "The channels that differ most, the worst first"}${kept.sample === null ? "" : `${alone ? "Of" : ", of"} sample ${kept.sample} of the batch, which differs most`}`;
  const rows = kept.shape.length === 2 ? "Rows are samples. " : "";
  const words = `${rows}${what ? `${what}. ` : ""}Where several elements share a point, it is the one that differs most.${magnified.value > 1 ? ` Differences are shown ${magnified.value} times as large as they are.` : ""}`;
  return [
    element("p", {}, words), scaleOf(limit, magnified.value, odd),
    element("div", { class: "pictures" }, ...kept.pictures.map((picture, place) => pictureOf(picture, maps[place], limit, magnified.value, several ? 132 : 300))),
  ];
}

// Points of a picture as numbers; the converted model's are the original's and the difference.
function mapsOf(picture, kept) {
  const read = (text, scale) => Float64Array.from(Int8Array.from(atob(text), (letter) => letter.charCodeAt(0)), (level) => (level === ODD ? NaN : (level / LEVELS) * scale));
  const source = read(picture.source, numeric(kept.scale)), difference = read(picture.difference, numeric(kept.difference_scale));
  return { source, difference, target: source.map((value, place) => value + difference[place]) };
}

function pictureOf(picture, maps, limit, magnified, room) {
  const title = picture.channel === null ? "All values" : `Channel ${picture.channel}`;
  const side = (name, values, factor) => {
    const zoom = Math.max(Math.floor(room / Math.max(picture.width, picture.height)), 1);
    const canvas = element("canvas", { class: "map", width: picture.width, height: picture.height, role: "img", "aria-label": `${title}, ${name}: ${rangeWords(values)}` });
    canvas.style.width = `${zoom * picture.width}px`;
    paint(canvas, values, limit / factor);
    return element("div", {}, canvas, element("span", { class: "soft" }, factor > 1 ? `${name} × ${factor}` : name));
  };
  return element("figure", {},
    element("div", { class: "sides" }, side("original", maps.source, 1), side("converted", maps.target, 1), side("difference", maps.difference, magnified)),
    element("figcaption", {}, `${title}: differences have a root mean square of ${figure(picture.error)}`));
}

function rangeWords(values) {
  const numbers = values.filter(Number.isFinite);
  return numbers.length ? `${figure(Math.min(...numbers))} to ${figure(Math.max(...numbers))}` : "no finite number";
}

function scaleOf(limit, magnified, odd) {
  const canvas = element("canvas", { width: 101, height: 1, role: "img", "aria-label": "Blue for negative numbers, white for 0, red for positive ones" });
  paint(canvas, Float64Array.from({ length: 101 }, (_, place) => (place - 50) / 50), 1);
  const differences = magnified > 1 ? `; differences ${figure(-limit / magnified)} to ${figure(limit / magnified)}` : "";
  return element("p", { class: "scale" }, figure(-limit), canvas, `${figure(limit)}${differences}${odd ? "; black: no finite number" : ""}`);
}

function paint(canvas, values, limit) {
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  values.forEach((value, place) => {
    const share = Math.min(Math.abs(value) / limit, 1), end = value < 0 ? COLD : WARM;
    const mixed = Number.isNaN(value) ? [0, 0, 0] : NONE.map((level, part) => level + share * (end[part] - level));
    image.data.set([...mixed, 255], 4 * place);
  });
  context.putImageData(image, 0, 0);
}

function histogramsOf(kept) {
  const figures = [histogramOf("Activations", kept.values)];
  for (const item of kept.parameters) figures.push(histogramOf(`${item.role} of ${item.source_node}`, item.values));
  return [
    element("h4", {}, kept.parameters.length ? "Histograms of activations and weights" : "Histogram"),
    element("p", { class: "legend" }, element("span", { class: "key bars" }, "original"), " ", element("span", { class: "key outline" }, "converted"), " (counts on a logarithmic axis)"),
    element("div", { class: "histograms" }, ...figures),
  ];
}

function histogramOf(title, values) {
  const width = 300, height = 110, floor = height - 16, bins = values.source.length, step = width / bins;
  const most = Math.max(...values.source, ...values.target, 1), low = numeric(values.low), high = numeric(values.high);
  const level = (count) => (count ? floor - ((floor - 14) * Math.log(count + 1)) / Math.log(most + 1) : floor);
  const outline = (counts) => counts.map((count, bin) => `${(bin * step).toFixed(1)},${level(count).toFixed(1)} ${((bin + 1) * step).toFixed(1)},${level(count).toFixed(1)}`).join(" ");
  const odd = values.odd.some((count) => count > 0) ? `; no finite number: ${values.odd[0]} in the original, ${values.odd[1]} in the converted model` : "";
  const told = `original ${spreadWords(values.source, low, high)}; converted ${spreadWords(values.target, low, high)}${odd}`;
  const svg = drawn("svg", { class: "histogram", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${told}` },
    drawn("polygon", { class: "bars", points: `0,${floor} ${outline(values.source)} ${width},${floor}` }),
    drawn("polyline", { class: "outline", points: outline(values.target) }),
    drawn("line", { class: "axis", x1: 0, y1: floor, x2: width, y2: floor }),
    drawn("text", { x: 0, y: height - 3 }, figure(low)), drawn("text", { x: width, y: height - 3, "text-anchor": "end" }, figure(high)),
    drawn("text", { x: 0, y: 10 }, `up to ${most.toLocaleString("en")} in a bin`));
  return element("figure", {}, svg, element("figcaption", {}, element("b", {}, element("bdi", {}, shortened(title, 80))), `: ${told}`));
}

// Between which edges of bins nine tenths of the values lie, and the middle one.
function spreadWords(counts, low, high) {
  const all = counts.reduce((sum, count) => sum + count, 0), step = (high - low) / counts.length;
  if (!all) return "has no finite number";
  const place = (share) => {
    let seen = 0;
    return counts.findIndex((count) => (seen += count) >= share * all);
  };
  return `has half of its values below ${figure(low + (place(0.5) + 1) * step)}, nine tenths from ${figure(low + place(0.05) * step)} to ${figure(low + (place(0.95) + 1) * step)}`;
}

function worstOf(kept) {
  const heading = element("h4", {}, "Elements that differ most");
  if (!kept.worst.length) return kept.pictures.length ? [heading, element("p", {}, "No element differs.")] : [];
  const rows = kept.worst.map((item) => {
    const [one, two] = [item.source, item.target].map(numeric);
    return element("tr", {}, element("th", { scope: "row" }, `[${item.index.join(", ")}]`), ...[one, two, two - one].map((value) => element("td", { class: "number" }, exactly(value))));
  });
  const head = ["index in the original", "original", "converted", "difference"].map((words) => element("th", { scope: "col" }, words));
  return [heading, element("div", { class: "scroll tall", tabindex: 0, role: "group", "aria-label": "Elements that differ most" },
    element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)))];
}

function exactly(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(7))) : figure(value);
}
