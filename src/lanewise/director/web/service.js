// The Redfish service: requests with the session cookie, errors with their cause, hint and nearest offer.

const ROOT = "/redfish/v1";
export const OEM = `${ROOT}/Oem/Lanewise`;

export class ServiceError extends Error {
  constructor(status, body) {
    const info = body?.error?.["@Message.ExtendedInfo"]?.[0];
    super(info?.Message ?? body?.error?.message ?? `the service answered ${status}`);
    this.status = status;
    this.hint = info?.Resolution === "None." ? "" : info?.Resolution ?? "";
    this.facts = info?.Oem?.Lanewise ?? {};
  }
}

// The answer to a request: its JSON, or its text where it is none.
export async function request(method, path, body) {
  const headers = { "X-Requested-With": "director page" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" });
  } catch {
    throw new ServiceError(0, { error: { message: "the director does not answer" } });
  }
  const text = await answer.text();
  const json = (answer.headers.get("content-type") ?? "").includes("json");
  const content = json && text ? JSON.parse(text) : text;
  if (!answer.ok) throw new ServiceError(answer.status, json ? content : null);
  return { content, headers: answer.headers, status: answer.status };
}

const read = async (path) => (await request("GET", path)).content;
const block = (name) => ({ "@odata.id": `${ROOT}/CompositionService/ResourceBlocks/${name}` });
const system = (name) => `${ROOT}/Systems/${encodeURIComponent(name)}`;

// --- sessions ---

export async function login(user, password) {
  const answer = await request("POST", `${ROOT}/SessionService/Sessions`, {
    UserName: user, Password: password, Oem: { Lanewise: { Cookie: true } },
  });
  sessionStorage.setItem("session", answer.headers.get("location"));
  sessionStorage.setItem("user", user);
}

export async function logout() {
  const session = sessionStorage.getItem("session");
  sessionStorage.clear();
  if (session) await request("DELETE", session);
}

export const user = () => sessionStorage.getItem("user") ?? "";

// --- what there is ---

export const fabric = () => read(`${OEM}/Fabric`);
export const drawing = () => read(`${OEM}/Drawing`);
export const history = async () => (await read(`${OEM}/History`)).Changes;
export const rates = async (name) => {
  const report = await read(`${ROOT}/TelemetryService/MetricReports/Predicted-${encodeURIComponent(name)}`);
  return report.MetricValues.map((value) => value.Oem?.Lanewise).filter(Boolean);
};
export const whatIf = async (changes) => (await request("POST", `${OEM}/WhatIf`, { Changes: changes })).content;

// --- offers and changes ---

const needs = (paths) => paths.map((path) => Object.fromEntries(Object.entries(path).filter(([, value]) => value !== null && value !== "")));

export async function offers(paths, server) {
  const oem = { Paths: needs(paths), ...(server ? { Server: server } : {}) };
  const answer = await request("POST", `${ROOT}/CompositionService/Actions/CompositionService.Compose`, {
    RequestFormat: "Manifest", RequestType: "Preview",
    Manifest: { Stanzas: [{ StanzaType: "ComposeSystem", StanzaId: "1", Request: { Oem: { Lanewise: oem } } }] },
  });
  return answer.content.Manifest.Stanzas[0].Response.Oem.Lanewise.Offers;
}

export function compose(server, blocks, paths = [], name = "") {
  return request("POST", `${ROOT}/Systems`, {
    ...(name ? { Name: name } : {}),
    Links: { ResourceBlocks: [server, ...blocks].map(block) },
    ...(paths.length ? { Oem: { Lanewise: { Paths: needs(paths) } } } : {}),
  });
}

const move = (verb) => (name, one) =>
  request("POST", `${system(name)}/Actions/ComputerSystem.${verb}`, { ResourceBlock: block(one) });
export const attach = move("AddResourceBlock");
export const detach = move("RemoveResourceBlock");
export const release = (name) => request("DELETE", system(name));

// Makes one change as the history and what-if write them: {Action, Composition, Server, Blocks, Paths}.
export async function make(change) {
  if (change.Action === "compose") return void await compose(change.Server, change.Blocks, change.Paths ?? [], change.Composition);
  if (change.Action === "release") return void await release(change.Composition);
  for (const one of change.Blocks) await (change.Action === "attach" ? attach : detach)(change.Composition, one);
}

// Calls `onEvent` for every event as it happens, from the stream; `onState` with whether it is connected.
export function follow(onEvent, onState) {
  const source = new EventSource(`${ROOT}/EventService/SSE`);
  source.onopen = () => onState(true);
  source.onerror = () => onState(false);
  source.onmessage = (message) => {
    for (const record of JSON.parse(message.data).Events ?? []) onEvent(record);
  };
  return () => source.close();
}
