"use strict";
// One layer on both sides: operators, attributes and parameters, with what differs marked.

function layerDetails(place, data, number, choose) {
  const layer = data.layers[number], card = data.cards.find((item) => item.layer === number);
  const faults = data.faults.filter((fault) => fault.layer === number);
  const title = layer.source_layer === layer.target_layer ? layer.source_layer : `${layer.source_layer} / ${layer.target_layer}`;
  const rows = [
    line("layer", layer.source_layer, layer.target_layer, false),
    line("tensor", layer.source_tensor, layer.target_tensor, false),
  ];
  for (const [ours, theirs] of card ? partners(card, data.nodes) : []) rows.push(...nodeLines(ours, theirs));
  const shown = activationsOf(data, number, choose);
  place.replaceChildren(
    element("h3", {}, element("bdi", {}, shortened(title, 200))),
    ...faults.map((fault) => element("p", { class: "fault" }, element("b", {}, fault.kind), ": ", element("bdi", {}, ...coded(fault.words.join("; "))))),
    element("p", {}, `This layer ${errorWords(layer)}. Largest difference ${figure(layer.introduced_max_abs)}, cosine ${figure(layer.introduced_cosine)}; layout of the original's tensor in the converted model: ${layer.layout}; confidence ${figure(layer.confidence)}.`),
    ...shown.first,
    element("h4", {}, "Operators, attributes and weights"),
    element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Both sides of the layer" }, element("table", {},
      element("thead", {}, element("tr", {}, ...["what", "original", "converted"].map((word) => element("th", { scope: "col" }, word)))),
      element("tbody", {}, ...rows))),
    ...shown.more,
  );
}

function line(name, ours, theirs, differs) {
  const cells = [ours, theirs].map((text) => element("td", {}, element("bdi", {}, text)));
  return element("tr", { class: differs ? "differs" : null }, element("th", { scope: "row" }, name + (differs ? " (differs)" : "")), ...cells);
}

// Nodes of both pieces that do the same, in order; then those that have no partner.
function partners(card, nodes) {
  const left = card.target.map((name) => nodes[1][name]).filter(Boolean), found = [];
  for (const ours of card.source.map((name) => nodes[0][name]).filter(Boolean)) {
    const place = left.findIndex((theirs) => theirs.operator === ours.operator);
    found.push([ours, place < 0 ? null : left.splice(place, 1)[0]]);
  }
  return [...found, ...left.map((theirs) => [null, theirs])];
}

function nodeLines(ours, theirs) {
  const both = ours !== null && theirs !== null, told = (node) => (node === null ? "" : `${node.native} (${node.name})`);
  const lines = [line("operator", told(ours), told(theirs), !both || ours.operator !== theirs.operator)];
  lines.push(line("gives", ours?.shapes.join("; ") ?? "", theirs?.shapes.join("; ") ?? "", false));
  const names = (key) => [...new Set([...Object.keys(ours?.[key] ?? {}), ...Object.keys(theirs?.[key] ?? {})])];
  for (const name of names("attributes")) {
    const [one, two] = [ours, theirs].map((node) => (node && name in node.attributes ? JSON.stringify(node.attributes[name]) : ""));
    lines.push(line(name, one, two, both && one !== two));
  }
  for (const role of names("parameters")) {
    const [one, two] = [ours, theirs].map((node) => parameterWords(node?.parameters[role]));
    lines.push(line(role, one, two, both && one !== two));
  }
  return lines;
}

function parameterWords(parameter) {
  if (!parameter) return "";
  const bits = parameter.bits ? `, ${parameter.bits} bits` : "", spread = parameter.spread;
  const numbers = spread ? `: ${figure(spread.minimum)} to ${figure(spread.maximum)}, mean ${figure(spread.mean)}, deviation ${figure(spread.std)}` : "";
  return `${parameter.dtype}[${parameter.shape.join(", ")}]${bits}${numbers}`;
}
