// Elements without markup in strings: nothing that a server sends is ever read as HTML.

export const by = (id) => document.getElementById(id);

// element("td", {class: "number", onclick: f}, "text", other, ...)
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "tenant") node.style.setProperty("--tenant", value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const button = (text, onclick, attributes = {}) => element("button", { type: "button", onclick, ...attributes }, text);

// A table of rows of cells; a column is {title, number, long, action}, a cell is text, an element or null.
export function table(caption, columns, rows) {
  const kind = (column) => (column.number ? "number" : column.action ? "action" : column.long ? "long" : null);
  const head = columns.map((column) => element("th", { scope: "col", class: kind(column) }, column.title));
  const body = rows.map((row) => element("tr", {}, ...row.map((cell, place) => element("td", { class: kind(columns[place]) }, cell ?? ""))));
  const label = element("caption", { class: "soft" }, caption);
  return element("div", { class: "scroll" }, element("table", {}, caption ? label : null, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body)));
}

export const gb = (rate) => (rate === null || rate === undefined ? "–" : rate.toFixed(2));
export const sorted = (names) => [...names].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
export const list = (names) => (names.length > 8 ? `${names.slice(0, 8).join(", ")} and ${names.length - 8} more` : names.join(", "));

// Colours that differ without colour vision too; a tenant's name stands beside each.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7a5195", "#b3261e"];
const order = [];
export function colour(name) {
  if (!order.includes(name)) order.push(name);
  return COLOURS[order.indexOf(name) % COLOURS.length];
}

// Says what happened, at the lower edge of the window; it stays until the next action.
export function notice(error, done = "", warnings = []) {
  const place = by("notice");
  if (!error && !done) return place.replaceChildren();
  const lines = error ? [element("p", {}, error.message), error.hint ? element("p", { class: "soft" }, error.hint) : null] : [element("p", {}, done), ...warnings.map((text) => element("p", { class: "warn" }, text))];
  place.replaceChildren(element("div", { class: error ? "problem" : "done" }, ...lines));
}
