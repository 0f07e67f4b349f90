"use strict";
// Elements made of text: nothing of a model, a file name or a message is ever read as HTML.
const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// A sentence as nodes: what stands between backticks is code.
function coded(text) {
  return text.split(/`([^`]+)`/).map((part, place) => (place % 2 ? element("code", {}, part) : part));
}

// Letters in front of and behind a middle that is left out: the ends of a layer's name tell more.
function shortened(text, length) {
  const letters = Array.from(text);
  if (letters.length <= length) return text;
  const head = Math.floor((length - 1) / 3);
  return letters.slice(0, head).join("") + "…" + letters.slice(letters.length - (length - 1 - head)).join("");
}

// A layer's name as much as tells it: of fused ones the first, without parts that the next one says again.
function shortName(name, length) {
  const parts = name.split(";")[0].split("/").filter(Boolean);
  const telling = parts.filter((part, place) => !(parts[place + 1] ?? "").startsWith(part));
  return shortened(telling.join("/") || name, length);
}

// Numbers that JSON lacks come as text.
function numeric(value) {
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  return value === "nan" || value === null ? NaN : Number(value);
}

function figure(value) {
  const number = numeric(value);
  if (Number.isNaN(number)) return "not a number";
  if (!Number.isFinite(number)) return "infinite";
  if (number === 0) return "0";
  const size = Math.abs(number);
  return size >= 1e-3 && size < 1e5 ? String(Number(number.toPrecision(3))) : number.toExponential(1);
}

// A share or a relative error, as words.percent tells it.
function percent(value) {
  const number = numeric(value);
  if (!Number.isFinite(number)) return number === -Infinity ? "-infinite" : figure(number);
  const size = Math.abs(number), sign = number < 0 ? "-" : "";
  if (size > 0 && size < 1e-6) return "below 0.0001 %";
  const rounded = Number(size.toPrecision(2));
  if (rounded >= 10) return `${sign}${Math.round(rounded).toLocaleString("en")} times`;
  const digits = rounded ? Math.max(0, 1 - Math.floor(Math.log10(rounded * 100))) : 0;
  return `${sign}${(rounded * 100).toFixed(digits)} %`;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
