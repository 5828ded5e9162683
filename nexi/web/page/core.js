// What every part of the page shares: calls to the server, small makers of elements, and the lines that tell how it stands.
import { joinSentences, remember, say, tell } from "./texts.js";

export const $ = (id) => document.getElementById(id);

const token = () => sessionStorage.getItem("nexi-token") || "";

export const withToken = (headers = {}) => (token() ? { ...headers, authorization: `Bearer ${token()}` } : headers);

export async function call(path, options = {}) {
  const used = token(), headers = withToken({ ...(typeof options.body === "string" ? { "content-type": "application/json" } : {}), ...options.headers });
  const answer = await fetchPatiently(path, { ...options, headers });
  if (answer.status === 401) return token() === used ? askForToken(path, options) : call(path, options); // another call was given one since
  const data = answer.headers.get("content-type")?.includes("json") ? remember(await answer.json()) : await answer.text();
  if (!answer.ok) throw Object.assign(new Error(problemOf(data) || say("core.status", { status: String(answer.status) })), { status: answer.status, problem: errorOf(data) });
  return data;
}

// A network that changes breaks off what is under way; what only looks may be asked again.
async function fetchPatiently(path, options) {
  for (let tries = 0; ; tries++) {
    try { return await fetch(path, options); } catch (error) {
      if (tries === 2 || (options.method && options.method !== "GET")) throw error instanceof TypeError ? new Error(say("core.unreachable")) : error;
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
  }
}

let asking = null; // several calls may find out at once that a token is wanted

async function askForToken(path, options) {
  const dialog = $("token"), field = $("token-text");
  asking ??= new Promise((resolve) => {
    field.value = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? field.value.trim() : ""), { once: true });
    dialog.showModal();
  }).finally(() => { asking = null; });
  const given = await asking;
  if (!given) throw new Error(say("core.no_token"));
  sessionStorage.setItem("nexi-token", given);
  return call(path, options);
}

// The error of a reply, whatever its shape.
export function errorOf(data) {
  if (!data || typeof data !== "object") return {};
  const e = data.error && typeof data.error === "object" ? data.error : data;
  return { code: e.code, message: e.message || e.error, cause: e.cause, fix: e.fix };
}

export function problemOf(data) {
  const { message, cause, fix } = errorOf(data);
  return [message, cause, fix].filter((part) => typeof part === "string" && part).reduce((told, part) => (told ? joinSentences(told, part) : part), "");
}

export const capitalise = (text) => (!text || /^https?:/.test(text) ? text : text[0].toUpperCase() + text.slice(1)); // an address stays as it is

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = element("textarea", { value: text, className: "unseen" }); // without TLS there is no clipboard to write to
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

export const hostOf = (url) => { try { return new URL(url).hostname; } catch { return url; } };
export function setStatus(text) { $("status").textContent = text; }
export function addNote(text, isError = false) { $("notes").append(tell(element("p", { className: isError ? "error" : "" }), text, capitalise)); }
export function showHint(text) { $("hint").textContent = text; $("hint").hidden = !text; }
