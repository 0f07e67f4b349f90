"use strict";
// The errors along the network on a logarithmic axis: drag to zoom, point or use the arrow keys to read, Enter to choose.
const LEAST = 1e-10, NAMED = 17, LONG = 26, DARK = "screen and (prefers-color-scheme: dark)"; // paper is light

function errorPlot(place, layers, choose) {
  if (!layers.length) {
    place.append(element("p", { class: "missing" }, "No pair of tensors was compared."));
    return;
  }
  const told = element("p", { class: "told", role: "status" });
  const holder = slider(layers.length, (number) => layerWords(layers[number], number), told, choose);
  const reset = element("button", { type: "button", onclick: () => zoom(0, layers.length - 1) }, "Whole network");
  const nearer = element("button", { type: "button", onclick: () => scale(0.5) }, "Zoom in");
  const further = element("button", { type: "button", onclick: () => scale(2) }, "Zoom out");
  place.append(holder, told, element("div", { class: "buttons" }, nearer, further, reset));
  const values = layers.map((layer) => ["introduced_error", "full_run_error", "noise_floor"].map((name) => numeric(layer[name])));
  const finite = values.flat().filter((value) => Number.isFinite(value) && value > 0);
  const power = (value) => 10 ** Math.ceil(Math.log10(value)); // axes of uPlot are whole decades
  const top = power(Math.max(1e-6, ...finite.map((value) => 1.5 * value))), bottom = power(Math.max(Math.min(1e-7, ...finite) / 10, LEAST));
  const shown = (value) => (Number.isNaN(value) ? top : Math.min(Math.max(value, bottom), top));
  const data = [
    layers.map((_, number) => number),
    values.map((row) => shown(row[2])),
    values.map((row) => shown(row[1])),
    values.map((row) => shown(row[0])),
    values.map((row, number) => (layers[number].guilty ? shown(row[0]) : null)),
  ];

  function zoom(from, to) {
    const least = Math.max(from, 0), most = Math.min(to, layers.length - 1);
    holder.plot.setScale("x", { min: least - 0.5, max: Math.max(most, least + 1) + 0.5 });
  }

  function scale(factor) {
    const { min, max } = holder.plot.scales.x, half = Math.max((factor * (max - min)) / 2, 2);
    zoom(holder.place() - half, holder.place() + half);
  }

  holder.addEventListener("keydown", (event) => {
    if (event.key === "+") scale(0.5);
    if (event.key === "-") scale(2);
  });
  const dots = (size, name) => ({ points: { show: true, size, fill: colour(name), stroke: colour(name) }, paths: () => null, stroke: colour(name) });
  networkPlot(holder, data, {
    height: 400, ends: [bottom, top],
    x: { range: (self, min, max) => [min ?? 0, max ?? 1] },
    ticks: {
      size: 150, rotate: -60, font: "11px system-ui, sans-serif", splits: (self) => namedPlaces(layers, self),
      values: (self, ticks) => ticks.map((tick) => `${layers[tick].guilty ? "● " : ""}${shortName(layers[tick].source_layer, LONG)}`),
    },
    series: () => [
      { fill: `${colour("floor")}44`, stroke: colour("floor"), points: { show: false } },
      { stroke: colour("full"), width: 1.5, points: { show: false } }, dots(5, "introduced"), dots(10, "guilty"),
    ],
    drawn: (plot) => {
      plot.setScale("x", { min: -0.5, max: Math.max(layers.length - 1, 1) + 0.5 });
      plot.over.addEventListener("click", () => choose(holder.place()));
    },
  });
  holder.tell(Math.max(layers.findIndex((layer) => layer.guilty), 0));
}

// Errors on whole decades in a slider, which knows it as `plot`; drawn again for another scheme of colours.
function networkPlot(holder, data, { height, ends, x = {}, ticks = {}, series, drawn = () => {} }) {
  const width = () => Math.max(holder.clientWidth, 280);
  const draw = () => {
    holder.plot?.destroy();
    const line = { stroke: colour("line") }, axis = { stroke: colour("text"), grid: { ...line, width: 1 }, ticks: line };
    holder.plot = new uPlot({
      width: width(), height, legend: { show: false }, cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false, ...x }, y: { distr: 3, range: ends } },
      axes: [{ ...axis, ...ticks }, {
        ...axis, grid: { ...axis.grid, filter: decades }, ticks: { ...axis.ticks, filter: decades }, size: 96, filter: decades,
        values: (self, marks) => marks.map((mark) => (mark === null ? "" : share(mark))),
      }],
      series: [{}, ...series()],
      hooks: { setCursor: [(self) => { if (self.cursor.idx !== null && self.cursor.idx !== undefined) holder.tell(self.cursor.idx); }] },
    }, data, holder);
    drawn(holder.plot);
  };
  draw();
  matchMedia(DARK).addEventListener("change", draw);
  new ResizeObserver(() => holder.plot.setSize({ width: width(), height })).observe(holder.parentElement);
}

// Something along the network that is read by pointing at it or with the arrow keys, and chosen with Enter.
function slider(count, words, told, choose) {
  const holder = element("div", { tabindex: 0, role: "slider", "aria-label": "Layer", "aria-valuemin": 0, "aria-valuemax": Math.max(count - 1, 0) });
  let current = 0;
  holder.place = () => current;
  holder.tell = (number) => {
    current = Math.min(Math.max(number, 0), count - 1);
    told.textContent = words(current);
    holder.setAttribute("aria-valuenow", current);
    holder.setAttribute("aria-valuetext", told.textContent);
  };
  holder.addEventListener("keydown", (event) => {
    const ends = { Home: 0, End: count - 1 }, steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    if (event.key in ends || event.key in steps) {
      holder.tell(ends[event.key] ?? current + steps[event.key]);
      holder.plot.setCursor({ left: holder.plot.valToPos(current, "x"), top: 40 }, false);
    } else if (event.key === "Enter" || event.key === " ") choose(current);
    else return;
    event.preventDefault();
  });
  return holder;
}

// A power of ten per cent, without an exponent.
function share(mark) {
  const power = Math.round(Math.log10(mark)) + 2;
  return power > 5 ? `1e${power} %` : `${power < 0 ? (10 ** power).toFixed(-power) : (10 ** power).toLocaleString("en")} %`;
}

function decades(self, ticks) {
  return ticks.map((tick) => (Number.isInteger(Math.round(1e6 * Math.log10(tick)) / 1e6) ? tick : null));
}

function layerWords(layer, number) {
  const pair = layer.source_layer === layer.target_layer ? layer.source_layer : `${layer.source_layer} / ${layer.target_layer}`;
  const operators = layer.source_operator === layer.target_operator ? layer.source_operator : `${layer.source_operator} / ${layer.target_operator}`;
  return `${number}: ${shortened(pair, 400)} (${operators}) ${errorWords(layer)}${layer.guilty ? "; at fault" : ""}`;
}

function errorWords(layer) {
  return `adds an error of ${percent(layer.introduced_error)} itself; the full run is off by ${percent(layer.full_run_error)} here; rounding error: ${limit(layer.noise_floor)}`;
}

function limit(value) {
  const told = percent(value);
  return told.startsWith("below") ? told : `at most ${told}`;
}

// Places that are named below a plot: those at fault first, then as many others as have room, evenly.
function namedPlaces(layers, plot) {
  const { min, max } = plot.scales.x, from = Math.max(Math.ceil(min), 0), to = Math.min(Math.floor(max), layers.length - 1);
  const room = Math.max(plot.bbox.width / devicePixelRatio, 100) / Math.max(max - min, 1), apart = Math.max(Math.ceil(NAMED / room), 1);
  const chosen = [], far = (place) => chosen.every((other) => Math.abs(other - place) >= apart);
  for (const place of range(from, to + 1)) if (layers[place].guilty && far(place)) chosen.push(place);
  for (let place = from; place <= to; place += apart) if (far(place)) chosen.push(place);
  return chosen.sort((one, two) => one - two);
}
