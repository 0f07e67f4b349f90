"use strict";
// Both graphs as cards, one for each pair of tensors; so many around the chosen one as can be read.
const AROUND = 30, PRINTED = 8, HALF = 270, LINE = 17, LETTERS = 36;

function graphView(place, cards, layers, nodes, choose) {
  if (!cards.length) {
    place.append(element("p", { class: "missing" }, "The graphs aren't in this result."));
    return () => {};
  }
  const view = element("div", { class: "graph-view", tabindex: 0, role: "group", "aria-label": "Both graphs, side by side" });
  const where = element("span", { class: "soft", role: "status" });
  const button = (words, act) => element("button", { type: "button", onclick: act }, words);
  const paper = matchMedia("print");
  let middle = 0, chosen = null, scale = 1;
  const guilty = cards.flatMap((card, number) => (card.layer !== null && layers[card.layer].guilty ? [number] : []));
  const earlier = button("Earlier layers", () => show(middle - AROUND));
  const later = button("Later layers", () => show(middle + AROUND));
  const next = button("Next at fault", () => {
    const target = guilty.find((number) => number > (chosen ?? -1)) ?? guilty[0];
    choose(cards[target].layer);
  });
  next.disabled = !guilty.length;
  const zoomed = (factor) => () => { scale = Math.min(Math.max(scale * factor, 0.3), 2); show(middle); };
  place.append(element("div", { class: "buttons" }, earlier, later, next, button("Zoom in", zoomed(1.25)), button("Zoom out", zoomed(0.8)), where), view);

  function show(number) {
    const around = paper.matches ? PRINTED : AROUND, first = Math.min(around, cards.length - 1);
    middle = Math.min(Math.max(number, first), Math.max(cards.length - 1 - around, first));
    const from = Math.max(middle - around, 0), to = Math.min(middle + around + 1, cards.length);
    earlier.disabled = from === 0;
    later.disabled = to === cards.length;
    where.textContent = cards.length > to - from ? `${from + 1} to ${to} of ${cards.length}` : `${cards.length} in all`;
    view.replaceChildren(picture(from, to));
  }

  function picture(from, to) {
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ nodesep: 24, ranksep: 26, marginx: 12, marginy: 12 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (let number = from; number < to; number += 1) {
      const lines = Math.max(cards[number].source.length, cards[number].target.length, 1);
      graph.setNode(String(number), { width: 2 * HALF, height: LINE * Math.min(lines, 6) + 12 });
    }
    for (let number = from; number < to; number += 1)
      for (const before of cards[number].after) if (before >= from && before < number) graph.setEdge(String(before), String(number));
    dagre.layout(graph);
    const { width, height } = graph.graph();
    const svg = drawn("svg", { width: scale * width, height: scale * height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Layers in the order of the network" });
    for (const edge of graph.edges()) {
      const points = graph.edge(edge).points.map((point) => `${point.x.toFixed(1)},${point.y.toFixed(1)}`).join(" ");
      svg.append(drawn("polyline", { points, class: "edge" }));
    }
    for (let number = from; number < to; number += 1) svg.append(cardOf(number, graph.node(String(number))));
    return svg;
  }

  function cardOf(number, box) {
    const card = cards[number], layer = card.layer === null ? null : layers[card.layer];
    const left = box.x - box.width / 2, top = box.y - box.height / 2;
    const words = layer === null ? `without a partner: ${[...card.source, ...card.target].join(", ")}` : layerWords(layer, card.layer);
    const act = () => { if (layer !== null) choose(card.layer); };
    const kind = `card${layer === null ? " alone" : ""}${number === chosen ? " chosen" : ""}`;
    const group = drawn("g", { class: kind, tabindex: 0, role: "button", "aria-label": words, onclick: act, onkeydown: (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); }
    } }, drawn("title", {}, words));
    [card.source, card.target].forEach((names, side) => {
      if (!names.length) return;
      const x = left + side * HALF;
      group.append(drawn("rect", { x, y: top, width: HALF, height: box.height, class: `half edge${layer === null ? 0 : heat(layer)}` }));
      names.slice(0, 6).forEach((name, line) => {
        const node = nodes[side][name], more = line === 5 && names.length > 6 ? ` and ${names.length - 6} more` : "";
        const text = node ? `${node.native}  ${shortened(node.layer, LETTERS - node.native.length)}${more}` : shortened(name, LETTERS);
        group.append(drawn("text", { x: x + 8, y: top + 18 + line * LINE }, text));
      });
    });
    if (card.source.length && card.target.length) group.append(drawn("line", { x1: left + HALF - 6, x2: left + HALF + 6, y1: box.y, y2: box.y, class: "link" }));
    group.append(drawn("rect", { x: left, y: top, width: box.width, height: box.height, class: "frame" }));
    return group;
  }

  function showChosen() {
    show(chosen ?? middle);
    const card = view.querySelector(".card.chosen");
    if (card) {
      const box = card.getBoundingClientRect(), frame = view.getBoundingClientRect();
      view.scrollTop += box.top - frame.top - (frame.height - box.height) / 2;
      view.scrollLeft += box.left - frame.left - (frame.width - box.width) / 2;
    }
  }

  paper.addEventListener("change", showChosen);
  return (layer) => {
    chosen = cards.findIndex((card) => card.layer === layer);
    showChosen();
  };
}

// From 0 (within what rounding explains) to 4 (at fault).
function heat(layer) {
  if (layer.guilty) return 4;
  const ratio = numeric(layer.introduced_error) / numeric(layer.noise_floor);
  if (!(ratio > 1)) return 0;
  return Math.min(1 + Math.floor(Math.log10(ratio)), 3);
}
