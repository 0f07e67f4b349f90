"use strict";
// Several targets of one source, a line for each: what each introduces at the source's layers.
const HUES = [210, 20, 130, 285, 50, 330, 170, 0];

function targetsPlot(section, shared) {
  const orders = [...new Set(shared.targets.flatMap((target) => target.points.map((point) => point[0])))].sort((one, two) => one - two);
  const place = new Map(orders.map((order, number) => [order, number])), names = [];
  const floor = 1e-8;
  const lines = shared.targets.map((target) => {
    const values = orders.map(() => null);
    for (const [order, error, name] of target.points) {
      const value = numeric(error);
      values[place.get(order)] = Number.isFinite(value) ? Math.max(value, floor) : 1e3;
      names[place.get(order)] = name;
    }
    return values;
  });
  const told = element("p", { class: "told", role: "status" });
  const words = (number) => {
    const said = shared.targets.map((target, line) => `${target.label} ${lines[line][number] === null ? "not compared" : figure(lines[line][number])}`);
    return `${shortened(names[number] ?? "", 120)}: ${said.join(", ")}`;
  };
  const holder = slider(orders.length, words, told, () => {});
  section.querySelector(".plot").append(holder, told);
  const dark = matchMedia(DARK);
  const tone = (number) => `hsl(${HUES[number % HUES.length]} 70% ${dark.matches ? 68 : 36}%)`;
  const top = 10 ** Math.ceil(Math.log10(Math.max(1e-3, ...lines.flat().filter((value) => value !== null)) * 1.5));
  networkPlot(holder, [orders.map((_, number) => number), ...lines], {
    height: 260, ends: [floor, top],
    series: () => lines.map((_, line) => ({ stroke: tone(line), width: 1.5, spanGaps: true, points: { show: false } })),
    drawn: () => section.querySelector(".legend").replaceChildren(...shared.targets.map((target, line) =>
      element("span", { class: "key", style: `--key: ${tone(line)}` }, element("bdi", {}, target.label)))),
  });
  holder.tell(0);
}
