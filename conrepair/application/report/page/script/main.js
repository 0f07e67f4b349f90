"use strict";
// Sections are drawn when they're unfolded: a page of many models opens at once.

function localization(section) {
  const data = JSON.parse(document.getElementById(`data-${section.dataset.row}`).textContent);
  const details = section.querySelector(".layer");
  let chosen = null;
  const choose = (number, focus = true) => {
    if (number === null || number === undefined) return;
    chosen?.classList.remove("chosen");
    layerDetails(details, data, number, choose);
    focusGraph(number);
    chosen = section.querySelector(`tr[data-layer="${number}"]`);
    chosen?.classList.add("chosen");
    if (focus) details.focus({ preventScroll: false });
  };
  const focusGraph = graphView(section.querySelector(".graph"), data, choose);
  errorPlot(section.querySelector(".plot"), data.layers, choose);
  layerTable(section.querySelector(".layers"), data.layers, choose);
  if (data.layers.length) choose(data.guilty[0] ?? 0, false);
  section.chooseLayer = choose;
}

function layerTable(place, layers, choose) {
  const columns = [["place", "number"], ["layer of the original", "text"], ["layer of the converted model", "text"], ["operators", "text"],
    ["error added", "number"], ["SQNR dB", "number"], ["cosine", "number"], ["error in the full run", "number"], ["rounding error at most", "number"], ["layout", "text"]];
  const head = element("tr", {}, ...columns.map(([words, sort]) => element("th", { scope: "col", "data-sort": sort }, words)));
  const rows = layers.map((layer, number) => element("tr", { "data-layer": number, class: layer.guilty ? "guilty" : null },
    element("td", {}, String(number)),
    element("td", {}, element("button", { type: "button", title: layer.source_layer, onclick: () => choose(number) }, shortened(layer.source_layer, 60))),
    element("td", {}, element("bdi", { title: layer.target_layer }, shortened(layer.target_layer, 60))),
    element("td", {}, `${layer.source_operator} / ${layer.target_operator}`),
    ...[["introduced_error", percent], ["introduced_sqnr_db", figure], ["introduced_cosine", figure], ["full_run_error", percent], ["noise_floor", percent]].map(([name, told]) => element("td", { "data-value": layer[name] }, told(layer[name]))),
    element("td", {}, layer.layout)));
  const table = element("table", { class: "sortable" }, element("thead", {}, head), element("tbody", {}, ...rows));
  sortable(table);
  place.append(
    element("p", { class: "on-paper" }, "Only layers at fault and the chosen one are printed."),
    element("div", { class: "scroll tall", tabindex: 0, role: "group", "aria-label": "Layers" }, table));
}

function unfold(row) {
  const section = row.querySelector(".localization");
  if (section && !section.dataset.drawn) {
    section.dataset.drawn = "yes";
    localization(section);
  }
}

// A link to a row or a layer unfolds its section, and chooses the layer.
function follow() {
  const found = /^#(row-\d+)(?:-layer-(\d+))?$/.exec(location.hash);
  if (!found) return;
  const row = document.getElementById(found[1]);
  if (!row) return;
  row.open = true;
  unfold(row);
  if (found[2] !== undefined) row.querySelector(".localization")?.chooseLayer(Number(found[2]));
  else row.scrollIntoView();
}

document.querySelectorAll("section.targets").forEach((section) => {
  targetsPlot(section, JSON.parse(document.getElementById("data-targets").textContent)[Number(section.dataset.place)]);
});
document.querySelectorAll("table.sortable").forEach(sortable);
document.querySelectorAll("div.inputs").forEach(filterable);
document.querySelectorAll("details.row").forEach((row) => {
  row.addEventListener("toggle", () => { if (row.open) unfold(row); });
  if (row.open) unfold(row);
});
document.querySelectorAll("a.layer-link").forEach((link) => link.addEventListener("click", () => setTimeout(follow)));
addEventListener("hashchange", follow);
// On paper causes are unfolded, and what isn't right.
const UNFOLDED = document.body.classList.contains("several")
  ? ".causes details:not([open]), details.row.fails:not([open])"
  : "details.row:not(.right, [open]), .problem details:not([open])";
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll(UNFOLDED)];
  unfolded.forEach((item) => { item.open = true; if (item.matches(".row")) unfold(item); });
});
addEventListener("afterprint", () => unfolded.forEach((item) => { item.open = false; }));
follow();
