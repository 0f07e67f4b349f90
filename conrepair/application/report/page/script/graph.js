"use strict";
// Both networks as graphs in step: one layout for both sides, so that counterparts stand at the same place of either pane.
const WIDE = 264, LINE = 15, LETTERS = 34, LINES = 5, FEW = 40, NEAR = 8;

function graphView(place, data, choose) {
  const { cards, layers, nodes } = data;
  if (!cards.length) {
    place.append(element("p", { class: "missing" }, "The graphs aren't in this result."));
    return () => {};
  }
  const blockOf = new Map(data.blocks.flatMap((block, number) => range(block.first, block.last + 1).map((card) => [card, number])));
  const folded = new Set(cards.length > FEW ? data.blocks.keys() : []);
  const texts = cards.map((card) => wordsOf(card, data).toLowerCase());
  const faulty = range(0, cards.length).filter((number) => cards[number].layer !== null && layers[cards[number].layer].guilty);
  const status = element("span", { class: "soft", role: "status" }), now = element("p", { class: "told", role: "status" });
  const panes = ["Original", "Converted"].map((words) => element("div", { class: "pane", role: "img", "aria-label": `${words} model as a graph` }));
  const view = element("div", { class: "graph-view", tabindex: 0, role: "group", "aria-label": "Both models as graphs; arrow keys go from layer to layer, Enter chooses one or unfolds a block, plus and minus zoom" },
    ...["Original", "Converted"].map((words, side) => element("div", {}, element("b", {}, words), panes[side])));
  const search = element("input", { type: "search", autocomplete: "off", "aria-label": "Search for a layer" });
  const button = (words, act) => element("button", { type: "button", onclick: act }, words);
  const fold = button("Fold blocks", () => { data.blocks.forEach((_, number) => folded.add(number)); arrange(); whole(); });
  const open = button("Unfold all", () => { folded.clear(); arrange(); go(current); });
  fold.disabled = open.disabled = !data.blocks.length;
  const next = button("Next at fault", () => choose(cards[following(faulty, current)].layer, false));
  const more = button("Show this layer", () => choose(cards[current].layer));
  next.disabled = !faulty.length;
  place.append(
    element("div", { class: "filters" }, element("label", {}, "Search ", search), status),
    element("div", { class: "buttons" }, next, button("Whole graph", () => whole()), button("Zoom in", () => zoomed(1.25)), button("Zoom out", () => zoomed(0.8)), fold, open),
    view, now, element("div", { class: "buttons" }, more));
  const sides = panes.map((pane) => cytoscape({ container: pane, style: graphStyle(), minZoom: 0.02, maxZoom: 3, boxSelectionEnabled: false, autoungrabify: true }));
  let current = 0, shown = [], moving = false;
  sides.forEach((graph, side) => {
    graph.on("viewport", () => {
      if (moving) return;
      moving = true;
      sides[1 - side].viewport({ zoom: graph.zoom(), pan: graph.pan() });
      moving = false;
    });
    graph.on("tap", "node", (event) => act(event.target.id()));
  });

  // What is drawn of a card: itself, or the block that it's folded into.
  function itemOf(card) {
    const block = blockOf.get(card);
    return block !== undefined && folded.has(block) ? `block${block}` : `card${card}`;
  }

  function arrange() {
    const items = new Map(), layout = new dagre.graphlib.Graph();
    cards.forEach((_, card) => items.set(itemOf(card), [...(items.get(itemOf(card)) ?? []), card]));
    layout.setGraph({ nodesep: 26, ranksep: 32, ranker: items.size > 300 ? "longest-path" : "network-simplex" });
    layout.setDefaultEdgeLabel(() => ({}));
    const labels = new Map([...items].map(([item, members]) => [item, [0, 1].map((side) => labelOf(item, members, side))]));
    const height = (item) => LINE * Math.max(...labels.get(item).map((label) => label.split("\n").length)) + 12;
    items.forEach((_, item) => layout.setNode(item, { width: WIDE, height: height(item) }));
    const edges = ["source_after", "target_after"].map((name) => edgesOf(name));
    edges.forEach((some) => some.forEach(([from, to]) => layout.setEdge(from, to)));
    dagre.layout(layout);
    shown = [...items.keys()];
    sides.forEach((graph, side) => graph.batch(() => {
      graph.elements().remove();
      const open = new Set(data.blocks.keys());
      folded.forEach((number) => open.delete(number));
      graph.add([...open].map((number) => ({ group: "nodes", pannable: true, classes: "open", data: { id: `open${number}`, label: `▾ ${shortName(data.blocks[number].label, LETTERS)}` } })));
      graph.add([...items].map(([item, members]) => {
        const { x, y } = layout.node(item), block = blockOf.get(members[0]);
        const parent = item.startsWith("card") && block !== undefined ? `open${block}` : undefined;
        return { group: "nodes", pannable: true, classes: classesOf(item, members, side), position: { x, y }, data: { id: item, parent, label: labels.get(item)[side], height: height(item) } };
      }));
      graph.add(edges[side].map(([source, target]) => ({ group: "edges", data: { source, target } })));
    }));
    mark();
  }

  function edgesOf(name) {
    const known = new Map();
    cards.forEach((card, number) => card[name].forEach((before) => {
      const ends = [itemOf(before), itemOf(number)];
      if (before < number && ends[0] !== ends[1]) known.set(ends.join(" "), ends);
    }));
    return [...known.values()];
  }

  function labelOf(item, members, side) {
    if (item.startsWith("block")) return `▸ ${shortName(data.blocks[Number(item.slice(5))].label, LETTERS)}\n${members.length} layers`;
    const names = [cards[members[0]].source, cards[members[0]].target][side];
    if (!names.length) return "no counterpart";
    const told = names.slice(0, LINES).map((name) => {
      const node = nodes[side][name];
      return node ? lineOf(shortened(node.native, LETTERS - 14), node.layer) : shortName(name, LETTERS);
    });
    return [...told, ...(names.length > LINES ? [`and ${names.length - LINES} more`] : [])].join("\n");
  }

  function classesOf(item, members, side) {
    const found = members.map((card) => cards[card].layer).filter((layer) => layer !== null).map((layer) => heat(layers[layer]));
    const alone = item.startsWith("card") && ![cards[members[0]].source, cards[members[0]].target][side].length;
    return `${item.slice(0, 4)} heat${Math.max(...found, 0)}${alone ? " alone" : ""}${found.length ? "" : " without"}`;
  }

  function act(id) {
    const number = Number(id.replace(/\D+/, ""));
    if (id.startsWith("card")) return cards[number].layer === null ? go(number) : choose(cards[number].layer, false);
    if (id.startsWith("open")) folded.add(number);
    else folded.delete(number);
    arrange();
    return go(id.startsWith("open") || blockOf.get(current) !== number ? data.blocks[number].first : current);
  }

  function mark() {
    const wanted = search.value.trim().toLowerCase();
    const hits = wanted ? range(0, cards.length).filter((card) => texts[card].includes(wanted)) : [];
    const items = new Set(hits.map(itemOf));
    sides.forEach((graph) => graph.batch(() => {
      graph.nodes().removeClass("chosen hit");
      graph.getElementById(itemOf(current)).addClass("chosen");
      items.forEach((item) => graph.getElementById(item).addClass("hit"));
    }));
    if (!wanted) status.textContent = `${cards.length} layers${folded.size ? `, ${folded.size} of ${data.blocks.length} blocks folded` : ""}`;
    else if (!hits.length) status.textContent = "No layer has this in its name, operator or attributes.";
    else status.textContent = `${hits.includes(current) ? `${hits.indexOf(current) + 1} of ` : ""}${hits.length} found; Enter goes to the next`;
    now.textContent = wordsNow();
    more.disabled = cards[current].layer === null || itemOf(current).startsWith("block");
    return hits;
  }

  function wordsNow() {
    const item = itemOf(current), layer = cards[current].layer;
    if (item.startsWith("block")) {
      const block = data.blocks[Number(item.slice(5))], inside = faulty.filter((card) => card >= block.first && card <= block.last).length;
      return `Block ${shortName(block.label, 120)}: ${block.last - block.first + 1} layers${inside ? `, ${inside} at fault` : ""}; Enter unfolds it`;
    }
    return layer === null ? `Without a counterpart: ${[...cards[current].source, ...cards[current].target].join(", ")}` : layerWords(layers[layer], layer);
  }

  // To a card: in the middle of both panes, as large as it can be read.
  function go(card) {
    current = card;
    mark();
    const node = sides[0].getElementById(itemOf(card));
    if (!sides[0].width()) return;
    if (sides[0].zoom() < 0.6 || sides[0].zoom() > 1.6) sides[0].zoom(Math.min(1, sides[0].width() / (WIDE + 24)));
    sides[0].center(node);
  }

  function whole() {
    const box = sides[0].elements().boundingBox();
    sides[0].fit(undefined, 12);
    if (box.h > 3 * box.w && sides[0].zoom() < 0.25) { // a long chain is no picture in whole: its beginning is
      sides[0].zoom(Math.min(0.6, sides[0].width() / (box.w + 24)));
      sides[0].pan({ x: sides[0].width() / 2 - sides[0].zoom() * (box.x1 + box.w / 2), y: 12 - sides[0].zoom() * box.y1 });
    }
  }

  function zoomed(factor) {
    const graph = sides[0];
    graph.zoom({ level: factor * graph.zoom(), renderedPosition: { x: graph.width() / 2, y: graph.height() / 2 } });
  }

  function step(count) {
    const at = shown.indexOf(itemOf(current)), item = shown[Math.min(Math.max(at + count, 0), shown.length - 1)];
    const number = Number(item.replace(/\D+/, ""));
    go(item.startsWith("card") ? number : data.blocks[number].first);
  }

  search.addEventListener("input", mark);
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const hits = mark();
    if (!hits.length) return;
    const card = hits.includes(current) ? following(hits, current) : hits[0];
    if (folded.delete(blockOf.get(card))) arrange();
    go(card);
    if (cards[card].layer !== null) choose(cards[card].layer, false);
  });
  view.addEventListener("keydown", (event) => {
    const keys = { ArrowDown: () => step(1), ArrowRight: () => step(1), ArrowUp: () => step(-1), ArrowLeft: () => step(-1), Home: () => step(-Infinity), End: () => step(Infinity),
      "+": () => zoomed(1.25), "-": () => zoomed(0.8), Enter: () => act(itemOf(current)), " ": () => act(itemOf(current)) };
    if (event.ctrlKey || event.metaKey || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  const styled = () => sides.forEach((graph) => graph.style(graphStyle()));
  matchMedia(DARK).addEventListener("change", styled);
  onPaper(view, panes, sides, styled, () => near(shown, itemOf(current), NEAR));
  faulty.forEach((card) => folded.delete(blockOf.get(card)));
  arrange();
  return (layer) => {
    const card = cards.findIndex((item) => item.layer === layer);
    if (card < 0) return;
    if (folded.delete(blockOf.get(card))) arrange();
    go(card);
  };
}

// Canvases are no good on paper: pictures of both panes around what is chosen stand there in their place.
function onPaper(view, panes, sides, styled, around) {
  const paper = matchMedia("print");
  const draw = () => {
    view.querySelectorAll("img").forEach((image) => image.remove());
    if (!paper.matches && !view.dataset.printing) return;
    styled();
    sides.forEach((graph, side) => {
      const items = new Set(around()), kept = graph.nodes().filter((node) => items.has(node.id()));
      const rest = graph.elements().difference(kept.union(kept.edgesWith(kept)).union(kept.parents())).remove();
      const image = element("img", { src: graph.png({ full: true, scale: 2, bg: "#ffffff" }), alt: "" });
      rest.restore();
      panes[side].after(image);
    });
  };
  paper.addEventListener("change", () => { draw(); if (!paper.matches) styled(); });
  addEventListener("beforeprint", () => { view.dataset.printing = "yes"; draw(); });
  addEventListener("afterprint", () => { delete view.dataset.printing; draw(); styled(); });
}

function graphStyle() {
  const box = { shape: "round-rectangle", "border-width": 1, "border-color": colour("line"), color: colour("text"), "font-size": 12, "font-family": "system-ui, sans-serif" };
  return [
    { selector: "node[height]", style: { ...box, width: WIDE, height: "data(height)", label: "data(label)", "text-wrap": "wrap", "text-valign": "center", "text-max-width": WIDE - 8, "line-height": 1.2, "min-zoomed-font-size": 5, "background-color": colour("e0") } },
    ...[1, 2, 3, 4].map((level) => ({ selector: `.heat${level}`, style: { "background-color": colour(`e${level}`) } })),
    { selector: ".heat4", style: { "border-color": colour("guilty"), "border-width": 2 } },
    { selector: ".bloc", style: { "border-style": "double", "border-width": 4 } },
    { selector: ".without", style: { "border-style": "dashed", "border-color": colour("soft") } },
    { selector: ".alone", style: { "background-opacity": 0, "border-style": "dashed", color: colour("soft") } },
    { selector: ".open", style: { ...box, label: "data(label)", "text-valign": "top", "text-halign": "center", color: colour("soft"), "background-color": colour("raised"), "background-opacity": 0.5, padding: 8 } },
    { selector: ".hit", style: { "border-color": colour("link"), "border-width": 3, "border-style": "dotted" } },
    { selector: ".chosen", style: { "border-color": colour("link"), "border-width": 4, "border-style": "solid" } },
    { selector: "edge", style: { width: 1.4, "line-color": colour("soft"), "target-arrow-color": colour("soft"), "target-arrow-shape": "triangle", "arrow-scale": 0.8, "curve-style": "bezier" } },
  ];
}

// An operator with as much of its layer's name as a box has room for.
const pen = document.createElement("canvas").getContext("2d");
function lineOf(operator, name) {
  pen.font = "12px system-ui, sans-serif";
  for (let letters = LETTERS; ; letters -= 2) {
    const text = `${operator}  ${shortName(name, letters)}`;
    if (letters <= 8 || pen.measureText(text).width <= WIDE - 14) return text;
  }
}

// What a search goes through: names, operators and attributes of both sides.
function wordsOf(card, data) {
  const told = (side) => (name) => {
    const node = data.nodes[side][name];
    return node ? `${name} ${node.layer} ${node.native} ${node.operator} ${JSON.stringify(node.attributes)}` : name;
  };
  const layer = card.layer === null ? null : data.layers[card.layer];
  return [...card.source.map(told(0)), ...card.target.map(told(1)), ...(layer ? [layer.source_layer, layer.target_layer, layer.source_tensor, layer.target_tensor] : [])].join(" ");
}

function near(items, item, count) {
  const at = Math.max(items.indexOf(item), 0);
  return items.slice(Math.max(at - count, 0), at + count + 1);
}

function following(numbers, number) {
  return numbers.find((other) => other > number) ?? numbers[0];
}

function range(from, to) {
  return Array.from({ length: to - from }, (_, place) => from + place);
}

// From 0 (within rounding error) to 4 (at fault).
function heat(layer) {
  if (layer.guilty) return 4;
  const ratio = numeric(layer.introduced_error) / numeric(layer.noise_floor);
  if (!(ratio > 1)) return 0;
  return Math.min(1 + Math.floor(Math.log10(ratio)), 3);
}
