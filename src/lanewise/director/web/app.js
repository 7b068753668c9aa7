// The page of a director: reads the pool, shows it, and makes changes; in what-if mode it only shows what they would do.

import { draw, legend } from "./drawing.js";
import { by, element, list, notice } from "./elements.js";
import { addEvent, showHistory } from "./history.js";
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
    const [found, changes] = await Promise.all([service.fabric(), service.history()]);
    fabric = found;
    by("system").textContent = found.Title || found.System;
    showHistory(changes, act);
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

async function act(change) {
  notice(null);
  if (plan) return propose(change);
  document.body.setAttribute("aria-busy", "true");
  try {
    await service.make(change);
    notice(null, `Done: ${words(change)}.`);
  } catch (error) {
    notice(error);
  }
  document.body.removeAttribute("aria-busy");
  return refresh();
}

async function propose(change) {
  const before = plan;
  plan = [...plan, { Action: change.Action, Composition: change.Composition, Server: change.Server ?? "", Blocks: change.Blocks }];
  try {
    await show();
  } catch (error) {
    plan = before;
    notice(error);
  }
}

function chosen(kind, offer, paths, name) {
  const server = offer.Server;
  const change = { Action: "compose", Composition: name || `on-${server}`, Server: server, Blocks: offer.Blocks, Paths: paths };
  if (kind === "try" && !plan) plan = [];
  by("offers").replaceChildren();
  return act(kind === "try" || name ? change : { ...change, Composition: plan ? change.Composition : "" });
}

function words(change) {
  const things = list(change.Blocks);
  if (change.Action === "compose") return `gave ${things} to ${change.Server}`;
  if (change.Action === "release") return `released ${change.Composition}`;
  return change.Action === "attach" ? `added ${things} to ${change.Composition}` : `took ${things} back from ${change.Composition}`;
}

// --- what if ---

function showPlan() {
  by("whatif-bar").hidden = plan === null;
  by("whatif-start").hidden = plan !== null;
  if (plan === null) return;
  const entries = plan.map((change) => element("li", {}, `${change.Action} ${change.Composition}: ${list(change.Blocks)}`));
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
  let made = 0;
  try {
    for (const change of changes) {
      await service.make(change);
      made += 1;
    }
    notice(null, `Done: ${made === 1 ? words(changes[0]) : `${made} changes`}.`);
  } catch (error) {
    error.message = `${made} of ${changes.length} changes are made. ${error.message}`;
    notice(error);
  }
  await refresh();
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
  by("login-user").focus();
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
