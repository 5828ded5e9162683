// What every part of the page shares: the state of the run that is shown, calls to the server, and small makers of elements.
export const $ = (id) => document.getElementById(id);
export const state = { id: "", source: null, last: "", text: "", started: 0, bars: [], people: new Map(), timer: 0, rendering: false, continues: "" };

export const token = () => sessionStorage.getItem("nexi-token") || "";

export async function call(path, options = {}) {
  const headers = { ...(options.body ? { "content-type": "application/json" } : {}), ...(token() ? { authorization: `Bearer ${token()}` } : {}) };
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) return askForToken(path, options);
  const data = answer.headers.get("content-type")?.includes("json") ? await answer.json() : await answer.text();
  if (!answer.ok) throw new Error(problemOf(data) || `the server answered ${answer.status}`);
  return data;
}

export async function askForToken(path, options) {
  const given = prompt("This nexi wants a token:");
  if (!given) throw new Error("no token was given");
  sessionStorage.setItem("nexi-token", given);
  return call(path, options);
}

export function problemOf(data) {
  if (!data || typeof data !== "object") return "";
  const e = data.error && typeof data.error === "object" ? data.error : data;
  return [e.message || e.error, e.cause, e.fix].filter((x) => typeof x === "string" && x).join(". ");
}

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export const hostOf = (url) => { try { return new URL(url).hostname; } catch { return url; } };
export function say(text) { $("status").textContent = text; }
export function note(text, isError = false) { $("notes").append(element("p", { textContent: text, className: isError ? "error" : "" })); }
export function hint(text) { $("hint").textContent = text; $("hint").hidden = false; }
