"use strict";
// Tables that are sorted by a click on a heading, and filtered.

function sortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, place) => {
    if (!heading.dataset.sort) return;
    const words = heading.textContent;
    heading.textContent = "";
    heading.append(element("button", { type: "button", onclick: () => sort(table, headings, place) }, words));
  });
}

function sort(table, headings, place) {
  const heading = headings[place];
  const down = heading.getAttribute("aria-sort") === "ascending";
  headings.forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = heading.dataset.sort === "number" ? (row) => cellNumber(row.cells[place]) : (row) => row.cells[place].textContent;
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [key(row), row]);
  rows.sort(([one], [two]) => (down ? -1 : 1) * compared(one, two));
  body.append(...rows.map(([, row]) => row));
}

function compared(one, two) {
  if (typeof one === "string") return one.localeCompare(two, undefined, { numeric: true });
  if (Number.isNaN(one) || Number.isNaN(two)) return Number(Number.isNaN(one)) - Number(Number.isNaN(two));
  return one === two ? 0 : one < two ? -1 : 1;
}

function cellNumber(cell) {
  const text = cell.dataset.value ?? cell.textContent.trim().replace("%", "");
  return text === "" ? NaN : numeric(text);
}

function filterable(section) {
  const words = section.querySelector(".filter"), only = section.querySelector(".only-different");
  const rows = [...section.querySelector("tbody").rows], count = section.querySelector(".count");
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const apply = () => {
    const wanted = words.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, place) => {
      const fits = texts[place].includes(wanted) && (!only?.checked || row.classList.contains("differs"));
      row.hidden = !fits;
      shown += Number(fits);
    });
    count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} shown`;
  };
  words.addEventListener("input", apply);
  only?.addEventListener("change", apply);
}
