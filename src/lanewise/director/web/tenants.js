// Composed systems with the predicted rates of their devices, the free devices, and the dialog of one device.

import { button, by, colour, element, gb, list, sorted, table } from "./elements.js";

// `rates` has for each composition its rows; a row of a what-if has TodayGBps too.
export function showTenants(fabric, rates, act) {
  const cards = fabric.Compositions.map((one) => tenant(one, rates.get(one.Name) ?? [], fabric, act));
  by("tenants").replaceChildren(...(cards.length ? cards : [element("p", { class: "soft" }, "None yet: ask for devices under Compose.")]));
  by("free").replaceChildren(free(fabric));
}

function tenant(one, rates, fabric, act) {
  const known = new Map(rates.map((rate) => [rate.Device, rate]));
  const rows = sorted(one.Blocks).map((name) => {
    const rate = known.get(name);
    const take = button("Take back", () => act({ Action: "detach", Composition: one.Name, Blocks: [name] }), { "aria-label": `Take ${name} back from ${one.Name}` });
    return [name, value(rate), rate ? gb(rate.RequiredGBps) : "–", rate?.Limit ?? "", take];
  });
  const columns = [{ title: "device" }, { title: "predicted GB/s", number: true }, { title: "required GB/s", number: true }, { title: "limit", long: true }, { title: "", action: true }];
  const choices = fabric.Devices.filter((device) => device.Block && !device.Composition && !device.Reservation && device.State === "Unused");
  const select = element("select", { "aria-label": `Device to add to ${one.Name}` }, ...choices.map((device) => element("option", { value: device.Name }, `${device.Name}, ${device.Title}`)));
  const add = button("Add", () => select.value && act({ Action: "attach", Composition: one.Name, Blocks: [select.value] }), { "aria-label": `Add the chosen device to ${one.Name}`, disabled: !choices.length });
  return element(
    "article", { class: "tenant", tenant: colour(one.Name) },
    element("div", { class: "heading" }, element("h3", {}, `${one.Name} on ${one.Server}`), element("span", { class: "soft" }, one.State ?? ""), button("Release", () => act({ Action: "release", Composition: one.Name, Server: one.Server, Blocks: one.Blocks }), { "aria-label": `Release ${one.Name}` })),
    table("", columns, rows),
    element("div", { class: "buttons" }, select, add),
  );
}

function value(rate) {
  if (!rate) return "–";
  const short = rate.RequiredGBps !== null && rate.PredictedGBps < rate.RequiredGBps * 0.999999;
  const changed = rate.TodayGBps !== undefined && Math.abs((rate.TodayGBps ?? 0) - rate.PredictedGBps) > 0.005;
  const text = !changed ? gb(rate.PredictedGBps) : rate.TodayGBps === null ? `${gb(rate.PredictedGBps)} (new)` : `${gb(rate.TodayGBps)} → ${gb(rate.PredictedGBps)}`;
  const worse = changed && rate.TodayGBps !== null && rate.PredictedGBps < rate.TodayGBps;
  return element("span", { class: short || worse ? "bad" : changed ? "good" : null, title: rate.Basis ? `${rate.Basis}: ${rate.Sources.join("; ")}` : null }, short ? `${text} (too little)` : text);
}

function free(fabric) {
  const groups = new Map();
  for (const device of fabric.Devices) {
    if (!device.Block || device.Composition) continue;
    const state = device.State === "Unused" ? (device.Reservation ? "reserved" : "free") : `${device.State}${device.Note ? `: ${device.Note}` : ""}`;
    const key = `${device.Title}|${state}`;
    groups.set(key, [...(groups.get(key) ?? []), device.Name]);
  }
  const rows = [...groups].map(([key, names]) => {
    const [title, state] = key.split("|");
    return [String(names.length), title, list(names), element("span", { class: state === "free" || state === "reserved" ? null : "bad" }, state)];
  });
  if (!rows.length) return element("p", { class: "soft" }, "Every device is given to somebody.");
  return table("", [{ title: "number", number: true }, { title: "part" }, { title: "devices", long: true }, { title: "state" }], rows);
}

// The dialog of one device: what it is, who has it, and what can be done with it.
export function showDevice(name, fabric, rates, act) {
  const device = fabric.Devices.find((one) => one.Name === name);
  const owner = fabric.Compositions.find((one) => one.Name === device.Composition);
  const rate = owner && (rates.get(owner.Name) ?? []).find((one) => one.Device === name);
  const facts = [["part", device.Title], ["state", device.State], ["owner", owner ? `${owner.Name} on ${owner.Server}` : "nobody"]];
  if (rate) facts.push(["predicted", `${gb(rate.PredictedGBps)} GB/s (${gb(rate.LowGBps)} to ${gb(rate.HighGBps)}), ${rate.Basis}`], ["limit", rate.Limit], ["path", rate.Path.join(" – ")], ["alone", `${gb(rate.AloneGBps)} GB/s while no other composition is active`]);
  if (device.Note) facts.push(["note", device.Note]);
  const dialog = by("device");
  const done = (...changes) => () => {
    dialog.close();
    act(...changes);
  };
  const others = fabric.Compositions.filter((one) => one !== owner);
  const buttons = owner
    ? [
      button(`Take back from ${owner.Name}`, done({ Action: "detach", Composition: owner.Name, Blocks: [name] })),
      ...others.map((one) => button(`Move to ${one.Name} on ${one.Server}`, done({ Action: "detach", Composition: owner.Name, Blocks: [name] }, { Action: "attach", Composition: one.Name, Blocks: [name] }))),
    ]
    : device.State === "Unused" && !device.Reservation
      ? fabric.Compositions.map((one) => button(`Add to ${one.Name} on ${one.Server}`, done({ Action: "attach", Composition: one.Name, Blocks: [name] })))
      : [];
  dialog.replaceChildren(
    element("h2", { id: "device-name" }, name),
    element("dl", {}, ...facts.flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)])),
    element("div", { class: "buttons" }, ...buttons, button("Close", () => dialog.close(), { autofocus: true })),
  );
  dialog.showModal();
}
