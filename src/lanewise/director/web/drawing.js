// The drawing of the fabric: the service's SVG, its devices made buttons, in the colours of who has them.

import { by, colour, element } from "./elements.js";

const sheet = new CSSStyleSheet();
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

// Shows an SVG; `fabric` says who has what, `onDevice` is called with the name of a device that is chosen.
export function draw(text, fabric, moved, onDevice) {
  // The page's policy allows no style in markup: it goes into a sheet, and the width is set below.
  const styles = /<style>([^]*?)<\/style>/;
  sheet.replaceSync(text.match(styles)?.[1] ?? "");
  const narrowest = text.match(/^<svg[^>]* style="min-width:([\d.]+)px"/)?.[1];
  const markup = text.replace(styles, "").replace(/^(<svg[^>]*) style="[^"]*"/, "$1");
  const parsed = new DOMParser().parseFromString(markup, "image/svg+xml").documentElement;
  for (const script of parsed.querySelectorAll("script, foreignObject")) script.remove();
  const svg = document.importNode(parsed, true);
  svg.removeAttribute("role");
  svg.style.setProperty("--narrowest", `${narrowest ?? 0}px`);
  svg.style.maxWidth = `${svg.getAttribute("width")}px`;
  const devices = new Map(fabric.Devices.map((device) => [device.Name, device]));
  for (const rect of svg.querySelectorAll("rect.device")) {
    const title = rect.querySelector("title");
    const device = devices.get(title?.textContent.split(",")[0]);
    if (device) mark(rect, title, device, moved, onDevice);
  }
  const place = by("drawing");
  const focused = document.activeElement?.dataset?.device;
  const scrolled = place.scrollLeft;
  place.replaceChildren(svg);
  place.scrollLeft = scrolled;
  fitted();
  if (focused) place.querySelector(`[data-device="${CSS.escape(focused)}"]`)?.focus();
}

// All of the drawing in the window's width, or again as wide as its text can be read.
export function toggleWidth() {
  by("drawing").classList.toggle("whole");
  fitted();
}

function fitted() {
  const place = by("drawing");
  const whole = place.classList.contains("whole");
  by("fit").hidden = !whole && place.scrollWidth <= place.clientWidth;
  by("fit").textContent = whole ? "Readable size" : "Show the whole fabric";
}

function mark(rect, title, device, moved, onDevice) {
  if (!device.Block) return;
  const owner = device.Composition;
  const state = owner ? `given to ${owner}` : device.State === "Unused" ? (device.Reservation ? "reserved" : "free") : device.State;
  title.textContent = `${device.Name}, ${device.Title}: ${state}`;
  rect.setAttribute("aria-label", title.textContent);
  rect.setAttribute("role", "button");
  rect.setAttribute("tabindex", "0");
  rect.dataset.device = device.Name;
  if (owner) {
    rect.classList.add("given");
    rect.style.setProperty("--tenant", colour(owner));
  }
  if (moved.has(device.Name)) rect.classList.add("moved");
  rect.addEventListener("click", () => onDevice(device.Name));
  rect.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onDevice(device.Name);
  });
}

export function legend(fabric) {
  const entries = fabric.Compositions.map((one) =>
    element("li", {}, element("span", { class: "swatch", tenant: colour(one.Name) }), `${one.Name} on ${one.Server}`),
  );
  by("legend").replaceChildren(...entries, element("li", {}, element("span", { class: "swatch free" }), "free"));
}
