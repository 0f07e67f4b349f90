"use strict";
// The matrix shows what has one of the chosen verdicts; what's below it, too.

function chosenVerdicts(section) {
  const buttons = [...section.querySelectorAll(".filters button")], words = section.querySelector(".filter"), count = section.querySelector(".count");
  const table = section.querySelector("table"), rows = [...table.tBodies[0].rows], texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const named = table.tHead.rows[0].querySelectorAll("th[data-sort=text]").length;
  const apply = () => {
    const chosen = buttons.filter((button) => button.getAttribute("aria-pressed") === "true").map((button) => button.dataset.word);
    const wanted = words.value.trim().toLowerCase(), fits = (word) => !chosen.length || chosen.includes(word);
    rows.forEach((row) => {
      const cells = [...row.cells].slice(named);
      cells.forEach((cell) => cell.classList.toggle("other", !fits(cell.dataset.word)));
      row.hidden = !texts.get(row).includes(wanted) || !cells.some((cell) => cell.dataset.word && fits(cell.dataset.word));
    });
    const shown = rows.filter((row) => !row.hidden);
    [...table.tHead.rows[0].cells].slice(named).forEach((heading, place) => {
      const empty = !shown.some((row) => row.cells[named + place].dataset.word && fits(row.cells[named + place].dataset.word));
      [heading, ...rows.map((row) => row.cells[named + place])].forEach((cell) => { cell.hidden = empty; });
    });
    document.querySelectorAll("details.row").forEach((row) => { row.hidden = !fits(row.dataset.word); });
    count.textContent = shown.length === rows.length ? "" : `${shown.length} of ${rows.length} models shown`;
  };
  buttons.forEach((button) => button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    apply();
  }));
  words.addEventListener("input", apply);
}

document.querySelectorAll("section.matrix").forEach((section) => { if (section.querySelector(".filter")) chosenVerdicts(section); });
