// The changes made so far, each with the change that undoes it; and the events as they come.

import { button, by, element, list, sorted, table } from "./elements.js";

const MOST_EVENTS = 100;
const clock = (text) => element("time", { datetime: text }, new Date(text).toLocaleTimeString());

export function showHistory(changes, undo) {
  const rows = changes.slice(0, 30).map((change) => [
    clock(change.Time), `${change.Action} ${change.Composition}`, list(sorted(change.Blocks)), change.Client,
    state(change), reverse(change) && button("Undo", () => undo(reverse(change)), { "aria-label": `Undo: ${change.Action} ${change.Composition} ${list(change.Blocks)}` }),
  ]);
  const columns = ["time", "change", "devices", "by", "state"].map((title) => ({ title }));
  by("history").replaceChildren(rows.length ? table("", [...columns, { title: "", action: true }], rows) : element("p", { class: "soft" }, "None yet."));
}

function state(change) {
  if (change.State === "Running") return element("progress", { max: 100, value: change.Percent, "aria-label": `${change.Percent} %` });
  if (change.Problem) return element("span", { class: "bad" }, change.Problem);
  return "done";
}

// The change that undoes one, null if it cannot be undone.
function reverse(change) {
  if (change.State !== "Completed") return null;
  const { Composition, Blocks, Server } = change;
  if (change.Action === "compose") return change.Exists ? { Action: "release", Composition, Server, Blocks } : null;
  if (change.Action === "release") return !change.Exists && Server && Blocks.length ? { Action: "compose", Composition, Server, Blocks } : null;
  if (!change.Exists) return null;
  if (change.Action === "attach") return { Action: "detach", Composition, Blocks };
  return change.Action === "detach" ? { Action: "attach", Composition, Blocks } : null;
}

export function addEvent(record) {
  const severity = { OK: null, Warning: "warn", Critical: "bad" }[record.MessageSeverity];
  const place = by("events");
  place.prepend(element("li", { class: "fresh" }, clock(record.EventTimestamp), element("span", { class: severity }, record.Message)));
  while (place.children.length > MOST_EVENTS) place.lastElementChild.remove();
}
