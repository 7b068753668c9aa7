// The question (how many of what, at least how fast) and the offers that answer it.

import { button, by, colour, element, gb, list, sorted, table } from "./elements.js";
import * as service from "./service.js";

let names = new Map(); // parts by kind

export function prepare(onOffer) {
  addNeed();
  by("more").addEventListener("click", () => addNeed());
  by("ask").addEventListener("submit", async (event) => {
    event.preventDefault();
    await ask(onOffer);
  });
}

function addNeed() {
  const need = by("need").content.firstElementChild.cloneNode(true);
  const kind = need.querySelector(".kind");
  const fill = () => parts(need);
  kind.addEventListener("change", fill);
  need.querySelector(".drop").addEventListener("click", () => {
    if (by("needs").querySelectorAll(".need").length > 1) need.remove();
  });
  by("needs").append(need);
  if (by("needs").querySelectorAll(".need").length > 1) {
    kind.value = "SSD";
    need.querySelector(".count").value = 1;
    kind.focus();
  }
  fill();
}

function parts(need) {
  const select = need.querySelector(".part");
  const chosen = select.value;
  const options = [...(names.get(need.querySelector(".kind").value) ?? [])];
  select.replaceChildren(element("option", { value: "" }, "any"), ...options.map(([part, title]) => element("option", { value: part }, title)));
  select.value = options.some(([part]) => part === chosen) ? chosen : "";
}

// Takes the servers and parts of the fabric into the form.
export function update(fabric) {
  names = new Map();
  for (const device of fabric.Devices) {
    if (!device.Block || !device.Part) continue;
    if (!names.has(device.Kind)) names.set(device.Kind, new Map());
    names.get(device.Kind).set(device.Part, device.Title);
  }
  for (const need of document.querySelectorAll("#needs .need")) parts(need);
  const select = by("server");
  const chosen = select.value;
  const taken = new Map(fabric.Compositions.map((one) => [one.Server, one.Name]));
  const options = fabric.Servers.map((name) =>
    element("option", { value: name, disabled: taken.has(name) }, taken.has(name) ? `${name} (has ${taken.get(name)})` : name),
  );
  select.replaceChildren(element("option", { value: "" }, "the best one"), ...options);
  select.value = fabric.Servers.includes(chosen) && !taken.has(chosen) ? chosen : "";
}

function question() {
  return [...document.querySelectorAll("#needs .need")].map((need) => ({
    DeviceType: need.querySelector(".kind").value,
    Count: Number(need.querySelector(".count").value),
    MinimumGBps: Number(need.querySelector(".rate").value) || null,
    Model: need.querySelector(".part").value,
  }));
}

async function ask(onOffer) {
  const paths = question();
  const place = by("offers");
  place.replaceChildren(element("p", { class: "soft" }, "predicting…"));
  try {
    const offers = await service.offers(paths, by("server").value);
    const title = offers.length === 1 ? "One offer" : `${offers.length} offers, the best first`;
    place.replaceChildren(element("h3", {}, title), ...offers.map((offer, rank) => card(offer, rank === 0, (kind) => onOffer(kind, offer, paths, by("name").value))));
  } catch (error) {
    refused(error, onOffer);
  }
}

function refused(error, onOffer) {
  const nearest = error.facts?.Nearest;
  const lines = [element("p", { class: "bad" }, error.message), error.hint ? element("p", { class: "soft" }, error.hint) : null];
  if (nearest) {
    lines.push(element("h3", {}, "The nearest that can be had"), card(nearest, true, (kind) => onOffer(kind, nearest, [], by("name").value)));
  }
  by("offers").replaceChildren(...lines.filter(Boolean));
}

function card(offer, open, onChoose) {
  const rates = offer.Paths.map((path) => [
    path.Device, gb(path.PredictedGBps), `${gb(path.LowGBps)} to ${gb(path.HighGBps)}`, gb(path.RequiredGBps),
    element("span", { title: `${path.Basis}: ${path.Sources.join("; ")}` }, path.Limit),
  ]);
  const columns = [{ title: "device" }, { title: "predicted GB/s", number: true }, { title: "interval", number: true }, { title: "required GB/s", number: true }, { title: "limit", long: true }];
  return element(
    "article", { class: "offer" },
    element("h3", {}, `${offer.Server}: ${list(sorted(offer.Blocks))}`),
    element("p", {}, `Predicted while everything is active: ${gb(offer.TotalGBps)} GB/s in all, the slowest device ${gb(Math.min(...offer.Paths.map((path) => path.PredictedGBps)))} GB/s`),
    losses(offer),
    element("details", { open }, element("summary", {}, "each device and what limits it"), table("", columns, rates)),
    element("div", { class: "buttons" }, button("Compose this", () => onChoose("make"), { class: "primary" }), button("Try it (what if)", () => onChoose("try"))),
  );
}

function losses(offer) {
  if (!offer.Losses.length) return element("p", { class: "good" }, "No other composition loses anything.");
  const by_name = Map.groupBy ? Map.groupBy(offer.Losses, (one) => one.Composition) : group(offer.Losses);
  const lines = [...by_name].map(([name, rows]) => {
    const lost = rows.reduce((sum, row) => sum + row.BeforeGBps - row.AfterGBps, 0);
    const each = rows.map((row) => `${row.Device} ${gb(row.BeforeGBps)} → ${gb(row.AfterGBps)}`);
    return element("p", { class: "warn" }, element("span", { class: "swatch", tenant: colour(name) }), `${name} loses ${gb(lost)} GB/s: ${list(each)}`);
  });
  return element("div", { class: "tenantless" }, ...lines);
}

function group(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.Composition, [...(groups.get(row.Composition) ?? []), row]);
  return groups;
}
