// The changes made so far, each with the change that undoes it; and the events as they come.

import { button, by, element, list, sorted, table } from "./elements.js";

const WORDS = { attach: "add to", detach: "take back from" };
const MOST_EVENTS = 100;
const clock = (text) => element("time", { datetime: text }, new Date(text).toLocaleTimeString());

// A change in words: what it does, or what was done.
export function said(change, done = false) {
  const things = list(sorted(change.Blocks));
  const { Action, Composition, Server } = change;
  if (Action === "compose") return `${done ? "gave" : "give"} ${things} to ${Composition ? `${Composition} on ` : ""}${Server}`;
  if (Action === "release") return `${done ? "released" : "release"} ${Composition}`;
  return Action === "attach" ? `${done ? "added" : "add"} ${things} to ${Composition}` : `${done ? "took" : "take"} ${things} back from ${Composition}`;
}

// `fabric` is that of today: it says which changes can still be undone.
export function showHistory(changes, fabric, undo) {
  const owner = new Map(fabric.Devices.map((device) => [device.Name, device.Composition]));
  const taken = new Set(fabric.Compositions.map((one) => one.Server));
  const ended = new Set(); // names of compositions that a newer change released
  const reversed = changes.map((change) => {
    const back = ended.has(change.Composition) ? null : reverse(change, owner, taken);
    if (change.Action === "release" && change.State === "Completed") ended.add(change.Composition);
    return back;
  });
  const rows = changes.slice(0, 30).map((change, place) => [
    clock(change.Time), `${WORDS[change.Action] ?? change.Action} ${change.Composition}`, list(sorted(change.Blocks)), change.Client,
    state(change), reversed[place] && button("Undo", () => undo(reversed[place]), { "aria-label": `Undo: ${said(change)}` }),
  ]);
  const columns = ["time", "change", "devices", "by", "state"].map((title) => ({ title }));
  by("history").replaceChildren(rows.length ? table("", [...columns, { title: "", action: true }], rows) : element("p", { class: "soft" }, "None yet."));
}

function state(change) {
  if (change.State === "Running") return element("progress", { max: 100, value: change.Percent, "aria-label": `${change.Percent} %` });
  if (change.Problem) return element("span", { class: "bad" }, change.Problem);
  return "done";
}

// The change that undoes one, null if it cannot be undone: its blocks must still be where it left them.
function reverse(change, owner, taken) {
  if (change.State !== "Completed") return null;
  const { Composition, Blocks, Server } = change;
  const free = Blocks.every((name) => !owner.get(name));
  if (change.Action === "compose") return change.Exists ? { Action: "release", Composition, Server, Blocks } : null;
  if (change.Action === "release") return !change.Exists && Server && Blocks.length && free && !taken.has(Server) ? { Action: "compose", Composition, Server, Blocks } : null;
  if (!change.Exists) return null;
  if (change.Action === "attach") return Blocks.every((name) => owner.get(name) === Composition) ? { Action: "detach", Composition, Blocks } : null;
  return change.Action === "detach" && free ? { Action: "attach", Composition, Blocks } : null;
}

export function addEvent(record) {
  const severity = { OK: null, Warning: "warn", Critical: "bad" }[record.MessageSeverity];
  const place = by("events");
  place.prepend(element("li", { class: "fresh" }, clock(record.EventTimestamp), " ", element("span", { class: severity }, record.Message)));
  while (place.children.length > MOST_EVENTS) place.lastElementChild.remove();
}
