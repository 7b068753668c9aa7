// The page of a director: reads the pool, shows it, and makes changes; in what-if mode it only shows what they would do.

import { draw, legend, toggleWidth } from "./drawing.js";
import { by, element, gb, list, notice } from "./elements.js";
import { addEvent, said, showHistory } from "./history.js";
import * as offers from "./offers.js";
import * as service from "./service.js";
import { showDevice, showTenants } from "./tenants.js";

let fabric = null; // of today
let shown = null; // the same, or as it would be
let rates = new Map();
let plan = null; // the changes of what-if, null outside of it
let unfollow = null;
let reading = null;
let stale = false;

// --- reading and showing ---

async function refresh() {
  if (reading) {
    stale = true;
    return reading;
  }
  reading = readAll().finally(() => (reading = null));
  await reading;
  if (stale) {
    stale = false;
    await refresh();
  }
  return undefined;
}

async function readAll() {
  try {
    const [current, changes] = await Promise.all([service.fabric(), service.history()]);
    fabric = current;
    by("system").textContent = current.Title || current.System;
    showHistory(changes, fabric, act);
    await show();
  } catch (error) {
    if (error.status === 401) return leave();
    notice(error);
  }
  return undefined;
}

async function show() {
  const after = plan ? await service.whatIf(plan) : null;
  let svg;
  if (after) {
    svg = after.Svg;
    shown = imagined(after);
    rates = new Map(after.Compositions.map((one) => [one.Name, one.Rates]));
  } else {
    const names = fabric.Compositions.map((one) => one.Name);
    const [text, ...reports] = await Promise.all([service.drawing(), ...names.map((name) => service.rates(name).catch(() => []))]);
    svg = text;
    shown = fabric;
    rates = new Map(names.map((name, number) => [name, reports[number]]));
  }
  const moved = new Set((plan ?? []).flatMap((change) => change.Blocks));
  draw(svg, shown, moved, (name) => showDevice(name, shown, rates, act));
  legend(shown);
  offers.update(shown);
  showTenants(shown, rates, act);
  showPlan();
}

// The fabric of today with the compositions of a what-if answer.
function imagined(after) {
  const owner = new Map(after.Compositions.flatMap((one) => one.Blocks.map((name) => [name, one.Name])));
  const Devices = fabric.Devices.map((device) =>
    device.Block && ["Unused", "Composed"].includes(device.State)
      ? { ...device, Composition: owner.get(device.Name) ?? null, State: owner.has(device.Name) ? "Composed" : "Unused" }
      : device,
  );
  return { ...fabric, Devices, Compositions: after.Compositions.map((one) => ({ ...one, State: "what if" })) };
}

// --- changes ---

// Makes changes one after the other, or adds them to a what-if; whether all went well.
async function act(...changes) {
  notice(null);
  if (plan) return propose(changes);
  const before = rates;
  let applied = 0;
  let failed = null;
  document.body.setAttribute("aria-busy", "true");
  try {
    for (const change of changes) {
      await service.make(change);
      applied += 1;
    }
  } catch (error) {
    const back = returned(changes[applied - 1], changes[applied]);
    if (back && (await service.make(back).then(() => true, () => false))) error.message = `${list(back.Blocks)} stays with ${back.Composition}. ${error.message}`;
    else if (changes.length > 1) error.message = `${applied} of ${changes.length} changes are done. ${error.message}`;
    failed = error;
  }
  document.body.removeAttribute("aria-busy");
  const done = changes.slice(0, applied).map((change) => said(change, true)).join("; ");
  notice(failed, `Done: ${done}.`);
  await refresh();
  if (!failed) notice(null, `Done: ${done}.`, lost(before, changes));
  return !failed;
}

// The change that gives a device back where a move took it from; null if the two changes are no move.
function returned(first, second) {
  const moved = first?.Action === "detach" && second.Action === "attach" && first.Blocks[0] === second.Blocks[0];
  return moved ? { Action: "attach", Composition: first.Composition, Blocks: first.Blocks } : null;
}

// What compositions other than the changed ones have lost.
function lost(before, changes) {
  const own = new Set(changes.map((change) => change.Composition));
  const lines = [];
  for (const [name, rows] of rates) {
    const earlier = new Map((before.get(name) ?? []).map((row) => [row.Device, row.PredictedGBps]));
    const less = rows.filter((row) => row.PredictedGBps < (earlier.get(row.Device) ?? 0) - 0.005);
    const each = less.map((row) => `${row.Device} ${gb(earlier.get(row.Device))} → ${gb(row.PredictedGBps)}`);
    if (each.length && !own.has(name)) lines.push(`${name} gets less: ${list(each)} GB/s predicted.`);
  }
  return lines;
}

async function propose(changes) {
  const before = plan;
  const bare = changes.map(({ Action, Composition, Server, Blocks }) => ({ Action, Composition, Server: Server ?? "", Blocks }));
  plan = [...plan, ...bare];
  try {
    await show();
  } catch (error) {
    plan = before;
    notice(error);
    return false;
  }
  return true;
}

async function chosen(kind, offer, paths, name) {
  const server = offer.Server;
  const change = { Action: "compose", Composition: name || `on-${server}`, Server: server, Blocks: offer.Blocks, Paths: paths };
  if (kind === "try" && !plan) plan = [];
  by("offers").replaceChildren();
  if (await act(kind === "try" || name ? change : { ...change, Composition: plan ? change.Composition : "" })) by("name").value = "";
}

// --- what if ---

function showPlan() {
  by("whatif-bar").hidden = plan === null;
  by("whatif-start").hidden = plan !== null;
  if (plan === null) return;
  const entries = plan.map((change) => element("li", {}, said(change)));
  by("whatif-changes").replaceChildren(...(entries.length ? entries : [element("li", { class: "soft" }, "nothing yet: add, take back, compose or release below")]));
  by("whatif-apply").disabled = by("whatif-back").disabled = !plan.length;
}

async function setPlan(value) {
  plan = value;
  notice(null);
  await show();
  (plan ? by("whatif-end") : by("whatif-start")).focus();
}

async function applyPlan() {
  const changes = plan;
  plan = null;
  rates = new Map(fabric.Compositions.map((one) => [one.Name, Object.entries(one.Rates).map(([Device, PredictedGBps]) => ({ Device, PredictedGBps }))]));
  await act(...changes);
}

// --- coming and going ---

function enter() {
  by("login").hidden = true;
  by("director").hidden = by("account").hidden = false;
  by("user").textContent = service.user();
  unfollow ??= service.follow(
    (record) => {
      addEvent(record);
      refresh();
    },
    (live) => {
      by("connection").className = live ? "state live" : "state lost";
      by("connection").textContent = live ? "live" : "no connection to the director";
      if (live) refresh();
    },
  );
}

function leave() {
  unfollow?.();
  unfollow = plan = null;
  by("director").hidden = by("account").hidden = true;
  by("connection").textContent = by("system").textContent = "";
  by("connection").className = "state";
  by("login").hidden = false;
  by("login-password").focus();
}

by("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  notice(null);
  try {
    await service.login(by("login-user").value, by("login-password").value);
    by("login-password").value = "";
    await refresh();
    enter();
    by("main").focus();
  } catch (error) {
    notice(error);
  }
});
by("logout").addEventListener("click", () => service.logout().catch(notice).finally(leave));
by("fit").addEventListener("click", toggleWidth);
by("whatif-start").addEventListener("click", () => setPlan([]));
by("whatif-end").addEventListener("click", () => setPlan(null));
by("whatif-back").addEventListener("click", () => setPlan(plan.slice(0, -1)));
by("whatif-apply").addEventListener("click", applyPlan);
offers.prepare(chosen);

try {
  await service.fabric();
  await refresh();
  enter();
} catch {
  leave();
}
